//! The recorded answers, by file and name.

use std::path::PathBuf;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use openstack_ccm_openstack_api::transport::Response;
use serde::Deserialize;
use serde_json::Value;

pub(crate) const FILES: [&str; 10] = [
    "compute",
    "discovery",
    "full",
    "identity",
    "leaks",
    "lifecycle",
    "network",
    "quotas",
    "tls",
    "variants",
];

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Exchange {
    pub(crate) name: String,
    pub(crate) service: String,
    pub(crate) path: String,
    #[serde(default)]
    pub(crate) request: Option<Value>,
    pub(crate) status: u16,
    #[serde(default)]
    pub(crate) headers: std::collections::BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) response: Option<Value>,
}

impl Exchange {
    pub(crate) fn body(&self) -> Bytes {
        self.response.as_ref().map(Value::to_string).unwrap_or_default().into()
    }

    pub(crate) fn answer(&self) -> Response {
        let headers = self.headers.iter().map(|(name, value)| {
            (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
        });
        Response {
            status: StatusCode::from_u16(self.status).unwrap(),
            headers: headers.collect::<HeaderMap>(),
            body: self.body(),
        }
    }
}

pub(crate) fn file(name: &str) -> Vec<Exchange> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/recorded/{name}.json"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

pub(crate) fn exchange(file_name: &str, name: &str) -> Exchange {
    file(file_name)
        .into_iter()
        .find(|exchange| exchange.name == name)
        .unwrap_or_else(|| panic!("{file_name}.json has no exchange {name:?}"))
}
