//! What costs nothing when nothing changes.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use crate::support::{Call, PROXY, Side, World, service};

async fn serving(count: usize) -> World {
    serving_with(count, "").await
}

/// The same with these lines of cloud.conf.
async fn serving_with(count: usize, conf: &str) -> World {
    let world = World::configured(conf).await;
    for number in 0..count {
        world.create(&service(&format!("web-{number}"), json!({"metadata": {"annotations": {PROXY: "v2"}}})));
    }
    for number in 0..count {
        world.until_published(&format!("web-{number}")).await;
    }
    world.quiet().await;
    world.take_calls();
    world
}

fn writes(calls: &[Call]) -> Vec<&str> {
    calls.iter().filter(|call| call.write).map(|call| call.name.as_str()).collect()
}

fn counts(calls: &[Call], side: Side) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for call in calls.iter().filter(|call| call.side == side) {
        *counts.entry(call.name.as_str()).or_default() += 1;
    }
    counts
}

#[tokio::test(start_paused = true)]
async fn a_restart_only_reads() {
    let mut world = serving(3).await;
    let (state, events) = (world.state(), world.events("web-0"));
    world.restart_to_rest().await;
    let calls = world.take_calls();
    assert_eq!(writes(&calls), Vec::<&str>::new());
    assert_eq!((world.state(), world.events("web-0")), (state, events));
}

#[tokio::test(start_paused = true)]
async fn a_restart_with_managed_security_groups_only_reads() {
    let mut world = serving_with(3, "manage-security-groups = true\n").await;
    let state = world.state();
    world.restart_to_rest().await;
    assert_eq!(writes(&world.take_calls()), Vec::<&str>::new());
    assert_eq!(world.state(), state);
}

#[tokio::test(start_paused = true)]
async fn a_rule_of_a_managed_security_group_that_somebody_removed_is_put_back() {
    let world = serving_with(1, "manage-security-groups = true\n").await;
    let state = world.state();
    let rules = world.cloud.security_group_rules();
    let rule = rules.iter().find(|rule| rule["remote_ip_prefix"].is_string()).unwrap();
    let (status, _) = world
        .cloud
        .user()
        .delete("network", &format!("/v2.0/security-group-rules/{}", rule["id"].as_str().unwrap()));
    assert_eq!(status, 204);
    assert_ne!(world.state(), state);
    // The check for drift comes after 36 minutes at the latest.
    tokio::time::sleep(Duration::from_secs(2200)).await;
    assert_eq!(world.state(), state);
}

#[tokio::test(start_paused = true)]
async fn an_idle_hour_writes_nothing() {
    let world = serving(3).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let calls = world.take_calls();
    assert_eq!(writes(&calls), Vec::<&str>::new());
    let cluster = counts(&calls, Side::Kubernetes);
    for (name, count) in &cluster {
        let most = match *name {
            "GET version" | "GET namespaces/NAME" => 60,
            // The question whether the API server keeps ipMode.
            "DRY-RUN services/NAME/status" => 6,
            // A watch lasts 25 seconds, so that a server that vanished shows by its silence.
            "WATCH services" | "WATCH nodes" => 145,
            other => panic!("{other} is called in an idle hour"),
        };
        assert!(*count <= most, "{name}: {count}");
    }
}

#[tokio::test(start_paused = true)]
async fn changes_that_no_load_balancer_depends_on_cost_no_call_to_the_cloud() {
    let world = serving(1).await;
    world.patch(
        "web-0",
        &json!({"metadata": {"labels": {"team": "a"}, "annotations": {"example.org/note": "x"}}}),
    );
    world.patch("web-0", &json!({"spec": {"selector": {"app": "b"}}}));
    let heartbeat = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    world.kube.patch_status("nodes", "", "node-1", &heartbeat).unwrap();
    world.quiet().await;
    let calls = world.take_calls();
    assert_eq!(calls.iter().filter(|call| call.side == Side::OpenStack).count(), 0);
    assert_eq!(writes(&calls), Vec::<&str>::new());
}

#[tokio::test(start_paused = true)]
async fn a_status_that_somebody_edits_is_put_right() {
    let world = serving(1).await;
    let edit = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1", "ipMode": "VIP"}]}}});
    world.kube.patch_status("services", "default", "web-0", &edit).unwrap();
    world.until_ingress("web-0", "198.19.0.11(Proxy)").await;
    assert!(world.take_cloud_writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_others_write_into_a_service_stays() {
    let world = serving(1).await;
    let theirs = json!({"metadata": {"finalizers": ["example.org/theirs", "service.kubernetes.io/load-balancer-cleanup"],
        "annotations": {"example.org/theirs": "1"}}});
    world.patch("web-0", &theirs);
    let condition = json!({"status": {"conditions": [{"type": "example.org/Checked", "status": "True",
        "reason": "Checked", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    world.kube.patch_status("services", "default", "web-0", &condition).unwrap();
    world.annotate("web-0", PROXY, None);
    world.until_served_at("web-0", "198.19.0.11(VIP)").await;
    let service = world.service("web-0");
    assert_eq!(service["status"]["conditions"][0]["type"], "example.org/Checked");
    assert_eq!(service["metadata"]["annotations"]["example.org/theirs"], "1");
    world.delete("web-0");
    world.until("the cloud is empty", |world| world.cloud.load_balancers().is_empty()).await;
    world.quiet().await;
    assert_eq!(world.service("web-0")["metadata"]["finalizers"], json!(["example.org/theirs"]));
    assert!(world.ingress("web-0").is_empty());
}
