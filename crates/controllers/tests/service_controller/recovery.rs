//! Broken connections, missed changes, rivals, and rights.

use std::sync::Mutex;
use std::time::Duration;

use kube::api::PostParams;
use openstack_ccm_core::advertise::{Needs, Path, Preference};
use openstack_ccm_kube_sim::{ApiVersion, Fault, User};
use rstest::rstest;
use serde_json::{from_value, json};

use crate::base::until;
use crate::world::{World, finalizers, settle};

const LATEST: ApiVersion = ApiVersion::V1_36;

#[rstest]
#[case::resumed(false)]
#[case::history_forgotten(true)]
#[tokio::test(start_paused = true)]
async fn changes_that_the_watch_missed_are_found(#[case] forgotten: bool) {
    let world = World::started(LATEST).await;
    for name in ["changed", "deleted", "vanished", "retyped"] {
        world.serve(name).await;
    }
    // Nobody can list or watch for a while.
    let fault = world.kube.inject(
        Fault::when(|request| {
            let path = request.path.as_str();
            request.method == "GET" && (path.ends_with("/services") || path.ends_with("/nodes"))
        })
        .unavailable(),
    );
    world.kube.break_watches();
    world.patch("changed", json!({"spec": {"ports": [{"port": 8080, "protocol": "TCP"}]}})).await;
    world.delete("deleted").await;
    world.patch("vanished", json!({"metadata": {"finalizers": []}})).await;
    world.delete("vanished").await;
    world.patch("retyped", json!({"spec": {"type": "ClusterIP"}})).await;
    world.create("created").await;
    world.create_node("n3", "v1.36.0");
    if forgotten {
        world.kube.compact();
    }
    settle().await;
    world.kube.remove_fault(fault);
    world.until_gone("deleted").await;
    world.until_published("created").await;
    until("the changes are made", async || {
        let load_balancers = world.cloud.load_balancers();
        // Nobody has seen that the finalizer of one was taken away before it went.
        load_balancers.len() == if forgotten { 3 } else { 2 }
            && load_balancers.iter().any(|one| one.ports == [8080])
            // That one follows the node, too, if the nodes are listed before the Services.
            && load_balancers.iter().filter(|one| one.nodes.len() == 3).count() >= 2
    })
    .await;
    until("the finalizer is gone", async || finalizers(&world.get("retyped").await.unwrap()).is_empty())
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_is_down_at_the_start_is_waited_for() {
    let mut world = World::new(LATEST);
    world.create("app").await;
    world.kube.inject(Fault::on("GET", "/api/v1/").times(6).refuse());
    world.start().await;
    world.until_published("app").await;
}

#[tokio::test(start_paused = true)]
async fn two_writers_who_disagree_do_not_fight_for_ever() {
    let world = World::started(LATEST).await;
    world.serve("app").await;
    // A rival answers every status of ours with one of its own.
    let user = world.services();
    let rival = tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let patch = kube::api::Patch::Merge(
                json!({"status": {"loadBalancer": {"ingress": [{"ip": "198.51.100.9", "ipMode": "VIP"}]}}}),
            );
            user.patch_status("app", &kube::api::PatchParams::default(), &patch).await.unwrap();
        }
    });
    tokio::time::sleep(Duration::from_secs(590)).await;
    rival.abort();
    let writes = world.wire.journal().iter().filter(|line| line.contains("ingress")).count();
    assert!((5..=10).contains(&writes), "{writes}");
}

#[tokio::test(start_paused = true)]
async fn api_servers_of_different_minds_do_not_turn_the_status_over_all_the_time() {
    let mut world = World::new(LATEST);
    let preference = Preference { hostname_suffix: Some("example.org".into()), ..Preference::default() };
    world.cloud.publish_by(Path::ThroughLoadBalancer(Needs::ProxyProtocol), preference);
    world.start().await;
    // Questions reach the new one, writes the old one.
    let kube = Mutex::new(world.kube.clone());
    world.wire.before_each(move |line| {
        let version = if line.starts_with("ask") { LATEST } else { ApiVersion::V1_28 };
        kube.lock().unwrap().set_version(version);
    });
    world.create("app").await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let writes = world.wire.journal().iter().filter(|line| line.contains("ingress")).count();
    assert!(writes < 30, "{writes} writes in an hour");
    // When the old one is gone, the mode is there to stay.
    world.wire.before_each(|_| {});
    world.kube.set_version(LATEST);
    world.until_ingress("app", "203.0.113.10(Proxy)").await;
}

#[tokio::test(start_paused = true)]
async fn a_reconciliation_that_does_not_end_is_dropped_when_the_controller_stops() {
    let mut world = World::started(LATEST).await;
    world.cloud.hang();
    world.create("app").await;
    settle().await;
    let start = tokio::time::Instant::now();
    world.stop().await;
    assert_eq!(start.elapsed(), world.options.shutdown_grace);
}

#[tokio::test(start_paused = true)]
async fn one_slow_service_delays_no_other() {
    let world = World::started(LATEST).await;
    world.cloud.hang();
    world.create("slow").await;
    settle().await;
    world.cloud.work();
    let start = tokio::time::Instant::now();
    for number in 0..50 {
        world.create(&format!("app{number}")).await;
    }
    world.until_published("app49").await;
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_least_rights_are_enough() {
    let mut world = World::new(LATEST);
    world.kube.add_token("ours", User::named("system:serviceaccount:kube-system:openstack-ccm"));
    world.kube.set_authorizer(|_, wish| {
        match (wish.group.as_str(), wish.resource.as_str(), wish.subresource.as_str()) {
            ("", "services", "") => ["get", "list", "watch"].contains(&wish.verb.as_str()),
            ("", "services", "status") => wish.verb == "patch",
            ("", "namespaces", "") => wish.verb == "get" && wish.name == "kube-system",
            ("", "nodes", "") => ["list", "watch"].contains(&wish.verb.as_str()),
            ("", "events", "") => ["create", "patch"].contains(&wish.verb.as_str()),
            ("", "", "") => wish.verb == "get" && wish.path == "/version",
            _ => false,
        }
    });
    world.wire.use_token("ours");
    world.start().await;
    world.serve("app").await;
    let service = json!({
        "metadata": {"name": "app", "namespace": "default"},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80, "protocol": "TCP"}]},
    });
    world.patch("app", json!({"metadata": {"finalizers": []}})).await;
    world.delete("app").await;
    world.services().create(&PostParams::default(), &from_value(service).unwrap()).await.unwrap();
    world.until_published("app").await;
    world.delete("app").await;
    world.until_gone("app").await;
    settle().await;
    let refused = world.kube.requests_where(|request| request.status == Some(403));
    assert!(refused.is_empty(), "{refused:?}");
    assert_eq!(world.events("app").len(), 8);
}
