//! Reads from Neutron, once for all Services, what matters to load balancers.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use openstack_ccm_doctor::facts::{Looked, Network};
use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_api::neutron::{
    FloatingIp, FloatingIpFilter, Port, PortFilter, SecurityGroupFilter, SubnetFilter,
};
use openstack_ccm_openstack_api::transport::Service;

use super::within;

pub(super) async fn read(openstack: &OpenStack, limit: Duration) -> Network {
    if !openstack.has(Service::Network) {
        return Network::unknown("the cloud has no Neutron");
    }
    let neutron = &openstack.neutron;
    let (all_ports, all_groups) = (PortFilter::default(), SecurityGroupFilter::default());
    let (all_subnets, all_floating) = (SubnetFilter::default(), FloatingIpFilter::default());
    let (ports, groups, subnets, floating_ips) = tokio::join!(
        within(limit, "Neutron", neutron.list_ports(&all_ports)),
        within(limit, "Neutron", neutron.list_security_groups(&all_groups)),
        within(limit, "Neutron", neutron.list_subnets(&all_subnets)),
        within(limit, "Neutron", neutron.list_floating_ips(&all_floating)),
    );
    Network { ports, groups, subnets, floating_ips }
}

/// Returns the source addresses of nodes at a floating IP: their own floating IPs, or the addresses of their networks' routers.
pub(super) async fn translated(
    network: &Network,
    openstack: &OpenStack,
    nodes: &[IpAddr],
) -> Looked<Vec<IpAddr>> {
    let floating_ips = network.floating_ips.as_ref().map_err(Clone::clone)?;
    let floating_of = |node: &IpAddr| {
        let is_it = |one: &&FloatingIp| {
            one.fixed_ip_address.as_ref().and_then(|fixed| fixed.parse().ok()) == Some(*node)
        };
        floating_ips.iter().find(is_it)?.floating_ip_address.parse().ok()
    };
    let mut found: Vec<IpAddr> = nodes.iter().filter_map(floating_of).collect();
    if found.len() == nodes.len() {
        return Ok(found);
    }
    let ports = network.ports.as_ref().map_err(Clone::clone)?;
    let machines = nodes.iter().filter_map(|node| network.port_at(*node));
    let networks: BTreeSet<&str> = machines.map(|port| port.network_id.as_str()).collect();
    let of_routers =
        ports.iter().filter(|port| networks.contains(port.network_id.as_str()) && is_of_router(port));
    let routers: BTreeSet<&str> = of_routers.map(|port| port.device_id.as_str()).collect();
    let before = found.len();
    for id in routers {
        let router = openstack.neutron.get_router(id).await.map_err(|error| error.to_string())?;
        let gateway = router.external_gateway_info.iter().flat_map(|gateway| &gateway.external_fixed_ips);
        found.extend(gateway.filter_map(|fixed| fixed.ip_address.parse::<IpAddr>().ok()));
    }
    if found.len() == before {
        return Err("no router with an external address was found for the nodes".to_owned());
    }
    Ok(found)
}

/// Returns whether a port belongs to a router: plain, distributed or highly available.
fn is_of_router(port: &Port) -> bool {
    let owner = port.device_owner.as_str();
    owner.starts_with("network:router_") || owner == "network:ha_router_replicated_interface"
}
