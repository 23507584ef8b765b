//! The limit that keeps two writers that disagree about a status from overwriting each other for ever. Pure.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// Writes of one status within [`WRITE_WINDOW`]: the first, and six after another manager wrote.
pub const MAX_WRITES: usize = 7;
/// The period in which writes are counted.
pub const WRITE_WINDOW: Duration = Duration::from_secs(3600);

/// The times at which one status was written.
#[derive(Clone, Debug, Default)]
pub struct Rewrites(VecDeque<Instant>);

impl Rewrites {
    /// Returns how long to wait before the next write; absent if it may be made now.
    pub fn wait(&mut self, now: Instant) -> Option<Duration> {
        while self.0.front().is_some_and(|first| now.saturating_duration_since(*first) >= WRITE_WINDOW) {
            self.0.pop_front();
        }
        let first = self.0.front().filter(|_| self.0.len() >= MAX_WRITES)?;
        Some((*first + WRITE_WINDOW).saturating_duration_since(now))
    }

    /// Counts a write.
    pub fn count(&mut self, now: Instant) {
        self.0.push_back(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn six_rewrites_an_hour_and_then_patience() {
        let mut rewrites = Rewrites::default();
        for _ in 0..MAX_WRITES {
            assert_eq!(rewrites.wait(Instant::now()), None);
            rewrites.count(Instant::now());
            tokio::time::advance(Duration::from_secs(60)).await;
        }
        assert_eq!(rewrites.wait(Instant::now()), Some(Duration::from_secs(3600 - 7 * 60)));
        tokio::time::advance(Duration::from_secs(3600 - 7 * 60)).await;
        assert_eq!(rewrites.wait(Instant::now()), None);
        rewrites.count(Instant::now());
        assert!(rewrites.wait(Instant::now()).is_some(), "a write of an hour ago makes room for one");
    }
}
