//! From one leader to the next, in order.

use std::time::Duration;

use openstack_ccm_kube_sim::{Fault, Sim};
use openstack_ccm_runtime::election::Ended;
use serde_json::json;

use crate::candidate::{
    Candidate, Journal, LEASE_DURATION, LONGEST_PAUSE, RETRY_PERIOD, Work, holder, lease,
};
use crate::link::{Condition, Link};

const AT_ONCE: Work = Work::Ends(Duration::ZERO);

async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

#[tokio::test(start_paused = true)]
async fn the_second_candidate_waits_as_long_as_the_first_renews() {
    let (sim, journal) = (Sim::default(), Journal::new());
    let _first = Candidate::start(&sim, &journal, "a", AT_ONCE);
    journal.until("a works").await;
    let _second = Candidate::start(&sim, &journal, "b", AT_ONCE);
    pass(Duration::from_secs(3600)).await;
    assert_eq!(journal.lines(), ["a works"]);
    assert_eq!((holder(&sim).as_str(), lease(&sim)["leaseTransitions"].as_i64()), ("a", Some(0)));
}

/// A holder that stops renewing is followed after one lease duration, counted from when the record was seen to change.
///
/// Framework: M9, same.
#[tokio::test(start_paused = true)]
async fn framework_m9_a_killed_leader_is_followed_when_its_lease_has_lapsed_and_not_before() {
    let (sim, journal) = (Sim::default(), Journal::new());
    let first = Candidate::start(&sim, &journal, "a", AT_ONCE);
    journal.until("a works").await;
    let _second = Candidate::start(&sim, &journal, "b", AT_ONCE);
    pass(Duration::from_secs(60)).await;
    first.kill();
    journal.until("b works").await;
    let gap = journal.when("b works") - journal.when("a is done");
    assert!(gap >= LEASE_DURATION - RETRY_PERIOD, "{gap:?}");
    assert!(gap <= LEASE_DURATION + LONGEST_PAUSE * 2, "{gap:?}");
    assert_eq!((holder(&sim).as_str(), lease(&sim)["leaseTransitions"].as_i64()), ("b", Some(1)));
}

#[tokio::test(start_paused = true)]
async fn a_stopped_leader_ends_its_work_gives_the_lease_back_and_is_followed_at_once() {
    let (sim, journal) = (Sim::default(), Journal::new());
    let first = Candidate::start(&sim, &journal, "a", Work::Ends(Duration::from_secs(12)));
    journal.until("a works").await;
    let _second = Candidate::start(&sim, &journal, "b", AT_ONCE);
    pass(Duration::from_secs(60)).await;
    first.ask_to_stop();
    journal.until("a is asked to stop").await;
    pass(Duration::from_secs(11)).await;
    assert_eq!(holder(&sim), "a", "the lease is kept while the work ends");
    assert_eq!(first.end().await, Ended::Stopped);
    assert_eq!((holder(&sim).as_str(), lease(&sim)["leaseDurationSeconds"].as_i64()), ("", Some(1)));
    journal.until("b works").await;
    assert_eq!(journal.lines(), ["a works", "a is asked to stop", "a is done", "b works"]);
    assert!(journal.when("b works") - journal.when("a is done") <= LONGEST_PAUSE);
}

#[tokio::test(start_paused = true)]
async fn work_that_does_not_end_is_dropped_before_the_lease_is_given_back() {
    let (sim, journal) = (Sim::default(), Journal::new());
    let first = Candidate::start(&sim, &journal, "a", Work::Ignores);
    journal.until("a works").await;
    let _second = Candidate::start(&sim, &journal, "b", AT_ONCE);
    assert_eq!(first.stop().await, Ended::Stopped);
    journal.until("b works").await;
    journal.assert_one_at_a_time();
    assert_eq!(journal.when("a is done") - journal.when("a is asked to stop"), Duration::from_secs(16));
}

#[tokio::test(start_paused = true)]
async fn work_that_ends_by_itself_gives_the_lease_back() {
    let (sim, journal) = (Sim::default(), Journal::new());
    let first = Candidate::start(&sim, &journal, "a", Work::Finishes(Duration::from_secs(5)));
    assert_eq!(first.end().await, Ended::WorkEnded);
    assert_eq!(holder(&sim), "");
}

#[tokio::test(start_paused = true)]
async fn one_that_waits_stops_at_once_and_leaves_the_lease_alone() {
    let (sim, journal) = (Sim::default(), Journal::new());
    let _first = Candidate::start(&sim, &journal, "a", AT_ONCE);
    journal.until("a works").await;
    let second = Candidate::start(&sim, &journal, "b", AT_ONCE);
    pass(Duration::from_secs(30)).await;
    let before = tokio::time::Instant::now();
    assert_eq!(second.stop().await, Ended::Stopped);
    assert_eq!((before.elapsed(), holder(&sim).as_str()), (Duration::ZERO, "a"));
}

#[tokio::test(start_paused = true)]
async fn a_stop_while_the_claim_is_on_its_way_leaves_no_claim_behind() {
    let (sim, journal) = (Sim::default(), Journal::new());
    let link = Link::new();
    link.set(Condition::Late(Duration::from_millis(600)));
    let first = Candidate::over(link, &sim, &journal, "a", AT_ONCE);
    pass(Duration::from_millis(900)).await;
    assert_eq!(holder(&sim), "a", "the server has stored the claim, the answer is on its way");
    assert_eq!(first.stop().await, Ended::Stopped);
    assert_eq!(holder(&sim), "");
    assert_eq!(journal.lines(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn of_many_candidates_one_leads_at_a_time_and_each_gets_its_turn() {
    let (sim, journal) = (Sim::default(), Journal::new());
    let names = ["a", "b", "c", "d", "e"];
    let candidates =
        names.map(|name| Candidate::start(&sim, &journal, name, Work::Finishes(Duration::from_secs(7))));
    for candidate in candidates {
        assert_eq!(candidate.end().await, Ended::WorkEnded);
    }
    journal.assert_one_at_a_time();
    for name in names {
        assert!(journal.has(&format!("{name} is done")));
    }
    assert_eq!(lease(&sim)["leaseTransitions"], 4);
}

#[tokio::test(start_paused = true)]
async fn a_candidate_waits_for_an_api_server_that_is_down() {
    let (sim, journal) = (Sim::default(), Journal::new());
    let link = Link::new();
    link.set(Condition::Refused);
    let first = Candidate::over(link, &sim, &journal, "a", AT_ONCE);
    pass(Duration::from_secs(300)).await;
    assert_eq!(journal.lines(), Vec::<String>::new());
    first.link.set(Condition::Silent);
    pass(Duration::from_secs(300)).await;
    first.link.set(Condition::Open);
    journal.until("a works").await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_answer_was_lost_is_recognised_as_ours() {
    let (sim, journal) = (Sim::default(), Journal::new());
    sim.inject(Fault::on("POST", "/leases").once().lose_answer());
    let _first = Candidate::start(&sim, &journal, "a", AT_ONCE);
    journal.until("a works").await;
    assert!(journal.when("a works") <= LONGEST_PAUSE);
    assert_eq!(lease(&sim)["leaseTransitions"], 0);
}

#[tokio::test(start_paused = true)]
async fn a_candidate_without_rights_says_so_and_goes_on_trying() {
    let (sim, journal) = (Sim::default(), Journal::new());
    let denied = sim.inject(Fault::on("PUT", "/leases").fail(403, "Forbidden", "no update of leases"));
    let first = Candidate::start(&sim, &journal, "a", AT_ONCE);
    journal.until("a works").await;
    assert_eq!(first.end().await, Ended::Lost, "it could not renew");
    let second = Candidate::start(&sim, &journal, "b", AT_ONCE);
    pass(Duration::from_secs(60)).await;
    assert!(!journal.has("b works"));
    sim.remove_fault(denied);
    journal.until("b works").await;
    drop(second);
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_is_deleted_makes_it_anew() {
    let (sim, journal) = (Sim::default(), Journal::new());
    let _first = Candidate::start(&sim, &journal, "a", AT_ONCE);
    journal.until("a works").await;
    sim.delete("leases", "kube-system", "ccm").unwrap();
    pass(Duration::from_secs(60)).await;
    assert_eq!((holder(&sim).as_str(), journal.lines()), ("a", vec!["a works".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_somebody_else_annotates_stays_held() {
    let (sim, journal) = (Sim::default(), Journal::new());
    let first = Candidate::start(&sim, &journal, "a", AT_ONCE);
    journal.until("a works").await;
    let (writer, writes) = (sim.clone(), std::sync::atomic::AtomicU32::new(0));
    first.link.before_each(move |method| {
        let write = writes.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        // Every second renewal meets a write of somebody else between its look and its own write.
        if *method == http::Method::PUT && write % 4 == 1 {
            let note = json!({"metadata": {"annotations": {"note": write.to_string()}}});
            writer.patch("leases", "kube-system", "ccm", &note).unwrap();
        }
    });
    pass(Duration::from_secs(120)).await;
    assert_eq!(journal.lines(), ["a works"]);
    let conflicts = sim.requests_where(|request| request.status == Some(409)).len();
    assert!(conflicts >= 10, "{conflicts}");
    let stored = sim.get("leases", "kube-system", "ccm").unwrap();
    assert!(stored["metadata"]["annotations"]["note"].is_string(), "their annotation is not erased");
}
