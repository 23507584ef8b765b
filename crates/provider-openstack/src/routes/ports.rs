//! Finds the ports that can be next hops: those on the subnets of the router's internal interfaces.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use openstack_ccm_core::failure::Failure;
use openstack_ccm_openstack_api::neutron::{Neutron, Port, PortFilter};

use crate::load_balancer::failure::Answered as _;

/// Device owners of the internal interfaces of a router of any kind (plain, distributed, highly available). The gateway is not one
/// of them.
const INTERNAL_INTERFACES: [&str; 3] = [
    "network:router_interface",
    "network:router_interface_distributed",
    "network:ha_router_replicated_interface",
];

/// Prefixes of the device owners of ports without a machine: Neutron's own ports, and load balancers.
const NO_MACHINE: [&str; 4] = ["network:", "neutron:", "Octavia", "ovn-lb"];

/// Ports of machines by address. A node's former address may belong to another machine now.
#[derive(Debug, Default)]
pub(super) struct NextHopPorts {
    ports: Vec<Port>,
    by_address: BTreeMap<IpAddr, usize>,
}

impl NextHopPorts {
    fn new(ports: Vec<Port>, subnets: &BTreeSet<String>) -> Self {
        let of_machine =
            |(_, port): &(usize, &Port)| !NO_MACHINE.iter().any(|owner| port.device_owner.starts_with(owner));
        let addresses = |(index, port): (usize, &Port)| -> Vec<(IpAddr, usize)> {
            let inside = port.fixed_ips.iter().filter(|ip| subnets.contains(&ip.subnet_id));
            inside.filter_map(|ip| Some((ip.ip_address.parse().ok()?, index))).collect()
        };
        let by_address = ports.iter().enumerate().filter(of_machine).flat_map(addresses).collect();
        Self { ports, by_address }
    }

    /// Returns the port with this address. A router's subnets do not overlap.
    pub(super) fn at(&self, address: IpAddr) -> Option<&Port> {
        self.by_address.get(&address).and_then(|index| self.ports.get(*index))
    }
}

/// Lists the ports behind the internal interfaces of a router: one list of the interfaces, and one per network.
pub(super) async fn find(neutron: &Neutron, router_id: &str) -> Result<NextHopPorts, Failure> {
    let of_router = list(neutron, &PortFilter::device(router_id), "the interfaces of the router").await?;
    let interfaces: Vec<&Port> =
        of_router.iter().filter(|port| INTERNAL_INTERFACES.contains(&port.device_owner.as_str())).collect();
    if interfaces.is_empty() {
        return Err(Failure::user_input(format!(
            "router {router_id} has no internal interface that the user of cloud.conf can see: connect the router to the subnet of the \
             nodes, or correct router-id in [Route] of cloud.conf"
        )));
    }
    let fixed_ips = interfaces.iter().flat_map(|port| &port.fixed_ips);
    let subnets: BTreeSet<String> = fixed_ips.map(|ip| ip.subnet_id.clone()).collect();
    let networks: BTreeSet<&str> = interfaces.iter().map(|port| port.network_id.as_str()).collect();
    let mut ports = Vec::new();
    for network_id in networks {
        let filter = PortFilter { network_id: Some(network_id.to_owned()), ..PortFilter::default() };
        ports.extend(list(neutron, &filter, "the ports behind the router").await?);
    }
    Ok(NextHopPorts::new(ports, &subnets))
}

async fn list(neutron: &Neutron, filter: &PortFilter, what: &str) -> Result<Vec<Port>, Failure> {
    neutron.list_ports(filter).await.while_doing(format_args!("listing {what}"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::server("compute:nova", true)]
    #[case::bare_metal("baremetal:none", true)]
    #[case::sub_port_of_a_trunk("trunk:subport", true)]
    #[case::plugged_by_hand("", true)]
    #[case::load_balancer("Octavia", false)]
    #[case::load_balancer_of_ovn("ovn-lb:vip", false)]
    #[case::dhcp("network:dhcp", false)]
    fn a_next_hop_is_the_port_of_a_machine(#[case] owner: &str, #[case] expected: bool) {
        let port: Port = serde_json::from_value(json!({
            "id": "p", "network_id": "n", "device_owner": owner, "device_id": "d", "mac_address": "fa:16:3e:00:00:01",
            "status": "ACTIVE", "fixed_ips": [{"subnet_id": "s", "ip_address": "10.0.0.5"}],
        }))
        .expect("a port");
        let ports = NextHopPorts::new(vec![port], &BTreeSet::from(["s".to_owned()]));
        assert_eq!(ports.at("10.0.0.5".parse().expect("an address")).is_some(), expected);
    }
}
