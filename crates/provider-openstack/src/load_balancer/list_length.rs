//! Whether one list of all is worth it for those that ask about single ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A list is asked for where it is not likely to hold more than so many entries for each of those that ask.
const ENTRIES_FOR_EACH: usize = 50;

/// How long a list of all is, as far as that is known.
#[derive(Debug, Default)]
pub(super) struct ListLength(AtomicUsize);

impl ListLength {
    /// Notes how long a list was, or would be at least.
    pub(super) fn note(&self, length: usize) {
        self.0.store(length, Ordering::Relaxed);
    }

    /// Whether it likely holds too much for so many that ask. Not where nobody knows how long it is.
    pub(super) fn is_too_long_for(&self, asking: usize) -> bool {
        self.0.load(Ordering::Relaxed) > asking * ENTRIES_FOR_EACH
    }
}

/// Those that ask the same kind of question and have no answer yet, also where they ask alone.
#[derive(Debug, Default)]
pub(super) struct Askers {
    asking: AtomicUsize,
    length: Arc<ListLength>,
}

impl Askers {
    /// Of those that a list of this length can answer.
    pub(super) fn of(length: Arc<ListLength>) -> Self {
        Self { asking: AtomicUsize::new(0), length }
    }

    /// How long the list is that answers them.
    pub(super) fn list_length(&self) -> &ListLength {
        &self.length
    }

    /// One more asks, until what is returned is dropped.
    pub(super) fn join(&self) -> Counted<'_> {
        Counted::new(&self.asking)
    }

    /// Whether the list likely holds too much for all of them.
    pub(super) fn are_too_few(&self) -> bool {
        self.length.is_too_long_for(self.asking.load(Ordering::Relaxed))
    }

    /// The same, where those count that ask in the same moment: who was woken by the same event.
    pub(super) async fn are_too_few_in_a_moment(&self) -> bool {
        if self.are_too_few() {
            tokio::task::yield_now().await;
        }
        self.are_too_few()
    }
}

/// Counts one more until it is dropped, also where that is given up.
pub(super) struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    /// Counts one more here.
    pub(super) fn new(counter: &'a AtomicUsize) -> Self {
        counter.fetch_add(1, Ordering::Relaxed);
        Self(counter)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
