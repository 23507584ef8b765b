//! A security group and its rules, desired and observed, in the same comparable types.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use ipnet::IpNet;
use openstack_ccm_core::service::{IpFamily, Protocol};
use openstack_ccm_openstack_api::neutron::{Direction, EtherType, SecurityGroupRule};

use crate::load_balancer::objects::Tags;
use crate::load_balancer::settings::node_address::{everybody, network};

/// What a rule allows: one port of the nodes, from one network. The network determines the IP family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Opening {
    pub(super) protocol: Protocol,
    /// Port of the nodes.
    pub(super) port: u16,
    /// The network that may connect.
    pub(super) from: IpNet,
}

impl Opening {
    /// Returns what an existing rule allows; `None` unless it is exactly one such opening.
    pub(super) fn of(rule: &SecurityGroupRule) -> Option<Self> {
        let port = rule.port_range_min.filter(|first| Some(*first) == rule.port_range_max)?;
        if rule.direction != Direction::Ingress || rule.remote_group_id.is_some() {
            return None;
        }
        let from = match (&rule.remote_ip_prefix, &rule.ethertype) {
            (Some(prefix), _) => network(prefix)?,
            (None, EtherType::Ipv4) => everybody(IpFamily::V4),
            (None, EtherType::Ipv6) => everybody(IpFamily::V6),
            (None, EtherType::Other(_)) => return None,
        };
        let opening = Self { protocol: protocol(rule.protocol.as_deref()?)?, port, from };
        (opening.ethertype() == rule.ethertype).then_some(opening)
    }

    pub(super) fn ethertype(&self) -> EtherType {
        match self.from {
            IpNet::V4(_) => EtherType::Ipv4,
            IpNet::V6(_) => EtherType::Ipv6,
        }
    }

    /// Returns Neutron's name of the protocol.
    pub(super) fn protocol_name(&self) -> &'static str {
        match self.protocol {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            Protocol::Sctp => "sctp",
        }
    }
}

impl fmt::Display for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} from {}", self.protocol, self.port, self.from)
    }
}

/// Parses a protocol: Neutron accepts names in any case, and protocol numbers.
fn protocol(text: &str) -> Option<Protocol> {
    match text.to_ascii_lowercase().as_str() {
        "tcp" | "6" => Some(Protocol::Tcp),
        "udp" | "17" => Some(Protocol::Udp),
        "sctp" | "132" => Some(Protocol::Sctp),
        _ => None,
    }
}

/// The desired security group of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DesiredGroup {
    pub(super) name: String,
    pub(super) description: String,
    /// Minimum tags.
    pub(super) tags: Tags,
    /// What the rules allow.
    pub(super) openings: BTreeSet<Opening>,
    /// Whether the source ranges are invalid: then the rules are left unchanged.
    pub(super) keeps_rules: bool,
    /// The ports that get the group: server by port id.
    pub(super) ports: BTreeMap<String, String>,
    /// The servers of all nodes that receive traffic, even if their port is not known or has no port security.
    pub(super) servers: BTreeSet<String>,
}

/// An existing security group of the Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ObservedGroup {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) tags: Tags,
    pub(super) rules: Vec<ObservedRule>,
    /// Ports that have the group.
    pub(super) ports: Vec<ObservedPort>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ObservedRule {
    pub(super) id: String,
    /// What the rule allows; absent for rules of any other kind.
    pub(super) opening: Option<Opening>,
}

/// A port that has the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ObservedPort {
    pub(super) id: String,
    pub(super) server: String,
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn rule(ethertype: EtherType, protocol: Option<&str>, prefix: Option<&str>) -> SecurityGroupRule {
        SecurityGroupRule {
            id: "r".into(),
            direction: Direction::Ingress,
            ethertype,
            protocol: protocol.map(str::to_owned),
            port_range_min: Some(30_080),
            port_range_max: Some(30_080),
            remote_ip_prefix: prefix.map(str::to_owned),
            remote_group_id: None,
            description: String::new(),
        }
    }

    #[rstest]
    #[case::plain(EtherType::Ipv4, Some("tcp"), Some("10.0.0.0/24"), Some("TCP:30080 from 10.0.0.0/24"))]
    #[case::upper_case(EtherType::Ipv4, Some("TCP"), Some("10.0.0.0/24"), Some("TCP:30080 from 10.0.0.0/24"))]
    #[case::number(EtherType::Ipv4, Some("17"), Some("10.0.0.0/24"), Some("UDP:30080 from 10.0.0.0/24"))]
    #[case::host_bits(EtherType::Ipv4, Some("tcp"), Some("10.0.0.7/24"), Some("TCP:30080 from 10.0.0.0/24"))]
    #[case::single_address(
        EtherType::Ipv4,
        Some("tcp"),
        Some("10.0.0.7"),
        Some("TCP:30080 from 10.0.0.7/32")
    )]
    #[case::everybody(EtherType::Ipv6, Some("sctp"), None, Some("SCTP:30080 from ::/0"))]
    #[case::any_protocol(EtherType::Ipv4, None, Some("10.0.0.0/24"), None)]
    #[case::other_protocol(EtherType::Ipv4, Some("icmp"), Some("10.0.0.0/24"), None)]
    #[case::families_differ(EtherType::Ipv6, Some("tcp"), Some("10.0.0.0/24"), None)]
    fn a_rule_is_read_as_what_it_lets_in(
        #[case] ethertype: EtherType,
        #[case] protocol: Option<&str>,
        #[case] prefix: Option<&str>,
        #[case] expected: Option<&str>,
    ) {
        let opening = Opening::of(&rule(ethertype, protocol, prefix));
        assert_eq!(opening.map(|opening| opening.to_string()).as_deref(), expected);
    }

    #[test]
    fn rules_of_other_kinds_let_in_nothing_that_is_wanted() {
        let plain = rule(EtherType::Ipv4, Some("tcp"), Some("10.0.0.0/24"));
        let egress = SecurityGroupRule { direction: Direction::Egress, ..plain.clone() };
        let range = SecurityGroupRule { port_range_max: Some(30_090), ..plain.clone() };
        let group = SecurityGroupRule { remote_group_id: Some("x".into()), ..plain };
        assert!([egress, range, group].iter().all(|rule| Opening::of(rule).is_none()));
    }
}
