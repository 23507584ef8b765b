//! Converts the addresses of a server to addresses of its node, in the order that clusters expect.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use openstack_ccm_core::instance::address::{AddressType, InstanceAddress};
use openstack_ccm_openstack_api::neutron::{Port, PortStatus};
use openstack_ccm_openstack_api::nova::Server;

use crate::config::Networking;

/// Server metadata key with the hostname of the node.
const HOSTNAME: &str = "hostname";

/// A sub-port of a server's trunk, and the name of its network.
#[derive(Clone, Copy, Debug)]
pub(super) struct SubPort<'a> {
    pub(super) network: &'a str,
    pub(super) port: &'a Port,
}

/// One address on a named network, as Nova shows it.
struct OnNetwork<'a> {
    address: &'a str,
    floating: bool,
}

/// Returns the addresses of a server: those of its active ports, its access addresses, its hostname, then those by network name,
/// with floating IPs.
pub(super) fn addresses(
    server: &Server,
    ports: &[&Port],
    sub_ports: &[SubPort<'_>],
    networking: &Networking,
) -> Vec<InstanceAddress> {
    let mut list = AddressList { addresses: Vec::new(), ipv6: !networking.ipv6_support_disabled };
    for port in in_order(server, ports).into_iter().filter(|port| port.status == PortStatus::Active) {
        for fixed in &port.fixed_ips {
            list.add(AddressType::InternalIp, &fixed.ip_address);
        }
    }
    for noted in [&server.access_ipv4, &server.access_ipv6] {
        list.add(AddressType::ExternalIp, noted);
    }
    if let Some(hostname) = server.metadata.get(HOSTNAME) {
        list.add(AddressType::Hostname, hostname);
    }
    for (network, entries) in by_network(server, sub_ports) {
        for entry in entries {
            add_of_network(&mut list, network, &entry, networking);
        }
    }
    sorted(list.addresses, &networking.address_sort_order)
}

fn add_of_network(list: &mut AddressList, network: &str, entry: &OnNetwork<'_>, networking: &Networking) {
    let named = |names: &[String]| names.iter().any(|name| name == network);
    let internal = &networking.internal_network_name;
    if named(&networking.exclude_network_name) {
        list.remove(entry.address);
    } else if entry.floating {
        list.add(AddressType::ExternalIp, entry.address);
    } else if named(&networking.public_network_name) {
        list.remove(entry.address);
        list.add(AddressType::ExternalIp, entry.address);
    } else if internal.is_empty() || named(internal) {
        list.add(AddressType::InternalIp, entry.address);
    } else {
        list.remove(entry.address);
    }
}

/// Returns Nova's addresses with those of sub-ports, by network name.
fn by_network<'a>(server: &'a Server, sub_ports: &[SubPort<'a>]) -> BTreeMap<&'a str, Vec<OnNetwork<'a>>> {
    let mut networks: BTreeMap<&str, Vec<OnNetwork<'_>>> = BTreeMap::new();
    for (network, entries) in &server.addresses {
        let entries = entries.iter().map(|entry| OnNetwork {
            address: &entry.addr,
            floating: entry.kind.as_deref() == Some("floating"),
        });
        networks.entry(network).or_default().extend(entries);
    }
    for SubPort { network, port } in sub_ports {
        let entries =
            port.fixed_ips.iter().map(|fixed| OnNetwork { address: &fixed.ip_address, floating: false });
        networks.entry(network).or_default().extend(entries);
    }
    networks
}

/// Sorts ports: Neutron lists them in no order, but the first address of a node matters. The order is that of Nova's addresses: by
/// network name, then as attached; ports that Nova does not show come last.
fn in_order<'a>(server: &Server, ports: &[&'a Port]) -> Vec<&'a Port> {
    let shown: Vec<&str> = server.addresses.values().flatten().map(|entry| entry.addr.as_str()).collect();
    let place = |port: &Port| {
        let places = port
            .fixed_ips
            .iter()
            .filter_map(|fixed| shown.iter().position(|address| *address == fixed.ip_address));
        places.min().unwrap_or(usize::MAX)
    };
    let mut ports = ports.to_vec();
    ports.sort_by_cached_key(|port| (place(port), port.network_id.clone(), port.id.clone()));
    ports
}

/// Addresses without duplicates of type and address.
struct AddressList {
    addresses: Vec<InstanceAddress>,
    ipv6: bool,
}

impl AddressList {
    fn add(&mut self, kind: AddressType, address: &str) {
        let is_ipv6 = matches!(address.parse(), Ok(IpAddr::V6(_)));
        let address = InstanceAddress::new(kind, address);
        if address.address.is_empty() || (is_ipv6 && !self.ipv6) || self.addresses.contains(&address) {
            return;
        }
        self.addresses.push(address);
    }

    /// Removes an address of any type.
    fn remove(&mut self, address: &str) {
        self.addresses.retain(|present| present.address != address);
    }
}

/// Sorts addresses by the first range that contains them, within a range by their bytes. Others, such as hostnames, come last in
/// the previous order. Without ranges nothing changes.
fn sorted(mut addresses: Vec<InstanceAddress>, order: &[IpNet]) -> Vec<InstanceAddress> {
    if !order.is_empty() {
        addresses.sort_by_cached_key(|address| {
            let ip: Option<IpAddr> = address.address.parse().ok();
            let place =
                ip.and_then(|ip| Some((order.iter().position(|range| range.contains(&ip))?, bytes(ip))));
            // The sort is stable: addresses without a place keep their order.
            place.unwrap_or((usize::MAX, [0; 16]))
        });
    }
    addresses
}

fn bytes(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    }
}

#[cfg(test)]
#[path = "addresses_tests.rs"]
mod tests;
