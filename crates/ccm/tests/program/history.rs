//! An API server keeps what happened for a while only. A client that was away for longer gets an error (410), and lists again.

use std::time::Duration;

use openstack_ccm_kube_sim::{Fault, RequestRecord};
use serde_json::json;

use crate::support::{World, service};

/// More changes of a kind than the API server keeps when they have become old.
const CHANGES: u32 = 150;
/// Longer than the API server keeps changes.
const AWAY: Duration = Duration::from_secs(120);

fn is_about_services(request: &RequestRecord) -> bool {
    request.method == "GET" && request.path.ends_with("/services")
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_falls_behind_the_history_loses_nothing() {
    let world = World::serving(&service("web", json!({}))).await;
    for name in ["gone", "busy"] {
        world.serve(&service(name, json!({}))).await;
    }
    let away = world.kube.inject(Fault::when(is_about_services).unavailable());
    world.kube.break_watches();
    world.patch("web", &json!({"spec": {"ports": [{"port": 8080, "nodePort": 30080}]}}));
    world.delete("gone");
    world.create(&service("new", json!({})));
    tokio::time::sleep(AWAY).await;
    for number in 0..CHANGES {
        world.annotate("busy", "example.org/number", Some(&number.to_string()));
    }
    assert_eq!(world.kube.changes_since("services", 1).unwrap_err().code, 410);
    assert_eq!(world.cloud.load_balancers().len(), 3, "nobody knows yet");
    world.kube.clear_requests();
    world.kube.remove_fault(away);
    world.until_gone("gone").await;
    world.until_served("new").await;
    assert_eq!(world.cloud.load_balancers().len(), 3);
    let ports = |world: &World| {
        world.cloud.listeners().iter().filter(|listener| listener["protocol_port"] == 8080).count()
    };
    assert_eq!(ports(&world), 1, "the change that is forgotten was made");
    let lists = world.kube.requests_where(|request| is_about_services(request) && !request.is_watch());
    assert_eq!(lists.len(), 1, "{lists:?}");
}

/// A program that runs for weeks takes part in a history that is forgotten again and again.
#[tokio::test(start_paused = true)]
async fn a_watch_that_keeps_up_does_not_list_again() {
    let world = World::serving(&service("web", json!({}))).await;
    world.kube.clear_requests();
    for round in 0..3 {
        for number in 0..CHANGES {
            world.annotate("web", "example.org/number", Some(&format!("{round}-{number}")));
        }
        tokio::time::sleep(AWAY).await;
    }
    let lists = world.kube.requests_where(|request| is_about_services(request) && !request.is_watch());
    assert!(lists.is_empty(), "{lists:?}");
}
