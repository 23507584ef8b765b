//! What Services go through in a cloud that lacks a part from the beginning, or loses it: they are published, follow nodes, change and
//! go, and nothing of anybody else does.

use openstack_ccm_kube_sim::ApiVersion;
use serde_json::{Value, json};

use super::believed::guest;
use crate::contract::setup::{floating_ip, load_balancer};
use crate::extensions::container;
use crate::refused::{leads, on_port_80};
use crate::support::{ANNOTATION, World, service};

const OCTAVIA: &str = "load-balancer";

/// What a cloud makes possible although it lacks a part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Possible {
    /// Several Services use one load balancer: its tags say which.
    pub(super) shares: bool,
    /// The tags that say so are still shown.
    pub(super) shows_tags: bool,
    /// New listeners and pools get tags, as those that are there have them.
    pub(super) makes_children: bool,
    /// A certificate is checked before a listener gets it.
    pub(super) terminates: bool,
    /// Something says whose a floating IP is that leads nowhere.
    pub(super) marks: bool,
}

/// A world that needs every part, not started yet.
pub(super) fn needy() -> World {
    let mut world = World::new(ApiVersion::V1_36);
    // A plan learns what a cloud lacks when it is carried out.
    world.settings.plans = false;
    let network = &world.cloud.seed().public_network_id;
    world.settings.cloud_conf =
        format!("manage-security-groups = true\nlb-provider =\nfloating-network-id = {network}");
    world
}

/// What a stranger has in the same project.
struct Strangers(Vec<Value>);

impl Strangers {
    fn settle(world: &World) -> Self {
        let user = world.cloud.user();
        let body = json!({"loadbalancer": {"name": "mine", "vip_subnet_id": world.cloud.seed().subnet_id}});
        let (status, made) = user.post(OCTAVIA, "/v2.0/lbaas/loadbalancers", &body);
        assert_eq!(status, 201, "{made}");
        world.cloud.settle();
        let listener = json!({"listener": {"name": "mine", "protocol": "TCP", "protocol_port": 9000,
            "loadbalancer_id": made["loadbalancer"]["id"]}});
        assert_eq!(user.post(OCTAVIA, "/v2.0/lbaas/listeners", &listener).0, 201);
        world.cloud.settle();
        floating_ip(&world.cloud, "198.19.0.77", "of a stranger");
        Self(Self::now(world))
    }

    fn now(world: &World) -> Vec<Value> {
        let mut all =
            [world.cloud.load_balancers(), world.cloud.listeners(), world.cloud.floating_ips()].concat();
        // A cloud that loses tags shows none, not even that there are none.
        all.iter_mut().filter(|one| one["tags"].is_null()).for_each(|one| one["tags"] = json!([]));
        all
    }

    /// Nothing else is left, but floating IPs where nothing says whose they are.
    fn are_alone(&self, world: &World, possible: Possible) {
        let left = Self::now(world);
        assert!(self.0.iter().all(|one| left.contains(one)), "{left:#?}");
        let others: Vec<&Value> = left.iter().filter(|one| !self.0.contains(one)).collect();
        let excused = !possible.marks && others.iter().all(|one| one["port_id"] == Value::Null);
        assert!(others.is_empty() || excused, "{others:#?}");
    }
}

/// A Service whose certificate is in Barbican.
fn terminating(world: &World) -> Value {
    let ports = json!([{"name": "https", "port": 443, "protocol": "TCP", "nodePort": 30443}]);
    let annotations = json!({format!("{ANNOTATION}default-tls-container-ref"): container(world, "tls")});
    service("tls", json!({"metadata": {"annotations": annotations}, "spec": {"ports": ports}}))
}

/// The ports, with that of the guest and that of the certificate where they are possible.
fn ports(possible: Possible, own: &[u64], of_guest: u64) -> Vec<u64> {
    let others = [(possible.shares, of_guest), (possible.terminates, 443)];
    let others = others.into_iter().filter(|(is_possible, _)| *is_possible).map(|(_, port)| port);
    let mut all: Vec<u64> = own.iter().copied().chain(others).collect();
    all.sort_unstable();
    all
}

/// Services from their beginning to their end: an owner and its guest, one with a certificate, and one beside them.
pub(super) async fn lives(mut world: World, possible: Possible) {
    let strangers = Strangers::settle(&world);
    world.start().await;
    let other = json!([{"name": "http", "port": 90, "protocol": "TCP", "nodePort": 30090}]);
    world.create(&service("other", json!({"spec": {"ports": other}})));
    world.create(&on_port_80());
    world.until_published("web").await;
    world.until_published("other").await;
    world.create(&guest(&world, 81));
    world.create(&terminating(&world));
    if !possible.shares {
        world.until_warned("guest", "sharing a load balancer requires tags").await;
    }
    if !possible.terminates {
        world.until_warned("tls", "default-tls-container-ref").await;
    }
    let all = |own: &[u64]| ports(possible, own, 81);
    world.until("all nodes are members", |world| leads(world, &all(&[80, 90]), 2)).await;
    let published = world.ingress("other");
    world.add_node("node-3", "v1.36.0");
    world.until("the new node is a member", |world| leads(world, &all(&[80, 90]), 3)).await;
    let more = json!([{"name": "http", "port": 80, "protocol": "TCP", "nodePort": 30080},
        {"name": "more", "port": 82, "protocol": "TCP", "nodePort": 30082}]);
    world.patch("web", &json!({"spec": {"ports": more, "sessionAffinity": "ClientIP"}}));
    world.until("the new port is open", |world| leads(world, &all(&[80, 82, 90]), 3)).await;
    world.quiet_unplanned().await;
    world.restart().await;
    world.quiet_unplanned().await;
    assert!(leads(&world, &all(&[80, 82, 90]), 3), "a restart takes nothing away: {}", world.state());
    world.kube.delete("nodes", "", "node-1").unwrap();
    world.until("the node that went is no member", |world| leads(world, &all(&[80, 82, 90]), 2)).await;
    world.quiet_unplanned().await;
    for name in ["guest", "web", "tls"] {
        world.delete(name);
        world.until_gone(name).await;
    }
    world.quiet_unplanned().await;
    assert_eq!(world.ingress("other"), published);
    assert!(leads(&world, &[90], 2), "{}", world.state());
    world.delete("other");
    world.until_gone("other").await;
    world.quiet_unplanned().await;
    strangers.are_alone(&world, possible);
}

/// Services that were there before the cloud lost a part: an owner and its guest, and one with a certificate. What is there stays,
/// whatever the cloud makes possible from now on.
pub(super) async fn go_on(mut world: World, lose: impl FnOnce(&World), possible: Possible) {
    const LIMIT: &str = "loadbalancer.openstack.org/connection-limit";
    let strangers = Strangers::settle(&world);
    world.start().await;
    world.serve(&on_port_80()).await;
    // Of a guest nothing else says that it is one.
    let is_shared = possible.shows_tags;
    if is_shared {
        world.serve(&guest(&world, 81)).await;
    }
    world.serve(&terminating(&world)).await;
    let names = || ["web", "tls", "guest"].into_iter().take(if is_shared { 3 } else { 2 });
    let published = |world: &World| names().map(|name| world.ingress(name)).collect::<Vec<_>>();
    let before = published(&world);
    let all = |of_guest| ports(Possible { shares: is_shared, terminates: true, ..possible }, &[80], of_guest);
    world.stop().await;
    lose(&world);
    world.start().await;
    world.quiet_unplanned().await;
    assert!(leads(&world, &all(81), 2), "nothing is taken away: {}", world.state());
    world.add_node("node-3", "v1.36.0");
    world.until("all lead to the new node", |world| leads(world, &all(81), 3)).await;
    world.kube.delete("nodes", "", "node-1").unwrap();
    world.until("all have lost the node that went", |world| leads(world, &all(81), 2)).await;
    world.annotate("tls", LIMIT, Some("7"));
    let is_limited = |world: &World| {
        let listeners = world.cloud.listeners();
        listeners.iter().any(|one| one["protocol"] == "TERMINATED_HTTPS" && one["connection_limit"] == 7)
    };
    world.until("the setting changes", is_limited).await;
    if is_shared && possible.makes_children {
        let moved = json!([{"name": "http", "port": 82, "protocol": "TCP"}]);
        world.patch("guest", &json!({"spec": {"ports": moved}}));
        world.until("the guest has another port", |world| leads(world, &all(82), 2)).await;
    }
    world.quiet_unplanned().await;
    assert_eq!(published(&world), before);
    if is_shared {
        world.delete("guest");
        world.until_gone("guest").await;
        world.until("the port of the guest is closed", |world| leads(world, &[80, 443], 2)).await;
        let tags = load_balancer(&world)["tags"].to_string();
        assert!(!tags.contains("guest"), "{tags}");
    }
    for name in ["web", "tls"] {
        world.delete(name);
        world.until_gone(name).await;
    }
    world.quiet_unplanned().await;
    strangers.are_alone(&world, possible);
}
