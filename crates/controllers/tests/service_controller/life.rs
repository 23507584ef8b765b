//! Create, change, release: what is said to whom, and in which order.

use std::time::Duration;

use openstack_ccm_controllers::service::FINALIZER;
use openstack_ccm_core::advertise::{ClusterAccess, Needs, Path, Preference};
use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::provider::{Outcome, Ready, Reconciliation, Waiting, WaitsOn};
use openstack_ccm_kube_sim::ApiVersion;
use rstest::rstest;
use serde_json::{Value, json};

use crate::base::until;
use crate::cloud::{ADDRESS, ID};
use crate::world::{World, annotation, finalizers, settle};

const LATEST: ApiVersion = ApiVersion::V1_36;

pub(crate) fn waiting(seconds: u64) -> Reconciliation {
    let waiting = Waiting {
        on: WaitsOn::OwnStep("load balancer lb is PENDING_CREATE".into()),
        at_most: Duration::from_secs(seconds),
        unfinished: None,
    };
    Reconciliation {
        result: Ok(Outcome::Waiting(waiting)),
        notices: Vec::new(),
        annotations: [(ID.to_owned(), Some("lb-app".to_owned()))].into(),
        foreign_addresses: Vec::new(),
    }
}

/// A new Service gets the finalizer, then its load balancer, then its status, whatever the protocol of its port.
///
/// Framework: S2, same.
/// Framework: S3, same.
#[rstest]
#[case::s2_udp("UDP")]
#[case::s3_tcp("TCP")]
#[case::s3_sctp("SCTP")]
#[tokio::test(start_paused = true)]
async fn framework_s2_s3_a_new_service_gets_finalizer_then_cloud_then_status(#[case] protocol: &str) {
    let world = World::started(LATEST).await;
    world.create_with("app", json!({"spec": {"ports": [{"port": 80, "protocol": protocol}]}})).await;
    world.until_published("app").await;
    settle().await;
    assert_eq!(
        world.wire.journal(),
        [
            "patch app/status: finalizers",
            "cloud serves app on n1,n2",
            "ask app/status",
            "patch app/status: annotations, ingress 203.0.113.10(VIP)",
        ]
    );
    let service = world.get("app").await.unwrap();
    assert_eq!(finalizers(&service), [FINALIZER]);
    assert_eq!(annotation(&service, ID).as_deref(), Some("lb-app"));
    assert_eq!(annotation(&service, ADDRESS).as_deref(), Some("203.0.113.10"));
}

/// A finalizer that is there is not written again.
///
/// Framework: S4, same.
#[tokio::test(start_paused = true)]
async fn framework_s4_a_finalizer_that_is_there_is_not_written_again() {
    let world = World::started(LATEST).await;
    world.create_with("app", json!({"metadata": {"finalizers": [FINALIZER]}})).await;
    world.until_published("app").await;
    assert_eq!(world.wire.journal()[0], "cloud serves app on n1,n2");
}

/// A Service that asks for no load balancer, or for one of another class, costs no call, no write and no event.
///
/// Framework: S1, better: no event says that a load balancer was deleted which never was.
/// Framework: S5, same.
/// Framework: S18, better: another implementation is named by `spec.loadBalancerClass`, so that such a Service is not touched
/// at all; the framework sets its finalizer and says that it ensures a load balancer.
#[rstest]
#[case::s1_cluster_ip(json!({"spec": {"type": "ClusterIP"}}))]
#[case::s5_class(json!({"spec": {"loadBalancerClass": "example.org/lb"}}))]
#[tokio::test(start_paused = true)]
async fn framework_s1_s5_services_of_others_are_left_alone(#[case] change: Value) {
    let world = World::started(LATEST).await;
    world.create_with("app", change).await;
    settle().await;
    world.delete("app").await;
    settle().await;
    assert!(world.wire.journal().is_empty());
    assert!(world.events("app").is_empty());
}

/// A Service that is of another type now loses its load balancer, then the finalizer.
///
/// Framework: S6, same.
#[tokio::test(start_paused = true)]
async fn framework_s6_a_changed_type_releases_the_load_balancer() {
    let world = World::started(LATEST).await;
    world.serve("app").await;
    world.patch("app", json!({"spec": {"type": "ClusterIP"}})).await;
    settle().await;
    assert_eq!(world.wire.journal(), ["cloud releases app", "patch app/status: finalizers, annotations"]);
    let service = world.get("app").await.unwrap();
    assert!(finalizers(&service).is_empty());
    assert_eq!(annotation(&service, ID), None);
    assert!(world.cloud.load_balancers().is_empty());
    // And back again.
    world.patch("app", json!({"spec": {"type": "LoadBalancer"}})).await;
    world.until_published("app").await;
    assert_eq!(world.cloud.load_balancers().len(), 1);
}

/// A status that the API server keeps after a change of the type is cleared.
///
/// Framework: S6, same.
#[tokio::test(start_paused = true)]
async fn framework_s6_an_old_server_that_keeps_the_status_is_cleared() {
    let world = World::started(ApiVersion::V1_28).await;
    world.serve("app").await;
    world.patch("app", json!({"spec": {"type": "ClusterIP"}})).await;
    settle().await;
    assert!(world.ingress("app").await.is_empty());
}

/// A deleted Service stays until its load balancer is gone; finalizer and status go in one write.
///
/// Framework: S7, same.
#[tokio::test(start_paused = true)]
async fn framework_s7_a_deleted_service_goes_after_its_load_balancer() {
    let world = World::started(LATEST).await;
    world.serve("app").await;
    world.delete("app").await;
    world.until_gone("app").await;
    settle().await;
    assert_eq!(
        world.wire.journal(),
        ["cloud releases app", "patch app/status: finalizers, annotations, ingress none"]
    );
    assert!(world.cloud.load_balancers().is_empty());
}

/// A deleted Service is released in the cloud even if no load balancer is known of it.
///
/// Framework: S8, better: what a half-made load balancer left behind goes as well.
#[tokio::test(start_paused = true)]
async fn framework_s8_the_cloud_is_asked_to_release_even_after_a_restart() {
    let mut world = World::new(LATEST);
    world.create_with("app", json!({"metadata": {"finalizers": [FINALIZER]}})).await;
    world.delete("app").await;
    world.start().await;
    world.until_gone("app").await;
    assert_eq!(world.wire.journal(), ["cloud releases app", "patch app/status: finalizers"]);
}

#[tokio::test(start_paused = true)]
async fn the_finalizer_stays_until_the_cloud_is_empty() {
    let world = World::started(LATEST).await;
    world.serve("app").await;
    world.cloud.script(waiting(60));
    world.cloud.script(Reconciliation::failed(Failure::new(
        openstack_ccm_core::failure::FailureClass::Unavailable,
        "503",
    )));
    world.delete("app").await;
    settle().await;
    assert_eq!(finalizers(&world.get("app").await.unwrap()), [FINALIZER]);
    world.wake("app");
    // Less than the pause after a failure, which is five seconds or a little more or less.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(finalizers(&world.get("app").await.unwrap()), [FINALIZER]);
    world.until_gone("app").await;
    assert_eq!(world.wire.journal().iter().filter(|line| line.contains("releases")).count(), 3);
}

/// A program that starts writes nothing where the status is already right.
///
/// Framework: S20, same.
#[tokio::test(start_paused = true)]
async fn framework_s20_a_restart_writes_nothing() {
    let mut world = World::started(LATEST).await;
    world.serve("app").await;
    world.serve("other").await;
    world.stop().await;
    world.start().await;
    settle().await;
    let mut journal = world.wire.journal();
    journal.sort();
    // One question serves both.
    assert_eq!(journal.len(), 3, "{journal:?}");
    assert!(journal[0].starts_with("ask "));
    assert_eq!(journal[1..], ["cloud serves app on n1,n2", "cloud serves other on n1,n2"]);
}

/// A changed Service is served as it is now, not as it is remembered.
///
/// Framework: S16, same.
#[tokio::test(start_paused = true)]
async fn framework_s16_a_changed_service_is_served_as_it_is_now() {
    let world = World::started(LATEST).await;
    world.serve("app").await;
    world.patch("app", json!({"spec": {"ports": [{"port": 8080, "protocol": "TCP"}]}})).await;
    settle().await;
    assert_eq!(world.wire.journal(), ["cloud serves app on n1,n2"]);
    assert_eq!(world.cloud.load_balancers()[0].ports, [8080]);
}

#[tokio::test(start_paused = true)]
async fn own_writes_cause_no_second_reconciliation_but_a_users_do() {
    let world = World::started(LATEST).await;
    world.create_published("app").await;
    tokio::time::sleep(Duration::from_secs(1000)).await;
    let reconciliations =
        |journal: Vec<String>| journal.iter().filter(|line| line.starts_with("cloud")).count();
    assert_eq!(reconciliations(world.wire.journal()), 1);
    // The same annotation with a user's value is a wish.
    world.patch("app", json!({"metadata": {"annotations": {ID: "another"}}})).await;
    settle().await;
    assert_eq!(reconciliations(world.wire.journal()), 1);
    assert_eq!(annotation(&world.get("app").await.unwrap(), ID).as_deref(), Some("lb-app"));
    // Labels are not.
    world.patch("app", json!({"metadata": {"labels": {"a": "b"}}})).await;
    settle().await;
    assert!(world.wire.journal().is_empty());
}

#[rstest]
#[case::cleared(json!([]))]
#[case::replaced(json!([{"ip": "198.51.100.1"}]))]
#[case::hostname(json!([{"hostname": "elsewhere.example.org"}]))]
#[tokio::test(start_paused = true)]
async fn an_edited_status_is_restored_without_asking_the_cloud(#[case] ingress: Value) {
    let world = World::started(LATEST).await;
    world.serve("app").await;
    world.patch_status("app", json!({"status": {"loadBalancer": {"ingress": ingress}}})).await;
    world.until_ingress("app", "203.0.113.10(VIP)").await;
    settle().await;
    assert_eq!(world.wire.journal(), ["patch app/status: ingress 203.0.113.10(VIP)"]);
}

/// Both would overtake each other for ever, and a user would see an address that changes.
#[tokio::test(start_paused = true)]
async fn another_controller_that_keeps_writing_a_status_is_named_and_counted() {
    let world = World::started(LATEST).await;
    world.serve("app").await;
    let contested = |event: &String| event.contains("LoadBalancerStatusContested");
    for edit in 1..=15 {
        world
            .patch_status(
                "app",
                json!({"status": {"loadBalancer": {"ingress": [{"ip": format!("198.51.100.{edit}")}]}}}),
            )
            .await;
        settle().await;
        assert_eq!(world.events("app").iter().any(contested), edit >= 10, "after {edit} edits");
    }
    let events = world.events("app");
    let reports: Vec<_> = events.iter().filter(|event| contested(event)).collect();
    assert_eq!(reports.len(), 1, "{reports:?}");
    assert!(
        reports[0].contains("another-controller keeps overwriting")
            && reports[0].contains("loadBalancerClass"),
        "{reports:?}"
    );
    assert_eq!(world.metric("openstack_ccm_status_edits_by_others_total"), "15");
}

/// A second writer that wins is no success: what pods meet is what the API server shows.
#[tokio::test(start_paused = true)]
async fn the_metric_tells_the_mode_that_another_controller_has_left() {
    let world = World::started(LATEST).await;
    world.cloud.publish_by(Path::ThroughLoadBalancer(Needs::ProxyProtocol), Preference::default());
    world.serve("app").await;
    let published = |mode: &str, reason: &str| {
        world.metric(&format!("openstack_ccm_services_published{{mode=\"{mode}\",reason=\"{reason}\"}}"))
    };
    assert_eq!(published("proxy", "proxy_protocol"), "1");
    let write = async |mode: &str| {
        let ingress = json!([{"ip": "203.0.113.10", "ipMode": mode}]);
        world.patch_status("app", json!({"status": {"loadBalancer": {"ingress": ingress}}})).await;
        settle().await;
    };
    for edit in 1..=11 {
        write("VIP").await;
        let shown = if edit <= 10 { "proxy_protocol" } else { "other_writer" };
        let mode = if edit <= 10 { "proxy" } else { "vip" };
        assert_eq!(published(mode, shown), "1", "after {edit} edits");
    }
    assert_eq!(published("proxy", "proxy_protocol"), "0");
    write("Proxy").await;
    assert_eq!(
        (published("proxy", "proxy_protocol"), published("vip", "other_writer")),
        ("1".into(), "0".into())
    );
}

#[tokio::test(start_paused = true)]
async fn waiting_costs_no_worker_and_ends_with_a_wake() {
    let mut world = World::new(LATEST);
    world.options.concurrency = 1;
    world.start().await;
    world.cloud.script(waiting(600));
    world.create("slow").await;
    settle().await;
    // The id is written at once, so that a restart finds what was made.
    assert_eq!(annotation(&world.get("slow").await.unwrap(), ID).as_deref(), Some("lb-app"));
    world.create_published("quick").await;
    assert!(world.ingress("slow").await.is_empty());
    world.wire.journal();
    world.wake("slow");
    settle().await;
    assert_eq!(world.ingress("slow").await, ["203.0.113.11(VIP)"]);
}

/// Work that the cloud has not finished is read again after the delay that the provider gave, without a warning.
///
/// Framework: Q3, better: it is no error at all, so that no event says that the sync failed.
#[tokio::test(start_paused = true)]
async fn framework_q3_waiting_ends_by_itself_after_at_most_the_given_time() {
    let world = World::started(LATEST).await;
    world.cloud.script(waiting(600));
    world.create("app").await;
    let start = tokio::time::Instant::now();
    world.until_published("app").await;
    assert!(start.elapsed() >= Duration::from_secs(600) && start.elapsed() < Duration::from_secs(602));
    assert!(!world.events("app").iter().any(|event| event.contains("Warning")));
}

/// A key that neither the cache nor the memory knows costs nothing.
///
/// Framework: S12, better: a key is a namespace and a name and is never parsed from text; one that cannot exist is forgotten
/// instead of being tried for ever.
/// Framework: S13, same.
#[tokio::test(start_paused = true)]
async fn framework_s12_s13_a_key_that_nobody_knows_is_ignored() {
    let world = World::started(LATEST).await;
    world.wake("nobody");
    world.wake("invalid/key/string");
    settle().await;
    assert!(world.wire.journal().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_cloud_is_compared_again_after_a_while() {
    let mut world = World::new(LATEST);
    world.options.resync = Some(Duration::from_secs(600));
    world.start().await;
    world.serve("app").await;
    tokio::time::sleep(Duration::from_secs(725)).await;
    let journal = world.wire.journal();
    let asked: Vec<_> = journal.iter().filter(|line| line.starts_with("cloud")).collect();
    assert_eq!(asked, ["cloud is to be asked about app", "cloud serves app on n1,n2"]);
    assert!(!journal.iter().any(|line| line.starts_with("patch")), "{journal:?}");
}

#[rstest]
#[case::checks_for_drift_are_rare(Duration::from_secs(1800), &["cloud serves app on n1,n2"])]
#[case::a_check_for_drift_comes_sooner(Duration::from_secs(20), &["cloud is to be asked about app", "cloud serves app on n1,n2"])]
#[tokio::test(start_paused = true)]
async fn a_provider_that_wants_another_reconciliation_gets_it_or_a_check_for_drift(
    #[case] resync: Duration,
    #[case] expected: &[&str],
) {
    let mut world = World::new(LATEST);
    world.options.resync = Some(resync);
    world.start().await;
    world.cloud.requeue_after(Duration::from_secs(30));
    world.create_published("app").await;
    settle().await;
    let events = world.events("app");
    world.wire.journal();
    let due = resync.min(Duration::from_secs(30));
    tokio::time::sleep(due - Duration::from_secs(6)).await;
    assert_eq!(world.wire.journal(), Vec::<String>::new());
    tokio::time::sleep(due / 5 + Duration::from_secs(7)).await;
    assert_eq!(world.wire.journal(), expected);
    assert_eq!(world.events("app"), events);
}

/// A provider that says it is done and names no address is not believed.
///
/// Framework: S19, same.
#[tokio::test(start_paused = true)]
async fn framework_s19_a_load_balancer_without_an_address_is_a_failure() {
    let world = World::started(LATEST).await;
    let ready = Ready {
        addresses: Vec::new(),
        path: Path::Direct,
        preference: Preference::default(),
        cluster_access: ClusterAccess::Open,
        changed: true,
        done: Vec::new(),
        unfinished: None,
        requeue_after: None,
    };
    world.cloud.script(Reconciliation {
        result: Ok(Outcome::Ready(ready)),
        notices: Vec::new(),
        annotations: [].into(),
        foreign_addresses: Vec::new(),
    });
    world.create("app").await;
    // The first retry comes after five seconds and a random part, which may be none.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let events = world.events("app");
    let expected = "Warning SyncLoadBalancerFailed: Error syncing load balancer: the provider reported a load balancer \
                    without an address";
    assert!(events.iter().any(|event| event.contains(expected)), "{events:?}");
    assert!(world.ingress("app").await.is_empty());
    world.until_published("app").await;
}

/// A Service that vanished without our having let it go is released, as often as that takes.
///
/// Framework: S14, same.
/// Framework: S15, same.
#[tokio::test(start_paused = true)]
async fn framework_s14_s15_a_service_that_vanished_is_released() {
    let world = World::started(LATEST).await;
    world.serve("app").await;
    world.cloud.script(Reconciliation::failed(Failure::new(
        openstack_ccm_core::failure::FailureClass::Unavailable,
        "503 from the cloud",
    )));
    world.patch("app", json!({"metadata": {"finalizers": []}})).await;
    world.delete("app").await;
    until("the load balancer is gone", async || world.cloud.load_balancers().is_empty()).await;
    settle().await;
    let journal = world.wire.journal();
    assert_eq!(journal.iter().filter(|line| *line == "cloud releases app").count(), 2, "{journal:?}");
    let events = world.events("app");
    assert!(
        events.iter().any(|event| event
            .contains("Warning DeleteLoadBalancerFailed: Error deleting load balancer: 503 from the cloud")),
        "{events:?}"
    );
    assert!(events.iter().any(|event| event.contains("DeletedLoadBalancer")), "{events:?}");
}

/// A new Service of the same name is served after the load balancer of the old one is gone.
///
/// Framework: S17, same.
#[tokio::test(start_paused = true)]
async fn framework_s17_a_new_service_of_the_same_name_waits_for_the_old_load_balancer() {
    let mut world = World::started(LATEST).await;
    world.serve("app").await;
    world.options.concurrency = 1;
    world.cloud.script(Reconciliation::failed(Failure::new(
        openstack_ccm_core::failure::FailureClass::Unavailable,
        "503 from the cloud",
    )));
    // The old one vanishes and the new one comes while the watch looks away.
    world.patch("app", json!({"metadata": {"finalizers": []}})).await;
    world.delete("app").await;
    world.create_published("app").await;
    settle().await;
    let journal = world.wire.journal();
    let cloud: Vec<&String> = journal.iter().filter(|line| line.starts_with("cloud")).collect();
    assert_eq!(
        cloud,
        ["cloud releases app", "cloud releases app", "cloud serves app on n1,n2"],
        "nothing is made while the old one is there: {journal:?}"
    );
    assert_eq!(world.cloud.load_balancers().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn stopping_lets_a_running_reconciliation_end() {
    let mut world = World::started(LATEST).await;
    world.create("app").await;
    until("the cloud works", async || !world.wire.journal().is_empty()).await;
    world.stop().await;
    assert_eq!(world.cloud.load_balancers().len(), 1);
    assert_eq!(world.ingress("app").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_provider_harms_no_other_service() {
    let mut world = World::new(LATEST);
    world.options.concurrency = 1;
    world.start().await;
    world.cloud.panic_next();
    world.create("first").await;
    world.create_published("second").await;
    world.until_published("first").await;
}
