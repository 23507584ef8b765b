//! `[LoadBalancerNamespace "name"]`.

use std::collections::BTreeSet;

use super::key::{Field, Key, Parsed, key, since};
use crate::config::error::ValueFault;

/// The name of the section for all namespaces that have none of their own.
pub const ANY_NAMESPACE: &str = "*";

/// What the Services of a namespace may refer to. An absent list allows everything, an empty one nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadBalancerNamespace {
    /// Networks.
    pub networks: Option<BTreeSet<String>>,
    /// Subnets.
    pub subnets: Option<BTreeSet<String>>,
    /// Ports.
    pub ports: Option<BTreeSet<String>>,
    /// Load balancers that were made for others.
    pub load_balancers: Option<BTreeSet<String>>,
    /// Containers and secrets with certificates: their ids, or references as they are written.
    pub secrets: Option<BTreeSet<String>>,
    /// Addresses and networks of them.
    pub addresses: Option<BTreeSet<String>>,
}

impl LoadBalancerNamespace {
    /// The keys of the section.
    pub const KEYS: &'static [Key<Self>] = &[
        since(
            "0.1.0",
            key(
                "allowed-networks",
                Field::Form { form: "list of ids", set: |section, text| list(&mut section.networks, text) },
                "Networks that `network-id` and `floating-network-id` may name.",
            ),
        ),
        since(
            "0.1.0",
            key(
                "allowed-subnets",
                Field::Form { form: "list of ids", set: |section, text| list(&mut section.subnets, text) },
                "Subnets that `subnet-id`, `member-subnet-id` and `floating-subnet-id` may name. With it `floating-subnet` and `floating-subnet-tags` are refused.",
            ),
        ),
        since(
            "0.1.0",
            key(
                "allowed-ports",
                Field::Form { form: "list of ids", set: |section, text| list(&mut section.ports, text) },
                "Ports that `port-id` may name.",
            ),
        ),
        since(
            "0.1.0",
            key(
                "allowed-load-balancers",
                Field::Form {
                    form: "list of ids",
                    set: |section, text| list(&mut section.load_balancers, text),
                },
                "Load balancers of others that `load-balancer-id` may name. A Service may always use its own.",
            ),
        ),
        since(
            "0.1.0",
            key(
                "allowed-secrets",
                Field::Form { form: "list of ids", set: |section, text| list(&mut section.secrets, text) },
                "Containers and secrets that `default-tls-container-ref` and `sni-container-refs` may name, by id or whole reference.",
            ),
        ),
        since(
            "0.1.0",
            key(
                "allowed-addresses",
                Field::Form {
                    form: "list of CIDRs",
                    set: |section, text| cidrs(&mut section.addresses, text),
                },
                "Networks of the addresses that `spec.loadBalancerIP` may ask for.",
            ),
        ),
    ];
}

fn list(target: &mut Option<BTreeSet<String>>, text: &str) -> Parsed {
    let items = text.split([',', ' ', '\t']).filter(|item| !item.is_empty());
    target.get_or_insert_default().extend(items.map(str::to_owned));
    Ok(None)
}

fn cidrs(target: &mut Option<BTreeSet<String>>, text: &str) -> Parsed {
    for item in text.split([',', ' ', '\t']).filter(|item| !item.is_empty()) {
        if item.parse::<ipnet::IpNet>().is_err() {
            let fault =
                ValueFault::new(format!("`{item}` is not a CIDR"), "write networks such as `203.0.113.0/24`");
            return Err(fault);
        }
    }
    list(target, text)
}
