//! `/v2.0/routers`: gateways, interfaces and extra routes.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::fault::NeutronFault;
use super::kind::ResourceKind;
use super::ports::{self, NewPort, Wanted};
use super::resource::{self, change, check_quota, insert, merged, project_of, update_plain, visible};
use super::{cidr_holds, has_extension, views};
use crate::python_repr::python_repr;
use crate::reply::{Answer, Reply};
use crate::request::Request;
use crate::world::World;
use crate::world::identity::Caller;
use crate::world::network::Resource;

/// Makes a router.
pub(crate) fn create(
    world: &mut World,
    caller: &Caller,
    body: Map<String, Value>,
) -> Result<String, NeutronFault> {
    let project_id = project_of(caller, &body)?;
    check_quota(world, &project_id, ResourceKind::Router)?;
    let gateway = body.get("external_gateway_info").cloned().unwrap_or_default();
    let defaults = json!({
        "name": "",
        "description": "",
        "admin_state_up": true,
        "status": "ACTIVE",
        "external_gateway_info": null,
        "availability_zones": [],
        "availability_zone_hints": [],
        "routes": [],
        "flavor_id": null,
        "gw_port_id": null,
    });
    let mut attributes = merged(defaults, body)?;
    attributes.insert("external_gateway_info".to_owned(), Value::Null);
    let id = insert(world, ResourceKind::Router, &project_id, attributes);
    set_gateway(world, caller, &id, &gateway)?;
    Ok(id)
}

/// Gives a router its gateway port on an external network, or takes it away.
fn set_gateway(world: &mut World, caller: &Caller, id: &str, gateway: &Value) -> Result<(), NeutronFault> {
    let old =
        world.network.routers.get(id).map(|router| router.text("gw_port_id").to_owned()).unwrap_or_default();
    ports::remove(world, &old);
    let Some(network_id) = gateway["network_id"].as_str() else {
        if let Some(router) = world.network.routers.get_mut(id) {
            router.set("external_gateway_info", Value::Null);
            router.set("gw_port_id", Value::Null);
        }
        return Ok(());
    };
    if !visible(world, caller, ResourceKind::Network, network_id)?.flag("router:external") {
        let message = format!("Bad router request: Network {network_id} is not an external network.");
        return Err(NeutronFault::bad_request("BadRequest", message));
    }
    let new = NewPort {
        network_id: network_id.to_owned(),
        device_id: id.to_owned(),
        device_owner: "network:router_gateway".to_owned(),
        security_groups: Some(Vec::new()),
        bound: true,
        ..NewPort::default()
    };
    let port_id = ports::create(world, new)?;
    let fixed_ips = world.network.ports.get(&port_id).map(|port| port.attributes["fixed_ips"].clone());
    if let Some(router) = world.network.routers.get_mut(id) {
        router.set("gw_port_id", port_id);
        router.set(
            "external_gateway_info",
            json!({"network_id": network_id, "external_fixed_ips": fixed_ips, "enable_snat": true}),
        );
    }
    Ok(())
}

/// Changes a router; routes are checked, the gateway is rebuilt.
pub(crate) fn update(
    world: &mut World,
    caller: &Caller,
    id: &str,
    body: &Map<String, Value>,
) -> Result<(), NeutronFault> {
    visible(world, caller, ResourceKind::Router, id)?;
    let mut plain = body.clone();
    if let Some(gateway) = plain.remove("external_gateway_info") {
        set_gateway(world, caller, id, &gateway)?;
    }
    if let Some(routes) = plain.get("routes") {
        check_routes(world, id, routes)?;
    }
    update_plain(world, ResourceKind::Router, id, &plain)
}

/// `add_extraroutes`, `remove_extraroutes`, `add_router_interface`, `remove_router_interface`.
pub(crate) fn act(world: &mut World, caller: &Caller, request: &Request, id: &str, action: &str) -> Answer {
    let router = visible(world, caller, ResourceKind::Router, id)?.clone();
    super::fault::check_policy(caller, "update", ResourceKind::Router)?;
    let atomic = has_extension(world, "extraroute-atomic");
    match action {
        "add_extraroutes" | "remove_extraroutes" if atomic => {
            let body = resource::body(request, ResourceKind::Router)?;
            let named = body.get("routes").and_then(Value::as_array).cloned().unwrap_or_default();
            let routes =
                if action == "add_extraroutes" { with(&router, named) } else { without(&router, &named) };
            set_routes(world, &router, routes)?;
            let changed = visible(world, caller, ResourceKind::Router, id)?;
            Ok(Reply::ok(json!({"router": views::router_after_action(changed)})))
        }
        "add_router_interface" => add_interface(world, caller, request, &router),
        "remove_router_interface" => remove_interface(world, request, &router),
        _ => Err(NeutronFault::no_such_path().into()),
    }
}

fn with(router: &Resource, named: Vec<Value>) -> Vec<Value> {
    let mut routes = router.list("routes").to_vec();
    for route in named {
        if !routes.contains(&route) {
            routes.push(route);
        }
    }
    routes
}

fn without(router: &Resource, named: &[Value]) -> Vec<Value> {
    router.list("routes").iter().filter(|route| !named.contains(route)).cloned().collect()
}

fn set_routes(world: &mut World, router: &Resource, routes: Vec<Value>) -> Result<(), NeutronFault> {
    let routes = Value::Array(routes);
    check_routes(world, &router.id, &routes)?;
    if router.attributes.get("routes") != Some(&routes) {
        change(world, ResourceKind::Router, &router.id, |router| router.set("routes", routes));
    }
    Ok(())
}

/// Every next hop must be in a subnet that the router is connected to.
fn check_routes(world: &World, id: &str, routes: &Value) -> Result<(), NeutronFault> {
    let subnets: Vec<&str> = world
        .network
        .ports
        .values()
        .filter(|port| port.text("device_id") == id)
        .flat_map(Resource::fixed_ips)
        .filter_map(|ip| world.network.subnets.get(&ip.subnet_id))
        .map(|subnet| subnet.text("cidr"))
        .collect();
    let connected = |route: &Value| {
        let hop = route["nexthop"].as_str().unwrap_or_default();
        subnets.iter().any(|cidr| cidr_holds(cidr, hop))
    };
    if routes.as_array().into_iter().flatten().all(connected) {
        return Ok(());
    }
    let message = format!(
        "Invalid format for routes: {}, the nexthop is not connected with router",
        python_repr(routes)
    );
    Err(NeutronFault::bad_request("InvalidRoutes", message))
}

fn add_interface(world: &mut World, caller: &Caller, request: &Request, router: &Resource) -> Answer {
    let body = request.json().unwrap_or_default();
    let subnet_id = body["subnet_id"].as_str().unwrap_or_default();
    let subnet = visible(world, caller, ResourceKind::Subnet, subnet_id)?;
    let wanted = Wanted {
        subnet_id: Some(subnet_id.to_owned()),
        ip_address: Some(subnet.text("gateway_ip").to_owned()).filter(|gateway| !gateway.is_empty()),
    };
    let new = NewPort {
        project_id: router.project_id.clone(),
        network_id: subnet.text("network_id").to_owned(),
        device_id: router.id.clone(),
        device_owner: "network:router_interface".to_owned(),
        security_groups: Some(Vec::new()),
        wanted: vec![wanted],
        ..NewPort::default()
    };
    let network_id = new.network_id.clone();
    let port_id = ports::create(world, new)?;
    Ok(Reply::ok(interface_view(router, &network_id, subnet_id, &port_id)))
}

fn interface_view(router: &Resource, network_id: &str, subnet_id: &str, port_id: &str) -> Value {
    json!({
        "id": router.id,
        "tenant_id": router.project_id,
        "project_id": router.project_id,
        "network_id": network_id,
        "port_id": port_id,
        "subnet_id": subnet_id,
        "subnet_ids": [subnet_id],
        "tags": router.tags,
    })
}

fn remove_interface(world: &mut World, request: &Request, router: &Resource) -> Answer {
    let body = request.json().unwrap_or_default();
    let subnet_id = body["subnet_id"].as_str().unwrap_or_default();
    let port_id = body["port_id"].as_str().unwrap_or_default();
    let found = world.network.ports.values().find(|port| {
        port.text("device_id") == router.id
            && port.text("device_owner") == "network:router_interface"
            && (port.id == port_id || port.fixed_ips().iter().any(|ip| ip.subnet_id == subnet_id))
    });
    let Some(port) = found.cloned() else {
        let message = format!("Router {} has no interface on subnet {subnet_id}", router.id);
        return Err(
            NeutronFault::new(StatusCode::NOT_FOUND, "RouterInterfaceNotFoundForSubnet", message).into()
        );
    };
    ports::remove(world, &port.id);
    Ok(Reply::ok(interface_view(router, port.text("network_id"), subnet_id, &port.id)))
}

/// Removes a router with its gateway.
///
/// # Errors
/// It has interfaces.
pub(crate) fn delete(world: &mut World, id: &str) -> Result<(), NeutronFault> {
    let has_interface =
        world.network.ports.values().any(|port| {
            port.text("device_id") == id && port.text("device_owner") == "network:router_interface"
        });
    if has_interface {
        return Err(NeutronFault::conflict("RouterInUse", format!("Router {id} still has ports")));
    }
    world.network.ports.retain(|_, port| port.text("device_id") != id);
    world.network.routers.remove(id);
    Ok(())
}
