//! What a Service asks for, as its object says. Read strictly: a value of the wrong form asks for nothing, so that what
//! was asked for before goes on.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Owner;
use crate::contract::setup::INTERNAL;
use crate::support::{ANNOTATION, PROXY};

/// Transport protocol and port.
pub(super) type Key = (String, u64);

/// What a Service asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wish {
    /// Whether it is there and wants a load balancer.
    pub(super) alive: bool,
    /// Node port by port.
    pub(super) ports: BTreeMap<Key, Option<u64>>,
    pub(super) internal: bool,
    /// Whether a header is inserted that says what the PROXY protocol says.
    names_client: bool,
    x_forwarded_proto: bool,
    /// Reference of the certificate.
    tls: Option<String>,
    proxy: Proxy,
    /// A load balancer that is not the Service's own.
    pub(super) load_balancer_id: Option<String>,
    pub(super) address: Option<String>,
    hostname: Option<String>,
    /// Whether the load balancers of the Service are published by a name made of the address.
    ingress_hostname: String,
    ip_mode: String,
    /// Labels that nodes must have.
    selector: BTreeMap<String, Option<String>>,
}

/// PROXY protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Proxy {
    #[default]
    Off,
    All(&'static str),
    Ports(BTreeMap<u64, &'static str>),
}

impl Wish {
    /// What a version of a Service asks for; `names` are those of all load balancers by id.
    pub(super) fn of(
        owner: &Owner,
        service: &Value,
        before: Option<&Self>,
        names: &BTreeMap<String, String>,
    ) -> Self {
        let before = before.cloned().unwrap_or_default();
        let (spec, metadata) = (&service["spec"], &service["metadata"]);
        let annotation = |key: &str| {
            let key = if key.contains('/') { key.to_owned() } else { format!("{ANNOTATION}{key}") };
            metadata["annotations"][key].as_str().filter(|value| !value.is_empty()).map(str::to_owned)
        };
        let is_true = |key: &str| annotation(key).as_deref() == Some("true");
        let named = annotation("load-balancer-id")
            .filter(|id| names.get(id).is_some_and(|name| Owner::of_name(name).as_ref() != Some(owner)));
        Self {
            alive: spec["type"] == "LoadBalancer" && metadata["deletionTimestamp"].is_null(),
            ports: ports(spec),
            internal: is_true(INTERNAL),
            names_client: is_true("x-forwarded-for") || is_true("x-forwarded-port"),
            x_forwarded_proto: is_true("x-forwarded-proto"),
            tls: annotation("default-tls-container-ref"),
            proxy: match annotation(PROXY) {
                Some(value) => proxy(&value).unwrap_or(before.proxy),
                None => Proxy::Off,
            },
            load_balancer_id: named,
            address: spec["loadBalancerIP"].as_str().map(str::to_owned),
            hostname: match annotation("hostname") {
                Some(value) if is_hostname(&value) => Some(value),
                Some(_) => before.hostname,
                None => None,
            },
            ingress_hostname: match annotation("enable-ingress-hostname") {
                Some(value) if ["true", "false"].contains(&value.as_str()) => value,
                Some(_) => before.ingress_hostname,
                None => String::new(),
            },
            ip_mode: match annotation("ip-mode") {
                Some(value) if ["auto", "proxy", "vip"].contains(&value.as_str()) => value,
                Some(_) => before.ip_mode,
                None => String::new(),
            },
            selector: match annotation("node-selector") {
                Some(value) => selector(&value).unwrap_or(before.selector),
                None => BTreeMap::new(),
            },
        }
    }

    /// Whether the Service names this hostname.
    pub(super) fn names(&self, hostname: &str) -> bool {
        self.hostname.as_deref() == Some(hostname)
    }

    /// What decides which address is published. A hostname is published where the address has no mode of its own, which is a
    /// matter of PROXY protocol, headers and TLS.
    pub(super) fn published_by(&self) -> impl PartialEq {
        let headers = self.names_client || self.x_forwarded_proto;
        let path = (self.proxy.clone(), headers, self.tls.clone());
        (
            (self.hostname.is_some() || self.ingress_hostname == "true").then_some(path),
            self.internal,
            self.address.clone(),
            self.load_balancer_id.clone(),
            self.hostname.clone(),
            self.ingress_hostname.clone(),
            self.ip_mode.clone(),
        )
    }

    /// The protocols of the listener and of the pool of a port. `None` where no such pair can be had.
    pub(super) fn protocols(&self, key: &Key) -> Option<(&'static str, &'static str)> {
        match key.0.as_str() {
            "UDP" => return Some(("UDP", "UDP")),
            "SCTP" => return Some(("SCTP", "SCTP")),
            _ => {}
        }
        let proxy = match &self.proxy {
            Proxy::Off => None,
            Proxy::All(version) => Some(*version),
            Proxy::Ports(ports) => ports.get(&key.1).copied(),
        };
        let listed = matches!(self.proxy, Proxy::Ports(_)) && proxy.is_some();
        let names_client = self.names_client && !listed;
        let speaks_http = names_client || self.x_forwarded_proto;
        let listener = match (self.tls.is_some(), speaks_http) {
            (true, _) => "TERMINATED_HTTPS",
            (false, true) => "HTTP",
            (false, false) => "TCP",
        };
        match proxy {
            Some(_) if names_client => None,
            Some(proxy) => Some((listener, proxy)),
            None => Some((listener, if listener == "TCP" { "TCP" } else { "HTTP" })),
        }
    }

    /// Whether a node is to be a member.
    pub(super) fn selects(&self, node: &NodeState) -> bool {
        self.selector.iter().all(|(key, value)| {
            node.labels.get(key).is_some_and(|label| value.as_ref().is_none_or(|value| value == label))
        })
    }
}

fn ports(spec: &Value) -> BTreeMap<Key, Option<u64>> {
    let ports = spec["ports"].as_array().into_iter().flatten();
    ports
        .map(|port| {
            let protocol = port["protocol"].as_str().unwrap_or("TCP").to_owned();
            ((protocol, port["port"].as_u64().unwrap_or_default()), port["nodePort"].as_u64())
        })
        .collect()
}

fn version(text: &str) -> Option<&'static str> {
    match text {
        "v1" => Some("PROXY"),
        "v2" => Some("PROXYV2"),
        _ => None,
    }
}

/// Absent where the text is of no right form.
fn proxy(text: &str) -> Option<Proxy> {
    match text {
        "false" => return Some(Proxy::Off),
        "true" => return Some(Proxy::All("PROXY")),
        _ => {}
    }
    if let Some(version) = version(text) {
        return Some(Proxy::All(version));
    }
    let ports = text.split(',').map(|item| {
        let (form, port) = item.trim().split_once(':')?;
        Some((port.parse().ok()?, version(form)?))
    });
    ports.collect::<Option<_>>().map(Proxy::Ports)
}

fn selector(text: &str) -> Option<BTreeMap<String, Option<String>>> {
    let items = text.split(',').filter(|item| !item.is_empty()).map(|item| {
        let (key, value) = item.split_once('=').map_or((item, None), |(key, value)| (key, Some(value)));
        let fits =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte));
        let right = !key.is_empty() && fits(key) && value.is_none_or(fits);
        right.then(|| (key.to_owned(), value.map(str::to_owned)))
    });
    items.collect()
}

fn is_hostname(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    text.bytes().all(fits) && !text.starts_with(['.', '-']) && !text.ends_with(['.', '-'])
}

/// A node, as far as it may be a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeState {
    pub(super) addresses: BTreeSet<String>,
    labels: BTreeMap<String, String>,
    /// Whether Kubernetes wants it behind load balancers.
    pub(super) included: bool,
}

impl NodeState {
    pub(super) fn of(node: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (metadata, status, spec) = (&node["metadata"], &node["status"], &node["spec"]);
        let addresses = status["addresses"].as_array().into_iter().flatten();
        let labels: BTreeMap<String, String> = metadata["labels"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.clone(), text(value)))
            .collect();
        let tainted = spec["taints"].as_array().into_iter().flatten();
        let leaves = tainted.clone().any(|taint| taint["key"] == "ToBeDeletedByClusterAutoscaler");
        let unknown =
            tainted.clone().any(|taint| taint["key"] == "node.cloudprovider.kubernetes.io/uninitialized");
        let included = !labels.contains_key("node.kubernetes.io/exclude-from-external-load-balancers")
            && !leaves
            && !unknown
            && metadata["deletionTimestamp"].is_null();
        Self { addresses: addresses.map(|one| text(&one["address"])).collect(), labels, included }
    }
}
