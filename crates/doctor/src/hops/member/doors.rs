//! Judges whether the security groups of the members let the load balancer in.

use openstack_ccm_core::text::some_of;
use openstack_ccm_openstack_api::neutron::Direction;

use crate::code::{Code, Stops};
use crate::facts::{CloudFacts, MemberFact, PoolFact, transport};
use crate::finding::{Check, Finding, Fix, ok, skipped, unknown};
use crate::firewall::{Packet, Passage, passage};
use crate::hop::{Port, Scope};

/// Judges the members of a pool to which these ports lead.
pub(super) fn doors(cloud: &CloudFacts, pool: &PoolFact, ports: &[Port]) -> Check {
    let network = &cloud.network;
    let causes =
        [network.ports.as_ref().err(), network.groups.as_ref().err(), network.subnets.as_ref().err()];
    if let Some(cause) = causes.into_iter().flatten().next() {
        return unknown(format!("the security groups of the nodes cannot be read: {cause}"));
    }
    let mut members: Vec<&MemberFact> =
        pool.members.iter().filter(|one| machine(cloud, one).is_some()).collect();
    // A load balancer sends nothing to idle members as long as the pool has others.
    if members.iter().any(|member| member.idle().is_none()) {
        members.retain(|member| member.idle().is_none());
    }
    if members.is_empty() {
        return skipped("no member is a server of this project");
    }
    let protocol = transport(pool.pool.protocol.as_str()).as_str().to_ascii_lowercase();
    // Health checks may have a port of their own: with externalTrafficPolicy Local that of the service proxy.
    let ports_of = |member: &MemberFact| {
        let checked = member.member.monitor_port.filter(|_| pool.monitor.is_some());
        [Some(member.member.protocol_port), checked].into_iter().flatten().collect::<Vec<u16>>()
    };
    let state = |member: &MemberFact, port: u16| lets_in(cloud, member, port, &protocol);
    let names = |wanted: Passage| -> Vec<String> {
        let ports =
            members.iter().flat_map(|member| ports_of(member).into_iter().map(move |port| (member, port)));
        let those = ports.filter(|(member, port)| state(member, *port) == wanted);
        those.map(|(member, port)| format!("{}:{port}/{protocol}", member.member.address)).collect()
    };
    let (closed, dark) = (names(Passage::Closed), names(Passage::Unknown));
    let scope = Scope { ports: Some(ports.iter().copied().collect()), to: None };
    if !closed.is_empty() {
        let text =
            format!("no security group allows traffic from the load balancer to {}", some_of(&closed, 5));
        let mut finding = Finding::new(Code::D702, text).seen(
            "Neutron",
            "rules of the security groups of the nodes",
            "none fits protocol, port and source",
        );
        let is_shut = |member: &&&MemberFact| {
            ports_of(member).iter().any(|port| state(member, *port) == Passage::Closed)
        };
        let shut = members.iter().find(is_shut);
        if let Some((group, fix)) = shut.and_then(|member| opening(cloud, member, &protocol)) {
            finding = finding.seen("security group", "of the node", group).fix(fix);
        }
        finding.scope = scope;
        let all_are_shut = members.iter().filter(is_shut).count() == members.len();
        return finding.surely(all_are_shut).into();
    }
    if !dark.is_empty() {
        let text = format!(
            "whether security groups allow traffic from the load balancer to {} cannot be determined",
            some_of(&dark, 5)
        );
        return unknown(text).about(scope, Stops::Through);
    }
    ok(format!("security groups allow traffic from the load balancer ({protocol})"))
}

fn machine<'a>(
    cloud: &'a CloudFacts,
    member: &MemberFact,
) -> Option<&'a openstack_ccm_openstack_api::neutron::Port> {
    cloud.network.port_at(member.address()?)
}

fn lets_in(cloud: &CloudFacts, member: &MemberFact, port: u16, protocol: &str) -> Passage {
    let (Some(machine), Some(address)) = (machine(cloud, member), member.address()) else {
        return Passage::Unknown;
    };
    let vip = cloud.load_balancer.as_ref().and_then(|one| one.vip_port_id.as_deref());
    let packet = Packet {
        direction: Direction::Ingress,
        protocol,
        port,
        ipv6: address.is_ipv6(),
        remote: cloud.sends_from(&member.member),
        remote_port: cloud.network.ports.iter().flatten().find(|port| Some(port.id.as_str()) == vip),
    };
    passage(&cloud.network, machine, &packet)
}

/// Returns a security group of the member's server that the user can see, and the command that opens it.
fn opening(cloud: &CloudFacts, member: &MemberFact, protocol: &str) -> Option<(String, Fix)> {
    let groups = || cloud.network.groups.iter().flatten();
    let of_server = &machine(cloud, member)?.security_groups;
    let group = of_server.iter().find(|id| groups().any(|group| group.id == **id))?;
    let subnet = cloud.subnet()?.to_string();
    let words = ["openstack", "security", "group", "rule", "create", "--protocol", protocol];
    let more = ["--dst-port", "30000:32767", "--remote-ip", &subnet, group];
    Some((group.clone(), Fix::command(words.into_iter().chain(more))))
}
