//! The node controller and the node lifecycle controller against an API server in memory and a scripted cloud.
//!
//! The clock is paused: waiting costs nothing, and nothing depends on the speed of the machine.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the helpers of tests say what they expect by panicking, as the tests do"
)]

mod addresses;
#[path = "../support/base.rs"]
#[allow(dead_code, reason = "the worlds use different parts")]
mod base;
mod cloud;
mod initialisation;
mod interlock;
mod lifecycle;
mod world;
