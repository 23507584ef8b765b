//! Answers of the cloud that change slowly, each kept for a while.
//!
//! After a start all workers want to know the same: a question that is on its way already is not asked once more, who
//! asks later waits for the answer of who asked first. All of them share a failure too, so that an outage costs them the
//! time of one call and not of one after another; the next one asks again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use openstack_ccm_openstack_api::error::ApiError;
use tokio::sync::watch;
use tokio::time::Instant;

/// Answers by the key of their question. An error is never kept.
#[derive(Debug)]
pub(super) struct Cache<T, E = ApiError> {
    keep: Duration,
    shared: Mutex<Shared<T, E>>,
}

#[derive(Debug)]
struct Shared<T, E> {
    answers: HashMap<String, Answer<T>>,
    /// Questions on their way. Who asks holds the sender: without it the question was given up.
    asked: HashMap<String, watch::Receiver<Told<T, E>>>,
}

#[derive(Debug)]
struct Answer<T> {
    until: Instant,
    value: T,
}

/// What who waits is told; absent until there is an answer.
type Told<T, E> = Option<Result<T, Arc<E>>>;

/// What comes next for who wants to know something.
enum Lookup<T, E> {
    Found(T),
    /// Somebody asks already.
    Wait(watch::Receiver<Told<T, E>>),
    Ask(watch::Sender<Told<T, E>>),
}

impl<T: Clone, E> Cache<T, E> {
    /// Keeps each answer for `keep`; with zero only those share it who ask at the same time.
    pub(super) fn new(keep: Duration) -> Self {
        Self { keep, shared: Mutex::new(Shared { answers: HashMap::new(), asked: HashMap::new() }) }
    }

    /// The answer that is still good, or the one that `ask` brings, or that who asks already gets.
    pub(super) async fn get_or_ask(
        &self,
        key: &str,
        ask: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Arc<E>> {
        let sender = loop {
            match self.next(key) {
                Lookup::Found(value) => return Ok(value),
                Lookup::Ask(sender) => break sender,
                Lookup::Wait(mut told) => {
                    // An error means that who asked was dropped on the way.
                    if let Ok(told) = told.wait_for(Option::is_some).await
                        && let Some(answer) = told.clone()
                    {
                        return answer;
                    }
                }
            }
        };
        let answer = ask.await.map_err(Arc::new);
        self.answered(key, &sender, &answer);
        sender.send_replace(Some(answer.clone()));
        answer
    }

    /// The answer that is still good.
    pub(super) fn get(&self, key: &str) -> Option<T> {
        self.lock().good(key)
    }

    /// Forgets everything, and what is on its way is not kept.
    pub(super) fn clear(&self) {
        let mut shared = self.lock();
        shared.answers.clear();
        shared.asked.clear();
    }

    /// Keeps an answer.
    pub(super) fn put(&self, key: &str, value: T) {
        self.lock().put(key, value, self.keep);
    }

    fn lock(&self) -> MutexGuard<'_, Shared<T, E>> {
        // The maps are whole between any two statements that hold the lock.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self, key: &str) -> Lookup<T, E> {
        let mut shared = self.lock();
        if let Some(value) = shared.good(key) {
            return Lookup::Found(value);
        }
        shared.asked.retain(|_, told| told.has_changed().is_ok());
        if let Some(told) = shared.asked.get(key) {
            return Lookup::Wait(told.clone());
        }
        let (sender, told) = watch::channel(None);
        shared.asked.insert(key.to_owned(), told);
        Lookup::Ask(sender)
    }

    fn answered(&self, key: &str, sender: &watch::Sender<Told<T, E>>, answer: &Result<T, Arc<E>>) {
        let mut shared = self.lock();
        // Not where everything was forgotten in between.
        if shared.asked.get(key).is_some_and(|told| told.same_channel(&sender.subscribe())) {
            shared.asked.remove(key);
            if let Ok(value) = answer {
                shared.put(key, value.clone(), self.keep);
            }
        }
    }
}

impl<T: Clone, E> Shared<T, E> {
    fn good(&self, key: &str) -> Option<T> {
        self.answers
            .get(key)
            .filter(|answer| answer.until > Instant::now())
            .map(|answer| answer.value.clone())
    }

    fn put(&mut self, key: &str, value: T, keep: Duration) {
        if keep.is_zero() {
            return;
        }
        let now = Instant::now();
        self.answers.retain(|_, answer| answer.until > now);
        self.answers.insert(key.to_owned(), Answer { until: now + keep, value });
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures::FutureExt as _;
    use futures::future::join_all;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const CALL: Duration = Duration::from_secs(1);

    async fn ask(remembered: &Cache<u8, &str>, answer: u8) -> u8 {
        remembered.get_or_ask("key", async move { Ok(answer) }).await.unwrap_or_default()
    }

    /// Ten ask at the same time. What they were told, and how many calls they made.
    async fn ten_ask(
        remembered: &Cache<u8, &'static str>,
        answer: Result<u8, &'static str>,
    ) -> (Vec<Result<u8, &'static str>>, u32) {
        let calls = Cell::new(0);
        let ten = (0..10).map(|_| {
            remembered.get_or_ask("key", async {
                calls.set(calls.get() + 1);
                tokio::time::sleep(CALL).await;
                answer
            })
        });
        let told = join_all(ten).await;
        (told.into_iter().map(|told| told.map_err(|error| *error)).collect(), calls.get())
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_asked_for_again_only_after_its_time() {
        let remembered = Cache::new(MINUTE);
        assert_eq!(ask(&remembered, 1).await, 1);
        tokio::time::advance(Duration::from_secs(59)).await;
        assert_eq!(ask(&remembered, 2).await, 1);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(ask(&remembered, 3).await, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_is_not_kept() {
        let remembered = Cache::new(MINUTE);
        let failed = remembered.get_or_ask("key", async { Err("down") }).await;
        assert_eq!(failed, Err(Arc::new("down")));
        assert_eq!(ask(&remembered, 4).await, 4);
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_at_the_same_time_shares_one_call() {
        let remembered = Cache::new(MINUTE);
        assert_eq!(ten_ask(&remembered, Ok(1)).await, (vec![Ok(1); 10], 1));
        assert_eq!(ask(&remembered, 2).await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_shared_need_not_be_kept() {
        let remembered = Cache::new(Duration::ZERO);
        assert_eq!(ten_ask(&remembered, Ok(1)).await, (vec![Ok(1); 10], 1));
        assert_eq!(ask(&remembered, 2).await, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn in_an_outage_nobody_waits_for_more_than_one_call() {
        let remembered = Cache::new(MINUTE);
        let start = Instant::now();
        assert_eq!(ten_ask(&remembered, Err("down")).await, (vec![Err("down"); 10], 1));
        assert_eq!(start.elapsed(), CALL);
        assert_eq!(ask(&remembered, 2).await, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_asks_by_itself_when_the_first_was_dropped_on_the_way() {
        let remembered = Cache::<u8, &str>::new(MINUTE);
        let mut first = Box::pin(remembered.get_or_ask("key", std::future::pending()));
        assert!(first.as_mut().now_or_never().is_none());
        let mut second = Box::pin(ask(&remembered, 2));
        assert!(second.as_mut().now_or_never().is_none());
        drop(first);
        assert_eq!(second.await, 2);
        assert_eq!(ask(&remembered, 3).await, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_to_a_question_from_before_everything_was_forgotten_is_not_kept() {
        let remembered = Cache::<u8, &str>::new(MINUTE);
        let late = remembered.get_or_ask("key", async {
            remembered.clear();
            Ok(1)
        });
        assert_eq!(late.await, Ok(1));
        assert_eq!(ask(&remembered, 2).await, 2);
    }
}
