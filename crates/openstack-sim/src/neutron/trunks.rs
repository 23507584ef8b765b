//! `/v2.0/trunks`, where the extension `trunk` is there: a port whose server reaches further networks through sub-ports. Neutron shows them in the attribute
//! `trunk_details` of the parent port. They belong to the trunk and not to the server: their `device_id` stays empty, and
//! the drivers write `device_owner`.

use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::fault::NeutronFault;
use super::kind::ResourceKind;
use super::resource::{change, insert, merged, project_of, required_id, visible};
use super::views;
use crate::reply::{Answer, Reply};
use crate::request::Request;
use crate::world::World;
use crate::world::identity::Caller;
use crate::world::network::Resource;

/// Who owns a port that is in a trunk.
const OWNER: &str = "trunk:subport";

/// Makes a trunk.
///
/// # Errors
/// A port is not there, or in a trunk already.
pub(crate) fn create(
    world: &mut World,
    caller: &Caller,
    body: Map<String, Value>,
) -> Result<String, NeutronFault> {
    let project_id = project_of(caller, &body)?;
    let parent = required_id(&body, "port_id")?;
    visible(world, caller, ResourceKind::Port, &parent)?;
    check_free(world, &parent)?;
    let wanted = sub_ports(body.get("sub_ports"));
    check_sub_ports(world, &parent, &wanted)?;
    let defaults = json!({
        "name": "", "description": "", "admin_state_up": true, "status": "DOWN", "port_id": null, "sub_ports": [],
    });
    let mut attributes = merged(defaults, body)?;
    attributes.insert("sub_ports".to_owned(), json!(wanted));
    let id = insert(world, ResourceKind::Trunk, &project_id, attributes);
    mark(world, &wanted, OWNER);
    Ok(id)
}

/// `add_subports`, `remove_subports`, `get_subports`.
pub(crate) fn act(world: &mut World, caller: &Caller, request: &Request, id: &str, action: &str) -> Answer {
    let trunk = visible(world, caller, ResourceKind::Trunk, id)?.clone();
    match (request.method.clone(), action) {
        (Method::GET, "get_subports") => Ok(Reply::ok(json!({"sub_ports": trunk.list("sub_ports")}))),
        (Method::PUT, "add_subports") => {
            let wanted = sub_ports(request.json().unwrap_or_default().get("sub_ports"));
            add(world, &trunk, &wanted)?;
            whole(world, caller, id)
        }
        (Method::PUT, "remove_subports") => {
            let named = sub_ports(request.json().unwrap_or_default().get("sub_ports"));
            remove(world, &trunk, &named)?;
            whole(world, caller, id)
        }
        _ => Err(NeutronFault::no_such_path().into()),
    }
}

/// A trunk after a change of its sub-ports, without a key around it.
fn whole(world: &World, caller: &Caller, id: &str) -> Answer {
    let trunk = visible(world, caller, ResourceKind::Trunk, id)?;
    Ok(Reply::ok(views::view(world, caller, ResourceKind::Trunk, trunk)))
}

fn sub_ports(given: Option<&Value>) -> Vec<Value> {
    given.and_then(Value::as_array).cloned().unwrap_or_default()
}

fn port_of(sub_port: &Value) -> &str {
    sub_port["port_id"].as_str().unwrap_or_default()
}

fn holds(trunk: &Resource, port_id: &str) -> bool {
    trunk.list("sub_ports").iter().any(|sub_port| port_of(sub_port) == port_id)
}

/// The trunk that a port is a sub-port of.
fn of_sub_port<'a>(world: &'a World, port_id: &str) -> Option<&'a Resource> {
    world.network.trunks.values().find(|trunk| holds(trunk, port_id))
}

/// Refuses a port that is in a trunk, in either place.
fn check_free(world: &World, port_id: &str) -> Result<(), NeutronFault> {
    if of_sub_port(world, port_id).is_some() {
        return Err(NeutronFault::conflict(
            "TrunkPortInUse",
            format!("Port {port_id} is in use by another trunk."),
        ));
    }
    if views::trunk_of(world, port_id).is_some() {
        return Err(no_parent(port_id));
    }
    Ok(())
}

fn no_parent(port_id: &str) -> NeutronFault {
    let message = format!("Port {port_id} is currently in use and is not eligible for use as a parent port.");
    NeutronFault::conflict("ParentPortInUse", message)
}

fn check_sub_ports(world: &World, parent: &str, wanted: &[Value]) -> Result<(), NeutronFault> {
    wanted
        .iter()
        .map(port_of)
        .try_for_each(|port| if port == parent { Err(no_parent(port)) } else { check_free(world, port) })
}

/// Puts sub-ports into a trunk.
fn add(world: &mut World, trunk: &Resource, wanted: &[Value]) -> Result<(), NeutronFault> {
    check_sub_ports(world, trunk.text("port_id"), wanted)?;
    let present = trunk.list("sub_ports");
    let segment =
        |sub_port: &Value| (sub_port["segmentation_type"].clone(), sub_port["segmentation_id"].clone());
    if let Some(taken) = wanted.iter().find(|one| present.iter().any(|known| segment(known) == segment(one)))
    {
        let (kind, id) = (taken["segmentation_type"].as_str().unwrap_or_default(), &taken["segmentation_id"]);
        let message = format!(
            "segmentation_type {kind} and segmentation_id {id} already in use on trunk {}.",
            trunk.id
        );
        return Err(NeutronFault::conflict("DuplicateSubPort", message));
    }
    let all: Vec<Value> = present.iter().chain(wanted).cloned().collect();
    change(world, ResourceKind::Trunk, &trunk.id, |trunk| trunk.set("sub_ports", all));
    mark(world, wanted, OWNER);
    Ok(())
}

fn remove(world: &mut World, trunk: &Resource, named: &[Value]) -> Result<(), NeutronFault> {
    if let Some(absent) = named.iter().map(port_of).find(|port| !holds(trunk, port)) {
        let message = format!("SubPort {absent} on trunk {} could not be found.", trunk.id);
        return Err(NeutronFault::new(StatusCode::NOT_FOUND, "SubPortNotFound", message));
    }
    let gone = |sub_port: &&Value| named.iter().any(|one| port_of(one) == port_of(sub_port));
    let kept: Vec<Value> = trunk.list("sub_ports").iter().filter(|one| !gone(one)).cloned().collect();
    change(world, ResourceKind::Trunk, &trunk.id, |trunk| trunk.set("sub_ports", kept));
    mark(world, named, "");
    Ok(())
}

/// Removes a trunk; its ports stay.
pub(crate) fn delete(world: &mut World, id: &str) {
    if let Some(trunk) = world.network.trunks.remove(id) {
        mark(world, trunk.list("sub_ports"), "");
    }
}

/// What the drivers do with sub-ports that come and go.
fn mark(world: &mut World, sub_ports: &[Value], owner: &str) {
    for port in sub_ports.iter().map(port_of) {
        change(world, ResourceKind::Port, port, |port| port.set("device_owner", owner));
    }
}

/// Refuses to delete a port that is in a trunk.
pub(crate) fn check_port_deletion(world: &World, port_id: &str) -> Result<(), NeutronFault> {
    if let Some(trunk) = of_sub_port(world, port_id) {
        let message = format!("Port {port_id} is currently a subport for trunk {}.", trunk.id);
        return Err(NeutronFault::conflict("PortInUseAsSubPort", message));
    }
    if let Some(trunk) = views::trunk_of(world, port_id) {
        let message = format!("Port {port_id} is currently a parent port for trunk {}.", trunk.id);
        return Err(NeutronFault::conflict("PortInUseAsTrunkParent", message));
    }
    Ok(())
}

/// Puts a sub-port into the trunk of a parent port, which becomes one if it is none yet.
pub(crate) fn add_sub_port(world: &mut World, parent_id: &str, sub_port_id: &str, vlan: u16) {
    let sub_port = json!({"segmentation_id": vlan, "segmentation_type": "vlan", "port_id": sub_port_id});
    let trunk = views::trunk_of(world, parent_id).cloned();
    let trunk = trunk.or_else(|| {
        let parent = world.network.ports.get(parent_id)?;
        let attributes = json!({
            "name": "", "description": "", "admin_state_up": true, "status": "ACTIVE", "port_id": parent_id,
            "sub_ports": [],
        });
        let (project, attributes) = (parent.project_id.clone(), attributes.as_object()?.clone());
        let id = insert(world, ResourceKind::Trunk, &project, attributes);
        world.network.trunks.get(&id).cloned()
    });
    let Some(trunk) = trunk else { return };
    // A test that asks for what Neutron refuses finds that there is no such sub-port.
    if add(world, &trunk, &[sub_port]).is_ok() {
        change(world, ResourceKind::Port, sub_port_id, |port| port.set("status", "ACTIVE"));
    }
}
