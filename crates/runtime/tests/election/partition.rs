//! A leader that cannot reach the API server has stopped its work before another one may begin.

use std::time::Duration;

use openstack_ccm_kube_sim::Sim;
use openstack_ccm_runtime::election::Ended;
use rstest::rstest;
use serde_json::json;

use crate::candidate::{
    Candidate, Journal, LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD, Work, holder, lease,
};
use crate::link::{Condition, Link};

#[rstest]
#[case::refused(Condition::Refused, Work::Ends(Duration::from_secs(1)))]
#[case::silent(Condition::Silent, Work::Ends(Duration::from_secs(1)))]
#[case::refused_and_stubborn(Condition::Refused, Work::Ignores)]
#[case::silent_and_stubborn(Condition::Silent, Work::Ignores)]
#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_stops_before_the_next_starts(
    #[case] condition: Condition,
    #[case] work: Work,
    #[values(100, 700, 1300, 1900)] moment: u64,
) {
    let (sim, journal) = (Sim::default(), Journal::new());
    let first = Candidate::start(&sim, &journal, "a", work);
    journal.until("a works").await;
    let _second = Candidate::start(&sim, &journal, "b", Work::Ignores);
    tokio::time::sleep(Duration::from_secs(60) + Duration::from_millis(moment)).await;
    let cut = tokio::time::Instant::now();
    first.link.set(condition);
    assert_eq!(first.end().await, Ended::Lost);
    assert!(cut.elapsed() >= RENEW_DEADLINE - RETRY_PERIOD, "it did not give up early: {:?}", cut.elapsed());
    assert!(cut.elapsed() <= LEASE_DURATION, "{:?}", cut.elapsed());
    assert_eq!(holder(&sim), "a", "nobody else leads yet");
    journal.until("b works").await;
    journal.assert_one_at_a_time();
    assert!(journal.when("a is asked to stop") < journal.when("b works"));
    assert!(journal.when("a is done") < journal.when("b works"));
}

/// The server stores a claim at once and answers late: others count from the moment when it was stored.
#[rstest]
#[tokio::test(start_paused = true)]
async fn a_late_answer_to_the_claim_gives_no_more_time(#[values(1, 3, 4)] seconds: u64) {
    let (sim, journal) = (Sim::default(), Journal::new());
    let link = Link::new();
    // Look and write take this long each.
    link.set(Condition::Late(Duration::from_secs(seconds)));
    let first = Candidate::over(link, &sim, &journal, "a", Work::Ignores);
    tokio::time::sleep(Duration::from_secs(seconds) + Duration::from_millis(1)).await;
    assert_eq!(holder(&sim), "a");
    let _second = Candidate::start(&sim, &journal, "b", Work::Ignores);
    journal.until("a works").await;
    first.link.set(Condition::Silent);
    journal.until("b works").await;
    journal.assert_one_at_a_time();
    assert!(journal.has("a is done"));
}

/// As above, for a renewal.
#[rstest]
#[tokio::test(start_paused = true)]
async fn a_late_answer_to_a_renewal_gives_no_more_time(#[values(1, 2, 3)] seconds: u64) {
    let (sim, journal) = (Sim::default(), Journal::new());
    let first = Candidate::start(&sim, &journal, "a", Work::Ignores);
    journal.until("a works").await;
    let _second = Candidate::start(&sim, &journal, "b", Work::Ignores);
    first.link.set(Condition::Late(Duration::from_secs(seconds)));
    let renewed = lease(&sim)["renewTime"].clone();
    while lease(&sim)["renewTime"] == renewed {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    first.link.set(Condition::Silent);
    assert_eq!(first.end().await, Ended::Lost);
    assert_eq!(holder(&sim), "a");
    journal.until("b works").await;
    journal.assert_one_at_a_time();
}

/// Requests arrive, answers do not: the leader cannot know that it is still seen as alive.
#[tokio::test(start_paused = true)]
async fn a_leader_that_hears_no_answers_stops_too() {
    let (sim, journal) = (Sim::default(), Journal::new());
    let first = Candidate::start(&sim, &journal, "a", Work::Ends(Duration::ZERO));
    journal.until("a works").await;
    first.link.set(Condition::Deaf);
    assert_eq!(first.end().await, Ended::Lost);
}

#[tokio::test(start_paused = true)]
async fn a_short_interruption_is_survived() {
    let (sim, journal) = (Sim::default(), Journal::new());
    let first = Candidate::start(&sim, &journal, "a", Work::Ignores);
    journal.until("a works").await;
    let _second = Candidate::start(&sim, &journal, "b", Work::Ignores);
    for condition in [Condition::Refused, Condition::Deaf] {
        tokio::time::sleep(Duration::from_secs(30)).await;
        first.link.set(condition);
        tokio::time::sleep(RENEW_DEADLINE - RETRY_PERIOD * 2).await;
        first.link.set(Condition::Open);
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(journal.lines(), ["a works"]);
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_renewals_are_never_stored_steps_down() {
    let (sim, journal) = (Sim::default(), Journal::new());
    let first = Candidate::start(&sim, &journal, "a", Work::Ends(Duration::ZERO));
    journal.until("a works").await;
    let writer = sim.clone();
    first.link.before_each(move |method| {
        if *method == http::Method::PUT {
            let note = json!({"metadata": {"annotations": {"at": writer.resource_version().to_string()}}});
            writer.patch("leases", "kube-system", "ccm", &note).unwrap();
        }
    });
    let start = tokio::time::Instant::now();
    assert_eq!(first.end().await, Ended::Lost);
    assert!(start.elapsed() <= RENEW_DEADLINE, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_sees_another_name_in_the_lease_drops_its_work_at_once() {
    let (sim, journal) = (Sim::default(), Journal::new());
    let first = Candidate::start(&sim, &journal, "a", Work::Ignores);
    journal.until("a works").await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let start = tokio::time::Instant::now();
    sim.patch("leases", "kube-system", "ccm", &json!({"spec": {"holderIdentity": "usurper"}})).unwrap();
    assert_eq!(first.end().await, Ended::Lost);
    assert!(start.elapsed() <= RETRY_PERIOD, "{:?}", start.elapsed());
    assert_eq!(holder(&sim), "usurper");
}

/// The lease cannot be given back, so the next one has to wait until it lapses; the work is over before that.
#[rstest]
#[case::quick(Work::Ends(Duration::from_secs(1)))]
#[case::stubborn(Work::Ignores)]
#[tokio::test(start_paused = true)]
async fn a_leader_that_is_stopped_while_it_is_cut_off_ends_in_time(#[case] work: Work) {
    let (sim, journal) = (Sim::default(), Journal::new());
    let first = Candidate::start(&sim, &journal, "a", work);
    journal.until("a works").await;
    let _second = Candidate::start(&sim, &journal, "b", Work::Ignores);
    tokio::time::sleep(Duration::from_secs(61)).await;
    first.link.set(Condition::Silent);
    tokio::time::sleep(Duration::from_secs(7)).await;
    assert_eq!(first.stop().await, Ended::Stopped);
    assert!(journal.has("a is done"));
    assert_eq!(holder(&sim), "a");
    journal.until("b works").await;
    journal.assert_one_at_a_time();
}
