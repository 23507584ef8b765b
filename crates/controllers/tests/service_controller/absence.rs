//! What Kubernetes does not show any more, and nobody had deleted.

use std::time::Duration;

use openstack_ccm_kube_sim::{ApiVersion, Fault, RequestRecord};
use serde_json::json;

use crate::base::{pass, until};
use crate::world::{World, finalizers, settle};

const LATEST: ApiVersion = ApiVersion::V1_36;
const HOUR: u64 = 3600;

fn held(world: &World) -> String {
    world.metric("openstack_ccm_services_held{reason=\"service_vanished\"}")
}

fn cloud_calls(world: &World) -> Vec<String> {
    world.wire.journal().into_iter().filter(|line| line.starts_with("cloud")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_service_that_a_restored_cluster_lacks_keeps_its_load_balancer_and_is_served_on_when_it_comes_back()
{
    let world = World::started(LATEST).await;
    world.serve("app").await;
    world.serve("other").await;
    let complete = world.kube.backup();
    world.kube.lose("services", "default", "app").unwrap();
    pass(HOUR).await;
    assert_eq!(cloud_calls(&world), Vec::<String>::new());
    assert_eq!((world.cloud.load_balancers().len(), held(&world)), (2, "1".to_owned()));
    world.kube.restore(&complete);
    settle().await;
    world.patch("app", json!({"spec": {"ports": [{"port": 8080, "protocol": "TCP"}]}})).await;
    until("it is served on", async || world.cloud.load_balancers().iter().any(|one| one.ports == [8080]))
        .await;
    settle().await;
    assert_eq!((world.cloud.load_balancers().len(), held(&world)), (2, "0".to_owned()));
}

/// A backup tool, or whoever creates it anew, makes another object of the same name.
#[tokio::test(start_paused = true)]
async fn another_object_of_the_same_name_does_not_release_what_the_vanished_one_had() {
    let world = World::started(LATEST).await;
    world.serve("app").await;
    world.kube.lose("services", "default", "app").unwrap();
    world.create_published("app").await;
    settle().await;
    let calls = cloud_calls(&world);
    assert!(calls.iter().all(|call| call.starts_with("cloud serves")), "{calls:?}");
    assert_eq!(held(&world), "0", "the new one is served");
}

#[tokio::test(start_paused = true)]
async fn a_service_that_was_deleted_before_the_watch_lost_it_is_released() {
    let world = World::started(LATEST).await;
    world.serve("app").await;
    world.cloud.script(openstack_ccm_core::provider::Reconciliation::failed(
        openstack_ccm_core::failure::Failure::new(
            openstack_ccm_core::failure::FailureClass::Unavailable,
            "503 from the cloud",
        ),
    ));
    world.delete("app").await;
    until("its removal began", async || !cloud_calls(&world).is_empty()).await;
    world.kube.lose("services", "default", "app").unwrap();
    until("the load balancer is gone", async || world.cloud.load_balancers().is_empty()).await;
    assert_eq!(held(&world), "0");
}

/// The snapshot is from before the Service was of type LoadBalancer.
#[tokio::test(start_paused = true)]
async fn a_service_that_is_shown_as_it_was_long_ago_keeps_its_load_balancer() {
    let world = World::started(LATEST).await;
    world.create_with("app", json!({"spec": {"type": "ClusterIP"}})).await;
    let before = world.kube.backup();
    world.patch("app", json!({"spec": {"type": "LoadBalancer"}})).await;
    world.until_published("app").await;
    settle().await;
    world.wire.journal();
    world.kube.restore(&before);
    pass(HOUR).await;
    assert_eq!(cloud_calls(&world), Vec::<String>::new());
    assert_eq!((world.cloud.load_balancers().len(), held(&world)), (1, "1".to_owned()));
}

/// Twice an older state is shown: first from before our finalizer was there, then from before the Service was there at all.
#[tokio::test(start_paused = true)]
async fn a_service_that_is_shown_as_it_was_before_it_was_served_and_then_vanishes_keeps_its_load_balancer() {
    let world = World::started(LATEST).await;
    let nothing = world.kube.backup();
    world.kube.inject(Fault::on("PATCH", "services/app").times(1).delay(Duration::from_secs(20)));
    world.create("app").await;
    let before = world.kube.backup();
    world.until_published("app").await;
    settle().await;
    world.wire.journal();
    // What would put the finalizer back.
    world.kube.inject(Fault::on("PATCH", "services/app").refuse());
    world.kube.restore(&before);
    settle().await;
    assert_eq!(finalizers(&world.get("app").await.unwrap()), Vec::<String>::new());
    world.kube.restore(&nothing);
    pass(HOUR).await;
    assert_eq!((world.cloud.load_balancers().len(), held(&world)), (1, "1".to_owned()));
}

/// The program's last write has a higher resourceVersion than all that comes after the restoration.
#[tokio::test(start_paused = true)]
async fn an_answer_from_before_a_restoration_does_not_hide_what_the_service_is_now() {
    let world = World::started(LATEST).await;
    world.create("app").await;
    let before = world.kube.backup();
    // The watch is silent, so that the answers to the writes are newer than all that it brought.
    world.until_published("app").await;
    world.kube.restore(&before);
    settle().await;
    let service = world.get("app").await.unwrap();
    assert_eq!(finalizers(&service).len(), 1, "the finalizer is put back");
    until("the address is published again", async || !world.ingress("app").await.is_empty()).await;
    assert_eq!(world.cloud.load_balancers().len(), 1);
}

/// The watch shows the Service before and after the restoration as it was before its release.
#[tokio::test(start_paused = true)]
async fn a_service_that_comes_back_as_it_was_before_its_release_is_released_again() {
    let world = World::started(LATEST).await;
    world.serve("app").await;
    let is_released = async || finalizers(&world.get("app").await.unwrap()).is_empty();
    // The first write is the user's, the second one the release.
    world.kube.inject(Fault::on("PATCH", "services/app").after(1).times(1).delay(Duration::from_secs(20)));
    world.patch("app", json!({"spec": {"type": "ClusterIP"}})).await;
    pass(10).await;
    let before = world.kube.backup();
    let is_watch = |request: &RequestRecord| request.query.iter().any(|(key, _)| key == "watch");
    let silent = world.kube.inject(Fault::when(is_watch).refuse());
    world.kube.break_watches();
    until("it is released", is_released).await;
    world.kube.restore(&before);
    assert!(!is_released().await);
    world.kube.remove_fault(silent);
    until("it is released again", is_released).await;
}

#[tokio::test(start_paused = true)]
async fn in_another_cluster_nothing_is_done() {
    let world = World::started(LATEST).await;
    world.serve("app").await;
    world.kube.set_cluster_uid("11111111-2222-4333-8444-555555555555").unwrap();
    world.kube.lose("services", "default", "app").unwrap();
    world.create("theirs").await;
    pass(HOUR).await;
    world.delete("theirs").await;
    pass(HOUR).await;
    assert_eq!(cloud_calls(&world), Vec::<String>::new());
    assert_eq!(world.cloud.load_balancers().len(), 1);
}
