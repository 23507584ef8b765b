//! What goes when a Service goes, and in which order.

use std::time::Duration;

use http::Method;
use openstack_ccm_openstack_sim::{Fault, OperationKind, WorkerFault};
use rstest::rstest;
use serde_json::json;

use super::setup::{legacy_name, make_load_balancer};
use crate::support::{ANNOTATION, World, lb_name, service, text};

const OCTAVIA: &str = "load-balancer";
const MONITOR: &str = "loadbalancer.openstack.org/enable-health-monitor";

fn is_empty(world: &World) -> bool {
    world.cloud.load_balancers().is_empty()
        && world.cloud.listeners().is_empty()
        && world.cloud.pools().is_empty()
        && world.cloud.health_monitors().is_empty()
        && world.cloud.leaked_ports().is_empty()
}

/// Load balancer first, floating IP last, and the events of the framework.
///
/// Contract: K1, better: the floating IP goes after the load balancer, so that no address is lost for a load balancer
/// that cannot be deleted.
#[tokio::test(start_paused = true)]
async fn k1_load_balancer_and_floating_ip_go() {
    let world = World::serving(&service("web", json!({}))).await;
    world.release("web").await;
    assert!(is_empty(&world) && world.cloud.floating_ips().is_empty());
    assert_eq!(world.take_cloud_writes(), ["DELETE loadbalancers/ID", "DELETE floatingips/ID"]);
    let events = world.events("web");
    for reason in ["DeletingLoadBalancer", "DeletedLoadBalancer"] {
        assert!(events.iter().any(|event| event.contains(reason)), "{events:?}");
    }
}

/// `keep-floatingip` keeps the floating IP.
///
/// Contract: K2, same.
#[tokio::test(start_paused = true)]
async fn k2_a_floating_ip_that_is_to_be_kept_stays() {
    let keep = json!({"metadata": {"annotations": {format!("{ANNOTATION}keep-floatingip"): "true"}}});
    let world = World::serving(&service("web", keep)).await;
    world.release("web").await;
    assert!(is_empty(&world));
    assert_eq!(world.cloud.floating_ips().len(), 1);
}

/// A floating IP that was not made for the Service stays.
///
/// Contract: K3, same.
#[rstest]
#[case::free_text("bought for the shop")]
#[case::of_another_service("Floating IP for Kubernetes external service default/api from cluster c1")]
#[case::of_another_cluster("Floating IP for Kubernetes external service default/web from cluster c2")]
#[tokio::test(start_paused = true)]
async fn k3_a_floating_ip_of_somebody_else_stays(#[case] description: &str) {
    let world = World::started().await;
    let body = json!({"floatingip": {"floating_network_id": world.cloud.seed().public_network_id,
        "description": description}});
    let (_, made) = world.cloud.user().post("network", "/v2.0/floatingips", &body);
    let address = text(&made["floatingip"]["floating_ip_address"]).to_owned();
    world.serve(&service("web", json!({"spec": {"loadBalancerIP": address}}))).await;
    world.release("web").await;
    assert!(is_empty(&world));
    let left = world.cloud.floating_ips();
    assert_eq!((left.len(), &left[0]["description"]), (1, &json!(description)));
}

/// Without cascade the children go one by one, each after the one before is gone, and then the load balancer.
///
/// Contract: K4, same.
#[tokio::test(start_paused = true)]
async fn k4_without_cascade_children_go_one_by_one() {
    let world = World::configured("cascade-delete = false\n").await;
    world.serve(&service("web", json!({"metadata": {"annotations": {MONITOR: "true"}}}))).await;
    world.release("web").await;
    assert!(is_empty(&world));
    let writes = world.take_cloud_writes();
    let expected = [
        "DELETE healthmonitors/ID",
        "DELETE listeners/ID",
        "DELETE pools/ID",
        "DELETE loadbalancers/ID",
        "DELETE floatingips/ID",
    ];
    assert_eq!(writes, expected);
}

/// While Octavia is at work on the load balancer, nothing is deleted.
///
/// Contract: K5, better: that is waited for, and is no error.
#[tokio::test(start_paused = true)]
async fn k5_a_load_balancer_that_octavia_works_on_is_waited_for() {
    let world = World::serving(&service("web", json!({}))).await;
    world.cloud.set_delays(Duration::from_secs(120));
    let id = text(&world.cloud.load_balancers()[0]["id"]).to_owned();
    let body = json!({"loadbalancer": {"description": "busy"}});
    world.cloud.user().put(OCTAVIA, &format!("/v2.0/lbaas/loadbalancers/{id}"), &body);
    world.delete("web");
    world.pass(60).await;
    assert!(world.take_cloud_writes().is_empty());
    world.cloud.set_delays(Duration::from_secs(1));
    world.until_gone("web").await;
    assert!(is_empty(&world) && world.warnings("web").is_empty(), "{:?}", world.warnings("web"));
}

/// A load balancer in ERROR is deleted.
///
/// Contract: K6, same.
#[tokio::test(start_paused = true)]
async fn k6_a_load_balancer_in_error_is_deleted() {
    let world = World::started().await;
    world.cloud.faults().add_worker(WorkerFault::fail(OperationKind::LoadBalancerCreate).times(100));
    world.create(&service("web", json!({})));
    world
        .until("it is in ERROR", |world| {
            world.cloud.load_balancers().iter().any(|one| one["provisioning_status"] == "ERROR")
        })
        .await;
    world.release("web").await;
    assert!(is_empty(&world) && world.cloud.floating_ips().is_empty());
}

/// What is gone already needs no request, and what is left of it is found.
///
/// Contract: K7, better: the floating IP of a load balancer that somebody deleted is found by its tags and goes too.
#[tokio::test(start_paused = true)]
async fn k7_a_load_balancer_that_is_not_there_leaves_nothing_behind() {
    let world = World::serving(&service("web", json!({}))).await;
    let id = text(&world.cloud.load_balancers()[0]["id"]).to_owned();
    world.cloud.user().delete(OCTAVIA, &format!("/v2.0/lbaas/loadbalancers/{id}?cascade=true"));
    world.cloud.settle();
    world.release("web").await;
    assert!(is_empty(&world) && world.cloud.floating_ips().is_empty());
    assert_eq!(world.take_cloud_writes(), ["DELETE floatingips/ID"]);
}

/// A deletion that finds nothing any more has succeeded; one that is refused is tried again, and the floating IP is
/// not lost meanwhile.
///
/// Contract: K8, better: OCCM has deleted the floating IP by then.
#[rstest]
#[case::not_found(404)]
#[case::conflict(409)]
#[tokio::test(start_paused = true)]
async fn k8_a_refused_deletion_is_tried_again_with_the_floating_ip_in_place(#[case] status: u16) {
    let world = World::serving(&service("web", json!({}))).await;
    let body = json!({"faultcode": "Client", "faultstring": "in the way", "debuginfo": null});
    let fault = Fault::new().service(OCTAVIA).method(Method::DELETE).path("loadbalancers/");
    let fault = world.cloud.faults().add(fault.answer(status, body).times(3));
    world.delete("web");
    world.until("it was tried", |world| world.cloud.faults().matched(fault) >= 1).await;
    assert_eq!(world.cloud.floating_ips().len(), 1);
    world.until_gone("web").await;
    assert!(is_empty(&world) && world.cloud.floating_ips().is_empty());
}

/// A deletion that takes Octavia very long is reported, and the finalizer stays until it is over.
///
/// Contract: K9, better: no error after five minutes; the controller keeps waiting, and an Event says so.
#[tokio::test(start_paused = true)]
async fn k9_a_deletion_that_takes_long_is_waited_for() {
    let world = World::serving(&service("web", json!({}))).await;
    world.cloud.set_delays(Duration::from_secs(1500));
    world.delete("web");
    world.until_warned("web", "LoadBalancerStuck").await;
    assert!(!world.service("web").is_null());
    world.until_gone("web").await;
    assert!(is_empty(&world));
}

/// The security group goes although groups are not managed any more.
///
/// Contract: K10, same.
#[tokio::test(start_paused = true)]
async fn k10_the_security_group_goes_although_groups_are_not_managed_any_more() {
    let mut world = World::configured("manage-security-groups = true\n").await;
    world.serve(&service("web", json!({}))).await;
    world.stop().await;
    world.settings.cloud_conf = String::new();
    world.delete("web");
    world.start().await;
    world.until_gone("web").await;
    let groups = world.cloud.security_groups();
    assert!(!groups.iter().any(|group| text(&group["name"]).starts_with("lb-sg-")), "{groups:#?}");
}

/// A load balancer with the name that Kubernetes gave in former times goes too.
///
/// Contract: K11, better: OCCM takes its listeners off and leaves the load balancer for ever.
/// Defect: 30, better: an own legacy name is recognised.
#[tokio::test(start_paused = true)]
async fn k11_a_load_balancer_with_the_legacy_name_goes() {
    let mut world = World::new(openstack_ccm_kube_sim::ApiVersion::V1_36);
    world.create(&service("web", json!({})));
    make_load_balancer(&world, &legacy_name(&world), &json!({}));
    world.cloud.settle();
    world.publish("web", "192.0.2.1");
    world.start().await;
    world.quiet_unplanned().await;
    assert_eq!(world.cloud.load_balancers().len(), 1, "it was adopted");
    assert!(world.cloud.load_balancer(&lb_name("web")).is_none());
    world.release("web").await;
    assert!(is_empty(&world) && world.cloud.floating_ips().is_empty());
}

/// A Service that never had a load balancer can be deleted.
///
/// Contract: K12, same.
#[tokio::test(start_paused = true)]
async fn k12_a_service_that_never_had_a_load_balancer_can_be_deleted() {
    let world = World::started().await;
    world.cloud.set_octavia_quota("load_balancer", 0);
    world.create(&service("web", json!({})));
    world.until_warned("web", "quota").await;
    world.release("web").await;
    assert!(is_empty(&world));
}
