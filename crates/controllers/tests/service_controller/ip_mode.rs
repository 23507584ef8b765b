//! How a load balancer that is part of the protocol is published, on clusters that can and cannot say so.

use std::time::Duration;

use openstack_ccm_core::advertise::{ClusterAccess, Needs, Path, Preference};
use openstack_ccm_kube_sim::ApiVersion;
use rstest::rstest;
use serde_json::json;

use crate::wire::Fault;
use crate::world::{World, settle};

const PROXY: Path = Path::ThroughLoadBalancer(Needs::ProxyProtocol);
const BY_PROXY: &str = "203.0.113.10(Proxy)";
const BY_HOSTNAME: &str = "203.0.113.10.example.org";

fn with_suffix() -> Preference {
    Preference { hostname_suffix: Some("example.org".into()), ..Preference::default() }
}

async fn world(version: ApiVersion, gate: Option<bool>) -> World {
    let mut world = World::new(version);
    world.options.ip_mode_gate = gate;
    world.cloud.publish_by(PROXY, with_suffix());
    world.start().await;
    world
}

#[rstest]
#[case::unknown_field(ApiVersion::V1_28, None, BY_HOSTNAME)]
#[case::gate_off(ApiVersion::V1_29, None, BY_HOSTNAME)]
#[case::gate_on(ApiVersion::V1_29_GATE_ON, None, BY_PROXY)]
#[case::latest(ApiVersion::V1_36, None, BY_PROXY)]
#[case::operator_says_no(ApiVersion::V1_36, Some(false), BY_HOSTNAME)]
#[case::operator_says_yes(ApiVersion::V1_36, Some(true), BY_PROXY)]
#[case::the_servers_answer_outweighs_the_operator(ApiVersion::V1_28, Some(true), BY_HOSTNAME)]
#[tokio::test(start_paused = true)]
async fn a_proxy_protocol_load_balancer_is_published_as_the_cluster_can(
    #[case] version: ApiVersion,
    #[case] gate: Option<bool>,
    #[case] expected: &str,
) {
    let world = world(version, gate).await;
    world.create_published("app").await;
    settle().await;
    assert_eq!(world.ingress("app").await, [expected]);
    // Nothing turns over later.
    world.wire.journal();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(world.ingress("app").await, [expected]);
    let journal = world.wire.journal();
    assert!(journal.iter().all(|line| line.starts_with("ask")), "{journal:?}");
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_turns_hostnames_into_proxy_and_a_downgrade_back() {
    let world = world(ApiVersion::V1_28, None).await;
    world.create("app").await;
    world.create("other").await;
    world.until_published("app").await;
    world.until_published("other").await;
    world.wire.journal();
    world.kube.set_version(ApiVersion::V1_36);
    world.until_ingress("app", BY_PROXY).await;
    world.until_ingress("other", "203.0.113.11(Proxy)").await;
    world.kube.set_version(ApiVersion::V1_28);
    world.until_ingress("app", BY_HOSTNAME).await;
    world.until_ingress("other", "203.0.113.11.example.org").await;
    settle().await;
    let journal = world.wire.journal();
    assert!(!journal.iter().any(|line| line.starts_with("cloud")), "{journal:?}");
    assert_eq!(journal.iter().filter(|line| line.contains("ingress")).count(), 4, "{journal:?}");
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_is_switched_shows_nowhere_and_is_found_all_the_same() {
    let world = world(ApiVersion::V1_29_GATE_ON, None).await;
    world.create("app").await;
    world.until_ingress("app", BY_PROXY).await;
    world.kube.set_version(ApiVersion::V1_29);
    world.until_ingress("app", BY_HOSTNAME).await;
    world.kube.set_version(ApiVersion::V1_29_GATE_ON);
    world.until_ingress("app", BY_PROXY).await;
}

#[tokio::test(start_paused = true)]
async fn a_mode_that_a_write_loses_is_replaced_in_the_same_reconciliation() {
    let world = world(ApiVersion::V1_36, None).await;
    world.create_published("first").await;
    settle().await;
    world.wire.journal();
    // The next write reaches a server that does not know the field.
    world.kube.set_version(ApiVersion::V1_28);
    world.create("app").await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(world.ingress("app").await, ["203.0.113.11.example.org"]);
    let journal = world.wire.journal();
    let writes: Vec<&str> = journal
        .iter()
        .filter_map(|line| line.strip_prefix("patch app/status: "))
        .filter(|line| line.contains("ingress"))
        .collect();
    assert_eq!(
        writes,
        ["annotations, ingress 203.0.113.11(Proxy)", "ingress 203.0.113.11.example.org"],
        "{journal:?}"
    );
    world.until_ingress("first", BY_HOSTNAME).await;
}

#[tokio::test(start_paused = true)]
async fn an_old_node_makes_it_a_hostname_until_it_is_gone() {
    let world = world(ApiVersion::V1_36, None).await;
    world.create("app").await;
    world.until_ingress("app", BY_PROXY).await;
    world.wire.journal();
    world.create_node("old", "v1.29.3");
    world.until_ingress("app", BY_HOSTNAME).await;
    assert_eq!(world.metric("openstack_ccm_ip_mode_unfit_nodes"), "1");
    world.patch_node_status("old", json!({"status": {"nodeInfo": {"kubeletVersion": "v1.30.1"}}})).await;
    world.until_ingress("app", BY_PROXY).await;
}

#[tokio::test(start_paused = true)]
async fn a_plain_load_balancer_is_written_once_on_every_server() {
    for version in [ApiVersion::V1_28, ApiVersion::V1_29, ApiVersion::V1_36] {
        let world = World::started(version).await;
        world.serve("app").await;
        world.patch("app", json!({"metadata": {"annotations": {"user": "change"}}})).await;
        settle().await;
        assert_eq!(world.wire.journal(), ["cloud serves app on n1,n2"]);
    }
}

#[rstest]
#[case::forbidden(403)]
#[case::broken(500)]
#[case::webhook(400)]
#[tokio::test(start_paused = true)]
async fn a_question_that_fails_is_the_safe_side_and_is_asked_again(#[case] code: u16) {
    let world = world(ApiVersion::V1_36, None).await;
    world.wire.break_next("ask", Fault::Answer(code));
    world.create("app").await;
    world.until_ingress("app", BY_HOSTNAME).await;
    world.until_ingress("app", BY_PROXY).await;
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_not_answered_does_not_hold_the_others_up() {
    let world = world(ApiVersion::V1_36, None).await;
    world.wire.break_next("ask", Fault::Silence);
    let start = tokio::time::Instant::now();
    for number in 0..5 {
        world.create(&format!("app{number}")).await;
    }
    for number in 0..5 {
        world.until_published(&format!("app{number}")).await;
    }
    assert!(start.elapsed() < Duration::from_secs(12), "{:?}", start.elapsed());
    for number in 0..5 {
        world.until_ingress(&format!("app{number}"), &format!("203.0.113.1{number}(Proxy)")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn trouble_with_the_question_after_a_restart_turns_nothing_over() {
    let mut world = world(ApiVersion::V1_36, None).await;
    world.create("app").await;
    world.until_ingress("app", BY_PROXY).await;
    world.stop().await;
    world.wire.journal();
    world.wire.break_next("ask", Fault::Answer(500));
    world.start().await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    let journal = world.wire.journal();
    assert!(!journal.iter().any(|line| line.contains("ingress")), "{journal:?}");
    assert_eq!(world.ingress("app").await, [BY_PROXY]);
}

#[tokio::test(start_paused = true)]
async fn many_services_share_one_question() {
    let world = world(ApiVersion::V1_36, None).await;
    for number in 0..20 {
        world.create(&format!("app{number}")).await;
    }
    for number in 0..20 {
        world.until_published(&format!("app{number}")).await;
    }
    let asked = world.wire.journal().iter().filter(|line| line.starts_with("ask")).count();
    assert_eq!(asked, 1);
}

/// Two API servers behind one address, one of them not upgraded yet: each question may reach the other one.
#[tokio::test(start_paused = true)]
async fn servers_of_two_kinds_behind_one_address_do_not_turn_the_status_over_and_over() {
    let world = world(ApiVersion::V1_36, None).await;
    world.create("app").await;
    world.until_ingress("app", BY_PROXY).await;
    world.wire.journal();
    for _ in 0..15 {
        for version in [ApiVersion::V1_28, ApiVersion::V1_36] {
            world.kube.set_version(version);
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
    }
    let journal = world.wire.journal();
    let turns = journal.iter().filter(|line| line.contains("ingress")).count();
    assert!(turns <= 9, "{turns} turns in 30 minutes: {journal:?}");
    // The last one is upgraded too.
    tokio::time::sleep(Duration::from_secs(1200)).await;
    assert_eq!(world.ingress("app").await, [BY_PROXY]);
}

/// A node that ignores the mode loses nothing by it, and all others lose everything by `VIP`.
#[tokio::test(start_paused = true)]
async fn an_odd_node_turns_no_service_from_proxy_to_vip() {
    let mut world = World::new(ApiVersion::V1_36);
    world.cloud.publish_by(PROXY, Preference::default());
    world.start().await;
    world.create("app").await;
    world.until_ingress("app", BY_PROXY).await;
    world.wire.journal();
    for (name, version) in [("old", "v1.29.3"), ("odd", "self-made")] {
        world.create_node(name, version);
        settle().await;
        assert_eq!(world.ingress("app").await, [BY_PROXY]);
    }
    let events = world.events("app");
    assert!(events.iter().any(|event| event.contains("LoadBalancerIPModeNotHonoured")), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn a_virtual_node_turns_nothing_over() {
    let world = world(ApiVersion::V1_36, None).await;
    world.create("app").await;
    world.until_ingress("app", BY_PROXY).await;
    world.create_node("virtual", "v1.15.2-vk-azure-aci-1.5.1");
    world.create_node("simulated", "kwok-v0.6.0");
    settle().await;
    assert_eq!(world.ingress("app").await, [BY_PROXY]);
    assert_eq!(world.metric("openstack_ccm_ip_mode_unfit_nodes"), "0");
}

/// The transition is that of the condition in the object, long ago by any clock.
#[tokio::test(start_paused = true)]
async fn a_node_that_was_lost_long_ago_does_not_count() {
    let world = world(ApiVersion::V1_36, None).await;
    world.create("app").await;
    world.create_node("lost", "v1.28.3");
    world.until_ingress("app", BY_HOSTNAME).await;
    let lost = json!({"type": "Ready", "status": "Unknown", "lastTransitionTime": "2020-01-01T00:00:00Z"});
    world.patch_node_status("lost", json!({"status": {"conditions": [lost]}})).await;
    world.until_ingress("app", BY_PROXY).await;
}

#[rstest]
#[case::tls(Needs::TlsTermination, "203.0.113.10(VIP)")]
#[case::header(Needs::HeaderInsertion, "203.0.113.10(VIP)")]
#[case::proxy(Needs::ProxyProtocol, BY_PROXY)]
#[tokio::test(start_paused = true)]
async fn source_ranges_that_lack_the_cluster_keep_the_status_as_occm_left_it(
    #[case] needs: Needs,
    #[case] expected: &str,
) {
    let mut world = World::new(ApiVersion::V1_36);
    world.start().await;
    world.create("app").await;
    world.until_ingress("app", "203.0.113.10(VIP)").await;
    world.stop().await;
    world.cloud.publish_by(Path::ThroughLoadBalancer(needs), Preference::default());
    world.cloud.let_in(ClusterAccess::Without(vec!["10.0.0.0/24".into()]));
    world.wire.journal();
    world.start().await;
    settle().await;
    assert_eq!(world.ingress("app").await, [expected]);
    let events = world.events("app");
    let is_reported = events.iter().any(|event| {
        event.contains("LoadBalancerSourceRangesLackCluster")
            && event.contains("10.0.0.0/24")
            && event.contains("allow-cluster-sources")
    });
    assert!(is_reported, "{events:?}");
    // Once the ranges hold the cluster nothing keeps it from going through the load balancer.
    world.cloud.let_in(ClusterAccess::Open);
    world.patch("app", json!({"spec": {"loadBalancerSourceRanges": ["10.0.0.0/8"]}})).await;
    world.until_ingress("app", BY_PROXY).await;
    // It does not turn back.
    world.cloud.let_in(ClusterAccess::Without(vec!["10.0.0.0/24".into()]));
    world.patch("app", json!({"spec": {"loadBalancerSourceRanges": ["192.0.2.0/24"]}})).await;
    settle().await;
    assert_eq!(world.ingress("app").await, [BY_PROXY]);
}
