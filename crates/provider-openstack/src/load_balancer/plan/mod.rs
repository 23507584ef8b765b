//! What is to be done, computed from what is wanted and what is there. Pure.
//!
//! A plan holds every difference in the order in which it is removed; the order is right at each step when the
//! process dies there. Octavia locks a load balancer with each change, so a reconciliation applies the steps up to and with the
//! first one that locks, and the next one plans afresh from a new observation.

mod children;
mod converge;
mod draft;
mod floating_ip;
mod held_back;
mod listener;
mod members;
mod monitor;
mod pool;
mod port;
pub(crate) mod recovery;
pub(crate) mod refusals;
mod release;
mod rename;
mod serial;
mod serve;
#[cfg(test)]
pub(crate) mod tests;
mod types;

pub(crate) use children::any_own;
pub(super) use draft::tags_of_own;
pub(crate) use floating_ip::ON_INTERNAL;
pub(crate) use release::{LOAD_BALANCER_LEFT, release, retain};
#[cfg(test)]
pub(crate) use serve::serve;
pub(crate) use serve::serve_beside;
pub(crate) use types::{Plan, Refused, Then, Wait};
