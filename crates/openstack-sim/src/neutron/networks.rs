//! `/v2.0/networks`.

use serde_json::{Map, Value, json};

use super::fault::NeutronFault;
use super::kind::ResourceKind;
use super::resource::{check_quota, insert, merged, project_of};
use crate::world::World;
use crate::world::identity::Caller;

/// Adds a network.
///
/// # Errors
/// Quota, unknown attributes, or an external network made by a user.
pub(crate) fn create(
    world: &mut World,
    caller: &Caller,
    body: Map<String, Value>,
) -> Result<String, NeutronFault> {
    let project_id = project_of(caller, &body)?;
    for name in ["router:external", "shared"] {
        if body.get(name) == Some(&json!(true)) && !caller.is_admin() {
            let rule = format!("(rule:create_network and rule:create_network:{name})");
            return Err(NeutronFault::policy(&rule));
        }
    }
    check_quota(world, &project_id, ResourceKind::Network)?;
    let defaults = json!({
        "name": "",
        "description": "",
        "admin_state_up": true,
        "mtu": 1450,
        "status": "ACTIVE",
        "shared": false,
        "availability_zone_hints": [],
        "availability_zones": [],
        "ipv4_address_scope": null,
        "ipv6_address_scope": null,
        "router:external": false,
        "qinq": false,
        "vlan_transparent": false,
        "port_security_enabled": true,
        "is_default": false,
    });
    let attributes = merged(defaults, body)?;
    Ok(insert(world, ResourceKind::Network, &project_id, attributes))
}

/// Removes a network with its subnets.
///
/// # Errors
/// A port is on it, other than those that Neutron removes by itself.
pub(crate) fn delete(world: &mut World, id: &str) -> Result<(), NeutronFault> {
    let ports: Vec<&str> = world
        .network
        .ports
        .values()
        .filter(|port| port.text("network_id") == id)
        .map(|port| port.id.as_str())
        .collect();
    if !ports.is_empty() {
        let message = format!(
            "Unable to complete operation on network {id}. There are one or more ports still in use on the network, \
             id for these ports is: {}.",
            ports.join(",")
        );
        return Err(NeutronFault::conflict("NetworkInUse", message));
    }
    world.network.subnets.retain(|_, subnet| subnet.text("network_id") != id);
    world.network.networks.remove(id);
    Ok(())
}
