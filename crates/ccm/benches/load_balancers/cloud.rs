//! Clouds and clusters of some size.

use std::time::Duration;

use openstack_ccm_kube_sim::ApiVersion;
use openstack_ccm_openstack_sim::{Actor, OperationKind, Sim as Cloud};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{PROXY, World, service};

/// Time of one call to OpenStack.
pub(crate) const LATENCY: Duration = Duration::from_millis(50);
/// Time until an amphora serves.
pub(crate) const CREATION: Duration = Duration::from_secs(30);
/// Time between two looks at the Services, where it is measured when they are served.
const STEP: Duration = Duration::from_millis(100);
/// Time until a change of a load balancer is made.
pub(crate) const CHANGE: Duration = Duration::from_secs(2);

/// A cloud with room for thousands of addresses, and a cluster of so many nodes in it. `conf` is further lines of
/// `[LoadBalancer]`.
pub(crate) fn world(nodes: usize, conf: &str) -> World {
    let cloud = Cloud::builder()
        .nodes(nodes)
        .cluster_cidr("198.18.0.0/20")
        .token_lifetime(Duration::from_secs(1 << 30))
        .build();
    let seed = cloud.seed().clone();
    let admin = cloud.admin();
    let outside =
        post(&admin, "networks", "network", &json!({"name": "wide-public", "router:external": true}));
    let subnet =
        json!({"network_id": outside["id"], "ip_version": 4, "cidr": "100.64.0.0/16", "enable_dhcp": false});
    post(&admin, "subnets", "subnet", &subnet);
    let user = cloud.user();
    let inside = post(&user, "networks", "network", &json!({"name": "wide"}));
    let subnet = json!({"network_id": inside["id"], "ip_version": 4, "cidr": "10.64.0.0/16"});
    let subnet = post(&user, "subnets", "subnet", &subnet);
    let gateway = json!({"name": "wide", "external_gateway_info": {"network_id": outside["id"]}});
    let router = post(&user, "routers", "router", &gateway);
    let path = format!("/v2.0/routers/{}/add_router_interface", text(&router["id"]));
    let (status, answer) = user.put("network", &path, &json!({"subnet_id": subnet["id"]}));
    assert_eq!(status, 200, "{answer}");
    for resource in ["port", "floatingip", "security_group", "security_group_rule"] {
        cloud.set_neutron_quota(resource, -1);
    }
    cloud.set_delays(CHANGE);
    cloud.set_delay(OperationKind::LoadBalancerCreate, CREATION);
    let mut world = World::in_cloud(ApiVersion::V1_36, cloud);
    for node in world.kube.list("nodes", "").unwrap() {
        world.set_ready(text(&node["metadata"]["name"]), "True");
    }
    world.settings.latency = LATENCY;
    world.settings.plans = false;
    world.settings.cloud_conf = format!(
        "network-id = {}\nsubnet-id = {}\nmember-subnet-id = {}\nfloating-network-id = {}\n{conf}",
        text(&inside["id"]),
        text(&subnet["id"]),
        seed.subnet_id,
        text(&outside["id"])
    );
    world
}

/// The same with Services that are served already.
pub(crate) async fn serving(services: usize, nodes: usize, conf: &str) -> World {
    let mut world = world(nodes, conf);
    world.start().await;
    for number in 0..services {
        world.create(&proxy_service(number));
    }
    // The list of a thousand Services takes longer than what is done for them.
    until(&world, "all Services are published", 50 * STEP, |world| served(world) == services).await;
    world.quiet().await;
    world
}

/// A node whose kubelet is well: others are looked for in the cloud every few seconds.
pub(crate) fn add_node(world: &World, name: &str) {
    world.add_node(name, "v1.36.0");
    world.set_ready(name, "True");
}

/// A Service with the PROXY protocol.
pub(crate) fn proxy_service(number: usize) -> Value {
    service(&format!("web-{number}"), json!({"metadata": {"annotations": {PROXY: "v2"}}}))
}

/// Waits until so many Services are published.
pub(crate) async fn until_served(world: &World, services: usize) {
    until(world, "all Services are published", STEP, |world| served(world) == services).await;
}

/// How many Services are published.
pub(crate) fn served(world: &World) -> usize {
    let all = world.kube.list("services", "default").unwrap();
    all.iter().filter(|service| service["status"]["loadBalancer"]["ingress"][0]["ipMode"] == "Proxy").count()
}

/// Waits for a condition, which is looked at after each step of time.
pub(crate) async fn until(world: &World, what: &str, step: Duration, condition: impl Fn(&World) -> bool) {
    let start = Instant::now();
    while !condition(world) {
        assert!(start.elapsed() < Duration::from_secs(36_000), "not reached: {what}");
        tokio::time::sleep(step).await;
    }
}

fn post(actor: &Actor<'_>, path: &str, root: &str, body: &Value) -> Value {
    let (status, answer) = actor.post("network", &format!("/v2.0/{path}"), &json!({root: body}));
    assert_eq!(status, 201, "{answer}");
    answer[root].clone()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}
