//! `address-sort-order`: addresses of a node by the networks that the operator prefers.

use std::net::IpAddr;

use ipnet::IpNet;
use openstack_ccm_core::instance::address::InstanceAddress;

/// Sorts addresses by the first range that contains them, within a range by their bytes. What is in no range, or is no
/// IP address, comes last in the old order. Without ranges nothing changes.
pub(super) fn sort(mut addresses: Vec<InstanceAddress>, order: &[IpNet]) -> Vec<InstanceAddress> {
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
