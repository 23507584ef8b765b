//! The service catalog of a token.

use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer};
use url::Url;

use super::Interface;
use crate::decode::null_as_default;

/// Which services there are and where. Entries that cannot be used, such as one without an address, are passed over: they must
/// not keep a controller from the services that it needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Catalog {
    #[serde(deserialize_with = "null_as_default")]
    services: Vec<CatalogService>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
struct CatalogService {
    #[serde(rename = "type", default, deserialize_with = "null_as_default")]
    kind: String,
    #[serde(default, deserialize_with = "null_as_default")]
    endpoints: Vec<Endpoint>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
struct Endpoint {
    #[serde(default, deserialize_with = "null_as_default")]
    interface: String,
    #[serde(default)]
    region: Option<String>,
    #[serde(default)]
    region_id: Option<String>,
    #[serde(default, deserialize_with = "usable_url")]
    url: Option<Url>,
}

fn usable_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Url>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.and_then(|text| Url::parse(text.trim()).ok()).filter(Url::has_host))
}

impl Endpoint {
    fn is_in(&self, region: &str) -> bool {
        self.region.as_deref() == Some(region) || self.region_id.as_deref() == Some(region)
    }

    /// Catalogs carried over from identity v2 write `publicURL`.
    fn is_for(&self, interface: Interface) -> bool {
        self.interface.strip_suffix("URL").unwrap_or(&self.interface) == interface.as_str()
    }
}

impl Catalog {
    /// Address of a service: the first endpoint of this interface, in this region if one is given. A region matches by id or
    /// by name.
    pub fn endpoint(&self, service_type: &str, interface: Interface, region: Option<&str>) -> Option<&Url> {
        self.services
            .iter()
            .filter(|service| service.kind == service_type)
            .flat_map(|service| &service.endpoints)
            .filter(|endpoint| endpoint.is_for(interface))
            .filter(|endpoint| region.is_none_or(|region| endpoint.is_in(region)))
            .find_map(|endpoint| endpoint.url.as_ref())
    }

    /// Every region that has an endpoint, in alphabetical order.
    pub fn regions(&self) -> Vec<String> {
        let endpoints = self.services.iter().flat_map(|service| &service.endpoints);
        let regions: BTreeSet<&String> = endpoints
            .filter_map(|endpoint| endpoint.region_id.as_ref().or(endpoint.region.as_ref()))
            .collect();
        regions.into_iter().cloned().collect()
    }
}
