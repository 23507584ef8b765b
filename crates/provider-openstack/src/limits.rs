//! Limits that apply in several places, each for the same reason.

use std::time::Duration;

/// Concurrent calls to OpenStack for one piece of work: few, since up to 16 Services are reconciled at the same time.
pub(crate) const MAX_CONCURRENT_CALLS: usize = 8;
/// Maximum number of tries to change a router or a port that another client changes too; each reads it again first.
pub(crate) const MAX_TRIES: usize = 5;
/// Maximum number of nodes or members that a message names; others are counted.
pub(crate) const MAX_NAMES: usize = 5;
/// How long to wait for a change of a load balancer whose end is not seen: a change that never ends must not hold up anything for
/// long. An amphora takes a few minutes at most.
pub(crate) const MAX_CHANGE_WAIT: Duration = Duration::from_secs(120);
/// After this time Octavia's worker has most likely died, and nothing will finish its work.
pub(crate) const LOST_WORK_TIMEOUT: Duration = Duration::from_secs(600);
