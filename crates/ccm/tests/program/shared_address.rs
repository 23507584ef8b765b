//! Services on one address agree on its mode: one that needs the way through the load balancer decides for all.

use openstack_ccm_kube_sim::{ApiVersion, Fault};
use serde_json::{Value, json};

use crate::contract::setup::id;
use crate::support::{LB_ID, PROXY, Side, World, lb_name, service};

/// A Service on the load balancer of `web`, on another port.
fn neighbour(world: &World, proxy: bool) -> Value {
    let load_balancer = id(&world.cloud.load_balancer(&lb_name("web")).unwrap());
    let mut annotations = json!({LB_ID: load_balancer});
    if proxy {
        annotations[PROXY] = json!("v2");
    }
    let ports = json!([{"name": "https", "port": 443, "protocol": "TCP"}]);
    service("web2", json!({"metadata": {"annotations": annotations}, "spec": {"ports": ports}}))
}

async fn until_both(world: &World, entry: &str) {
    world.until_ingress("web", entry).await;
    world.until_served_at("web2", entry).await;
    assert_eq!(
        (world.ingress("web"), world.ingress("web2")),
        (vec![entry.to_owned()], vec![entry.to_owned()])
    );
}

#[tokio::test(start_paused = true)]
async fn one_service_that_needs_the_load_balancer_decides_for_all_on_its_address() {
    let world = World::serving(&service("web", json!({}))).await;
    assert_eq!(world.ingress("web"), ["198.19.0.11(VIP)"]);
    world.create(&neighbour(&world, true));
    until_both(&world, "198.19.0.11(Proxy)").await;
    let events = world.events("web").join("\n");
    assert!(
        events.contains(
            "another Service on the same address requires traffic to pass the load \
    balancer"
        ),
        "{events}"
    );
    world.annotate("web2", PROXY, None);
    until_both(&world, "198.19.0.11(VIP)").await;
    world.annotate("web2", PROXY, Some("v1"));
    until_both(&world, "198.19.0.11(Proxy)").await;
    world.release("web2").await;
    world.until_ingress("web", "198.19.0.11(VIP)").await;
}

#[tokio::test(start_paused = true)]
async fn who_insists_on_vip_gets_it_and_decides_for_nobody() {
    let world = World::serving(&service("web", json!({}))).await;
    world.annotate("web", "loadbalancer.openstack.org/ip-mode", Some("vip"));
    world.create(&neighbour(&world, true));
    world.until_served_at("web2", "198.19.0.11(Proxy)").await;
    assert_eq!(world.ingress("web"), ["198.19.0.11(VIP)"]);
    world.annotate("web2", "loadbalancer.openstack.org/ip-mode", Some("vip"));
    world.annotate("web", "loadbalancer.openstack.org/ip-mode", None);
    until_both(&world, "198.19.0.11(VIP)").await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_does_not_turn_the_mode_over_and_back() {
    let mut world = World::serving(&service("web", json!({}))).await;
    world.create(&neighbour(&world, true));
    until_both(&world, "198.19.0.11(Proxy)").await;
    world.quiet().await;
    let events = |world: &World| (world.events("web"), world.events("web2"));
    let before = events(&world);
    world.take_calls();
    world.restart_to_rest().await;
    let calls = world.take_calls();
    let writes = calls.iter().filter(|call| call.side == Side::Kubernetes && call.write);
    let statuses = writes.filter(|call| call.name == "PATCH services/NAME/status").count();
    // One for the annotation that says at which change of the load balancer all agreed; over and back would be two more.
    assert!(statuses <= 1, "{calls:?}");
    // Each change of the mode is an event.
    assert_eq!(events(&world), before);
    assert_eq!(world.ingress("web"), ["198.19.0.11(Proxy)"]);
}

/// The mode that a neighbour needed is given up when the neighbour went while nobody was at work.
#[tokio::test(start_paused = true)]
async fn a_need_that_vanished_during_a_restart_is_forgotten() {
    let mut world = World::serving(&service("web", json!({}))).await;
    world.create(&neighbour(&world, true));
    until_both(&world, "198.19.0.11(Proxy)").await;
    world.stop().await;
    world.annotate("web2", PROXY, None);
    world.start().await;
    until_both(&world, "198.19.0.11(VIP)").await;
}

/// Where the mode cannot have its effect the neighbour is published as if it were alone.
#[tokio::test(start_paused = true)]
async fn on_an_old_cluster_a_plain_service_keeps_its_address() {
    let mut world = World::new(ApiVersion::V1_28);
    world.settings.cloud_conf = "ingress-hostname-suffix=example.org\n".to_owned();
    world.start().await;
    world.serve(&service("web", json!({}))).await;
    world.create(&neighbour(&world, true));
    world.until_served_at("web2", "198.19.0.11.example.org").await;
    assert_eq!(world.ingress("web"), ["198.19.0.11"]);
}

/// A Service that goes needs nothing any more, although its status is still there.
#[tokio::test(start_paused = true)]
async fn a_service_that_goes_decides_for_nobody_who_gets_its_address() {
    let world = World::serving(&service("web", json!({"metadata": {"annotations": {PROXY: "v2"}}}))).await;
    let refused = world.kube.inject(Fault::on("PATCH", "/services/web/status").unavailable());
    world.delete("web");
    world.until("its address is free", |world| world.cloud.floating_ips().is_empty()).await;
    world.create(&service("web2", json!({})));
    world.until_published("web2").await;
    assert_eq!(world.ingress("web"), ["198.19.0.11(Proxy)"]);
    assert_eq!(world.ingress("web2"), ["198.19.0.11(VIP)"]);
    world.kube.remove_fault(refused);
    world.until_gone("web").await;
}
