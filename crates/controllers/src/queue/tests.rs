use openstack_ccm_core::failure::FailureClass;
use rstest::rstest;

use super::*;

/// A reason whose number is its rank; of two, the more urgent one stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank(u32);

const CHANGED: Rank = Rank(0);
const URGENT: Rank = Rank(2);
const OWN: Rank = Rank(3);
const LATER: Rank = Rank(5);
const AGAIN: Rank = Rank(7);
const RETRY: Rank = Rank(9);

impl Reason for Rank {
    fn and(self, other: Self) -> Self {
        self.min(other)
    }

    fn rank(self) -> u32 {
        self.0
    }

    fn is_own_change(self) -> bool {
        self == OWN
    }
}

impl Key for usize {}

type Queue = WorkQueue<&'static str, Rank>;

fn queue() -> Queue {
    WorkQueue::new(RETRY, true)
}

/// A queue with the key `a`.
fn with_key() -> Queue {
    let queue = queue();
    queue.add(&"a", CHANGED);
    queue
}

async fn taken(queue: &Queue) -> TakenKey<&'static str, Rank> {
    tokio::time::timeout(Duration::from_secs(3600), queue.take())
        .await
        .expect("nothing came")
        .expect("closed")
}

async fn nothing_within(queue: &Queue, time: Duration) -> bool {
    tokio::time::timeout(time, queue.take()).await.is_err()
}

fn failure(class: FailureClass) -> Failure {
    Failure::new(class, "x")
}

fn again(seconds: u64) -> Requeue<Rank> {
    Requeue::Done(Some((Duration::from_secs(seconds), AGAIN)))
}

#[tokio::test(start_paused = true)]
async fn bursts_collapse_into_one_reconciliation() {
    let queue = queue();
    for _ in 0..5 {
        queue.add(&"a", LATER);
    }
    queue.add(&"a", CHANGED);
    let first = taken(&queue).await;
    assert_eq!(first.reason, CHANGED);
    first.finish(Requeue::Done(None));
    assert!(nothing_within(&queue, Duration::from_secs(600)).await);
}

#[tokio::test(start_paused = true)]
async fn a_key_is_never_with_two_workers() {
    let queue = with_key();
    let first = taken(&queue).await;
    queue.add(&"a", LATER);
    assert!(nothing_within(&queue, Duration::from_secs(60)).await);
    first.finish(Requeue::Done(None));
    assert_eq!(taken(&queue).await.reason, LATER);
}

/// After a success the next failure waits as the first one did.
///
/// Framework: Q1, same.
#[tokio::test(start_paused = true)]
async fn framework_q1_success_forgets_the_failures() {
    let queue = with_key();
    for _ in 0..3 {
        taken(&queue).await.finish(Requeue::Backoff(failure(FailureClass::Bug)));
    }
    taken(&queue).await.finish(Requeue::Done(None));
    assert!(queue.state().is_empty());
    queue.add(&"a", CHANGED);
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
    let queue = with_key();
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
    let queue = with_key();
    let start = Instant::now();
    taken(&queue).await.finish(Requeue::Wait(Duration::from_secs(42)));
    let again = taken(&queue).await;
    assert_eq!(start.elapsed(), Duration::from_secs(42));
    assert_eq!(queue.state().failures(&"a"), Some(0));
    drop(again);
}

#[tokio::test(start_paused = true)]
async fn a_second_reconciliation_that_is_asked_for_comes_after_its_delay_and_is_no_retry() {
    let queue = with_key();
    taken(&queue).await.finish(Requeue::Backoff(failure(FailureClass::Bug)));
    let start = Instant::now();
    queue.add(&"a", CHANGED);
    taken(&queue).await.finish(again(30));
    assert_eq!(queue.state().failures(&"a"), Some(0));
    let again = taken(&queue).await;
    assert_eq!(again.reason, AGAIN);
    assert!(start.elapsed() >= Duration::from_secs(30) && start.elapsed() <= Duration::from_secs(36));
    again.finish(Requeue::Done(None));
    assert!(nothing_within(&queue, Duration::from_secs(3600)).await);
}

#[tokio::test(start_paused = true)]
async fn a_change_puts_off_a_second_reconciliation_that_was_asked_for() {
    let queue = with_key();
    taken(&queue).await.finish(again(30));
    tokio::time::advance(Duration::from_secs(20)).await;
    let start = Instant::now();
    queue.add(&"a", LATER);
    taken(&queue).await.finish(again(30));
    taken(&queue).await.finish(Requeue::Done(None));
    assert!(start.elapsed() >= Duration::from_secs(30));
    assert!(nothing_within(&queue, Duration::from_secs(3600)).await);
}

/// A delay that the cloud asks for is kept, for deletions as for everything else.
///
/// Framework: Q4, better: the framework forgets the delay when a deletion asks for it.
#[tokio::test(start_paused = true)]
async fn framework_q4_a_delay_that_the_cloud_asked_for_is_honoured() {
    let queue = with_key();
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
    let queue = with_key();
    let asked = Failure { retry_after: Some(asked), ..failure(FailureClass::Unavailable) };
    let start = Instant::now();
    taken(&queue).await.finish(Requeue::Backoff(asked));
    let _again = taken(&queue).await;
    assert!(start.elapsed() >= Duration::from_secs(120) && start.elapsed() <= Duration::from_secs(144));
}

#[rstest]
#[case::waiting(Requeue::Wait(Duration::MAX))]
#[case::again(Requeue::Done(Some((Duration::MAX, AGAIN))))]
#[tokio::test(start_paused = true)]
async fn a_delay_beyond_the_clock_harms_neither_the_key_nor_the_queue(#[case] next: Requeue<Rank>) {
    let queue = with_key();
    taken(&queue).await.finish(next);
    assert_eq!(queue.state().failures(&"a"), Some(0), "it is not forgotten");
    assert!(nothing_within(&queue, Duration::from_secs(600)).await);
    queue.add(&"a", CHANGED);
    assert_eq!(taken(&queue).await.key, "a");
}

#[tokio::test(start_paused = true)]
async fn a_change_does_not_wait_for_the_backoff() {
    let queue = with_key();
    taken(&queue).await.finish(Requeue::Backoff(failure(FailureClass::UserInput)));
    let start = Instant::now();
    queue.add(&"a", CHANGED);
    let again = taken(&queue).await;
    assert_eq!(start.elapsed(), Duration::ZERO);
    again.finish(Requeue::Done(None));
    // The planned retry is gone with the success.
    assert!(nothing_within(&queue, Duration::from_secs(3600)).await);
}

#[tokio::test(start_paused = true)]
async fn a_change_ends_the_waiting_and_its_timer() {
    let queue = with_key();
    taken(&queue).await.finish(Requeue::Wait(Duration::from_secs(60)));
    queue.add(&"a", LATER);
    let changed = taken(&queue).await;
    assert_eq!(changed.reason, LATER);
    changed.finish(Requeue::Done(None));
    assert!(nothing_within(&queue, Duration::from_secs(3600)).await);
}

/// What changes again at once waits until the least interval is over, and other reasons do not wait.
#[rstest]
#[case::own(OWN, Duration::from_secs(1))]
#[case::another(URGENT, Duration::ZERO)]
#[tokio::test(start_paused = true)]
async fn a_key_is_worked_on_for_its_own_changes_at_most_once_in_the_least_interval(
    #[case] reason: Rank,
    #[case] wait: Duration,
    #[values(false, true)] while_at_work: bool,
) {
    let queue = queue();
    queue.add(&"a", OWN);
    let first = taken(&queue).await;
    if while_at_work {
        queue.add(&"a", OWN);
        queue.add(&"a", reason);
        first.finish(Requeue::Done(None));
    } else {
        first.finish(Requeue::Done(None));
        queue.add(&"a", OWN);
        queue.add(&"a", reason);
    }
    let start = Instant::now();
    let again = taken(&queue).await;
    assert_eq!(start.elapsed(), wait);
    again.finish(Requeue::Done(None));
    assert!(nothing_within(&queue, Duration::from_secs(600)).await, "it rested for nothing");
    assert!(queue.state().is_empty());
    let start = Instant::now();
    queue.add(&"a", OWN);
    drop(taken(&queue).await);
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn work_that_learns_nothing_leaves_a_planned_retry_alone() {
    let queue = with_key();
    let start = Instant::now();
    taken(&queue).await.finish(Requeue::Wait(Duration::from_secs(60)));
    queue.add(&"a", LATER);
    taken(&queue).await.finish(Requeue::Unchanged);
    assert_eq!(taken(&queue).await.reason, RETRY);
    assert_eq!(start.elapsed(), Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn interrupted_work_returns_to_the_queue() {
    let queue = with_key();
    drop(taken(&queue).await);
    assert_eq!(taken(&queue).await.key, "a");
}

#[rstest]
#[case::one_worker(1)]
#[case::many_workers(10)]
#[tokio::test(start_paused = true)]
async fn workers_share_the_work_and_end_with_the_queue(#[case] workers: usize) {
    let queue = WorkQueue::<usize, Rank>::new(RETRY, true);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..workers {
        let queue = queue.clone();
        tasks.spawn(async move {
            let mut done = 0;
            while let Some(taken) = queue.take().await {
                sleep(Duration::from_secs(1)).await;
                taken.finish(Requeue::Done(None));
                done += 1;
            }
            done
        });
    }
    let start = Instant::now();
    for key in 0..100 {
        queue.add(&key, CHANGED);
    }
    while !queue.state().is_empty() {
        sleep(Duration::from_millis(100)).await;
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

/// The node controller takes keys together.
mod together {
    use super::*;

    const DELAY: Duration = Duration::from_millis(100);

    fn queue() -> WorkQueue<&'static str, ()> {
        WorkQueue::new((), false)
    }

    fn keys(taken: &[TakenKey<&'static str, ()>]) -> Vec<&'static str> {
        taken.iter().map(|taken| taken.key).collect()
    }

    async fn only(queue: &WorkQueue<&'static str, ()>) -> TakenKey<&'static str, ()> {
        let mut taken = queue.take_together(Duration::ZERO).await;
        assert_eq!(taken.len(), 1);
        taken.remove(0)
    }

    #[tokio::test(start_paused = true)]
    async fn nodes_that_come_together_are_taken_together() {
        let queue = queue();
        queue.add(&"n2", ());
        let other = queue.clone();
        tokio::spawn(async move {
            sleep(DELAY / 2).await;
            other.add(&"n1", ());
            other.add(&"n2", ());
        });
        assert_eq!(keys(&queue.take_together(DELAY).await), ["n2", "n1"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_waits_longer_each_time_and_a_change_ends_the_wait() {
        let queue = queue();
        queue.add(&"n1", ());
        let start = Instant::now();
        for seconds in [5, 10, 20] {
            let before = Instant::now();
            only(&queue).await.finish(Requeue::Backoff(Failure::new(FailureClass::Unavailable, "x")));
            assert!(Instant::now() - before < Duration::from_secs(seconds));
        }
        assert_eq!(start.elapsed().as_secs(), 15);
        queue.add(&"n1", ());
        only(&queue).await.finish(Requeue::Done(None));
        assert_eq!(start.elapsed().as_secs(), 15);
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_is_queued_during_the_work_comes_again() {
        let queue = queue();
        queue.add(&"n1", ());
        let taken = only(&queue).await;
        queue.add(&"n1", ());
        assert!(queue.take_ready().is_empty(), "it is with a worker");
        taken.finish(Requeue::Done(None));
        only(&queue).await.finish(Requeue::Done(None));
        assert!(queue.state().is_empty());
    }
}
