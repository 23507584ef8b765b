//! Questions about single load balancers that reconciliations ask at the same time, answered by one list.
//!
//! Where a list is too long for all that ask, each of them asks alone, and nobody waits for another one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use openstack_ccm_openstack_api::error::ApiError;
use tokio::sync::Mutex;

use crate::load_balancer::list_length::{Askers, Counted, ListLength};

/// Nobody waits longer for others: an answer that is lost holds up only who asked.
const PATIENCE: Duration = Duration::from_secs(5);
/// Who had to wait for somebody else's answer waits so much longer for others: Services that are deleted with one command come one after
/// another.
const GATHERING: Duration = Duration::from_millis(250);

/// One kind of question. Who asks while another one is under way waits for its end, with whoever asks meanwhile: all of them together get
/// one list that is younger than each question.
#[derive(Debug)]
pub(super) struct Gathered<T> {
    /// Counts questions and lists, to tell which came first.
    clock: AtomicU64,
    askers: Askers,
    /// Of the askers, those that wait for their turn.
    waiting: AtomicUsize,
    latest: Mutex<Option<GatheredList<T>>>,
}

#[derive(Debug)]
struct GatheredList<T> {
    asked: u64,
    entries: Vec<T>,
}

impl<T> Default for Gathered<T> {
    fn default() -> Self {
        Self::of(Arc::default())
    }
}

impl<T> Gathered<T> {
    /// Questions that a list of this length can answer.
    pub(super) fn of(length: Arc<ListLength>) -> Self {
        let (clock, waiting, latest) = (AtomicU64::new(0), AtomicUsize::new(0), Mutex::new(None));
        Self { clock, askers: Askers::of(length), waiting, latest }
    }

    /// How long a list is.
    pub(super) fn list_length(&self) -> &ListLength {
        self.askers.list_length()
    }

    /// The answer to one question: what `pick` finds in a list for all, else what it is `alone`.
    ///
    /// # Errors
    /// What `alone` fails with. A list that fails is not missed.
    pub(super) async fn ask<R>(
        &self,
        alone: impl AsyncFnOnce() -> Result<R, ApiError>,
        list: impl AsyncFnOnce() -> Result<Vec<T>, ApiError>,
        pick: impl Fn(&[T]) -> Option<R>,
    ) -> Result<R, ApiError> {
        let asked = self.tick();
        let _asker = self.askers.join();
        if self.askers.are_too_few_in_a_moment().await {
            return alone().await;
        }
        let (latest, waited) = match self.latest.try_lock() {
            Ok(latest) => (Ok(latest), false),
            Err(_) => {
                let _waiting = Counted::new(&self.waiting);
                (tokio::time::timeout(PATIENCE, self.latest.lock()).await, true)
            }
        };
        let Ok(mut latest) = latest else { return alone().await };
        if latest.as_ref().is_none_or(|list| list.asked < asked) {
            *latest = None;
            // Who was woken by the same event asks in the same moment.
            tokio::task::yield_now().await;
            if waited && !self.askers.are_too_few() {
                tokio::time::sleep(GATHERING).await;
            }
            if self.waiting.load(Ordering::Relaxed) == 0 {
                // Who comes meanwhile is gathered.
                return alone().await;
            }
            if self.askers.are_too_few() {
                drop(latest);
                return alone().await;
            }
            let asked = self.tick();
            if let Ok(entries) = list().await {
                self.list_length().note(entries.len());
                *latest = Some(GatheredList { asked, entries });
            }
        }
        let found = latest.as_ref().and_then(|list| pick(&list.entries));
        if self.waiting.load(Ordering::Relaxed) == 0 {
            *latest = None;
        }
        drop(latest);
        match found {
            Some(found) => Ok(found),
            None => alone().await,
        }
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex as StdMutex;

    use futures::future::join_all;
    use tokio::time::Instant;

    use super::*;

    /// A cloud with this many entries, which answers after a second; and what it was asked.
    struct Cloud {
        entries: usize,
        calls: StdMutex<Vec<&'static str>>,
        gathered: Gathered<usize>,
    }

    impl Cloud {
        fn of(entries: usize) -> Self {
            Self { entries, calls: StdMutex::default(), gathered: Gathered::default() }
        }

        async fn answer<R>(&self, call: &'static str, answer: R) -> Result<R, ApiError> {
            self.calls.lock().expect("no panic").push(call);
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(answer)
        }

        async fn ask(&self, id: usize) -> usize {
            let alone = || self.answer("one", id);
            let list = || self.answer("list", (0..self.entries).collect());
            let pick = |list: &[usize]| list.iter().find(|one| **one == id).copied();
            self.gathered.ask(alone, list, pick).await.expect("an answer")
        }

        async fn ask_at_once(&self, ids: std::ops::Range<usize>) -> Vec<&'static str> {
            let asked: Vec<_> = ids.collect();
            assert_eq!(join_all(asked.iter().map(|id| self.ask(*id))).await, asked);
            std::mem::take(&mut self.calls.lock().expect("no panic"))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_alone_gets_one_object_and_several_get_a_list() {
        let cloud = Cloud::of(20);
        assert_eq!(cloud.ask_at_once(3..4).await, ["one"]);
        assert_eq!(cloud.ask_at_once(0..10).await, ["list"]);
        assert_eq!(cloud.ask_at_once(18..21).await, ["list", "one"], "one is not in the list");
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_is_no_answer_to_who_asks_while_it_is_made() {
        let cloud = Cloud::of(20);
        let later = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            cloud.ask(7).await
        };
        tokio::join!(cloud.ask_at_once(0..3), later);
        assert_eq!(*cloud.calls.lock().expect("no panic"), ["one"]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_had_to_wait_waits_a_moment_more_for_others() {
        let cloud = Cloud::of(20);
        let start = Instant::now();
        let one_after_another = (0..10_u32).map(|id| {
            let cloud = &cloud;
            async move {
                tokio::time::sleep(Duration::from_millis(120) * id).await;
                cloud.ask(id as usize).await
            }
        });
        assert_eq!(join_all(one_after_another).await, (0..10).collect::<Vec<_>>());
        // The first one is not held up. The last one comes when that has just been answered.
        assert_eq!(*cloud.calls.lock().expect("no panic"), ["one", "list"]);
        assert_eq!(start.elapsed(), Duration::from_millis(2250));
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_of_many_others_is_not_asked_for() {
        let cloud = Cloud::of(1000);
        assert_eq!(cloud.ask_at_once(0..3).await, ["list"], "nobody knew how long it is");
        let start = Instant::now();
        assert_eq!(cloud.ask_at_once(0..3).await, ["one"; 3]);
        assert_eq!(start.elapsed(), Duration::from_secs(1), "nobody waits for another one");
        assert_eq!(cloud.ask_at_once(0..20).await, ["list"], "so many ask that it is worth it");
    }

    #[tokio::test(start_paused = true)]
    async fn no_list_is_asked_for_of_which_somebody_knows_that_it_is_long() {
        let cloud = Cloud::of(1000);
        cloud.gathered.list_length().note(1000);
        assert_eq!(cloud.ask_at_once(0..3).await, ["one"; 3]);
    }
}
