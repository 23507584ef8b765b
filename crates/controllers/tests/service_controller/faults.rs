//! Trouble with the API server and with other writers.

use openstack_ccm_controllers::service::FINALIZER;
use openstack_ccm_kube_sim::ApiVersion;
use rstest::rstest;
use serde_json::json;

use crate::base::until;
use crate::cloud::ADDRESS;
use crate::life::waiting;
use crate::wire::Fault;
use crate::world::{World, annotation, finalizers, settle};

const OTHER: &str = "example.org/other";

/// A status that cannot be written is reported and tried again.
///
/// Framework: S10, same.
#[tokio::test(start_paused = true)]
async fn framework_s10_a_refused_status_is_reported_and_tried_again() {
    let world = World::started(ApiVersion::V1_36).await;
    world.wire.break_next("ingress", Fault::Answer(409));
    world.create_published("app").await;
    settle().await;
    let events = world.events("app");
    let expected = "Warning SyncLoadBalancerFailed: Error syncing load balancer: failed to update load balancer \
                    status: the API server answered 409 Conflict";
    assert!(events.iter().any(|event| event.contains(expected)), "{events:?}");
    assert!(events.last().unwrap().contains("EnsuredLoadBalancer"), "{events:?}");
}

/// What comes to light about the API server meanwhile has served Services published again, and this one is not published yet.
#[tokio::test(start_paused = true)]
async fn a_first_status_that_cannot_be_written_is_not_made_up_for_without_its_annotations() {
    let world = World::started(ApiVersion::V1_36).await;
    world.create_node("node", "v1.30.1");
    settle().await;
    world.wire.break_next("ingress", Fault::Answer(503));
    world.create("app").await;
    let has_failed = async || world.events("app").iter().any(|event| event.contains("Warning"));
    until("the write fails", has_failed).await;
    // The next try does not come to its end before the test does.
    world.cloud.script(waiting(3600));
    world.patch_node_status("node", json!({"status": {"nodeInfo": {"kubeletVersion": "v1.29.3"}}})).await;
    settle().await;
    let service = world.get("app").await.unwrap();
    assert_eq!((world.ingress("app").await, annotation(&service, ADDRESS)), (Vec::new(), None));
}

/// A missing permission is named in an event, and the program goes on.
///
/// Framework: M12, same.
#[tokio::test(start_paused = true)]
async fn framework_m12_a_missing_permission_is_named() {
    let world = World::started(ApiVersion::V1_36).await;
    world.wire.break_next("ingress", Fault::Answer(403));
    world.create_published("app").await;
    settle().await;
    let events = world.events("app");
    assert!(events.iter().any(|event| event.contains("answered 403 Forbidden")), "{events:?}");
    assert_eq!(world.metric("openstack_ccm_service_failures_total{class=\"auth\"}"), "1");
}

/// A Service that is gone when its status is written is no failure.
///
/// Framework: S11, same.
#[tokio::test(start_paused = true)]
async fn framework_s11_a_service_that_is_gone_when_its_status_is_written_is_no_failure() {
    let world = World::started(ApiVersion::V1_36).await;
    world.wire.break_next("ingress", Fault::Answer(404));
    world.create("app").await;
    settle().await;
    assert!(!world.events("app").iter().any(|event| event.contains("Warning")));
}

#[tokio::test(start_paused = true)]
async fn a_type_that_changes_during_the_reconciliation_is_no_failure() {
    let world = World::started(ApiVersion::V1_36).await;
    let services = world.services();
    let change = Box::pin(async move {
        let patch = kube::api::Patch::Merge(json!({"spec": {"type": "ClusterIP"}}));
        services.patch("app", &kube::api::PatchParams::default(), &patch).await.unwrap();
    });
    world.wire.break_next("ingress", Fault::After(change));
    world.create("app").await;
    settle().await;
    assert!(world.cloud.load_balancers().is_empty());
    assert!(finalizers(&world.get("app").await.unwrap()).is_empty());
    let events = world.events("app");
    assert!(!events.iter().any(|event| event.contains("Warning")), "{events:?}");
}

/// A finalizer that somebody adds while ours is removed survives.
///
/// Framework: S27, same.
#[tokio::test(start_paused = true)]
async fn framework_s27_a_finalizer_that_another_adds_meanwhile_survives() {
    let world = World::started(ApiVersion::V1_36).await;
    let services = world.services();
    let add = Box::pin(async move {
        let patch = kube::api::Patch::Merge(
            json!({"metadata": {"finalizers": [OTHER], "annotations": {"theirs": "1"}}}),
        );
        services.patch("app", &kube::api::PatchParams::default(), &patch).await.unwrap();
    });
    world.wire.break_next("finalizers", Fault::After(add));
    world.create_published("app").await;
    let service = world.get("app").await.unwrap();
    assert_eq!(finalizers(&service), [OTHER, FINALIZER]);
    assert_eq!(annotation(&service, "theirs").as_deref(), Some("1"));
    settle().await;
    world.wire.journal();
    // The same when ours is removed.
    let services = world.services();
    let add = Box::pin(async move {
        let patch = kube::api::Patch::Merge(json!({"metadata": {"labels": {"theirs": "2"}}}));
        services.patch("app", &kube::api::PatchParams::default(), &patch).await.unwrap();
    });
    world.wire.break_next("finalizers", Fault::After(add));
    world.delete("app").await;
    settle().await;
    let service = world.get("app").await.unwrap();
    assert_eq!(finalizers(&service), [OTHER]);
    assert_eq!(service.metadata.labels.clone().unwrap()["theirs"], "2");
    let journal = world.wire.journal();
    assert_eq!(journal.iter().filter(|line| line.starts_with("cloud")).count(), 1, "{journal:?}");
}

#[rstest]
#[case::finalizer("finalizers")]
#[case::status("ingress")]
#[tokio::test(start_paused = true)]
async fn a_lost_answer_leads_to_the_same_end(#[case] write: &'static str) {
    let world = World::started(ApiVersion::V1_36).await;
    world.wire.break_next(write, Fault::LostAnswer);
    world.create_published("app").await;
    tokio::time::sleep(std::time::Duration::from_secs(600)).await;
    // At most one repetition, before the watch has shown that the first was carried out; it changes nothing there.
    let journal = world.wire.journal();
    let writes = journal.iter().filter(|line| line.starts_with("patch") && line.contains(write)).count();
    assert!(writes <= 2, "{journal:?}");
    assert_eq!(finalizers(&world.get("app").await.unwrap()), [FINALIZER]);
    assert!(world.events("app").last().unwrap().contains("EnsuredLoadBalancer"));
}

#[tokio::test(start_paused = true)]
async fn a_silent_api_server_holds_up_one_service_and_not_for_ever() {
    let mut world = World::new(ApiVersion::V1_36);
    world.options.concurrency = 2;
    world.start().await;
    world.serve("first").await;
    world.wire.break_next("ingress", Fault::Silence);
    world.create("stuck").await;
    settle().await;
    world.create_published("other").await;
    assert!(world.ingress("stuck").await.is_empty());
    world.until_published("stuck").await;
    world.wire.heal();
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_lost_a_service_is_not_believed() {
    let world = World::started(ApiVersion::V1_36).await;
    world.serve("app").await;
    world.patch("app", json!({"metadata": {"finalizers": []}})).await;
    // The API server cannot be asked whether it is really gone.
    world.wire.break_next("get app", Fault::Answer(500));
    world.delete("app").await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert_eq!(world.cloud.load_balancers().len(), 1);
    until("it is released in the end", async || world.cloud.load_balancers().is_empty()).await;
}
