//! Computes the steps from the existing to the desired state. Pure.
//!
//! A plan holds every difference, in an order that is safe if the process dies after any step. Octavia locks a load balancer with
//! each change, so a reconciliation applies the steps up to and including the first one that locks, and the next one plans again
//! from a new observation.

mod batch;
mod children;
mod converge;
mod draft;
mod floating_ip;
mod held_back;
mod listener;
mod members;
mod monitor;
mod needs;
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
pub(crate) use members::DRAINED;
pub(crate) use release::{LOAD_BALANCER_LEFT, release, retain};
#[cfg(test)]
pub(crate) use serve::serve;
pub(crate) use serve::serve_beside;
pub(crate) use types::{Plan, Then, Wait};
