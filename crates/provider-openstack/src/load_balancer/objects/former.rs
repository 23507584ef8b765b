//! Describes a listener that is replaced by one of another protocol, as tags of the pool that stays. Octavia accepts the new
//! listener only when the old one is gone; if it refuses, the old one is restored, if need be by another process.

use std::collections::BTreeMap;

use openstack_ccm_openstack_api::octavia::{
    Fields as _, ListenerAttributes, ListenerProtocol, TlsAttributes, Value, Values,
};

use super::tls::SNI;
use super::{ListenerKey, ListenerSpec, ObservedListener, Tags, header, tls};

/// Prefix of all these tags; for example `openstack-ccm-former-listener-protocol=TCP`.
const BEGIN: &str = "openstack-ccm-former-listener-";
const CIPHERS: &str = "tls_ciphers";
const CERTIFICATE: &str = "certificate";
/// Octavia accepts tags of up to 255 characters.
const MAX_VALUE_LENGTH: usize = 200;

/// The attributes of a listener that depend on its protocol.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FormerListener {
    pub(crate) port: u16,
    pub(crate) protocol: ListenerProtocol,
    pub(crate) insert_headers: BTreeMap<String, String>,
    pub(crate) tls_container_ref: Option<String>,
    pub(crate) tls: TlsAttributes,
    /// Tags of the listener about headers and TLS.
    pub(crate) tags: Tags,
}

impl FormerListener {
    pub(crate) fn of(listener: &ObservedListener) -> Self {
        Self::with(listener.port, &listener.protocol, &listener.attributes, &listener.tags)
    }

    /// Returns these attributes of a listener that is wanted.
    pub(crate) fn of_wanted(listener: &ListenerSpec) -> Self {
        Self::with(listener.port, &listener.protocol, &listener.attributes, &listener.tags)
    }

    fn with(port: u16, protocol: &ListenerProtocol, attributes: &ListenerAttributes, tags: &Tags) -> Self {
        let none = Tags::new();
        Self {
            port,
            protocol: protocol.clone(),
            insert_headers: attributes.insert_headers.clone(),
            tls_container_ref: attributes.tls_container_ref.clone(),
            tls: attributes.tls.clone(),
            tags: &tls::stale(tags, &none) | &header::stale(tags, &none),
        }
    }

    pub(crate) fn key(&self) -> ListenerKey {
        ListenerKey::of(&self.protocol, self.port)
    }

    /// Returns the tags that contain all attributes: a list has a tag for each entry, a long text for each piece, numbered by position.
    pub(crate) fn to_tags(&self) -> Tags {
        let one = |name: &str, value: &str| format!("{BEGIN}{name}={value}");
        let list = |name: &str, values: Vec<String>| -> Vec<String> {
            let numbered = values.iter().enumerate();
            numbered.map(|(place, value)| one(name, &format!("{place:03}:{value}"))).collect()
        };
        let mut tags = vec![one("port", &self.port.to_string()), one("protocol", self.protocol.as_str())];
        tags.extend(
            self.insert_headers.iter().map(|(name, value)| one("header", &format!("{name}:{value}"))),
        );
        tags.extend(self.tags.iter().map(|tag| one("tag", tag)));
        let certificate = self.tls_container_ref.as_deref().map(|reference| (CERTIFICATE, pieces(reference)));
        let tls = self.tls.values();
        let of_tls = tls.iter().map(|(name, value)| (short(name), entries(name, value)));
        for (name, values) in certificate.into_iter().chain(of_tls) {
            // An empty list differs from none.
            tags.push(one(name, ""));
            tags.extend(list(name, values));
        }
        tags.into_iter().collect()
    }

    /// Parses the tags of a pool; `None` if they are incomplete.
    pub(crate) fn from_tags(tags: &Tags) -> Option<Self> {
        let values = |name: &str| {
            let begin = format!("{BEGIN}{name}=");
            tags.iter().filter_map(move |tag| tag.strip_prefix(&begin).map(str::to_owned)).collect::<Vec<_>>()
        };
        let list = |name: &str| {
            let values = values(name);
            let entries = values.iter().filter_map(|value| Some(value.split_once(':')?.1.to_owned()));
            (!values.is_empty()).then(|| entries.collect::<Vec<String>>())
        };
        let header =
            |value: String| value.rsplit_once(':').map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut tls = Values::default();
        for (name, _) in TlsAttributes::default().all().iter() {
            if let Some(entries) = list(short(name)) {
                tls.set(name, value(name, entries));
            }
        }
        Some(Self {
            port: values("port").pop()?.parse().ok()?,
            protocol: values("protocol").pop()?.as_str().into(),
            insert_headers: values("header").into_iter().filter_map(header).collect(),
            tls_container_ref: list(CERTIFICATE).map(|values| values.concat()),
            tls: tls.read()?,
            tags: values("tag").into_iter().collect(),
        })
    }
}

/// Returns whether a tag of a pool describes a former listener.
pub(crate) fn is_about_former(tag: &str) -> bool {
    tag.starts_with(BEGIN)
}

/// Returns the name of a TLS attribute in these tags.
fn short(name: &str) -> &str {
    match name {
        SNI => "sni",
        CIPHERS => "ciphers",
        "tls_versions" => "version",
        "alpn_protocols" => "alpn",
        other => other,
    }
}

/// Returns the parts of a value that become tags.
fn entries(name: &str, value: &Value) -> Vec<String> {
    let items = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    match value {
        // No reference contains a comma.
        Value::Array(_) if name == SNI => pieces(&items.collect::<Vec<_>>().join(",")),
        Value::Array(_) => items.map(str::to_owned).collect(),
        _ => pieces(value.as_str().unwrap_or_default()),
    }
}

/// Returns the value of these parts.
fn value(name: &str, entries: Vec<String>) -> Value {
    match name {
        SNI => entries.concat().split_terminator(',').collect(),
        CIPHERS => entries.concat().into(),
        _ => entries.into(),
    }
}

fn pieces(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(MAX_VALUE_LENGTH).map(|piece| piece.iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminated() -> FormerListener {
        let some = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect());
        FormerListener {
            port: 443,
            protocol: ListenerProtocol::TerminatedHttps,
            insert_headers: [("X-Forwarded-For".to_owned(), "true".to_owned())].into(),
            tls_container_ref: Some("https://barbican.example.org:9311/v1/secrets/1".to_owned()),
            tls: TlsAttributes {
                sni_container_refs: some(&[]),
                tls_versions: some(&["TLSv1.2", "TLSv1.3"]),
                tls_ciphers: Some("TLS_AES_256_GCM_SHA384:".repeat(30)),
                alpn_protocols: Some(vec!["h2".to_owned(), "http/1.1".to_owned()]),
            },
            tags: ["openstack-ccm-sets=tls-ciphers".to_owned()].into(),
        }
    }

    #[test]
    fn a_listener_is_read_from_its_tags_as_it_was() {
        let plain = FormerListener { tls: TlsAttributes::default(), tls_container_ref: None, ..terminated() };
        let long = |end: &str| format!("https://barbican.example.org/v1/{}/{end}", "x".repeat(220));
        let further = Some([long("1"), long("2"), "short".to_owned()].into());
        let tls = TlsAttributes { sni_container_refs: further, ..terminated().tls };
        let lengthy = FormerListener { tls_container_ref: Some(long("0")), tls, ..terminated() };
        for former in [terminated(), plain, lengthy] {
            let tags = former.to_tags();
            assert!(tags.iter().all(|tag| tag.len() <= 255 && is_about_former(tag)), "{tags:#?}");
            assert_eq!(FormerListener::from_tags(&tags), Some(former));
        }
        assert_eq!(FormerListener::from_tags(&Tags::new()), None);
    }
}
