//! Batches of members that count as made because the load balancer is ACTIVE again.
//!
//! That is no proof: Octavia reports a load balancer ACTIVE also when its worker could not change the members, and only
//! they show it. They are read when no batch has been sent for a while. Nodes seldom change alone, and one read tells
//! of all batches before it.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::digest::Digest;

/// So long after the last batch the members are read.
const CALM: Duration = Duration::from_secs(30);
/// Nodes that come and go without an end put the read off no longer than this after the first batch.
const LONGEST_DELAY: Duration = Duration::from_secs(300);

/// The batches to a load balancer whose result nobody has read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnconfirmedBatches {
    /// Which members were sent, with the id of the pool. A list, because the smallest map has room for eleven.
    pools: Vec<(String, Digest)>,
    first: Instant,
    last: Instant,
}

impl UnconfirmedBatches {
    /// A batch was sent; `before` are those whose result nobody has read either.
    pub(super) fn sent(pool_id: String, members: Digest, before: Option<Self>, now: Instant) -> Self {
        let Some(mut all) = before else {
            return Self { pools: vec![(pool_id, members)], first: now, last: now };
        };
        all.pools.retain(|(id, _)| *id != pool_id);
        all.pools.push((pool_id, members));
        all.last = now;
        all
    }

    /// Octavia is done with the last one.
    pub(super) fn ended(&mut self, now: Instant) {
        self.last = now;
    }

    /// Whether a batch to the pool is among them.
    pub(super) fn concern(&self, pool_id: &str) -> bool {
        self.pools.iter().any(|(id, _)| id == pool_id)
    }

    /// The time until the members are to be read.
    pub(super) fn due_in(&self) -> Duration {
        let due = (self.last + CALM).min(self.first + LONGEST_DELAY);
        due.saturating_duration_since(Instant::now())
    }

    /// The pools whose members are to be read, each with those that were sent.
    pub(super) fn into_pools(self) -> BTreeMap<String, Digest> {
        self.pools.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(pool: &str, before: Option<UnconfirmedBatches>) -> UnconfirmedBatches {
        UnconfirmedBatches::sent(pool.to_owned(), Digest::of_members(&[]), before, Instant::now())
    }

    #[tokio::test(start_paused = true)]
    async fn the_members_are_read_when_it_has_become_calm() {
        let mut batches = sent("one", None);
        tokio::time::advance(Duration::from_secs(2)).await;
        batches.ended(Instant::now());
        assert_eq!(batches.due_in(), CALM);
        tokio::time::advance(Duration::from_secs(20)).await;
        assert_eq!(batches.due_in(), Duration::from_secs(10));
        batches = sent("two", Some(batches));
        assert_eq!(batches.due_in(), CALM);
        tokio::time::advance(Duration::from_secs(40)).await;
        assert_eq!(batches.due_in(), Duration::ZERO);
        assert_eq!(batches.into_pools().into_keys().collect::<Vec<_>>(), ["one", "two"]);
    }

    #[tokio::test(start_paused = true)]
    async fn batches_without_an_end_put_the_read_off_only_so_long() {
        let start = Instant::now();
        let mut batches = sent("one", None);
        while !batches.due_in().is_zero() {
            tokio::time::advance(Duration::from_secs(10)).await;
            batches = sent("one", Some(batches));
        }
        assert_eq!(start.elapsed(), LONGEST_DELAY);
    }
}
