//! Two managers that disagree about one status.

use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::{Patch, PatchParams};
use openstack_ccm_kube_sim::{ApiVersion, Fault};
use serde_json::json;

use crate::world::{World, settle};

/// A manager that takes the mode away as soon as it sees it.
async fn adversary(services: Api<Service>) {
    loop {
        let service = services.get("app").await.unwrap();
        let ingress = service.status.unwrap().load_balancer.unwrap().ingress.unwrap();
        if ingress[0].ip_mode.as_deref() == Some("Proxy") {
            let patch =
                Patch::Merge(json!({"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.10"}]}}}));
            services.patch_status("app", &PatchParams::default(), &patch).await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_fight_ends_after_six_rewrites_an_hour() {
    let world = World::started(ApiVersion::V1_36).await;
    world.serve("app").await;
    let opponent = tokio::spawn(adversary(world.services()));
    tokio::time::sleep(Duration::from_secs(3000)).await;
    assert_eq!(world.writes().len(), 7, "the first, and six rewrites");
    assert_eq!(world.metric("ip_mode_overlay_services_contested"), "1");
    let events = world.events("app");
    assert_eq!(
        events.iter().filter(|event| event.starts_with("Warning IPModeContested")).count(),
        1,
        "{events:?}"
    );
    tokio::time::sleep(Duration::from_secs(3600 * 3)).await;
    assert!(world.writes().len() <= 7 * 4, "{}", world.writes().len());
    opponent.abort();
    tokio::time::sleep(Duration::from_secs(3700)).await;
    assert_eq!(world.ingress("app"), json!([{"ip": "203.0.113.10", "ipMode": "Proxy"}]));
    assert_eq!(world.metric("ip_mode_overlay_services_contested"), "0");
}

/// The decision was made on a list that is gone by the time the patch arrives.
#[tokio::test(start_paused = true)]
async fn an_address_that_its_owner_just_changed_never_comes_back() {
    let world = World::started(ApiVersion::V1_36).await;
    let slow =
        Fault::when(|request| request.is_write() && request.content_type == "application/json-patch+json");
    world.kube.inject(slow.once().delay(Duration::from_secs(5)));
    world.create("app");
    world.owner_publishes("app", json!([{"ip": "203.0.113.10"}])).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.owner_publishes("app", json!([{"ip": "203.0.113.99"}])).await;
    settle().await;
    settle().await;
    assert_eq!(world.ingress("app"), json!([{"ip": "203.0.113.99", "ipMode": "Proxy"}]));
    let changes = world.kube.changes_since("services", 0).unwrap();
    let mut addresses: Vec<String> = changes
        .iter()
        .filter_map(|change| {
            Some(change.after.as_ref()?["status"]["loadBalancer"]["ingress"][0]["ip"].as_str()?.to_owned())
        })
        .collect();
    addresses.dedup();
    assert_eq!(addresses, ["203.0.113.10", "203.0.113.99"]);
}

/// For a moment both believe that they lead.
#[tokio::test(start_paused = true)]
async fn two_overlays_agree() {
    let mut world = World::started(ApiVersion::V1_36).await;
    world.spawn();
    settle().await;
    world.serve("app").await;
    world.owner_publishes("app", json!([{"ip": "203.0.113.10"}])).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(world.ingress("app"), json!([{"ip": "203.0.113.10", "ipMode": "Proxy"}]));
    let stored = world.writes().iter().filter(|write| write.status == Some(200)).count();
    assert!(stored <= 4, "{stored}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_fails_is_asked_again() {
    let world = World::started(ApiVersion::V1_36).await;
    let patches = |request: &openstack_ccm_kube_sim::RequestRecord| {
        request.content_type == "application/json-patch+json"
    };
    world.kube.inject(Fault::when(patches).times(3).unavailable());
    world.create("app");
    world.owner_publishes("app", json!([{"ip": "203.0.113.10"}])).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(world.ingress("app"), json!([{"ip": "203.0.113.10", "ipMode": "Proxy"}]));
    assert_eq!(world.metric("ip_mode_overlay_service_failures_total{class=\"unavailable\"}"), "3");
}
