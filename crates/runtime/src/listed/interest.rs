//! Which metadata of listed objects a program reads. Decoding takes no arguments, so a task-local passes this on: objects are
//! decoded within the poll that reads the answer.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::Stream;
use futures::stream::BoxStream;
use openstack_ccm_core::provider::AnnotationUse;

tokio::task_local! {
    static INTEREST: Interest;
}

/// Which metadata a program reads.
#[derive(Clone)]
pub struct Interest {
    annotations: Arc<dyn Fn(&str) -> AnnotationUse + Send + Sync>,
    manager: Option<&'static str>,
}

impl fmt::Debug for Interest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interest").field("manager", &self.manager).finish_non_exhaustive()
    }
}

impl Interest {
    /// Creates an interest in annotations, by key.
    pub fn in_annotations(annotations: impl Fn(&str) -> AnnotationUse + Send + Sync + 'static) -> Self {
        Self { annotations: Arc::new(annotations), manager: None }
    }

    /// Creates an interest in no annotation.
    pub fn in_none() -> Self {
        Self::in_annotations(|_| AnnotationUse::None)
    }

    /// Adds whether this manager wrote the addresses in a status.
    #[must_use]
    pub fn and_writes_of(self, manager: &'static str) -> Self {
        Self { manager: Some(manager), ..self }
    }

    /// Runs a future that decodes, with this interest.
    pub fn during<F: Future>(self, work: F) -> impl Future<Output = F::Output> {
        INTEREST.scope(self, work)
    }

    /// Runs a function that decodes, likewise.
    pub fn within<R>(self, work: impl FnOnce() -> R) -> R {
        INTEREST.sync_scope(self, work)
    }

    /// Returns the use of an annotation key in the current task; none without an interest.
    pub(super) fn use_of(key: &str) -> AnnotationUse {
        INTEREST.try_with(|interest| (interest.annotations)(key)).unwrap_or(AnnotationUse::None)
    }

    /// Returns the manager whose writes are of interest.
    pub(super) fn manager() -> Option<&'static str> {
        INTEREST.try_with(|interest| interest.manager).ok().flatten()
    }
}

/// A stream whose items are decoded while it is polled.
pub(crate) struct InterestedStream<T> {
    interest: Interest,
    items: BoxStream<'static, T>,
}

impl<T> InterestedStream<T> {
    pub(crate) fn new(interest: Interest, items: BoxStream<'static, T>) -> Self {
        Self { interest, items }
    }
}

impl<T> Stream for InterestedStream<T> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let Self { interest, items } = self.get_mut();
        interest.clone().within(|| items.as_mut().poll_next(context))
    }
}
