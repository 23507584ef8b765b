//! The statuses of all that hangs on a load balancer, in one answer.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use openstack_ccm_core::failure::Failure;
use openstack_ccm_openstack_api::error::{ApiError, ErrorKind};
use openstack_ccm_openstack_api::octavia::{Octavia, StatusTree};
use tokio::time::Instant;

use super::read::reading;

/// Where they are not to be had, they are asked for again so much later: a role may be given, and Octavia be replaced.
const ASK_AGAIN: Duration = Duration::from_secs(3600);

/// Asks for them, unless Octavia refused them a while ago.
#[derive(Debug, Default)]
pub(super) struct StatusTrees {
    refused: Mutex<Option<Instant>>,
}

/// What Octavia shows of the statuses of one load balancer.
#[derive(Debug)]
pub(super) enum Statuses {
    /// All of them.
    Shown(StatusTree),
    /// Nothing, or not to this user: children are read one by one.
    NotShown,
    /// There is no such load balancer.
    Gone,
}

impl StatusTrees {
    /// The statuses of a load balancer.
    ///
    /// # Errors
    /// Any other failed call.
    pub(super) async fn read(&self, octavia: &Octavia, id: &str) -> Result<Statuses, Failure> {
        if self.refused().is_some_and(|at| at.elapsed() < ASK_AGAIN) {
            return Ok(Statuses::NotShown);
        }
        match octavia.load_balancer_statuses(id).await {
            Ok(tree) => Ok(Statuses::Shown(tree)),
            Err(error) => match error.kind() {
                ErrorKind::NotFound if is_about(&error, id) => Ok(Statuses::Gone),
                ErrorKind::NotFound | ErrorKind::Policy | ErrorKind::BadRequest | ErrorKind::Decode => {
                    tracing::debug!(%error, "the status tree is not available: children are read one by one");
                    *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
                    Ok(Statuses::NotShown)
                }
                // Perhaps over this load balancer alone.
                ErrorKind::ServerFault => Ok(Statuses::NotShown),
                ErrorKind::Conflict(_)
                | ErrorKind::Quota
                | ErrorKind::Unauthorized
                | ErrorKind::RateLimited
                | ErrorKind::Unavailable
                | ErrorKind::LostAnswer
                | ErrorKind::NoEndpoint => Err(reading(&error)),
            },
        }
    }

    fn refused(&self) -> Option<Instant> {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether Octavia speaks of this load balancer: `Load Balancer ID not found.`, where for a path that it does not know it names nothing
/// (recorded from Octavia 19).
fn is_about(error: &ApiError, id: &str) -> bool {
    error.fault().is_some_and(|fault| fault.message.contains(id))
}
