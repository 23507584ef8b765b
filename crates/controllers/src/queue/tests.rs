//! Keys that are taken together, as the node controller does. The order of reasons is tested with the Services.

use super::*;

fn queue() -> WorkQueue<&'static str, ()> {
    WorkQueue::new((), false)
}

fn keys(taken: &[Taken<&'static str, ()>]) -> Vec<&'static str> {
    taken.iter().map(|taken| taken.key).collect()
}

async fn only(queue: &WorkQueue<&'static str, ()>) -> Taken<&'static str, ()> {
    let mut taken = queue.take_together(Duration::ZERO).await;
    assert_eq!(taken.len(), 1);
    taken.remove(0)
}

const DELAY: Duration = Duration::from_millis(100);

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
    assert!(queue.knows_nothing());
}
