//! Replays conversations that were recorded with real API servers, and compares status, headers and bodies.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by panicking")]

mod compare;
mod session;

use openstack_ccm_kube_sim::ApiVersion;
use rstest::rstest;
use session::Session;

/// Topics in the order in which they were recorded on one server: each sees the effects of the ones before.
const TOPICS: [&str; 20] = [
    "version",
    "unauthorized-forbidden",
    "not-found",
    "invalid-requests",
    "status-merge-patch",
    "status-strategic-patch",
    "status-validation",
    "dry-run",
    "field-validation",
    "conflict",
    "finalizer",
    "watch",
    "watch-list",
    "list-paging",
    "resource-version",
    "lease",
    "events",
    "nodes",
    "service-account-token",
    "expired",
];

/// Exchanges that are deliberately answered differently: file, number of the exchange, reason.
const DIFFERENT: [(&str, usize, &str); 1] = [(
    "v1.36-lease",
    3,
    "the recording shows another holder in the request (c_3) than was sent (b_2), as its answer shows",
)];

fn recorded_files() -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recorded");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".json").map(str::to_owned))
        .collect();
    names.sort();
    names
}

async fn replay(session: &mut Session, names: &[String]) {
    let mut differences = Vec::new();
    for name in names {
        differences.extend(session.replay(name, &DIFFERENT).await);
    }
    assert!(differences.is_empty(), "{} differences:\n\n{}", differences.len(), differences.join("\n\n"));
}

#[rstest]
#[case("v1.28", ApiVersion::V1_28)]
#[case("v1.29-gate-off", ApiVersion::V1_29)]
#[case("v1.29-gate-on", ApiVersion::V1_29_GATE_ON)]
#[case("v1.36", ApiVersion::V1_36)]
#[tokio::test(start_paused = true)]
async fn answers_are_those_of_a_real_server(#[case] prefix: &str, #[case] version: ApiVersion) {
    let recorded = recorded_files();
    let names: Vec<String> = TOPICS
        .iter()
        .map(|topic| format!("{prefix}-{topic}"))
        .filter(|name| recorded.contains(name))
        .collect();
    assert!(names.len() >= 9, "{names:?}");
    replay(&mut Session::new(version), &names).await;
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_is_switched_off_keeps_the_field_where_it_is_in_use() {
    let mut session = Session::new(ApiVersion::V1_29_GATE_ON);
    replay(&mut session, &["v1.29-left-over-1-gate-on".to_owned()]).await;
    session.sim.set_version(ApiVersion::V1_29);
    replay(&mut session, &["v1.29-left-over-2-gate-off".to_owned()]).await;
}

#[test]
fn every_recording_is_replayed() {
    let prefixes = ["v1.28", "v1.29-gate-off", "v1.29-gate-on", "v1.36"];
    let mut replayed: Vec<String> = prefixes
        .iter()
        .flat_map(|prefix| TOPICS.iter().map(move |topic| format!("{prefix}-{topic}")))
        .collect();
    replayed.extend(["v1.29-left-over-1-gate-on".to_owned(), "v1.29-left-over-2-gate-off".to_owned()]);
    let forgotten: Vec<String> =
        recorded_files().into_iter().filter(|name| !replayed.contains(name)).collect();
    assert!(forgotten.is_empty(), "{forgotten:?}");
}
