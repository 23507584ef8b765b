//! Servers and flavors as on the wire, in the microversion that was asked for.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value, json};

use super::microversion::Microversion;
use crate::service::Service;
use crate::world::World;
use crate::world::compute::{Flavor, NovaServer};
use crate::world::network::Resource;

fn links(world: &World, kind: &str, id: &str) -> Value {
    let base = world.endpoint(Service::Compute);
    json!([
        {"rel": "self", "href": format!("{base}/v2.1/{kind}/{id}")},
        {"rel": "bookmark", "href": format!("{base}/{kind}/{id}")},
    ])
}

fn bookmark(world: &World, kind: &str, id: &str) -> Value {
    let base = world.endpoint(Service::Compute);
    json!({"id": id, "links": [{"rel": "bookmark", "href": format!("{base}/{kind}/{id}")}]})
}

pub(crate) fn flavor(world: &World, flavor: &Flavor) -> Value {
    json!({
        "id": flavor.id,
        "name": flavor.name,
        "ram": flavor.ram,
        "disk": flavor.disk,
        "swap": "",
        "OS-FLV-EXT-DATA:ephemeral": 0,
        "OS-FLV-DISABLED:disabled": false,
        "vcpus": flavor.vcpus,
        "os-flavor-access:is_public": true,
        "rxtx_factor": 1.0,
        "links": links(world, "flavors", &flavor.id),
    })
}

/// A server in a list without details.
pub(crate) fn brief(world: &World, server: &NovaServer) -> Value {
    json!({"id": server.id, "name": server.name, "links": links(world, "servers", &server.id)})
}

/// The answer to the request for a new server.
pub(crate) fn accepted(world: &World, server: &NovaServer, password: &str) -> Value {
    json!({
        "id": server.id,
        "links": links(world, "servers", &server.id),
        "OS-DCF:diskConfig": "MANUAL",
        "security_groups": [{"name": "default"}],
        "adminPass": password,
    })
}

/// A server in full, with its ports.
pub(crate) fn server(
    world: &World,
    server: &NovaServer,
    version: Microversion,
    ports: &[&Resource],
) -> Value {
    let mut view = json!({
        "accessIPv4": server.access_ipv4,
        "accessIPv6": server.access_ipv6,
        "addresses": addresses(world, ports),
        "created": server.created,
        "updated": server.updated,
        "flavor": flavor_of(world, server, version),
        "hostId": server.host_id,
        "id": server.id,
        "image": bookmark(world, "images", &server.image_id),
        "links": links(world, "servers", &server.id),
        "metadata": server.metadata,
        "name": server.name,
        "status": server.status,
        "tenant_id": server.project_id,
        "user_id": server.user_id,
        "OS-DCF:diskConfig": "MANUAL",
        "OS-EXT-AZ:availability_zone": server.availability_zone,
        "config_drive": "",
        "key_name": null,
        "OS-SRV-USG:launched_at": format!("{}.000000", server.created.trim_end_matches('Z')),
        "OS-SRV-USG:terminated_at": null,
        "security_groups": [{"name": "default"}],
        "OS-EXT-STS:task_state": null,
        "OS-EXT-STS:vm_state": server.vm_state(),
        "OS-EXT-STS:power_state": server.power_state(),
        "os-extended-volumes:volumes_attached": [],
    });
    if matches!(server.status.as_str(), "ACTIVE" | "BUILD") {
        view["progress"] = json!(0);
    }
    for (since, name, value) in [
        (9, "locked", json!(false)),
        (19, "description", json!(server.name)),
        (26, "tags", json!(server.tags)),
        (63, "trusted_image_certificates", Value::Null),
        (71, "server_groups", json!([])),
        (73, "locked_reason", Value::Null),
        (90, "OS-EXT-SRV-ATTR:hostname", json!(server.name)),
        (96, "pinned_availability_zone", Value::Null),
    ] {
        if version.has(since) {
            view[name] = value;
        }
    }
    view
}

/// Until 2.46 a reference; then what the server was made with.
fn flavor_of(world: &World, server: &NovaServer, version: Microversion) -> Value {
    match world.compute.flavors.get(&server.flavor_id) {
        Some(flavor) if version.has(47) => json!({
            "vcpus": flavor.vcpus,
            "ram": flavor.ram,
            "disk": flavor.disk,
            "ephemeral": 0,
            "swap": 0,
            "original_name": flavor.name,
            "extra_specs": {},
        }),
        _ => bookmark(world, "flavors", &server.flavor_id),
    }
}

/// The ports of all servers by server, in the order in which they were made.
pub(crate) fn ports_by_server(world: &World) -> HashMap<&str, Vec<&Resource>> {
    let mut ports: Vec<&Resource> = world.network.ports.values().collect();
    ports.sort_by_key(|port| port.standard_attribute_id);
    let mut by_server: HashMap<&str, Vec<&Resource>> = HashMap::new();
    for port in ports {
        by_server.entry(port.text("device_id")).or_default().push(port);
    }
    by_server
}

/// The ports of a server, in the order in which they were made.
pub(crate) fn ports<'a>(world: &'a World, server_id: &str) -> Vec<&'a Resource> {
    ports_by_server(world).remove(server_id).unwrap_or_default()
}

/// Addresses by network name: fixed ones first, each followed by the floating IP that points to it.
fn addresses(world: &World, ports: &[&Resource]) -> Value {
    let mut networks: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for port in ports {
        let network = world.network.networks.get(port.text("network_id"));
        let entries =
            networks.entry(network.map(|one| one.text("name").to_owned()).unwrap_or_default()).or_default();
        for ip in port.fixed_ips() {
            entries.push(address(port, &ip.ip_address, "fixed"));
            let floating = world.network.floating_ips.values().filter(|one| {
                one.text("port_id") == port.id && one.text("fixed_ip_address") == ip.ip_address
            });
            entries.extend(floating.map(|one| address(port, one.text("floating_ip_address"), "floating")));
        }
    }
    let networks: Map<String, Value> = networks.into_iter().map(|(name, list)| (name, json!(list))).collect();
    Value::Object(networks)
}

fn address(port: &Resource, address: &str, kind: &str) -> Value {
    json!({
        "version": if address.contains(':') { 6 } else { 4 },
        "addr": address,
        "OS-EXT-IPS:type": kind,
        "OS-EXT-IPS-MAC:mac_addr": port.text("mac_address"),
    })
}
