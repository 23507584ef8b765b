//! `/v2.0/floatingips`.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::fault::NeutronFault;
use super::kind::ResourceKind;
use super::ports::{self, NewPort, Wanted};
use super::resource::{change, check_quota, insert, project_of, required_id, visible};
use crate::world::World;
use crate::world::identity::Caller;
use crate::world::network::FixedIp;

/// Makes a floating IP, pointing to a port where the body names one.
pub(crate) fn create(
    world: &mut World,
    caller: &Caller,
    body: &Map<String, Value>,
) -> Result<String, NeutronFault> {
    let network_id = required_id(body, "floating_network_id")?;
    let network = visible(world, caller, ResourceKind::Network, &network_id)?;
    if !network.flag("router:external") {
        let message =
            format!("Bad floatingip request: Network {network_id} is not a valid external network.");
        return Err(NeutronFault::bad_request("BadRequest", message));
    }
    let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
    let chosen = text("floating_ip_address");
    if chosen.is_some() && !caller.is_admin() {
        return Err(NeutronFault::policy(
            "(rule:create_floatingip and rule:create_floatingip:floating_ip_address)",
        ));
    }
    let project_id = project_of(caller, body)?;
    check_quota(world, &project_id, ResourceKind::FloatingIp)?;
    if let Some(subnet) = text("subnet_id") {
        visible(world, caller, ResourceKind::Subnet, &subnet)?;
    }
    let address = take_address(world, &network_id, text("subnet_id"), chosen)?;
    let id = add(world, &project_id, &network_id, &address, &text("description").unwrap_or_default());
    if let Some(port_id) = text("port_id")
        && let Err(fault) = associate(world, caller, &id, &port_id, text("fixed_ip_address").as_deref())
    {
        delete(world, &id);
        return Err(fault);
    }
    Ok(id)
}

/// The port on the external network that keeps the address; it belongs to no project.
fn take_address(
    world: &mut World,
    network_id: &str,
    subnet_id: Option<String>,
    ip_address: Option<String>,
) -> Result<(String, String), NeutronFault> {
    let subnet_id = subnet_id.or_else(|| match ip_address {
        Some(_) => None,
        None => {
            let subnets = super::subnets_of(world, network_id);
            subnets
                .iter()
                .find(|subnet| subnet.attributes["ip_version"] == json!(4))
                .map(|subnet| subnet.id.clone())
        }
    });
    let new = NewPort {
        network_id: network_id.to_owned(),
        device_owner: "network:floatingip".to_owned(),
        security_groups: Some(Vec::new()),
        wanted: vec![Wanted { subnet_id, ip_address }],
        ..NewPort::default()
    };
    let port_id = ports::create(world, new)?;
    let address = world.network.ports.get(&port_id).and_then(|port| port.fixed_ips().into_iter().next());
    Ok((port_id, address.map(|ip| ip.ip_address).unwrap_or_default()))
}

fn add(
    world: &mut World,
    project_id: &str,
    network_id: &str,
    address: &(String, String),
    description: &str,
) -> String {
    let attributes = match json!({
        "floating_ip_address": address.1,
        "floating_network_id": network_id,
        "router_id": null,
        "port_id": null,
        "fixed_ip_address": null,
        "status": "DOWN",
        "description": description,
    }) {
        Value::Object(attributes) => attributes,
        _ => Map::new(),
    };
    let id = insert(world, ResourceKind::FloatingIp, project_id, attributes);
    if let Some(port) = world.network.ports.get_mut(&address.0) {
        port.set("device_id", id.clone());
    }
    id
}

/// Changes a floating IP. A body without `port_id` takes it off its port, as one with null does: so the API is documented.
pub(crate) fn update(
    world: &mut World,
    caller: &Caller,
    id: &str,
    body: &Map<String, Value>,
) -> Result<(), NeutronFault> {
    visible(world, caller, ResourceKind::FloatingIp, id)?;
    let fixed_ip = body.get("fixed_ip_address").and_then(Value::as_str);
    match body.get("port_id").and_then(Value::as_str) {
        Some(port_id) => associate(world, caller, id, port_id, fixed_ip)?,
        None => dissociate(world, id),
    }
    change(world, ResourceKind::FloatingIp, id, |floating_ip| {
        if let Some(description) = body.get("description") {
            floating_ip.set("description", description.clone());
        }
    });
    Ok(())
}

fn associate(
    world: &mut World,
    caller: &Caller,
    id: &str,
    port_id: &str,
    fixed_ip: Option<&str>,
) -> Result<(), NeutronFault> {
    let port = visible(world, caller, ResourceKind::Port, port_id)?;
    let internal = port
        .fixed_ips()
        .into_iter()
        .find(|ip| fixed_ip.map_or_else(|| ip.is_ipv4(), |wanted| *wanted == ip.ip_address))
        .ok_or_else(|| {
            let message = format!(
                "Bad floatingip request: Cannot add floating IP to port {port_id} that has no fixed IPv4 addresses."
            );
            NeutronFault::bad_request("BadRequest", message)
        })?;
    let network_id =
        visible(world, caller, ResourceKind::FloatingIp, id)?.text("floating_network_id").to_owned();
    let router_id = router_between(world, &internal, &network_id).ok_or_else(|| {
        let message = format!(
            "External network {network_id} is not reachable from subnet {}.  Therefore, cannot associate Port \
             {port_id} with a Floating IP.",
            internal.subnet_id
        );
        NeutronFault::new(StatusCode::NOT_FOUND, "ExternalGatewayForFloatingIPNotFound", message)
    })?;
    check_port_is_free(world, id, port_id, &internal, &network_id)?;
    if let Some(floating_ip) = world.network.floating_ips.get_mut(id) {
        floating_ip.set("port_id", port_id);
        floating_ip.set("fixed_ip_address", internal.ip_address);
        floating_ip.set("router_id", router_id);
    }
    Ok(())
}

fn check_port_is_free(
    world: &World,
    id: &str,
    port_id: &str,
    internal: &FixedIp,
    network_id: &str,
) -> Result<(), NeutronFault> {
    let taken = world.network.floating_ips.values().any(|other| {
        other.id != id
            && other.text("port_id") == port_id
            && other.text("fixed_ip_address") == internal.ip_address
            && other.text("floating_network_id") == network_id
    });
    if !taken {
        return Ok(());
    }
    let address = world.network.floating_ips.get(id).map(|one| one.text("floating_ip_address").to_owned());
    let message = format!(
        "Cannot associate floating IP {} ({id}) with port {port_id} using fixed IP {}, as that fixed IP already has a \
         floating IP on external network {network_id}.",
        address.unwrap_or_default(),
        internal.ip_address
    );
    Err(NeutronFault::conflict("FloatingIPPortAlreadyAssociated", message))
}

/// The router with an interface in the address's subnet and its gateway on the external network.
fn router_between(world: &World, internal: &FixedIp, network_id: &str) -> Option<String> {
    let interfaces = world.network.ports.values().filter(|port| {
        port.text("device_owner") == "network:router_interface"
            && port.fixed_ips().iter().any(|ip| ip.subnet_id == internal.subnet_id)
    });
    interfaces.map(|port| port.text("device_id").to_owned()).find(|router| {
        let router = world.network.routers.get(router);
        router.is_some_and(|router| router.attributes["external_gateway_info"]["network_id"] == network_id)
    })
}

fn dissociate(world: &mut World, id: &str) {
    if let Some(floating_ip) = world.network.floating_ips.get_mut(id) {
        for name in ["port_id", "fixed_ip_address", "router_id"] {
            floating_ip.set(name, Value::Null);
        }
    }
}

/// Takes the floating IPs of a removed port off it.
pub(crate) fn forget_port(world: &mut World, port_id: &str) {
    let affected: Vec<String> = world
        .network
        .floating_ips
        .values()
        .filter(|floating_ip| floating_ip.text("port_id") == port_id)
        .map(|floating_ip| floating_ip.id.clone())
        .collect();
    for id in affected {
        dissociate(world, &id);
        change(world, ResourceKind::FloatingIp, &id, |_| {});
    }
}

/// Removes a floating IP and the port that kept its address.
pub(crate) fn delete(world: &mut World, id: &str) {
    world.network.floating_ips.remove(id);
    world
        .network
        .ports
        .retain(|_, port| port.text("device_owner") != "network:floatingip" || port.text("device_id") != id);
}
