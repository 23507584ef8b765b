//! The main job on a current cluster: a Service becomes a load balancer, follows every change, and leaves nothing.

use insta::assert_snapshot;
use openstack_ccm_kube_sim::ApiVersion;
use rstest::rstest;
use serde_json::json;

use crate::support::{PROXY, World, lb_name, service};

/// TCP with the PROXY protocol, and UDP beside it.
fn dns(proxy: &str) -> serde_json::Value {
    service(
        "web",
        json!({
            "metadata": {"annotations": {PROXY: proxy}},
            "spec": {"ports": [
                {"name": "http", "port": 80, "protocol": "TCP", "nodePort": 30080},
                {"name": "dns", "port": 53, "protocol": "UDP", "nodePort": 30053},
            ]},
        }),
    )
}

#[rstest]
#[case::v1("v1")]
#[case::v2("v2")]
#[tokio::test(start_paused = true)]
async fn a_proxy_service_is_made_in_one_request_and_published_with_its_mode(#[case] proxy: &str) {
    let world = World::started().await;
    world.create(&dns(proxy));
    world.until_served_at("web", "198.19.0.11(Proxy)").await;
    assert_snapshot!(format!("proxy_{proxy}"), world.state());
    assert_snapshot!("proxy_events", world.events("web").join("\n"));
    assert_eq!(
        world.take_cloud_writes(),
        ["POST loadbalancers", "POST floatingips", "PUT floatingips/ID/tags"],
        "the whole tree is made by one request"
    );
}

#[tokio::test(start_paused = true)]
async fn a_plain_service_is_published_by_its_address() {
    let world = World::serving(&service("web", json!({}))).await;
    assert_eq!(world.ingress("web"), ["198.19.0.11(VIP)"]);
    assert!(world.warnings("web").is_empty());
}

#[rstest]
#[case::x_forwarded_for("x_forwarded_for", json!({"metadata": {"annotations": {
    "loadbalancer.openstack.org/x-forwarded-for": "true"}}}))]
#[case::internal("internal", json!({"metadata": {"annotations": {
    "service.beta.kubernetes.io/openstack-internal-load-balancer": "true"}}}))]
#[case::local_with_monitor("local_with_monitor", json!({
    "metadata": {"annotations": {"loadbalancer.openstack.org/enable-health-monitor": "true"}},
    "spec": {"externalTrafficPolicy": "Local", "healthCheckNodePort": 31000}}))]
#[case::source_ranges("source_ranges", json!({
    "spec": {"loadBalancerSourceRanges": ["192.0.2.0/24", "203.0.113.7/32"]}}))]
#[case::session_affinity("session_affinity", json!({"spec": {"sessionAffinity": "ClientIP"}}))]
#[tokio::test(start_paused = true)]
async fn what_a_service_asks_for_is_what_it_gets(#[case] name: &str, #[case] change: serde_json::Value) {
    let world = World::serving(&service("web", change)).await;
    assert_snapshot!(name, world.state());
    assert!(world.warnings("web").is_empty(), "{:?}", world.warnings("web"));
}

#[tokio::test(start_paused = true)]
async fn ports_follow_the_service() {
    let world = World::serving(&service("web", json!({}))).await;
    let ports = json!([
        {"name": "https", "port": 443, "protocol": "TCP", "nodePort": 30443},
        {"name": "dns", "port": 53, "protocol": "UDP", "nodePort": 30053},
    ]);
    world.patch_to_rest("web", &json!({"spec": {"ports": ports}})).await;
    assert_snapshot!("ports_changed", world.state());
    assert!(world.warnings("web").is_empty());
    assert_eq!(world.ingress("web"), ["198.19.0.11(VIP)"]);
}

#[tokio::test(start_paused = true)]
async fn nodes_that_come_and_go_become_and_cease_to_be_members() {
    let world = World::serving(&dns("v2")).await;
    world.add_node("node-3", "v1.36.0");
    world.kube.delete("nodes", "", "node-1").unwrap();
    world.quiet().await;
    assert_eq!(world.take_cloud_writes(), ["PUT pools/ID/members"; 2], "one batch for each pool");
    assert_snapshot!("nodes_changed", world.state());
    let exclude =
        json!({"metadata": {"labels": {"node.kubernetes.io/exclude-from-external-load-balancers": ""}}});
    world.kube.patch("nodes", "", "node-2", &exclude).unwrap();
    world.quiet().await;
    let writes = world.take_cloud_writes();
    assert!(writes.len() == 2 && writes.iter().all(|write| write.contains("pools/ID/members")), "{writes:?}");
    assert!(!world.cloud_state().contains("node-2"), "{}", world.cloud_state());
}

#[tokio::test(start_paused = true)]
async fn proxy_protocol_is_switched_on_and_off_on_a_live_service() {
    let world = World::serving(&service("web", json!({}))).await;
    world.annotate("web", PROXY, Some("true"));
    world.until_served_at("web", "198.19.0.11(Proxy)").await;
    let writes = ["POST pools", "PUT pools/ID/members", "PUT listeners/ID", "DELETE pools/ID"];
    assert_eq!(world.take_cloud_writes(), writes, "the listener never stands without a pool");
    assert!(world.cloud_state().contains(" PROXY "), "{}", world.cloud_state());
    world.annotate("web", PROXY, None);
    world.until_served_at("web", "198.19.0.11(VIP)").await;
    assert_eq!(world.take_cloud_writes(), writes);
    assert_snapshot!("switched_events", world.events("web").join("\n"));
}

#[tokio::test(start_paused = true)]
async fn annotations_change_a_load_balancer_that_serves() {
    let world = World::serving(&service("web", json!({}))).await;
    world
        .patch_to_rest(
            "web",
            &json!({"metadata": {"annotations": {
                "loadbalancer.openstack.org/lb-method": "LEAST_CONNECTIONS",
                "loadbalancer.openstack.org/timeout-client-data": "60000",
                "loadbalancer.openstack.org/enable-health-monitor": "true",
                "service.beta.kubernetes.io/load-balancer-source-ranges": "192.0.2.0/24",
            }}}),
        )
        .await;
    assert_snapshot!("annotations_changed", world.state());
    let listener = &world.cloud.listeners()[0];
    assert_eq!(listener["timeout_client_data"], 60_000);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_changes_its_type_gives_everything_back_and_gets_it_anew() {
    let world = World::serving(&dns("v2")).await;
    world.patch("web", &json!({"spec": {"type": "ClusterIP"}}));
    world.until("the cloud is empty", |world| world.cloud.load_balancers().is_empty()).await;
    world.quiet().await;
    assert_snapshot!("type_changed", world.state());
    world.patch("web", &json!({"spec": {"type": "LoadBalancer"}}));
    world.until_served("web").await;
    assert!(world.ingress("web")[0].ends_with("(Proxy)"));
    assert_eq!(world.cloud.load_balancers().len(), 1);
    assert_snapshot!("type_changed_events", world.events("web").join("\n"));
}

#[tokio::test(start_paused = true)]
async fn a_deleted_service_leaves_nothing() {
    let world = World::new(ApiVersion::V1_36);
    let (empty, ports) = (world.cloud_state(), world.cloud.ports().len());
    let mut world = world;
    world.start().await;
    world.serve(&dns("v2")).await;
    world.delete("web");
    assert!(!world.service("web").is_null(), "the finalizer holds it");
    world.until_gone("web").await;
    world.quiet().await;
    assert_eq!((world.cloud_state(), world.cloud.ports().len()), (empty, ports));
    assert_eq!(world.cloud.health_monitors().len(), 0);
    let events = world.events("web");
    assert!(events.iter().any(|event| event.contains("DeletedLoadBalancer")), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_deleted_while_its_load_balancer_is_made_leaves_nothing() {
    let world = World::started().await;
    world.create(&dns("v1"));
    world.until("the load balancer is being made", |world| !world.cloud.load_balancers().is_empty()).await;
    world.release("web").await;
    world.quiet().await;
    assert!(world.cloud.load_balancers().is_empty() && world.cloud.floating_ips().is_empty());
    assert!(world.cloud.leaked_ports().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_floating_ip_that_is_to_be_kept_is_kept() {
    let keep = json!({"metadata": {"annotations": {"loadbalancer.openstack.org/keep-floatingip": "true"}}});
    let world = World::serving(&service("web", keep)).await;
    world.release("web").await;
    assert_eq!(world.cloud.floating_ips().len(), 1);
    assert!(world.cloud.load_balancer(&lb_name("web")).is_none());
}

#[tokio::test(start_paused = true)]
async fn services_of_others_are_left_alone() {
    let world = World::started().await;
    world.create(&service("theirs", json!({"spec": {"loadBalancerClass": "example.org/other"}})));
    world.create(&service("inside", json!({"spec": {"type": "ClusterIP"}})));
    world.quiet().await;
    assert!(world.take_cloud_writes().is_empty());
    assert!(world.service("theirs")["metadata"]["finalizers"].is_null());
}
