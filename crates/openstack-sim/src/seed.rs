//! The cloud that a simulator begins with: what a deployer and an operator would have set up.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::neutron::ports::Wanted;
use crate::nova::servers::{self, NewServer};
use crate::octavia;
use crate::request::Request;
use crate::service::Service;
use crate::world::World;
use crate::world::compute::Flavor;
use crate::world::identity::{Project, User};

/// The user of the seeded project.
pub const USER: &str = "demo";
/// The seeded project.
pub const PROJECT: &str = "demo";
/// The password of every seeded user.
pub const PASSWORD: &str = "lab";

/// The ids of what every simulator has from the beginning.
#[derive(Debug, Clone)]
pub struct Seed {
    /// The project `demo`.
    pub project_id: String,
    /// The user `demo`.
    pub user_id: String,
    /// The external network `public`, 198.19.0.0/24.
    pub public_network_id: String,
    /// The subnet of the external network.
    pub public_subnet_id: String,
    /// The network `cluster` of the project.
    pub network_id: String,
    /// The subnet `cluster-v4`, 198.18.0.0/24 unless the builder says otherwise.
    pub subnet_id: String,
    /// The subnet `cluster-v6`, fd00:18::/64, where it was asked for.
    pub subnet_v6_id: Option<String>,
    /// The router `cluster` between the two networks.
    pub router_id: String,
    /// The flavor of the nodes.
    pub flavor_id: String,
}

/// A server of the cluster with one port on the network `cluster`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The name of the server.
    pub name: String,
    pub server_id: String,
    pub port_id: String,
    /// Its addresses: IPv4 first.
    pub addresses: Vec<String>,
}

const ROLES: [&str; 9] = [
    "admin",
    "manager",
    "member",
    "reader",
    "service",
    "creator",
    "load-balancer_member",
    "load-balancer_observer",
    "load-balancer_admin",
];

/// Fills an empty world.
pub(crate) fn plant(world: &mut World, cidr: &str, ipv6: bool, token_lifetime: Duration) -> Seed {
    world.identity.token_lifetime = token_lifetime;
    let (project_id, user_id) = plant_identity(world);
    plant_load_balancing(world);
    let flavor_id = plant_compute(world);
    let (public_network_id, public_subnet_id) = plant_public_network(world);
    let network = post(world, USER, "networks", "network", &json!({"name": "cluster"}));
    let network_id = id_of(&network);
    let subnet = |cidr: &str, name: &str, version: u8| json!({"name": name, "network_id": network_id, "ip_version": version, "cidr": cidr});
    let v4 = subnet(cidr, "cluster-v4", 4);
    let mut v6 = subnet("fd00:18::/64", "cluster-v6", 6);
    v6["gateway_ip"] = json!("fd00:18::1");
    let subnet_id = id_of(&post(world, USER, "subnets", "subnet", &v4));
    let subnet_v6_id = ipv6.then(|| id_of(&post(world, USER, "subnets", "subnet", &v6)));
    let gateway = json!({"name": "cluster", "external_gateway_info": {"network_id": public_network_id}});
    let router_id = id_of(&post(world, USER, "routers", "router", &gateway));
    for subnet in std::iter::once(&subnet_id).chain(&subnet_v6_id) {
        let path = format!("/v2.0/routers/{router_id}/add_router_interface");
        send(world, USER, http::Method::PUT, &path, &json!({"subnet_id": subnet}));
    }
    Seed {
        project_id,
        user_id,
        public_network_id,
        public_subnet_id,
        network_id,
        subnet_id,
        subnet_v6_id,
        router_id,
        flavor_id,
    }
}

fn plant_identity(world: &mut World) -> (String, String) {
    for role in ROLES {
        let id = world.new_hex_id();
        world.identity.roles.insert(role.to_owned(), id);
    }
    let user_roles: &[&str] = &["member", "load-balancer_member", "creator"];
    let service_roles: &[&str] = &["admin", "service"];
    plant_user(world, "admin", "admin", &["admin"]);
    for user in ["neutron", "octavia", "nova", "barbican"] {
        plant_user(world, user, "service", service_roles);
    }
    plant_user(world, "stranger", "other", user_roles);
    let (project_id, user_id) = plant_user(world, USER, PROJECT, user_roles);
    plant_user(world, "plain", PROJECT, &["reader"]);
    (project_id, user_id)
}

fn plant_user(world: &mut World, name: &str, project: &str, roles: &[&str]) -> (String, String) {
    let project_id = match world.identity.project_named(project) {
        Some(project) => project.id.clone(),
        None => {
            let id = world.new_hex_id();
            world.identity.projects.insert(id.clone(), Project { id: id.clone(), name: project.to_owned() });
            id
        }
    };
    let id = world.new_hex_id();
    let user = User { id: id.clone(), name: name.to_owned(), password: PASSWORD.to_owned() };
    world.identity.users.insert(id.clone(), user);
    let roles: BTreeSet<String> = roles.iter().map(|role| (*role).to_owned()).collect();
    world.identity.grants.insert((id.clone(), project_id.clone()), roles);
    (project_id, id)
}

fn plant_load_balancing(world: &mut World) {
    let state = &mut world.load_balancing;
    state.api_minor = octavia::NEWEST_MINOR;
    state.providers = vec![
        ("amphora".to_owned(), "The Octavia Amphora driver.".to_owned()),
        ("octavia".to_owned(), "Deprecated alias of the Octavia Amphora driver.".to_owned()),
    ];
}

fn plant_compute(world: &mut World) -> String {
    let id = world.new_id();
    let flavor = Flavor { id: id.clone(), name: "m1.lab".to_owned(), ram: 512, disk: 1, vcpus: 1 };
    world.compute.flavors.insert(id.clone(), flavor);
    world.compute.availability_zones = vec!["nova".to_owned()];
    world.compute.image_id = world.new_id();
    id
}

fn plant_public_network(world: &mut World) -> (String, String) {
    let external = json!({"name": "public", "router:external": true, "mtu": 1500});
    let network_id = id_of(&post(world, "admin", "networks", "network", &external));
    let subnet = json!({
        "name": "public-v4",
        "network_id": network_id,
        "ip_version": 4,
        "cidr": "198.19.0.0/24",
        "gateway_ip": "198.19.0.1",
        "enable_dhcp": false,
        "allocation_pools": [{"start": "198.19.0.10", "end": "198.19.0.250"}],
    });
    let subnet_id = id_of(&post(world, "admin", "subnets", "subnet", &subnet));
    (network_id, subnet_id)
}

fn id_of(resource: &Value) -> String {
    resource["id"].as_str().unwrap_or_default().to_owned()
}

fn post(world: &mut World, user: &str, collection: &str, root: &str, body: &Value) -> Value {
    let answer = send(world, user, http::Method::POST, &format!("/v2.0/{collection}"), &json!({root: body}));
    answer[root].clone()
}

/// Seeding goes through the same door as everybody, so the seed cannot hold what the service would not.
fn send(world: &mut World, user: &str, method: http::Method, path: &str, body: &Value) -> Value {
    let token = token_of(world, user);
    let mut request = http::Request::new(bytes::Bytes::from(body.to_string()));
    *request.method_mut() = method;
    if let (Ok(uri), Ok(token)) = (path.parse(), token.parse()) {
        *request.uri_mut() = uri;
        request.headers_mut().insert("x-auth-token", token);
    }
    crate::neutron::answer(world, &Request::new(Service::Network, request)).value()
}

/// A token of a seeded user in its project.
pub(crate) fn token_of(world: &mut World, user: &str) -> String {
    let Some(user_id) = world.identity.user_named(user).map(|user| user.id.clone()) else {
        return String::new();
    };
    let project = world.identity.grants.keys().find(|(granted, _)| *granted == user_id);
    let project_id = project.map(|(_, project)| project.clone());
    let roles = project_id.as_ref().map(|project| world.identity.effective_roles(&user_id, project));
    let grant = crate::world::identity::TokenGrant {
        user_id,
        project_id,
        roles: roles.unwrap_or_default(),
        methods: vec!["password".to_owned()],
        ..Default::default()
    };
    world.issue_token(grant).id
}

/// Adds a node; its IPv4 address is the lowest free one from .50 on.
pub(crate) fn add_node(world: &mut World, seed: &Seed, name: &str) -> Node {
    let new = NewServer {
        name: name.to_owned(),
        project_id: seed.project_id.clone(),
        user_id: seed.user_id.clone(),
        flavor_id: seed.flavor_id.clone(),
        image_id: world.compute.image_id.clone(),
        metadata: Map::new(),
        availability_zone: "nova".to_owned(),
    };
    let server_id = servers::add(world, new);
    let mut wanted =
        vec![Wanted { subnet_id: Some(seed.subnet_id.clone()), ip_address: node_address(world, seed) }];
    wanted
        .extend(seed.subnet_v6_id.iter().map(|id| Wanted { subnet_id: Some(id.clone()), ip_address: None }));
    let port = servers::connect(world, &server_id, &seed.project_id, &seed.network_id, wanted);
    let port_id = port.unwrap_or_default();
    node_of(world, name, &server_id, &port_id)
}

fn node_of(world: &World, name: &str, server_id: &str, port_id: &str) -> Node {
    let ips =
        world.network.ports.get(port_id).map(super::world::network::Resource::fixed_ips).unwrap_or_default();
    Node {
        name: name.to_owned(),
        server_id: server_id.to_owned(),
        port_id: port_id.to_owned(),
        addresses: ips.into_iter().map(|ip| ip.ip_address).collect(),
    }
}

/// `None` when the range for nodes is used up: then any address will do.
fn node_address(world: &World, seed: &Seed) -> Option<String> {
    let taken: BTreeSet<String> = world
        .network
        .ports
        .values()
        .flat_map(crate::world::network::Resource::fixed_ips)
        .filter(|ip| ip.subnet_id == seed.subnet_id)
        .map(|ip| ip.ip_address)
        .collect();
    (50..255).map(|host| format!("198.18.0.{host}")).find(|address| !taken.contains(address))
}

/// The servers that have a port on the network `cluster`, by name.
pub(crate) fn nodes(world: &World, seed: &Seed) -> Vec<Node> {
    let mut nodes: Vec<Node> = world
        .compute
        .servers
        .values()
        .filter_map(|server| {
            let port = world.network.ports.values().find(|port| {
                port.text("device_id") == server.id && port.text("network_id") == seed.network_id
            })?;
            Some(node_of(world, &server.name, &server.id, &port.id))
        })
        .collect();
    nodes.sort_by(|one, other| one.name.cmp(&other.name));
    nodes
}
