//! Load balancers in a simulated cloud, in process and on a paused clock. Tests carry the ids of the scenarios in the
//! contract with the Go controller, where they come from there.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "clippy knows tests by their attribute, and not what they call; both fail by panicking"
)]

mod belief;
mod budget;
mod cloud;
mod cluster;
mod crash;
mod creation;
mod faults;
mod line;
mod unconfirmed;
