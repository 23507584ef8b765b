//! `[LoadBalancerClass "name"]`.

use super::key::{Field, Key, key};

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
    /// Subnet of the members.
    pub member_subnet_id: Option<String>,
}

impl LoadBalancerClass {
    /// The keys of the section.
    pub const KEYS: &'static [Key<Self>] = &[
        key(
            "floating-network-id",
            Field::Text(|class| &mut class.floating_network_id),
            "Network of new floating IPs. Overrides annotation and `[LoadBalancer]`.",
        ),
        key(
            "floating-subnet-id",
            Field::Text(|class| &mut class.floating_subnet_id),
            "Subnet of new floating IPs. If a class has any of the three `floating-subnet` keys, they override those of annotation and `[LoadBalancer]`.",
        ),
        key(
            "floating-subnet",
            Field::Text(|class| &mut class.floating_subnet),
            "Pattern for the name of the floating IP's subnet, as in `[LoadBalancer]`.",
        ),
        key(
            "floating-subnet-tags",
            Field::Text(|class| &mut class.floating_subnet_tags),
            "Tags of the floating IP's subnet, as in `[LoadBalancer]`.",
        ),
        key("network-id", Field::Text(|class| &mut class.network_id), "Network of the VIP."),
        key("subnet-id", Field::Text(|class| &mut class.subnet_id), "Subnet of the VIP."),
        key("member-subnet-id", Field::Text(|class| &mut class.member_subnet_id), "Subnet of the members."),
    ];
}
