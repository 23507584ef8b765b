//! What is believed of load balancers without asking the cloud, and when that ends.
//!
//! | module | holds |
//! | --- | --- |
//! | `state` | the belief about one load balancer, as one enum, and the pure transition: the one place where it ends |
//! | `event` | what may happen to a belief |
//! | `store` | the one map, by Service |
//! | `cached` | what is known of a load balancer that was read |
//! | `packed` | the same as one text, while nothing happens to it |
//! | `member_digests` | digests in the place of members |
//! | `digest` | what stands for content that is compared and not kept |
//! | `check` | whether the health monitor of a pool may meet other members than it was made for |
//! | `confirm` | whether what counts as answered is there, by the statuses that Octavia shows |
//! | `sent` | whether members that were sent are there |
//! | `unconfirmed` | batches of members whose result nobody has read |
//! | `answered` | children that count as Octavia's answers showed them |
//! | `attempts` | what was tried, and has to rest or need not be tried again |
//! | `stall` | for how long nothing could be done with a load balancer that is not PENDING |

mod answered;
mod attempts;
mod cached;
mod check;
mod confirm;
mod digest;
mod event;
mod member_digests;
mod packed;
mod sent;
mod stall;
mod state;
mod store;
#[cfg(test)]
mod tests;
mod unconfirmed;

pub(crate) use cached::Cached;
pub(crate) use digest::Digest;
pub(crate) use event::{Event, Goal, LockEnd, PreviousVips};
pub(crate) use sent::not_as_sent;
pub(crate) use stall::Stall;
pub(crate) use state::Belief;
pub(crate) use store::Beliefs;
