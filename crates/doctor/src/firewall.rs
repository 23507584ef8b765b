//! Judges whether security groups let packets through. Pure.

use ipnet::IpNet;
use openstack_ccm_openstack_api::neutron::{Direction, EtherType, Port, SecurityGroup, SecurityGroupRule};

use crate::facts::Network;

/// Whether packets pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    Open,
    Closed,
    Unknown,
}

/// Packets of a machine, seen from its port.
#[derive(Clone, Debug)]
pub(crate) struct Packet<'a> {
    pub direction: Direction,
    /// `tcp`, `udp` or `sctp`
    pub protocol: &'a str,
    /// The destination port.
    pub port: u16,
    pub ipv6: bool,
    /// The network in which the other end has an unknown address; absent where the network is not known.
    pub remote: Option<IpNet>,
    /// The port of the other end.
    pub remote_port: Option<&'a Port>,
}

/// Evaluates the groups of a machine's port.
pub(crate) fn passage(network: &Network, machine: &Port, packet: &Packet<'_>) -> Passage {
    if !machine.port_security_enabled {
        return Passage::Open;
    }
    let groups = || network.groups.iter().flatten();
    let of_machine: Vec<&SecurityGroup> =
        groups().filter(|group| machine.security_groups.contains(&group.id)).collect();
    let rules = of_machine.iter().flat_map(|group| &group.security_group_rules);
    let is_visible = |id: &str| groups().any(|group| group.id == id);
    let passages: Vec<Passage> =
        rules.filter(|rule| fits(rule, packet)).map(|rule| by_rule(rule, packet, &is_visible)).collect();
    if passages.contains(&Passage::Open) {
        Passage::Open
    } else if of_machine.len() < machine.security_groups.len() || passages.contains(&Passage::Unknown) {
        // A group of another project may let them through.
        Passage::Unknown
    } else {
        Passage::Closed
    }
}

fn fits(rule: &SecurityGroupRule, packet: &Packet<'_>) -> bool {
    let ports = rule.port_range_min.map(|first| first..=rule.port_range_max.unwrap_or(first));
    rule.direction == packet.direction
        && (rule.ethertype == EtherType::Ipv6) == packet.ipv6
        && is_protocol(rule.protocol.as_deref(), packet.protocol)
        && ports.is_none_or(|ports| ports.contains(&packet.port))
}

fn by_rule(rule: &SecurityGroupRule, packet: &Packet<'_>, is_visible: &dyn Fn(&str) -> bool) -> Passage {
    if let Some(group) = &rule.remote_group_id {
        return match packet.remote_port {
            Some(port) if port.security_groups.contains(group) => Passage::Open,
            // Octavia puts the ports of a load balancer into its own group, and into no group of the project.
            _ if is_visible(group) => Passage::Closed,
            _ => Passage::Unknown,
        };
    }
    let network = rule.remote_ip_prefix.as_ref().map(|prefix| prefix.parse::<IpNet>());
    match (network, packet.remote) {
        (None, _) => Passage::Open,
        (Some(Ok(network)), Some(remote)) if network.contains(&remote) => Passage::Open,
        (Some(Ok(network)), Some(remote)) if !remote.contains(&network) => Passage::Closed,
        // The rule names a part of the network of the other end, or that network is not known.
        (Some(_), _) => Passage::Unknown,
    }
}

/// Compares protocols: a rule of Neutron may have a name or a number.
fn is_protocol(of_rule: Option<&str>, wanted: &str) -> bool {
    let number = match wanted {
        "udp" => "17",
        "sctp" => "132",
        _ => "6",
    };
    of_rule.is_none_or(|protocol| {
        protocol.eq_ignore_ascii_case(wanted) || protocol == number || protocol.eq_ignore_ascii_case("any")
    })
}
