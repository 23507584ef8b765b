//! `/v2.0/subnets`.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Map, Value, json};

use super::addresses::{default_gateway, default_pools};
use super::fault::NeutronFault;
use super::kind::ResourceKind;
use super::resource::{change, check_quota, insert, merged, project_of, required_id, visible};
use crate::world::World;
use crate::world::identity::Caller;

/// Adds a subnet; gateway and pools are chosen when the body does not.
///
/// # Errors
/// The network is unknown, the range is malformed, overlaps another or has the wrong family, or the quota is met.
pub(crate) fn create(
    world: &mut World,
    caller: &Caller,
    body: Map<String, Value>,
) -> Result<String, NeutronFault> {
    let network_id = required_id(&body, "network_id")?;
    let network = visible(world, caller, ResourceKind::Network, &network_id)?;
    let external = network.flag("router:external");
    let project_id = project_of(caller, &body)?;
    check_quota(world, &project_id, ResourceKind::Subnet)?;
    let net = range(&body)?;
    check_overlap(world, &network_id, net)?;
    let gateway = match body.get("gateway_ip") {
        Some(Value::Null) => None,
        Some(given) => given.as_str().and_then(|text| text.parse::<IpAddr>().ok()),
        None => default_gateway(net),
    };
    let defaults = json!({
        "name": "",
        "description": "",
        "network_id": network_id,
        "ip_version": if net.addr().is_ipv4() { 4 } else { 6 },
        "subnetpool_id": null,
        "enable_dhcp": true,
        "ipv6_ra_mode": null,
        "ipv6_address_mode": null,
        "gateway_ip": gateway.map(|address| address.to_string()),
        "cidr": net.to_string(),
        "allocation_pools": default_pools(net, gateway),
        "host_routes": [],
        "dns_nameservers": [],
        "router:external": external,
        "service_types": [],
    });
    let attributes = merged(defaults, body)?;
    let id = insert(world, ResourceKind::Subnet, &project_id, attributes);
    change(world, ResourceKind::Network, &network_id, |_| {});
    Ok(id)
}

fn range(body: &Map<String, Value>) -> Result<IpNet, NeutronFault> {
    let text = body.get("cidr").and_then(Value::as_str).unwrap_or_default();
    let net = text
        .parse::<IpNet>()
        .map_err(|_| NeutronFault::invalid_input("cidr", &format!("'{text}' is not a valid IP subnet.")))?;
    let version = if net.addr().is_ipv4() { 4 } else { 6 };
    match body.get("ip_version").and_then(Value::as_u64) {
        Some(wanted) if wanted != version => {
            let message = format!(
                "Invalid input for operation: cidr '{text}' does not match the ip_version '{wanted}'."
            );
            Err(NeutronFault::bad_request("InvalidInput", message))
        }
        _ => Ok(net.trunc()),
    }
}

fn check_overlap(world: &World, network_id: &str, net: IpNet) -> Result<(), NeutronFault> {
    let overlapping = super::subnets_of(world, network_id).into_iter().find(|subnet| {
        subnet.text("cidr").parse::<IpNet>().is_ok_and(|other| other.contains(&net) || net.contains(&other))
    });
    match overlapping {
        None => Ok(()),
        Some(other) => {
            let message = format!(
                "Invalid input for operation: Requested subnet with cidr: {net} for network: {network_id} overlaps with \
                 another subnet ({} (CIDR: {})).",
                other.id,
                other.text("cidr")
            );
            Err(NeutronFault::bad_request("InvalidInput", message))
        }
    }
}

/// Removes a subnet.
///
/// # Errors
/// A port has an address of it.
pub(crate) fn delete(world: &mut World, id: &str) -> Result<(), NeutronFault> {
    let used = world.network.ports.values().any(|port| port.fixed_ips().iter().any(|ip| ip.subnet_id == id));
    if used {
        let message = format!(
            "Unable to complete operation on subnet {id}: One or more ports have an IP allocation from this subnet."
        );
        return Err(NeutronFault::conflict("SubnetInUse", message));
    }
    world.network.subnets.remove(id);
    Ok(())
}
