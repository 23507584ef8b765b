//! Trunks: a port whose server reaches further networks through sub-ports. Neutron shows them in the attribute
//! `trunk_details` of the parent port (API extension `trunk-details`); the sub-ports belong to the trunk, not to the server.

use serde_json::json;

use super::kind::Kind;
use super::resource::change;
use crate::world::World;

/// Puts a sub-port into the trunk of a parent port, which becomes one if it is none yet.
pub(crate) fn add_sub_port(world: &mut World, parent_id: &str, sub_port_id: &str, vlan: u16) {
    let present = world.network.ports.get(parent_id).and_then(|port| port.attributes.get("trunk_details"));
    let mut details =
        present.cloned().unwrap_or_else(|| json!({"trunk_id": world.new_id(), "sub_ports": []}));
    let trunk_id = details["trunk_id"].as_str().unwrap_or_default().to_owned();
    let mac_address = world.network.ports.get(sub_port_id).map(|port| port.text("mac_address").to_owned());
    if let Some(sub_ports) = details["sub_ports"].as_array_mut() {
        sub_ports.push(json!({
            "segmentation_id": vlan,
            "segmentation_type": "vlan",
            "port_id": sub_port_id,
            "mac_address": mac_address,
        }));
    }
    change(world, Kind::Port, parent_id, |port| port.set("trunk_details", details));
    change(world, Kind::Port, sub_port_id, |port| {
        port.set("device_id", trunk_id);
        port.set("device_owner", "trunk:subport");
        port.set("status", "ACTIVE");
    });
}
