//! Limits that hold in several places, each for one reason.

use std::time::Duration;

/// Calls to OpenStack that one piece of work has under way: few, since up to 16 Services are reconciled at the same time.
pub(crate) const MAX_CONCURRENT_CALLS: usize = 8;
/// Tries to change a router or a port that somebody else changes as well: each begins with a newer look at it.
pub(crate) const MAX_TRIES: usize = 5;
/// Nodes or members that a message names; the others are counted.
pub(crate) const MAX_NAMES: usize = 5;
/// A change of a load balancer whose end nobody saw is waited for no longer than this: one that never ends must not hold up anything for
/// long. An amphora takes at most some minutes.
pub(crate) const MAX_CHANGE_WAIT: Duration = Duration::from_secs(120);
/// After so long, Octavia's worker has most likely died over its work, and nothing will end it.
pub(crate) const LOST_WORK_TIMEOUT: Duration = Duration::from_secs(600);
