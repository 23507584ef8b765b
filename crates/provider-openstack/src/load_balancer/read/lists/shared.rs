//! One kind of list, shared by all that read at the same time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use openstack_ccm_core::lock::lock;
use openstack_ccm_openstack_api::cache::{Cache, Moment};
use openstack_ccm_openstack_api::error::{ApiError, ErrorKind};
use tokio::time::Instant;
use tracing::Instrument as _;

use super::Listed;

/// How long a list is kept: Services whose cause is older than the list use it, however late they begin. After a list failed or
/// took too long, objects are requested individually for this long: a cloud may answer single requests but no long list.
pub(in crate::load_balancer) const LIST_LIFETIME: Duration = Duration::from_secs(60);
/// No reader waits longer for a list: single answers may be faster.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// One kind of list, by project.
#[derive(Debug)]
pub(in crate::load_balancer) struct SharedList<T> {
    lists: Cache<String, Arc<Vec<T>>>,
    /// How many readers there are at the moment.
    looking: AtomicUsize,
    failed: Mutex<Option<Instant>>,
}

/// Counts as a reader until dropped.
struct Looking<'a>(&'a AtomicUsize);

impl Drop for Looking<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl<T> Default for SharedList<T> {
    fn default() -> Self {
        Self { lists: Cache::new(LIST_LIFETIME), looking: AtomicUsize::new(0), failed: Mutex::default() }
    }
}

impl<T: Send + Sync + 'static> SharedList<T> {
    /// Returns what `pick` takes from a project's list begun after `since`; a single reader sends the narrower request `alone`.
    pub(in crate::load_balancer) async fn look<A>(
        self: &Arc<Self>,
        project_id: &str,
        since: Moment,
        alone: impl Future<Output = Result<A, ApiError>>,
        list: impl Future<Output = Result<Vec<T>, ApiError>> + Send + 'static,
        pick: impl Fn(&[T]) -> Option<A>,
    ) -> Listed<A> {
        let others = self.looking.fetch_add(1, Ordering::SeqCst);
        let _looking = Looking(&self.looking);
        let listed = self.lists.last(project_id).filter(|last| last.is_alive() && last.begun > since);
        if let Some(found) = listed.and_then(|last| pick(&last.value)) {
            return Ok(found);
        }
        if others == 0 {
            return alone.await.map_err(Arc::new);
        }
        match self.list(project_id, since, list).await?.as_deref().and_then(|listed| pick(listed)) {
            Some(found) => Ok(found),
            None => alone.await.map_err(Arc::new),
        }
    }

    /// Returns what `pick` takes from a project's list that is not older than `age`, for checks for drift: the first one sends it, and it
    /// serves all others of that time. What it lacks may be there even so, and who may not list may still ask for a single object.
    pub(in crate::load_balancer) async fn look_for_drift<A>(
        self: &Arc<Self>,
        project_id: &str,
        age: Duration,
        alone: impl Future<Output = Result<A, ApiError>>,
        list: impl Future<Output = Result<Vec<T>, ApiError>> + Send + 'static,
        pick: impl Fn(&[T]) -> Option<A>,
    ) -> Listed<A> {
        let last = self.lists.last(project_id);
        let listed = match last.as_ref().filter(|last| last.age() < age) {
            Some(last) => Some(Arc::clone(&last.value)),
            None => match self.list(project_id, last.map_or(Moment::FIRST, |last| last.begun), list).await {
                Err(error) if is_refused(&error) => {
                    self.rest();
                    None
                }
                listed => listed?,
            },
        };
        match listed.and_then(|listed| pick(&listed)) {
            Some(found) => Ok(found),
            None => alone.await.map_err(Arc::new),
        }
    }

    /// Returns the whole list; `None` where it is not available.
    ///
    /// # Errors
    /// A failure that concerns more than the list.
    pub(in crate::load_balancer) async fn list(
        self: &Arc<Self>,
        project_id: &str,
        since: Moment,
        list: impl Future<Output = Result<Vec<T>, ApiError>> + Send + 'static,
    ) -> Listed<Option<Arc<Vec<T>>>> {
        if self.lists_rest() {
            return Ok(None);
        }
        let (shared, project_id) = (Arc::clone(self), project_id.to_owned());
        let fetch = async move {
            shared.lists.get_or_fetch_since(&project_id, since, async { list.await.map(Arc::new) }).await
        };
        // The request continues after the timeout: later readers get its result.
        let request = tokio::spawn(fetch.in_current_span());
        match tokio::time::timeout(LIST_TIMEOUT, request).await {
            Ok(Ok(Ok(listed))) => Ok(Some(listed)),
            Ok(Ok(Err(error))) if !is_about_the_list(&error) => Err(error),
            Ok(_) | Err(_) => {
                self.rest();
                Ok(None)
            }
        }
    }

    fn rest(&self) {
        *lock(&self.failed) = Some(Instant::now());
    }

    fn lists_rest(&self) -> bool {
        let failed = *lock(&self.failed);
        failed.is_some_and(|failed| failed.elapsed() < LIST_LIFETIME)
    }
}

/// Returns whether the cloud does not allow the request.
fn is_refused(error: &ApiError) -> bool {
    matches!(error.kind(), ErrorKind::Policy | ErrorKind::BadRequest)
}

/// Returns whether a single object may be available although the list is not.
fn is_about_the_list(error: &ApiError) -> bool {
    matches!(error.kind(), ErrorKind::LostAnswer | ErrorKind::ServerFault | ErrorKind::Decode)
}
