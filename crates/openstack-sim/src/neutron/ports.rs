//! `/v2.0/ports`, and the ports that other services make.

use serde_json::{Map, Value, json};

use super::addresses::{claim, next_free};
use super::fault::NeutronFault;
use super::kind::ResourceKind;
use super::resource::{change, check_quota, insert, project_of, required_id, unrecognized, visible};
use super::{floating_ips, security_groups, trunks};
use crate::world::World;
use crate::world::identity::Caller;
use crate::world::network::{FixedIp, Resource};

/// A port to be made.
#[derive(Debug, Clone)]
pub(crate) struct NewPort {
    pub(crate) project_id: String,
    pub(crate) network_id: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) device_id: String,
    pub(crate) device_owner: String,
    pub(crate) admin_state_up: bool,
    /// Whether something on a host uses it.
    pub(crate) bound: bool,
    /// Addresses asked for; none means one of each IP version that the network has.
    pub(crate) wanted: Vec<Wanted>,
    /// `None` for the project's default group; empty for router interfaces and the like.
    pub(crate) security_groups: Option<Vec<String>>,
    pub(crate) allowed_address_pairs: Value,
}

impl Default for NewPort {
    fn default() -> Self {
        Self {
            project_id: String::new(),
            network_id: String::new(),
            name: String::new(),
            description: String::new(),
            device_id: String::new(),
            device_owner: String::new(),
            admin_state_up: true,
            bound: false,
            wanted: Vec::new(),
            security_groups: None,
            allowed_address_pairs: json!([]),
        }
    }
}

/// An address that a new port shall have: in a subnet, chosen, or both.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    pub(crate) subnet_id: Option<String>,
    pub(crate) ip_address: Option<String>,
}

/// Makes a port.
///
/// # Errors
/// Quota, no such subnet, address taken or outside, no address free.
pub(crate) fn create(world: &mut World, new: NewPort) -> Result<String, NeutronFault> {
    check_quota(world, &new.project_id, ResourceKind::Port)?;
    let fixed_ips = allocate(world, &new.network_id, &new.wanted)?;
    let security_groups = match new.security_groups {
        Some(groups) => groups,
        None => vec![security_groups::default_group(world, &new.project_id)],
    };
    let mac_address = world.new_mac_address();
    let secured = !new.device_owner.starts_with("network:");
    let mut attributes = match json!({
        "name": new.name,
        "description": new.description,
        "network_id": new.network_id,
        "mac_address": mac_address,
        "admin_state_up": new.admin_state_up,
        "status": if new.bound { "ACTIVE" } else { "DOWN" },
        "device_id": new.device_id,
        "device_owner": new.device_owner,
        "fixed_ips": fixed_ips.iter().map(FixedIp::to_value).collect::<Vec<_>>(),
        "allowed_address_pairs": new.allowed_address_pairs,
        "extra_dhcp_opts": [],
        "security_groups": security_groups,
        "binding:vnic_type": "normal",
        "port_security_enabled": secured,
    }) {
        Value::Object(attributes) => attributes,
        _ => Map::new(),
    };
    fill_pairs(&mut attributes);
    Ok(insert(world, ResourceKind::Port, &new.project_id, attributes))
}

fn allocate(world: &World, network_id: &str, wanted: &[Wanted]) -> Result<Vec<FixedIp>, NeutronFault> {
    if wanted.is_empty() {
        return automatic(world, network_id);
    }
    wanted.iter().map(|one| allocate_one(world, network_id, one)).collect()
}

/// One address of each IP version, from the first subnet that has one free.
fn automatic(world: &World, network_id: &str) -> Result<Vec<FixedIp>, NeutronFault> {
    let subnets = super::subnets_of(world, network_id);
    let mut fixed_ips = Vec::new();
    for version in [4, 6] {
        let of_version: Vec<&&Resource> =
            subnets.iter().filter(|subnet| subnet.attributes["ip_version"] == json!(version)).collect();
        let mut free = of_version.iter().map(|subnet| (subnet, next_free(world, subnet)));
        let found = free.find_map(|(subnet, address)| {
            address.ok().map(|ip_address| FixedIp { subnet_id: subnet.id.clone(), ip_address })
        });
        match (found, of_version.first()) {
            (Some(ip), _) => fixed_ips.push(ip),
            (None, Some(subnet)) => return next_free(world, subnet).map(|_| Vec::new()),
            (None, None) => {}
        }
    }
    Ok(fixed_ips)
}

fn allocate_one(world: &World, network_id: &str, wanted: &Wanted) -> Result<FixedIp, NeutronFault> {
    let subnet = match (&wanted.subnet_id, &wanted.ip_address) {
        (Some(id), _) => {
            let subnet = world
                .network
                .subnets
                .get(id)
                .ok_or_else(|| NeutronFault::not_found(ResourceKind::Subnet, id))?;
            if subnet.text("network_id") != network_id {
                let message = format!(
                    "Invalid input for operation: Failed to create port on network {network_id}, because fixed_ips \
                     included invalid subnet {id}."
                );
                return Err(NeutronFault::bad_request("InvalidInput", message));
            }
            subnet
        }
        (None, Some(address)) => super::subnets_of(world, network_id)
            .into_iter()
            .find(|subnet| super::cidr_holds(subnet.text("cidr"), address))
            .ok_or_else(|| {
                let message = format!(
                    "IP address {address} is not a valid IP for any of the subnets on the specified network."
                );
                NeutronFault::bad_request("InvalidIpForNetwork", message)
            })?,
        (None, None) => {
            let message = "Invalid input for operation: IP allocation requires subnet_id or ip_address.";
            return Err(NeutronFault::bad_request("InvalidInput", message));
        }
    };
    let ip_address = match &wanted.ip_address {
        Some(address) => claim(world, subnet, address)?,
        None => next_free(world, subnet)?,
    };
    Ok(FixedIp { subnet_id: subnet.id.clone(), ip_address })
}

/// What a user may give for a new port.
const USER_ATTRIBUTES: [&str; 15] = [
    "name",
    "description",
    "network_id",
    "admin_state_up",
    "device_id",
    "device_owner",
    "fixed_ips",
    "security_groups",
    "allowed_address_pairs",
    "project_id",
    "tenant_id",
    "binding:vnic_type",
    "port_security_enabled",
    "mac_address",
    "extra_dhcp_opts",
];

/// Makes a port from a user's body.
pub(crate) fn create_for_user(
    world: &mut World,
    caller: &Caller,
    body: &Map<String, Value>,
) -> Result<String, NeutronFault> {
    if let Some(unknown) = body.keys().find(|name| !USER_ATTRIBUTES.contains(&name.as_str())) {
        return Err(unrecognized(unknown));
    }
    let network_id = required_id(body, "network_id")?;
    visible(world, caller, ResourceKind::Network, &network_id)?;
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let groups = security_groups_of(world, caller, body)?;
    let new = NewPort {
        project_id: project_of(caller, body)?,
        network_id,
        name: text("name"),
        description: text("description"),
        device_id: text("device_id"),
        device_owner: text("device_owner"),
        admin_state_up: body.get("admin_state_up").and_then(Value::as_bool).unwrap_or(true),
        bound: false,
        wanted: wanted_of(body),
        security_groups: groups,
        allowed_address_pairs: body.get("allowed_address_pairs").cloned().unwrap_or_else(|| json!([])),
    };
    create(world, new)
}

fn wanted_of(body: &Map<String, Value>) -> Vec<Wanted> {
    let entries = body.get("fixed_ips").and_then(Value::as_array).into_iter().flatten();
    entries
        .map(|entry| {
            let field = |name: &str| entry.get(name).and_then(Value::as_str).map(str::to_owned);
            Wanted { subnet_id: field("subnet_id"), ip_address: field("ip_address") }
        })
        .collect()
}

fn security_groups_of(
    world: &World,
    caller: &Caller,
    body: &Map<String, Value>,
) -> Result<Option<Vec<String>>, NeutronFault> {
    let Some(groups) = body.get("security_groups").and_then(Value::as_array) else { return Ok(None) };
    let mut ids = Vec::new();
    for id in groups.iter().filter_map(Value::as_str) {
        visible(world, caller, ResourceKind::SecurityGroup, id)?;
        ids.push(id.to_owned());
    }
    Ok(Some(ids))
}

/// Changes a port from a user's body.
pub(crate) fn update(
    world: &mut World,
    caller: &Caller,
    id: &str,
    body: &Map<String, Value>,
) -> Result<(), NeutronFault> {
    let port = visible(world, caller, ResourceKind::Port, id)?.clone();
    if let Some(unknown) = body.keys().find(|name| !port.attributes.contains_key(*name)) {
        return Err(unrecognized(unknown));
    }
    let mut changes = body.clone();
    if let Some(groups) = security_groups_of(world, caller, body)? {
        changes.insert("security_groups".to_owned(), json!(groups));
    }
    if body.contains_key("fixed_ips") {
        changes.insert("fixed_ips".to_owned(), updated_addresses(world, &port, body)?);
    }
    change(world, ResourceKind::Port, id, |port| {
        port.attributes.extend(changes);
        fill_pairs(&mut port.attributes);
    });
    Ok(())
}

/// Addresses that the port has already stay; others are allocated.
fn updated_addresses(
    world: &World,
    port: &Resource,
    body: &Map<String, Value>,
) -> Result<Value, NeutronFault> {
    let present = port.fixed_ips();
    let mut addresses = Vec::new();
    for wanted in wanted_of(body) {
        let kept = present.iter().find(|ip| Some(&ip.ip_address) == wanted.ip_address.as_ref());
        let address = match kept {
            Some(ip) => ip.clone(),
            None => allocate_one(world, port.text("network_id"), &wanted)?,
        };
        addresses.push(address.to_value());
    }
    Ok(json!(addresses))
}

/// An address pair without a MAC address gets the port's.
fn fill_pairs(attributes: &mut Map<String, Value>) {
    let mac_address = attributes.get("mac_address").cloned().unwrap_or_default();
    let pairs =
        attributes.get_mut("allowed_address_pairs").and_then(Value::as_array_mut).into_iter().flatten();
    for pair in pairs.filter_map(Value::as_object_mut) {
        pair.entry("mac_address").or_insert_with(|| mac_address.clone());
    }
}

/// Removes a port as a user does.
///
/// # Errors
/// It is a router's interface or gateway, or in a trunk.
pub(crate) fn delete(world: &mut World, id: &str) -> Result<(), NeutronFault> {
    let owner =
        world.network.ports.get(id).map(|port| port.text("device_owner").to_owned()).unwrap_or_default();
    if owner.starts_with("network:router") {
        let message =
            format!("Port {id} cannot be deleted directly via the port API: has device owner {owner}.");
        return Err(NeutronFault::conflict("ServicePortInUse", message));
    }
    trunks::check_port_deletion(world, id)?;
    remove(world, id);
    Ok(())
}

/// Removes a port; floating IPs that pointed to it point nowhere then.
pub(crate) fn remove(world: &mut World, id: &str) {
    if world.network.ports.remove(id).is_some() {
        floating_ips::forget_port(world, id);
    }
}

/// Puts exactly these security groups on a port.
pub(crate) fn set_security_groups(world: &mut World, id: &str, groups: Vec<String>) {
    let present = world.network.ports.get(id).map(|port| port.list("security_groups").to_vec());
    if present.is_none_or(|present| json!(present) == json!(groups)) {
        return;
    }
    change(world, ResourceKind::Port, id, |port| port.set("security_groups", groups));
}

/// Takes one security group off a port.
pub(crate) fn drop_security_group(world: &mut World, id: &str, group: &str) {
    let Some(port) = world.network.ports.get(id) else { return };
    let present = port.list("security_groups");
    if present.contains(&json!(group)) {
        let kept: Vec<Value> = present.iter().filter(|one| **one != json!(group)).cloned().collect();
        change(world, ResourceKind::Port, id, |port| port.set("security_groups", kept));
    }
}
