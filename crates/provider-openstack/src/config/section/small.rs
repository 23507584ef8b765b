//! The sections with a few keys: classes, namespaces, `[Networking]`, `[Route]` and `[Metadata]`.

use std::collections::BTreeSet;
use std::time::Duration;

use ipnet::IpNet;
use openstack_ccm_openstack_api::identity::AuthOptions;

use super::key::{Field, Key, Parsed, added_key, defaulting_key, key, key_since_0_3, text};
use crate::config::error::ValueFault;

/// A class of load balancers, chosen by a Service's annotation `loadbalancer.openstack.org/class`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadBalancerClass {
    /// Network of floating IPs.
    pub floating_network_id: Option<String>,
    /// Subnet of floating IPs.
    pub floating_subnet_id: Option<String>,
    /// Pattern for the name of the floating IP's subnet: a name, a glob, or `~` and a regular expression; `!` negates.
    pub floating_subnet: Option<String>,
    /// Tags of the floating IP's subnet.
    pub floating_subnet_tags: Option<String>,
    /// Network of the VIP.
    pub network_id: Option<String>,
    /// Subnet of the VIP.
    pub subnet_id: Option<String>,
    pub member_subnet_id: Option<String>,
}

impl LoadBalancerClass {
    pub const KEYS: &'static [Key<Self>] = &[
        text(
            "floating-network-id",
            |class| &mut class.floating_network_id,
            "Network of new floating IPs. Overrides annotation and `[LoadBalancer]`.",
        ),
        text(
            "floating-subnet-id",
            |class| &mut class.floating_subnet_id,
            "Subnet of new floating IPs. If a class has any of the three `floating-subnet` keys, they override those of annotation and `[LoadBalancer]`.",
        ),
        text(
            "floating-subnet",
            |class| &mut class.floating_subnet,
            "Pattern for the name of the floating IP's subnet, as in `[LoadBalancer]`.",
        ),
        text(
            "floating-subnet-tags",
            |class| &mut class.floating_subnet_tags,
            "Tags of the floating IP's subnet, as in `[LoadBalancer]`.",
        ),
        text("network-id", |class| &mut class.network_id, "Network of the VIP."),
        text("subnet-id", |class| &mut class.subnet_id, "Subnet of the VIP."),
        text("member-subnet-id", |class| &mut class.member_subnet_id, "Subnet of the members."),
    ];
}

/// The name of the section for all namespaces without a section of their own.
pub const ANY_NAMESPACE: &str = "*";

/// What the Services of a namespace may refer to and leave behind. An absent list allows everything, an empty one nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadBalancerNamespace {
    pub networks: Option<BTreeSet<String>>,
    pub subnets: Option<BTreeSet<String>>,
    pub ports: Option<BTreeSet<String>>,
    /// Load balancers that were made for other owners.
    pub load_balancers: Option<BTreeSet<String>>,
    /// Containers and secrets with certificates, by id or complete reference.
    pub secrets: Option<BTreeSet<String>>,
    /// Addresses and networks.
    pub addresses: Option<BTreeSet<String>>,
    /// Whether load balancers may outlive their Services.
    pub allow_retain: bool,
}

impl Default for LoadBalancerNamespace {
    fn default() -> Self {
        Self {
            networks: None,
            subnets: None,
            ports: None,
            load_balancers: None,
            secrets: None,
            addresses: None,
            allow_retain: true,
        }
    }
}

impl LoadBalancerNamespace {
    pub const KEYS: &'static [Key<Self>] = &[
        added_key(
            "allowed-networks",
            Field::Form { form: "list of ids", set: |section, text| list(&mut section.networks, text) },
            "",
            "Networks that `network-id` and `floating-network-id` may name.",
        ),
        added_key(
            "allowed-subnets",
            Field::Form { form: "list of ids", set: |section, text| list(&mut section.subnets, text) },
            "",
            "Subnets that `subnet-id`, `member-subnet-id` and `floating-subnet-id` may name. If this key is set, `floating-subnet` and `floating-subnet-tags` are refused.",
        ),
        added_key(
            "allowed-ports",
            Field::Form { form: "list of ids", set: |section, text| list(&mut section.ports, text) },
            "",
            "Ports that `port-id` may name.",
        ),
        added_key(
            "allowed-load-balancers",
            Field::Form { form: "list of ids", set: |section, text| list(&mut section.load_balancers, text) },
            "",
            "Load balancers of other owners that `load-balancer-id` may name. A Service may always use its own load balancer. A load balancer that has the name of the Service's own, but no tags and no node of this cluster among its members, counts as one of another owner.",
        ),
        added_key(
            "allowed-secrets",
            Field::Form { form: "list of ids", set: |section, text| list(&mut section.secrets, text) },
            "",
            "Containers and secrets that `default-tls-container-ref` and `sni-container-refs` may name, by id or whole reference.",
        ),
        added_key(
            "allowed-addresses",
            Field::Form { form: "list of CIDRs", set: |section, text| cidrs(&mut section.addresses, text) },
            "",
            "Networks of the addresses that `spec.loadBalancerIP` may ask for.",
        ),
        key_since_0_3(
            "allow-retain",
            Field::Bool(|section| &mut section.allow_retain),
            "true",
            "Whether `reclaim-policy: retain` lets load balancers and their floating IPs outlive the Services. With `false` it is ignored with a Warning.",
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
        if item.parse::<IpNet>().is_err() {
            let fault =
                ValueFault::new(format!("`{item}` is not a CIDR"), "write networks such as `203.0.113.0/24`");
            return Err(fault);
        }
    }
    list(target, text)
}

/// Which addresses of servers become addresses of nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networking {
    /// Drops IPv6 addresses of nodes.
    pub ipv6_support_disabled: bool,
    /// Networks whose addresses are external.
    pub public_network_name: Vec<String>,
    /// Networks whose addresses are internal; if empty, all other networks are.
    pub internal_network_name: Vec<String>,
    /// Networks whose addresses are ignored.
    pub exclude_network_name: Vec<String>,
    /// Order of addresses: those in an earlier network of this list come first.
    pub address_sort_order: Vec<IpNet>,
}

impl Networking {
    pub const KEYS: &'static [Key<Self>] = &[
        defaulting_key(
            "ipv6-support-disabled",
            Field::Bool(|networking| &mut networking.ipv6_support_disabled),
            "false",
            "Drops IPv6 addresses of nodes.",
        ),
        key(
            "public-network-name",
            Field::Names(|networking| &mut networking.public_network_name),
            "Network whose addresses are `ExternalIP`. One name per line; repeat the key for more.",
        ),
        key(
            "internal-network-name",
            Field::Names(|networking| &mut networking.internal_network_name),
            "Network whose addresses are `InternalIP`; if any is given, only these are. One name per line; repeat the key for more.",
        ),
        key_since_0_3(
            "exclude-network-name",
            Field::Names(|networking| &mut networking.exclude_network_name),
            "",
            "Network whose addresses are left out, floating IPs on them included, such as one for storage or management. Overrides the two keys above. One name per line; repeat the key for more.",
        ),
        key(
            "address-sort-order",
            Field::Form { form: "list of CIDRs", set: address_sort_order },
            "Addresses of a node in an earlier CIDR come first. Separated by commas or blanks; an entry that is not a CIDR is \
             ignored with a warning.",
        ),
    ];
}

fn address_sort_order(networking: &mut Networking, text: &str) -> Parsed {
    let parts = || text.split([',', ' ', '\t', '\n']).filter(|part| !part.is_empty());
    networking.address_sort_order = parts().filter_map(|part| part.parse().ok()).collect();
    let wrong: Vec<_> =
        parts().filter(|part| part.parse::<IpNet>().is_err()).map(|part| format!("`{part}`")).collect();
    Ok((!wrong.is_empty())
        .then(|| format!("ignores {}, which is not a CIDR such as `10.0.0.0/8`", wrong.join(", "))))
}

/// Routes of pod networks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// Router that gets a route per node; without it routes are not supported.
    pub router_id: Option<String>,
}

impl Route {
    pub const KEYS: &'static [Key<Self>] = &[text(
        "router-id",
        |route| &mut route.router_id,
        "Neutron router that gets a route for the pod network of each node. Without it there is no route support.",
    )];
}

/// Settings that share a section with the instance metadata for historical reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Timeout of one call to OpenStack; zero means the default.
    request_timeout: Duration,
    /// Whether `search-order` is set. It is checked and has no effect.
    search_order_given: bool,
}

impl Default for Metadata {
    fn default() -> Self {
        Self { request_timeout: AuthOptions::DEFAULT_REQUEST_TIMEOUT, search_order_given: false }
    }
}

impl Metadata {
    pub const KEYS: &'static [Key<Self>] = &[
        defaulting_key(
            "request-timeout",
            Field::Duration(|metadata| &mut metadata.request_timeout),
            "60s",
            "Longest time for one call to any OpenStack service, whatever the name of the section says. `0` stands for the default.",
        ),
        defaulting_key(
            "search-order",
            Field::Form { form: "list of words", set: search_order },
            "configDrive,metadataService",
            "One or two of `configDrive` and `metadataService`, separated by commas. Checked and without effect: instance metadata is never read.",
        ),
    ];

    /// Returns the timeout of one call to any OpenStack service.
    pub fn request_timeout(&self) -> Duration {
        if self.request_timeout.is_zero() {
            AuthOptions::DEFAULT_REQUEST_TIMEOUT
        } else {
            self.request_timeout
        }
    }

    /// Returns whether `search-order` is set, so that its lack of effect can be reported.
    pub(crate) fn search_order_given(&self) -> bool {
        self.search_order_given
    }
}

fn search_order(metadata: &mut Metadata, text: &str) -> Parsed {
    const WORDS: [&str; 2] = ["configDrive", "metadataService"];
    if text.is_empty() {
        return Ok(None);
    }
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    if parts.len() > WORDS.len() || !parts.iter().all(|part| WORDS.contains(part)) {
        return Err(ValueFault::new(
            "the value is not a search order",
            "remove the key, which has no effect, or use one or two of `configDrive` and `metadataService`",
        ));
    }
    metadata.search_order_given = true;
    Ok(None)
}
