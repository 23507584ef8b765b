//! The record of other programs that use the same Lease.

use std::time::Duration;

use openstack_ccm_kube_sim::Sim;
use rstest::rstest;
use serde_json::{Value, json};

use crate::candidate::{Candidate, Journal, LEASE_DURATION, LONGEST_PAUSE, Work, holder, lease};

const IDLE: Work = Work::Ends(Duration::ZERO);

/// As client-go writes it.
#[allow(clippy::needless_pass_by_value, reason = "json! literals read better by value")]
fn foreign(sim: &Sim, renewed: &str, duration: Value) {
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "ccm", "namespace": "kube-system", "labels": {"kept": "yes"}},
        "spec": {
            "holderIdentity": "master-1_6a9a2b1c-0c5e-4bb8-9d3a-0f7cbb8d2f11",
            "leaseDurationSeconds": duration,
            "acquireTime": "2025-01-01T00:00:00.000000Z",
            "renewTime": renewed,
            "leaseTransitions": 7,
        },
    });
    sim.create(&lease).unwrap();
}

/// The clocks of two machines need not agree: only what is seen counts.
#[rstest]
#[case::clock_behind("2020-01-01T00:00:00.000000Z")]
#[case::clock_ahead("2099-01-01T00:00:00.000000Z")]
#[tokio::test(start_paused = true)]
async fn a_foreign_holder_is_given_its_whole_time_whatever_its_clock_says(#[case] renewed: &str) {
    let (sim, journal) = (Sim::default(), Journal::new());
    foreign(&sim, renewed, json!(40));
    let _candidate = Candidate::start(&sim, &journal, "a", IDLE);
    journal.until("a works").await;
    let waited = journal.when("a works");
    assert!(waited >= Duration::from_secs(40), "its own duration counts: {waited:?}");
    assert!(waited <= Duration::from_secs(40) + LONGEST_PAUSE, "{waited:?}");
    let spec = lease(&sim);
    assert_eq!((&spec["leaseTransitions"], &spec["leaseDurationSeconds"]), (&json!(8), &json!(15)));
    let labels = &sim.get("leases", "kube-system", "ccm").unwrap()["metadata"]["labels"];
    assert_eq!(labels["kept"], "yes");
}

#[tokio::test(start_paused = true)]
async fn a_foreign_holder_that_renews_keeps_the_lease() {
    let (sim, journal) = (Sim::default(), Journal::new());
    foreign(&sim, "2025-01-01T00:00:00.000000Z", json!(15));
    let _candidate = Candidate::start(&sim, &journal, "a", IDLE);
    for minute in 0..30 {
        for second in [0, 10, 20, 30, 40, 50] {
            tokio::time::sleep(Duration::from_secs(10)).await;
            let renewed = format!("2025-01-01T00:{minute:02}:{second:02}.000001Z");
            sim.patch("leases", "kube-system", "ccm", &json!({"spec": {"renewTime": renewed}})).unwrap();
        }
    }
    assert_eq!(journal.lines(), Vec::<String>::new());
    assert!(holder(&sim).starts_with("master-1_"));
}

#[tokio::test(start_paused = true)]
async fn a_foreign_holder_that_says_no_duration_is_not_overrun() {
    let (sim, journal) = (Sim::default(), Journal::new());
    foreign(&sim, "2025-01-01T00:00:00.000000Z", Value::Null);
    let _candidate = Candidate::start(&sim, &journal, "a", IDLE);
    journal.until("a works").await;
    assert!(journal.when("a works") >= LEASE_DURATION);
}

/// As client-go leaves it with `ReleaseOnCancel`.
#[tokio::test(start_paused = true)]
async fn a_lease_that_was_given_back_is_taken_at_once() {
    let (sim, journal) = (Sim::default(), Journal::new());
    foreign(&sim, "2025-01-01T00:00:00.000000Z", json!(1));
    let released = json!({"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}});
    sim.patch("leases", "kube-system", "ccm", &released).unwrap();
    let _candidate = Candidate::start(&sim, &journal, "a", IDLE);
    journal.until("a works").await;
    assert_eq!(journal.when("a works"), Duration::ZERO);
}
