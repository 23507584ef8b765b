//! The provider ovn, which forwards packets: what it refuses is known before, or learned from its first refusal.

use std::time::Duration;

use http::Method;
use openstack_ccm_kube_sim::ApiVersion;
use openstack_ccm_openstack_sim::{Fault, OperationKind, WorkerFault};
use rstest::rstest;
use serde_json::{Value, json};

use crate::contract::setup::{annotated, configured, load_balancer};
use crate::support::{ANNOTATION, PROXY, World, lb_name, service};

async fn ovn() -> World {
    configured(|world| {
        world.cloud.add_octavia_provider("ovn");
        "lb-provider = ovn\n".to_owned()
    })
    .await
}

/// Nobody names a provider, and that of the cloud is ovn, which refuses what amphora takes. Its refusal says who it is, and then the load
/// balancer is made as ovn can make it: for this Service and for all after it.
///
/// Contract: O8, better: OCCM asks for the same again and again.
#[tokio::test(start_paused = true)]
async fn the_first_refusal_names_the_provider() {
    let world = configured(|world| {
        world.cloud.set_default_octavia_provider("ovn");
        "lb-provider =\n".to_owned()
    })
    .await;
    world.create(&annotated(&[]));
    world.until_served("web").await;
    assert_eq!(load_balancer(&world)["provider"], "ovn");
    assert_eq!(world.cloud.pools()[0]["lb_algorithm"], "SOURCE_IP_PORT");
    assert_eq!(world.refusals(), 1);
    world.create(&service("next", json!({})));
    world.until_served("next").await;
    assert!(world.cloud.load_balancer(&lb_name("next")).is_some());
    assert_eq!(world.refusals(), 1);
}

/// What ovn does not have is said in one Event, and the load balancer serves without it.
///
/// Contract: O9, better: OCCM sends what ovn refuses, and says nothing of what it ignores.
#[tokio::test(start_paused = true)]
async fn what_ovn_ignores_is_said_in_one_event() {
    let world = ovn().await;
    let mut object = annotated(&[
        ("connection-limit", "100"),
        ("timeout-client-data", "60000"),
        ("enable-health-monitor", "true"),
    ]);
    object["spec"]["ports"] = json!([
        {"name": "http", "port": 80, "protocol": "TCP", "nodePort": 30080},
        {"name": "signal", "port": 81, "protocol": "SCTP", "nodePort": 30081},
    ]);
    world.serve(&object).await;
    let monitors = world.cloud.health_monitors();
    let types: Vec<&Value> = monitors.iter().map(|monitor| &monitor["type"]).collect();
    assert_eq!(types, ["TCP"]);
    let warnings = world.warnings("web");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    for said in ["connection-limit", "timeout-client-data", "no health monitor for 81/SCTP"] {
        assert!(warnings[0].contains(said), "{warnings:?}");
    }
    assert_eq!(world.refusals(), 0);
}

/// Who asks ovn for the PROXY protocol wants the addresses of clients: the Event names the way to them. A load balancer that exists goes on.
///
/// Contract: O10, better: OCCM makes nothing of it but an error of Octavia.
#[tokio::test(start_paused = true)]
async fn the_other_way_to_the_addresses_of_clients_is_named() {
    let world = ovn().await;
    world.serve(&annotated(&[])).await;
    world.annotate("web", "proxy-protocol", Some("v2"));
    world.until_warned("web", "if externalTrafficPolicy is Local and there is a health monitor").await;
    world.third_node_joins().await;
    let pool = world.cloud.pools()[0].clone();
    assert_eq!(pool["protocol"], "TCP");
    assert_eq!(world.cloud.members(pool["id"].as_str().unwrap()).len(), 3);
    assert_eq!(world.ingress("web"), ["198.19.0.11(VIP)"]);
}

/// The driver for ovn ends a change of a pool only if it says whether the pool is used: without that, the listener stays PENDING for ever, and
/// so does the Service. Whoever has switched the pool off keeps it so.
///
/// Contract: O14, better: OCCM leaves the listener in PENDING_UPDATE.
#[rstest]
#[case::tags(json!({"metadata": {"annotations": {format!("{ANNOTATION}tags"): "tier=front"}}}))]
#[case::session_affinity(json!({"spec": {"sessionAffinity": "ClientIP"}}))]
#[tokio::test(start_paused = true)]
async fn a_change_of_a_pool_comes_to_its_end(#[case] change: Value) {
    let world = ovn().await;
    world.serve(&annotated(&[])).await;
    let id = world.cloud.pools()[0]["id"].as_str().unwrap().to_owned();
    world.patch_to_rest("web", &change).await;
    world.third_node_joins().await;
    let (pool, listener) = (world.cloud.pools()[0].clone(), world.cloud.listeners()[0].clone());
    for object in [&pool, &listener] {
        assert_eq!(object["provisioning_status"], "ACTIVE", "{object}");
    }
    assert_eq!(pool["admin_state_up"], true);
    assert_eq!(world.cloud.members(&id).len(), 3);
    assert_eq!(world.warnings("web"), Vec::<String>::new());
}

/// What a user writes stands in messages about failures, and teaches nobody anything about providers.
#[tokio::test(start_paused = true)]
async fn words_of_users_say_nothing_about_the_provider() {
    let mut world = World::new(ApiVersion::V1_36);
    world.settings.cloud_conf = "lb-provider =\n".to_owned();
    world.settings.plans = false;
    world.cloud.add_octavia_provider("ovn");
    world.start().await;
    let flavor = "5f0c0e5e-0000-4000-8000-000000000000";
    world.create(&annotated(&[
        ("tags", "Provider 'ovn' does not support a requested option"),
        ("flavor-id", flavor),
    ]));
    world.until_warned_at_rest("web", flavor).await;
    world.create(&service("proxied", json!({"metadata": {"annotations": {PROXY: "v2"}}})));
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert!(!world.ingress("proxied").is_empty(), "{:?}", world.warnings("proxied"));
    assert_eq!(world.cloud.pools()[0]["protocol"], "PROXYV2");
}

/// An answer that names a provider which the cloud does not have is not believed.
#[tokio::test(start_paused = true)]
async fn a_provider_that_is_not_listed_is_not_learned() {
    let mut world = World::new(ApiVersion::V1_36);
    world.settings.cloud_conf = "lb-provider =\n".to_owned();
    world.settings.plans = false;
    world.cloud.add_octavia_provider("another");
    world.start().await;
    let fault = "Provider 'ovn' does not support a requested option: x";
    let refusal = Fault::new().service("load-balancer").method(Method::POST).path("/loadbalancers$");
    world.cloud.faults().add(refusal.answer(501, json!({"faultstring": fault})).once());
    world.create(&annotated(&[]));
    world.until_published("web").await;
    // What was made with another algorithm would be corrected before it is published.
    let calls = world.take_calls().into_iter().filter(|call| call.name == "POST loadbalancers");
    let bodies = calls.filter_map(|call| call.request).map(|request| request.body);
    let pool = "/loadbalancer/listeners/0/default_pool/lb_algorithm";
    let asked: Vec<Option<Value>> = bodies.map(|body| body.pointer(pool).cloned()).collect();
    assert_eq!(asked, [Some(json!("ROUND_ROBIN")), Some(json!("ROUND_ROBIN"))]);
}

/// Of a failed batch only the members are in ERROR that it named: they are sent again, and the others are left alone.
#[rstest]
#[case::amphora("amphora", true)]
#[case::ovn("ovn", false)]
#[tokio::test(start_paused = true)]
async fn the_members_that_failed_are_sent_again(#[case] provider: &str, #[case] all: bool) {
    let world = match provider {
        "ovn" => ovn().await,
        _ => World::started().await,
    };
    world.serve(&service("web", json!({}))).await;
    let pool = world.cloud.pools()[0]["id"].as_str().unwrap().to_owned();
    world.cloud.set_delays(Duration::from_secs(2));
    world.cloud.faults().add_worker(WorkerFault::fail(OperationKind::MemberBatch).times(1));
    world.add_node("node-3", "v1.36.0");
    world.until_warned("web", "LoadBalancerChildFailed").await;
    world.quiet_unplanned().await;
    let members = world.cloud.members(&pool);
    assert!(
        members.len() == 3 && members.iter().all(|one| one["provisioning_status"] == "ACTIVE"),
        "{members:#?}"
    );
    assert_eq!(world.warnings("web").len(), if all { 3 } else { 1 }, "{:?}", world.warnings("web"));
}
