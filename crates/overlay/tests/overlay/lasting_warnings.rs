//! An Event is gone after an hour: a Warning whose cause lasts is written again each half hour, and never more often.

use std::time::Duration;

use openstack_ccm_kube_sim::ApiVersion;
use rstest::rstest;
use serde_json::json;

use crate::base;
use crate::world::{MODE, PROXY_PROTOCOL, World, settle};

const HALF_AN_HOUR: Duration = Duration::from_secs(1800);

/// How often each Event of a reason was written that tells of `app`.
fn counts(world: &World, reason: &str) -> Vec<i64> {
    let events = base::events(&world.kube, "app");
    let about = events.iter().filter(|event| event["reason"] == reason);
    about.map(|event| event["count"].as_i64().unwrap()).collect()
}

#[rstest]
#[case::mode_not_honoured(
    ApiVersion::V1_28,
    PROXY_PROTOCOL,
    "true",
    "203.0.113.10",
    "LoadBalancerIPModeNotHonoured"
)]
#[case::address_of_a_node(ApiVersion::V1_36, PROXY_PROTOCOL, "true", "10.0.0.11", "IPModeRefused")]
#[case::unreadable_annotation(ApiVersion::V1_36, MODE, "prox", "203.0.113.10", "IPModeNotUnderstood")]
#[tokio::test(start_paused = true)]
async fn a_warning_is_written_as_long_as_its_cause_lasts(
    #[case] version: ApiVersion,
    #[case] annotation: &str,
    #[case] value: &str,
    #[case] address: &str,
    #[case] reason: &str,
) {
    let world = World::started(version).await;
    world.create_with("app", &json!({"metadata": {"annotations": {annotation: value}}}));
    world.owner_publishes("app", json!([{"ip": address}])).await;
    settle().await;
    for times in 1..=4 {
        assert_eq!(counts(&world, reason), [times], "{:?}", world.events("app"));
        // The nodes change, and every Service is looked at.
        world.create_node(&format!("later-{times}"), "10.0.1.11", "v1.36.0");
        tokio::time::sleep(HALF_AN_HOUR).await;
        settle().await;
    }
    assert_eq!(world.writes().len(), 0, "nothing else is written for it");
}

#[tokio::test(start_paused = true)]
async fn a_warning_whose_cause_is_over_is_not_written_any_more() {
    let world = World::started(ApiVersion::V1_36).await;
    world.serve("app").await;
    world.annotate("app", json!({MODE: "prox"})).await;
    assert_eq!(counts(&world, "IPModeNotUnderstood"), [1]);
    world.annotate("app", json!({MODE: "proxy"})).await;
    tokio::time::sleep(HALF_AN_HOUR * 4).await;
    assert_eq!(counts(&world, "IPModeNotUnderstood"), [1]);
}
