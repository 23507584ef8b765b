//! `/v2.1/servers`.

use http::header::LOCATION;
use http::{Method, StatusCode};
use regex::RegexBuilder;
use serde_json::{Map, Value, json};

use super::microversion::Microversion;
use super::{fault, views};
use crate::neutron::ports::{self, NewPort, Wanted};
use crate::reply::{Answer, Reply};
use crate::request::Request;
use crate::service::Service;
use crate::world::World;
use crate::world::compute::NovaServer;
use crate::world::identity::Caller;

pub(crate) fn answer(
    world: &mut World,
    caller: &Caller,
    request: &Request,
    version: Microversion,
    path: &[&str],
) -> Answer {
    match (request.method.clone(), path) {
        (Method::GET, []) => list(world, caller, request, |server| views::brief(world, server)),
        (Method::GET, ["detail"]) => {
            let ports = views::ports_by_server(world);
            let ports_of = |server: &NovaServer| ports.get(server.id.as_str()).map_or(&[][..], Vec::as_slice);
            list(world, caller, request, |server| views::server(world, server, version, ports_of(server)))
        }
        (Method::POST, []) => create(world, caller, request),
        (Method::GET, [id]) => {
            let server = find(world, caller, id)?;
            let view = views::server(world, server, version, &views::ports(world, &server.id));
            Ok(Reply::ok(json!({"server": view})))
        }
        (Method::DELETE, [id]) => {
            let id = find(world, caller, id)?.id.clone();
            remove(world, &id);
            Ok(Reply::empty(StatusCode::NO_CONTENT))
        }
        (Method::POST, [id, "action"]) => act(world, caller, request, id),
        (Method::GET, [id, "os-interface"]) => {
            let id = find(world, caller, id)?.id.clone();
            let interfaces: Vec<Value> = views::ports(world, &id)
                .into_iter()
                .map(|port| {
                    json!({
                        "net_id": port.text("network_id"),
                        "port_id": port.id,
                        "mac_addr": port.text("mac_address"),
                        "port_state": port.text("status"),
                        "fixed_ips": port.attributes["fixed_ips"],
                    })
                })
                .collect();
            Ok(Reply::ok(json!({"interfaceAttachments": interfaces})))
        }
        _ => Err(fault(StatusCode::NOT_FOUND, "The resource could not be found.")),
    }
}

fn find<'a>(world: &'a World, caller: &Caller, id: &str) -> Result<&'a NovaServer, Reply> {
    let server = world.compute.servers.get(id).filter(|server| caller.owns(&server.project_id));
    server.ok_or_else(|| fault(StatusCode::NOT_FOUND, &format!("Instance {id} could not be found.")))
}

/// The newest first; the name is a regular expression that may match anywhere. Nova leaves it to `REGEXP` of its database, and that of
/// MySQL and MariaDB has no regard to case with the default collation.
fn list(world: &World, caller: &Caller, request: &Request, view: impl Fn(&NovaServer) -> Value) -> Answer {
    let all_projects = caller.is_admin() && request.parameter("all_tenants").is_some();
    let mut servers: Vec<&NovaServer> = world
        .compute
        .servers
        .values()
        .filter(|server| all_projects || server.project_id == caller.project_id)
        .collect();
    servers.sort_by_key(|server| std::cmp::Reverse(server.order));
    if let Some(pattern) = request.parameter("name") {
        let name = RegexBuilder::new(pattern).case_insensitive(true).build().map_err(|_| {
            fault(StatusCode::BAD_REQUEST, &format!("Invalid regular expression for name: {pattern}"))
        })?;
        servers.retain(|server| name.is_match(&server.name));
    }
    if let Some(status) = request.parameter("status") {
        servers.retain(|server| server.status.eq_ignore_ascii_case(status));
    }
    if let Some(marker) = request.parameter("marker") {
        let at = servers.iter().position(|server| server.id == marker);
        let at = at.ok_or_else(|| fault(StatusCode::BAD_REQUEST, &format!("marker [{marker}] not found")))?;
        servers.drain(..=at);
    }
    let limit = request.parameter("limit").and_then(|text| text.parse::<usize>().ok());
    servers.truncate(limit.unwrap_or(usize::MAX));
    let mut body = json!({"servers": servers.iter().map(|server| view(server)).collect::<Vec<_>>()});
    if let (Some(limit), Some(last)) = (limit, servers.last())
        && servers.len() >= limit
    {
        let url =
            format!("{}{}?limit={limit}&marker={}", world.endpoint(Service::Compute), request.path, last.id);
        body["servers_links"] = json!([{"rel": "next", "href": url}]);
    }
    Ok(Reply::ok(body))
}

/// A server to be made.
#[derive(Debug, Clone, Default)]
pub(crate) struct NewServer {
    pub(crate) name: String,
    pub(crate) project_id: String,
    pub(crate) user_id: String,
    pub(crate) flavor_id: String,
    pub(crate) image_id: String,
    pub(crate) metadata: Map<String, Value>,
    pub(crate) availability_zone: String,
}

/// Adds a server that runs at once; its ports come afterwards.
pub(crate) fn add(world: &mut World, new: NewServer) -> String {
    let id = world.new_id();
    let now = world.zulu_time();
    let host_id = format!("{}{}", world.new_hex_id(), &world.new_hex_id()[..24]);
    let order = world.compute.servers.values().map(|server| server.order + 1).max().unwrap_or_default();
    let server = NovaServer {
        id: id.clone(),
        name: new.name,
        project_id: new.project_id,
        user_id: new.user_id,
        flavor_id: new.flavor_id,
        image_id: new.image_id,
        status: "ACTIVE".to_owned(),
        metadata: new.metadata,
        tags: Vec::new(),
        availability_zone: new.availability_zone,
        host_id,
        access_ipv4: String::new(),
        access_ipv6: String::new(),
        created: now.clone(),
        updated: now,
        order,
        given_ports: Vec::new(),
    };
    world.compute.servers.insert(id.clone(), server);
    id
}

/// Connects a server to a network with a port of its own.
///
/// # Errors
/// Neutron has no address, or does not accept the wanted ones.
pub(crate) fn connect(
    world: &mut World,
    server_id: &str,
    project_id: &str,
    network_id: &str,
    wanted: Vec<Wanted>,
) -> Result<String, crate::neutron::NeutronFault> {
    let new = NewPort {
        project_id: project_id.to_owned(),
        network_id: network_id.to_owned(),
        device_id: server_id.to_owned(),
        device_owner: "compute:nova".to_owned(),
        bound: true,
        wanted,
        ..NewPort::default()
    };
    ports::create(world, new)
}

fn create(world: &mut World, caller: &Caller, request: &Request) -> Answer {
    if !(caller.has_role("member") || caller.is_admin()) {
        let message = "Policy doesn't allow os_compute_api:servers:create to be performed.";
        return Err(fault(StatusCode::FORBIDDEN, message));
    }
    let body = request.json().ok_or_else(|| fault(StatusCode::BAD_REQUEST, "Malformed request body"))?;
    let given = &body["server"];
    let text = |name: &str| given[name].as_str().unwrap_or_default().to_owned();
    if !world.compute.flavors.contains_key(&text("flavorRef")) {
        let message = format!("Flavor {} could not be found.", text("flavorRef"));
        return Err(fault(StatusCode::BAD_REQUEST, &message));
    }
    let zone = given["availability_zone"].as_str().map(str::to_owned);
    let zone = zone.or_else(|| world.compute.availability_zones.first().cloned()).unwrap_or_default();
    let new = NewServer {
        name: text("name"),
        project_id: caller.project_id.clone(),
        user_id: caller.user_id.clone(),
        flavor_id: text("flavorRef"),
        image_id: text("imageRef"),
        metadata: given["metadata"].as_object().cloned().unwrap_or_default(),
        availability_zone: zone,
    };
    let id = add(world, new);
    for network in given["networks"].as_array().into_iter().flatten() {
        if let Err(refusal) = attach(world, caller, &id, network) {
            remove(world, &id);
            return Err(refusal);
        }
    }
    let password = world.new_hex_id();
    let location = format!("{}/v2.1/servers/{id}", world.endpoint(Service::Compute));
    let server = find(world, caller, &id)?;
    let view = views::accepted(world, server, &password[..12]);
    Ok(Reply::json(StatusCode::ACCEPTED, json!({"server": view})).with_header(LOCATION, location))
}

fn attach(world: &mut World, caller: &Caller, id: &str, network: &Value) -> Result<(), Reply> {
    if let Some(port_id) = network["port"].as_str() {
        let port = world.network.ports.get_mut(port_id).filter(|port| caller.owns(&port.project_id));
        let port = port
            .ok_or_else(|| fault(StatusCode::BAD_REQUEST, &format!("Port {port_id} could not be found.")))?;
        port.set("device_id", id);
        port.set("device_owner", "compute:nova");
        port.set("status", "ACTIVE");
        if let Some(server) = world.compute.servers.get_mut(id) {
            server.given_ports.push(port_id.to_owned());
        }
        return Ok(());
    }
    let network_id = network["uuid"].as_str().unwrap_or_default();
    if crate::neutron::visible_network(world, caller, network_id).is_none() {
        let message = format!("Network {network_id} could not be found.");
        return Err(fault(StatusCode::BAD_REQUEST, &message));
    }
    let address = network["fixed_ip"].as_str().map(str::to_owned);
    let wanted =
        address.map(|address| Wanted { subnet_id: None, ip_address: Some(address) }).into_iter().collect();
    connect(world, id, &caller.project_id, network_id, wanted)
        .map(|_| ())
        .map_err(|refusal| fault(StatusCode::BAD_REQUEST, &refusal.message))
}

/// Removes a server with the ports that were made for it; those that it was given are free again.
pub(crate) fn remove(world: &mut World, id: &str) {
    let given = world.compute.servers.remove(id).map(|server| server.given_ports).unwrap_or_default();
    let attached: Vec<String> = views::ports(world, id).into_iter().map(|port| port.id.clone()).collect();
    for port_id in attached {
        if !given.contains(&port_id) {
            ports::remove(world, &port_id);
        } else if let Some(port) = world.network.ports.get_mut(&port_id) {
            port.set("device_id", "");
            port.set("device_owner", "");
            port.set("status", "DOWN");
        }
    }
}

fn act(world: &mut World, caller: &Caller, request: &Request, id: &str) -> Answer {
    let id = find(world, caller, id)?.id.clone();
    let body = request.json().unwrap_or_default();
    let action = body.as_object().and_then(|actions| actions.keys().next().cloned()).unwrap_or_default();
    let status = match action.as_str() {
        "os-stop" => "SHUTOFF",
        "os-start" | "reboot" | "unpause" | "resume" => "ACTIVE",
        "pause" => "PAUSED",
        "suspend" => "SUSPENDED",
        _ => {
            let message = format!("There is no such action: {action}");
            return Err(fault(StatusCode::BAD_REQUEST, &message));
        }
    };
    set_status(world, &id, status);
    Ok(Reply::empty(StatusCode::ACCEPTED))
}

/// Sets a server's status.
pub(crate) fn set_status(world: &mut World, id: &str, status: &str) {
    let now = world.zulu_time();
    if let Some(server) = world.compute.servers.get_mut(id) {
        status.clone_into(&mut server.status);
        server.updated = now;
    }
}
