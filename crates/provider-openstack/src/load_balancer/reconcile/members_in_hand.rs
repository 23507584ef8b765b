//! How many members the reconciliations under way have in hand.

use tokio::sync::{Semaphore, SemaphorePermit};

/// Most members that reconciliations have in hand at once. One that changes the members of a pool holds them up to four times, as
/// they are, as they should be, in a request and in an answer: about 1 KB for each. On a cluster of a thousand nodes the reconciliations of
/// all workers together would take more memory than everything else.
const MOST: u32 = 6144;

/// Room for members. Only large clusters have to wait for it: 32 reconciliations of Services with two ports fit in on 96 nodes.
#[derive(Debug)]
pub(super) struct MembersInHand {
    room: Semaphore,
}

impl MembersInHand {
    pub(super) fn new() -> Self {
        Self { room: Semaphore::new(MOST as usize) }
    }

    /// Waits until there is room for the members of a Service, which it has until the answer is dropped. A Service with more than there
    /// is room for has all of it.
    ///
    /// To be taken before any lock: who holds a lock must not wait for those who wait for it.
    pub(super) async fn take(&self, members: usize) -> Option<SemaphorePermit<'_>> {
        let members = u32::try_from(members).unwrap_or(MOST).clamp(1, MOST);
        // It is never closed.
        self.room.acquire_many(members).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn services_of_a_large_cluster_wait_for_each_other() {
        let room = MembersInHand::new();
        let first = room.take(3000).await;
        let _second = room.take(3000).await;
        assert!(room.take(3000).now_or_never().is_none());
        drop(first);
        assert!(room.take(3000).now_or_never().is_some());
    }

    #[tokio::test]
    async fn the_largest_service_has_its_turn_too() {
        let room = MembersInHand::new();
        let small = room.take(6).await;
        assert!(room.take(50_000).now_or_never().is_none());
        drop(small);
        assert!(room.take(50_000).now_or_never().is_some());
    }
}
