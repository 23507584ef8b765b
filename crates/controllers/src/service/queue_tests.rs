use openstack_ccm_core::failure::FailureClass;
use rstest::rstest;
use tokio::time::Instant;

use super::*;

fn key(name: &str) -> ServiceKey {
    ServiceKey::new("default", name)
}

async fn taken(queue: &ServiceQueue) -> Taken {
    tokio::time::timeout(Duration::from_secs(3600), queue.take())
        .await
        .expect("nothing came")
        .expect("closed")
}

async fn nothing_within(queue: &ServiceQueue, time: Duration) -> bool {
    tokio::time::timeout(time, queue.take()).await.is_err()
}

fn failure(class: FailureClass) -> Failure {
    Failure::new(class, "x")
}

#[tokio::test(start_paused = true)]
async fn bursts_collapse_into_one_reconciliation() {
    let queue = ServiceQueue::new();
    for _ in 0..5 {
        queue.add(&key("a"), Cause::Changed);
    }
    queue.add(&key("a"), Cause::Nodes);
    let first = taken(&queue).await;
    assert!(first.reason.has(Cause::Changed) && first.reason.has(Cause::Nodes));
    first.finish(Requeue::Done { resync: None });
    assert!(nothing_within(&queue, Duration::from_secs(600)).await);
}

#[tokio::test(start_paused = true)]
async fn a_service_is_never_in_two_hands() {
    let queue = ServiceQueue::new();
    queue.add(&key("a"), Cause::Changed);
    let first = taken(&queue).await;
    queue.add(&key("a"), Cause::Woken);
    assert!(nothing_within(&queue, Duration::from_secs(60)).await);
    first.finish(Requeue::Done { resync: None });
    assert_eq!(taken(&queue).await.reason, Causes::only(Cause::Woken));
}

#[tokio::test(start_paused = true)]
async fn changes_go_before_startup_before_nodes_before_retries() {
    let queue = ServiceQueue::new();
    for (name, cause) in [
        ("again", Cause::Again),
        ("retry", Cause::Retry),
        ("nodes", Cause::Nodes),
        ("startup", Cause::Startup),
        ("woken", Cause::Woken),
        ("new", Cause::Changed),
        ("upgraded", Cause::Resync),
    ] {
        queue.add(&key(name), cause);
    }
    queue.add(&key("upgraded"), Cause::Changed);
    let mut order = Vec::new();
    for _ in 0..7 {
        let taken = taken(&queue).await;
        order.push(taken.key.name.to_string());
        taken.finish(Requeue::Done { resync: None });
    }
    assert_eq!(order, ["new", "upgraded", "woken", "startup", "nodes", "retry", "again"]);
}

/// After a success the next failure waits as the first one did.
///
/// Framework: Q1, same.
#[tokio::test(start_paused = true)]
async fn framework_q1_success_forgets_the_failures() {
    let queue = ServiceQueue::new();
    queue.add(&key("a"), Cause::Changed);
    for _ in 0..3 {
        taken(&queue).await.finish(Requeue::Backoff(failure(FailureClass::Bug)));
    }
    taken(&queue).await.finish(Requeue::Done { resync: None });
    assert!(queue.0.knows_nothing());
    queue.add(&key("a"), Cause::Changed);
    let start = Instant::now();
    taken(&queue).await.finish(Requeue::Backoff(failure(FailureClass::Bug)));
    let _again = taken(&queue).await;
    assert!(start.elapsed() < Duration::from_secs(7), "{:?}", start.elapsed());
}

/// Failures are tried again after 5 s, 10 s, and so on up to 300 s.
///
/// Framework: Q2, same.
#[tokio::test(start_paused = true)]
async fn framework_q2_failures_come_back_later_and_later() {
    let queue = ServiceQueue::new();
    queue.add(&key("a"), Cause::Changed);
    let mut current = taken(&queue).await;
    for seconds in [5, 10, 20, 40, 80, 160, 300, 300] {
        let start = Instant::now();
        current.finish(Requeue::Backoff(failure(FailureClass::Bug)));
        current = taken(&queue).await;
        let (waited, expected) = (start.elapsed(), Duration::from_secs(seconds));
        assert!(waited >= expected && waited <= expected * 6 / 5, "{waited:?} instead of {expected:?}");
    }
}

/// A delay that the provider gives is kept exactly and counts as no failure.
///
/// Framework: Q3, same.
#[tokio::test(start_paused = true)]
async fn framework_q3_waiting_is_not_a_failure_and_keeps_its_delay() {
    let queue = ServiceQueue::new();
    queue.add(&key("a"), Cause::Changed);
    let start = Instant::now();
    taken(&queue).await.finish(Requeue::Wait(Duration::from_secs(42)));
    let again = taken(&queue).await;
    assert_eq!(start.elapsed(), Duration::from_secs(42));
    assert_eq!(queue.0.failures(&key("a")), Some(0));
    drop(again);
}

#[tokio::test(start_paused = true)]
async fn a_second_reconciliation_that_is_asked_for_comes_after_its_delay_and_is_no_retry() {
    let queue = ServiceQueue::new();
    queue.add(&key("a"), Cause::Changed);
    taken(&queue).await.finish(Requeue::Backoff(failure(FailureClass::Bug)));
    let start = Instant::now();
    queue.add(&key("a"), Cause::Changed);
    taken(&queue).await.finish(Requeue::Again(Duration::from_secs(30)));
    assert_eq!(queue.0.failures(&key("a")), Some(0));
    let again = taken(&queue).await;
    assert_eq!(again.reason, Causes::only(Cause::Again));
    assert!(start.elapsed() >= Duration::from_secs(30) && start.elapsed() <= Duration::from_secs(36));
    again.finish(Requeue::Done { resync: None });
    assert!(nothing_within(&queue, Duration::from_secs(3600)).await);
}

#[tokio::test(start_paused = true)]
async fn a_change_puts_off_a_second_reconciliation_that_was_asked_for() {
    let queue = ServiceQueue::new();
    queue.add(&key("a"), Cause::Changed);
    taken(&queue).await.finish(Requeue::Again(Duration::from_secs(30)));
    tokio::time::advance(Duration::from_secs(20)).await;
    let start = Instant::now();
    queue.add(&key("a"), Cause::Nodes);
    taken(&queue).await.finish(Requeue::Again(Duration::from_secs(30)));
    taken(&queue).await.finish(Requeue::Done { resync: None });
    assert!(start.elapsed() >= Duration::from_secs(30));
    assert!(nothing_within(&queue, Duration::from_secs(3600)).await);
}

/// A delay that the cloud asks for is kept, for deletions as for everything else.
///
/// Framework: Q4, better: the framework forgets the delay when a deletion asks for it.
#[tokio::test(start_paused = true)]
async fn framework_q4_a_delay_that_the_cloud_asked_for_is_honoured() {
    let queue = ServiceQueue::new();
    queue.add(&key("a"), Cause::Changed);
    let asked = Failure { retry_after: Some(Duration::from_secs(42)), ..failure(FailureClass::Unavailable) };
    let start = Instant::now();
    taken(&queue).await.finish(Requeue::Backoff(asked));
    let _again = taken(&queue).await;
    assert!(start.elapsed() >= Duration::from_secs(42) && start.elapsed() < Duration::from_secs(51));
}

/// `Retry-After` of a front end in trouble may be anything.
#[rstest]
#[case::a_day(Duration::from_secs(86_400))]
#[case::absurd(Duration::from_secs(u64::MAX))]
#[tokio::test(start_paused = true)]
async fn an_absurd_delay_of_the_cloud_is_cut_to_the_longest_of_its_class(#[case] asked: Duration) {
    let queue = ServiceQueue::new();
    queue.add(&key("a"), Cause::Changed);
    let asked = Failure { retry_after: Some(asked), ..failure(FailureClass::Unavailable) };
    let start = Instant::now();
    taken(&queue).await.finish(Requeue::Backoff(asked));
    let _again = taken(&queue).await;
    assert!(start.elapsed() >= Duration::from_secs(120) && start.elapsed() <= Duration::from_secs(144));
}

#[rstest]
#[case::waiting(Requeue::Wait(Duration::MAX))]
#[case::again(Requeue::Again(Duration::MAX))]
#[case::resync(Requeue::Done { resync: Some(Duration::MAX) })]
#[tokio::test(start_paused = true)]
async fn a_delay_beyond_the_clock_harms_neither_the_service_nor_the_queue(#[case] next: Requeue) {
    let queue = ServiceQueue::new();
    queue.add(&key("a"), Cause::Changed);
    taken(&queue).await.finish(next);
    assert_eq!(queue.0.failures(&key("a")), Some(0), "it is not forgotten");
    assert!(nothing_within(&queue, Duration::from_secs(600)).await);
    queue.add(&key("a"), Cause::Changed);
    assert_eq!(taken(&queue).await.key, key("a"));
}

#[tokio::test(start_paused = true)]
async fn a_change_does_not_wait_for_the_backoff() {
    let queue = ServiceQueue::new();
    queue.add(&key("a"), Cause::Changed);
    taken(&queue).await.finish(Requeue::Backoff(failure(FailureClass::UserInput)));
    let start = Instant::now();
    queue.add(&key("a"), Cause::Changed);
    let again = taken(&queue).await;
    assert_eq!(start.elapsed(), Duration::ZERO);
    again.finish(Requeue::Done { resync: None });
    // The planned retry is gone with the success.
    assert!(nothing_within(&queue, Duration::from_secs(3600)).await);
}

#[tokio::test(start_paused = true)]
async fn a_wake_ends_the_waiting_and_its_timer() {
    let queue = ServiceQueue::new();
    queue.add(&key("a"), Cause::Changed);
    taken(&queue).await.finish(Requeue::Wait(Duration::from_secs(60)));
    queue.waker().wake(&key("a"));
    let woken = taken(&queue).await;
    assert_eq!(woken.reason, Causes::only(Cause::Woken));
    woken.finish(Requeue::Done { resync: None });
    assert!(nothing_within(&queue, Duration::from_secs(3600)).await);
}

#[tokio::test(start_paused = true)]
async fn publishing_again_leaves_a_planned_retry_alone() {
    let queue = ServiceQueue::new();
    queue.add(&key("a"), Cause::Changed);
    let start = Instant::now();
    taken(&queue).await.finish(Requeue::Wait(Duration::from_secs(60)));
    queue.add(&key("a"), Cause::Readvertise);
    taken(&queue).await.finish(Requeue::Unchanged);
    assert_eq!(taken(&queue).await.reason, Causes::only(Cause::Retry));
    assert_eq!(start.elapsed(), Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_reconciliation_returns_to_the_queue() {
    let queue = ServiceQueue::new();
    queue.add(&key("a"), Cause::Changed);
    drop(taken(&queue).await);
    assert_eq!(taken(&queue).await.key, key("a"));
}

#[tokio::test(start_paused = true)]
async fn a_wake_before_anybody_works_is_not_lost() {
    let queue = ServiceQueue::new();
    queue.waker().wake(&key("early"));
    assert_eq!(taken(&queue).await.key, key("early"));
}

#[rstest]
#[case::one_worker(1)]
#[case::many_workers(10)]
#[tokio::test(start_paused = true)]
async fn workers_share_the_work_and_end_with_the_queue(#[case] workers: usize) {
    let queue = ServiceQueue::new();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..workers {
        let queue = queue.clone();
        tasks.spawn(async move {
            let mut done = 0;
            while let Some(taken) = queue.take().await {
                tokio::time::sleep(Duration::from_secs(1)).await;
                taken.finish(Requeue::Done { resync: None });
                done += 1;
            }
            done
        });
    }
    let start = Instant::now();
    for number in 0..100 {
        queue.add(&key(&number.to_string()), Cause::Changed);
    }
    while !queue.0.knows_nothing() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let expected = Duration::from_secs(100 / workers as u64);
    assert!(start.elapsed() >= expected && start.elapsed() < expected + Duration::from_secs(1));
    queue.close();
    let mut total = 0;
    while let Some(done) = tasks.join_next().await {
        total += done.unwrap();
    }
    assert_eq!(total, 100);
}
