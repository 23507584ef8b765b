//! The statuses of all that hangs on a load balancer, in one answer.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use openstack_ccm_core::failure::Failure;
use openstack_ccm_openstack_api::error::ErrorKind;
use openstack_ccm_openstack_api::octavia::{Octavia, StatusTree};
use tokio::time::Instant;

use super::read::reading;

/// Where they are not to be had, they are asked for again so much later: a role may be given, and Octavia be replaced.
const ASK_AGAIN: Duration = Duration::from_secs(3600);

/// Asks for them, unless that was in vain a while ago.
#[derive(Debug, Default)]
pub(super) struct StatusTrees {
    refused: Mutex<Option<Instant>>,
}

impl StatusTrees {
    /// The statuses of a load balancer. `None` where Octavia does not show them, or not to this user.
    ///
    /// # Errors
    /// Any other failed call.
    pub(super) async fn read(&self, octavia: &Octavia, id: &str) -> Result<Option<StatusTree>, Failure> {
        if self.refused().is_some_and(|at| at.elapsed() < ASK_AGAIN) {
            return Ok(None);
        }
        match octavia.load_balancer_statuses(id).await {
            Ok(tree) => Ok(Some(tree)),
            Err(error) => match error.kind() {
                ErrorKind::NotFound | ErrorKind::Policy | ErrorKind::BadRequest | ErrorKind::Decode => {
                    tracing::debug!(%error, "the status tree is not to be had: children are read one by one");
                    *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
                    Ok(None)
                }
                // Perhaps over this load balancer alone.
                ErrorKind::ServerFault => Ok(None),
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
