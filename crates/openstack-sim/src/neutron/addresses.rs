//! Finding free addresses: the first of the pool that no port and no gateway has.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use serde_json::{Value, json};

use super::fault::NeutronFault;
use crate::world::World;
use crate::world::network::Resource;

/// Whether a range has an address.
pub(crate) fn cidr_holds(cidr: &str, address: &str) -> bool {
    match (cidr.parse::<IpNet>(), address.parse::<IpAddr>()) {
        (Ok(net), Ok(address)) => net.contains(&address),
        _ => false,
    }
}

/// Whether a port has this address in this subnet.
fn is_taken(world: &World, subnet_id: &str, address: &str) -> bool {
    world
        .network
        .ports
        .values()
        .flat_map(Resource::fixed_ips)
        .any(|ip| ip.subnet_id == subnet_id && ip.ip_address == address)
}

/// A chosen address of a subnet.
///
/// # Errors
/// The address is outside the subnet or in use.
pub(crate) fn claim(world: &World, subnet: &Resource, address: &str) -> Result<String, NeutronFault> {
    if !cidr_holds(subnet.text("cidr"), address) {
        let message = format!("IP address {address} is not a valid IP for the specified subnet.");
        return Err(NeutronFault::bad_request("InvalidIpForSubnet", message));
    }
    if is_taken(world, &subnet.id, address) {
        let message = format!("IP address {address} already allocated in subnet {}", subnet.id);
        return Err(NeutronFault::conflict("IpAddressAlreadyAllocated", message));
    }
    Ok(address.to_owned())
}

/// The first free address of a subnet's allocation pools.
///
/// # Errors
/// There is none.
pub(crate) fn next_free(world: &World, subnet: &Resource) -> Result<String, NeutronFault> {
    let taken: BTreeSet<IpAddr> = world
        .network
        .ports
        .values()
        .flat_map(Resource::fixed_ips)
        .filter(|ip| ip.subnet_id == subnet.id)
        .filter_map(|ip| ip.ip_address.parse().ok())
        .collect();
    let bound = |pool: &Value, name: &str| pool[name].as_str().and_then(|text| text.parse::<IpAddr>().ok());
    subnet
        .list("allocation_pools")
        .iter()
        .filter_map(|pool| first_gap(bound(pool, "start")?, bound(pool, "end")?, &taken))
        .next()
        .map(|address| address.to_string())
        .ok_or_else(|| {
            let network = subnet.text("network_id");
            NeutronFault::conflict(
                "IpAddressGenerationFailure",
                format!("No more IP addresses available on network {network}."),
            )
        })
}

fn first_gap(start: IpAddr, end: IpAddr, taken: &BTreeSet<IpAddr>) -> Option<IpAddr> {
    let mut candidate = start;
    while taken.contains(&candidate) {
        candidate = successor(candidate)?;
    }
    (candidate <= end).then_some(candidate)
}

fn successor(address: IpAddr) -> Option<IpAddr> {
    match address {
        IpAddr::V4(address) => u32::from(address).checked_add(1).map(|next| IpAddr::V4(Ipv4Addr::from(next))),
        IpAddr::V6(address) => {
            u128::from(address).checked_add(1).map(|next| IpAddr::V6(Ipv6Addr::from(next)))
        }
    }
}

fn predecessor(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) => IpAddr::V4(Ipv4Addr::from(u32::from(address).saturating_sub(1))),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from(u128::from(address).saturating_sub(1))),
    }
}

/// The gateway that Neutron chooses: the first host address; in IPv6 the subnet's own.
pub(crate) fn default_gateway(net: IpNet) -> Option<IpAddr> {
    match net {
        IpNet::V4(_) => successor(net.network()),
        IpNet::V6(_) => Some(net.network()),
    }
}

/// The pools that Neutron makes of a range: every host address but the gateway.
pub(crate) fn default_pools(net: IpNet, gateway: Option<IpAddr>) -> Value {
    let first = successor(net.network()).unwrap_or(net.network());
    let last = match net {
        IpNet::V4(_) => predecessor(net.broadcast()),
        IpNet::V6(_) => net.broadcast(),
    };
    let pool = |start: IpAddr, end: IpAddr| json!({"start": start.to_string(), "end": end.to_string()});
    match gateway {
        Some(gateway) if gateway == first => match successor(gateway) {
            Some(start) if start <= last => json!([pool(start, last)]),
            _ => json!([]),
        },
        Some(gateway) if gateway == last => json!([pool(first, predecessor(last))]),
        Some(gateway) if gateway > first && gateway < last => {
            let after = successor(gateway).unwrap_or(last);
            json!([pool(first, predecessor(gateway)), pool(after, last)])
        }
        _ => json!([pool(first, last)]),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("198.18.0.0/24", Some("198.18.0.1"), json!([{"start": "198.18.0.2", "end": "198.18.0.254"}]))]
    #[case("198.18.0.0/24", None, json!([{"start": "198.18.0.1", "end": "198.18.0.254"}]))]
    #[case("198.18.0.0/30", Some("198.18.0.2"), json!([{"start": "198.18.0.1", "end": "198.18.0.1"}]))]
    #[case("fd00::/126", Some("fd00::"), json!([{"start": "fd00::1", "end": "fd00::3"}]))]
    fn pools_leave_out_the_gateway(
        #[case] cidr: &str,
        #[case] gateway: Option<&str>,
        #[case] expected: Value,
    ) {
        let gateway = gateway.map(|text| text.parse().unwrap());
        assert_eq!(default_pools(cidr.parse().unwrap(), gateway), expected);
    }
}
