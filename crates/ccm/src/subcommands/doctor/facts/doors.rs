//! What the security groups of the members let in.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use openstack_ccm_doctor::facts::{CloudObject, Door, DoorRule, Looked};
use openstack_ccm_openstack_api::neutron::{
    Direction, Port, PortFilter, SecurityGroupFilter, SecurityGroupRule,
};
use openstack_ccm_openstack_api::transport::Service;
use openstack_ccm_openstack_api::{ApiError, OpenStack};

/// The doors of all members that are machines of this project.
pub(super) async fn of(
    openstack: &OpenStack,
    objects: &[CloudObject],
    vip: Option<IpAddr>,
) -> Looked<Vec<Door>> {
    if !openstack.has(Service::Network) {
        return Err("the cloud has no Neutron".to_owned());
    }
    let members: BTreeSet<(IpAddr, u16)> = objects
        .iter()
        .filter(|object| object.kind == "member")
        .filter_map(|member| Some((member.name.rsplit_once(':')?.0.parse().ok()?, member.port?)))
        .collect();
    read(openstack, &members, vip).await.map_err(|error| error.to_string())
}

async fn read(
    openstack: &OpenStack,
    members: &BTreeSet<(IpAddr, u16)>,
    vip: Option<IpAddr>,
) -> Result<Vec<Door>, ApiError> {
    let ports = openstack.neutron.list_ports(&PortFilter::default()).await?;
    let groups = openstack.neutron.list_security_groups(&SecurityGroupFilter::default()).await?;
    let rules: BTreeMap<&str, &[SecurityGroupRule]> =
        groups.iter().map(|group| (group.id.as_str(), group.security_group_rules.as_slice())).collect();
    let mut doors = Vec::new();
    for (address, port) in members {
        let Some(machine) = ports.iter().find(|port| has_address(port, *address)) else { continue };
        let ids = machine.security_groups.iter();
        let of_groups = ids.filter_map(|id| rules.get(id.as_str())).flat_map(|rules| rules.iter());
        doors.push(Door {
            address: *address,
            port: *port,
            hidden: machine.security_groups.iter().any(|id| !rules.contains_key(id.as_str())),
            guarded: machine.port_security_enabled,
            rules: of_groups.filter(|rule| rule.direction == Direction::Ingress).map(door_rule).collect(),
            // An amphora sends from the subnet of its VIP, or from that of the member.
            from: vip.into_iter().chain([*address]).collect(),
        });
    }
    Ok(doors)
}

fn has_address(port: &Port, address: IpAddr) -> bool {
    port.fixed_ips.iter().any(|fixed| fixed.ip_address.parse() == Ok(address))
}

fn door_rule(rule: &SecurityGroupRule) -> DoorRule {
    let first = rule.port_range_min;
    DoorRule {
        protocol: rule.protocol.clone(),
        ports: first.map(|first| (first, rule.port_range_max.unwrap_or(first))),
        from: rule.remote_ip_prefix.as_ref().and_then(|prefix| prefix.parse().ok()),
        from_group: rule.remote_group_id.is_some(),
    }
}
