//! Answers of the cloud to questions that many Services ask, each kept for a while.
//!
//! One rule for all of them: an answer is believed for the lifetime of its kind ([`Lifetime`]), an error never. After a
//! start all workers want to know the same: a question that is under way is not asked once more, and whoever asks it
//! meanwhile gets the same answer. They share a failure too, so that an outage costs all of them the time of one call; the
//! next one asks again.
//!
//! These are facts about the place (networks, subnets, providers), and nothing is believed of a load balancer here.
//! Not a crate, because those with a lifetime and shared questions go by a clock of their own, which tests cannot pause.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use openstack_ccm_openstack_api::error::ApiError;
use tokio::sync::watch;
use tokio::time::Instant;

/// For how long answers are believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lifetime {
    /// Only those who ask at the same time share them: they are kept elsewhere, one by one.
    WhileAsked,
    /// Networks, subnets, routers, providers and certificates are taken to be as they were for 10 minutes.
    Place,
    /// Subnet and port of a node's address are taken to be as they were for an hour.
    Node,
}

impl Lifetime {
    fn duration(self) -> Duration {
        match self {
            Self::WhileAsked => Duration::ZERO,
            Self::Place => Duration::from_secs(600),
            Self::Node => Duration::from_secs(3600),
        }
    }
}

/// Answers of one kind by the key of their question.
#[derive(Debug)]
pub(super) struct Cache<T, E = ApiError> {
    lifetime: Lifetime,
    shared: Mutex<Shared<T, E>>,
}

#[derive(Debug)]
struct Shared<T, E> {
    answers: HashMap<String, CachedAnswer<T>>,
    /// Questions under way. Whoever asks holds the sender: without it the question was given up.
    asked: HashMap<String, watch::Receiver<UnderWay<T, E>>>,
}

#[derive(Debug)]
struct CachedAnswer<T> {
    until: Instant,
    value: T,
}

/// The answer that those who wait get; absent while it is under way.
type UnderWay<T, E> = Option<Result<T, Arc<E>>>;

/// Where the answer to a question is to be had.
enum CacheLookup<T, E> {
    Found(T),
    /// Somebody asks already: it is waited for.
    Wait(watch::Receiver<UnderWay<T, E>>),
    Ask(watch::Sender<UnderWay<T, E>>),
}

impl<T: Clone, E> Cache<T, E> {
    pub(super) fn new(lifetime: Lifetime) -> Self {
        Self { lifetime, shared: Mutex::new(Shared { answers: HashMap::new(), asked: HashMap::new() }) }
    }

    /// The answer that is still good, else the one to the question that is under way, else the one that `ask` brings.
    pub(super) async fn get_or_ask(
        &self,
        key: &str,
        ask: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Arc<E>> {
        let sender = loop {
            match self.next(key) {
                CacheLookup::Found(value) => return Ok(value),
                CacheLookup::Ask(sender) => break sender,
                CacheLookup::Wait(mut told) => {
                    // An error means that the one who asked was dropped on the way.
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

    pub(super) fn put(&self, key: &str, value: T) {
        self.lock().put(key, value, self.lifetime);
    }

    fn lock(&self) -> MutexGuard<'_, Shared<T, E>> {
        // The maps are whole between any two statements that hold the lock.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self, key: &str) -> CacheLookup<T, E> {
        let mut shared = self.lock();
        if let Some(value) = shared.good(key) {
            return CacheLookup::Found(value);
        }
        shared.asked.retain(|_, told| told.has_changed().is_ok());
        if let Some(told) = shared.asked.get(key) {
            return CacheLookup::Wait(told.clone());
        }
        let (sender, told) = watch::channel(None);
        shared.asked.insert(key.to_owned(), told);
        CacheLookup::Ask(sender)
    }

    fn answered(&self, key: &str, sender: &watch::Sender<UnderWay<T, E>>, answer: &Result<T, Arc<E>>) {
        let mut shared = self.lock();
        // Not where everything was forgotten in between.
        if shared.asked.get(key).is_some_and(|told| told.same_channel(&sender.subscribe())) {
            shared.asked.remove(key);
            if let Ok(value) = answer {
                shared.put(key, value.clone(), self.lifetime);
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

    fn put(&mut self, key: &str, value: T, lifetime: Lifetime) {
        if lifetime == Lifetime::WhileAsked {
            return;
        }
        let now = Instant::now();
        self.answers.retain(|_, answer| answer.until > now);
        self.answers.insert(key.to_owned(), CachedAnswer { until: now + lifetime.duration(), value });
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures::FutureExt as _;
    use futures::future::join_all;

    use super::*;

    const CALL: Duration = Duration::from_secs(1);

    async fn ask(cache: &Cache<u8, &str>, answer: u8) -> u8 {
        cache.get_or_ask("key", async move { Ok(answer) }).await.unwrap_or_default()
    }

    /// Ten ask at the same time. What they were told, and how many calls they made.
    async fn ten_ask(
        cache: &Cache<u8, &'static str>,
        answer: Result<u8, &'static str>,
    ) -> (Vec<Result<u8, &'static str>>, u32) {
        let calls = Cell::new(0);
        let ten = (0..10).map(|_| {
            cache.get_or_ask("key", async {
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
        let cache = Cache::new(Lifetime::Place);
        assert_eq!(ask(&cache, 1).await, 1);
        tokio::time::advance(Duration::from_secs(599)).await;
        assert_eq!(ask(&cache, 2).await, 1);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(ask(&cache, 3).await, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_is_not_kept() {
        let cache = Cache::new(Lifetime::Place);
        let failed = cache.get_or_ask("key", async { Err("down") }).await;
        assert_eq!(failed, Err(Arc::new("down")));
        assert_eq!(ask(&cache, 4).await, 4);
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_ask_at_the_same_time_share_one_call() {
        let cache = Cache::new(Lifetime::Place);
        assert_eq!(ten_ask(&cache, Ok(1)).await, (vec![Ok(1); 10], 1));
        assert_eq!(ask(&cache, 2).await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_shared_need_not_be_kept() {
        let cache = Cache::new(Lifetime::WhileAsked);
        assert_eq!(ten_ask(&cache, Ok(1)).await, (vec![Ok(1); 10], 1));
        assert_eq!(ask(&cache, 2).await, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn in_an_outage_nobody_waits_for_more_than_one_call() {
        let cache = Cache::new(Lifetime::Place);
        let start = Instant::now();
        assert_eq!(ten_ask(&cache, Err("down")).await, (vec![Err("down"); 10], 1));
        assert_eq!(start.elapsed(), CALL);
        assert_eq!(ask(&cache, 2).await, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_asks_when_the_first_was_dropped_on_the_way() {
        let cache = Cache::<u8, &str>::new(Lifetime::Place);
        let mut first = Box::pin(cache.get_or_ask("key", std::future::pending()));
        assert!(first.as_mut().now_or_never().is_none());
        let mut second = Box::pin(ask(&cache, 2));
        assert!(second.as_mut().now_or_never().is_none());
        drop(first);
        assert_eq!(second.await, 2);
        assert_eq!(ask(&cache, 3).await, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_to_a_question_from_before_everything_was_forgotten_is_not_kept() {
        let cache = Cache::<u8, &str>::new(Lifetime::Place);
        let late = cache.get_or_ask("key", async {
            cache.clear();
            Ok(1)
        });
        assert_eq!(late.await, Ok(1));
        assert_eq!(ask(&cache, 2).await, 2);
    }
}
