//! Answers of the cloud that change slowly, each kept for a while.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Answers by the key of their question. An error is never kept.
#[derive(Debug)]
pub(super) struct Remembered<T> {
    keep: Duration,
    answers: Mutex<HashMap<String, Answer<T>>>,
}

#[derive(Debug)]
struct Answer<T> {
    until: Instant,
    value: T,
}

impl<T: Clone> Remembered<T> {
    /// Keeps each answer for `keep`.
    pub(super) fn new(keep: Duration) -> Self {
        Self { keep, answers: Mutex::default() }
    }

    /// The answer that is still good, or the one that `ask` brings.
    pub(super) async fn get_or_ask<E>(
        &self,
        key: &str,
        ask: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        if let Some(value) = self.get(key) {
            return Ok(value);
        }
        let value = ask.await?;
        self.put(key, value.clone());
        Ok(value)
    }

    /// The answer that is still good.
    pub(super) fn get(&self, key: &str) -> Option<T> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.get(key).filter(|answer| answer.until > Instant::now()).map(|answer| answer.value.clone())
    }

    /// Forgets everything.
    pub(super) fn clear(&self) {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Keeps an answer.
    pub(super) fn put(&self, key: &str, value: T) {
        let now = Instant::now();
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.retain(|_, answer| answer.until > now);
        answers.insert(key.to_owned(), Answer { until: now + self.keep, value });
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    async fn ask(remembered: &Remembered<u8>, answer: u8) -> u8 {
        remembered.get_or_ask("key", async move { Ok::<_, Infallible>(answer) }).await.unwrap_or_default()
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_asked_for_again_only_after_its_time() {
        let remembered = Remembered::new(Duration::from_secs(60));
        assert_eq!(ask(&remembered, 1).await, 1);
        tokio::time::advance(Duration::from_secs(59)).await;
        assert_eq!(ask(&remembered, 2).await, 1);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(ask(&remembered, 3).await, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_is_not_kept() {
        let remembered = Remembered::new(Duration::from_secs(60));
        let failed: Result<u8, &str> = remembered.get_or_ask("key", async { Err("down") }).await;
        assert_eq!(failed, Err("down"));
        assert_eq!(ask(&remembered, 4).await, 4);
    }
}
