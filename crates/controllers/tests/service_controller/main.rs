//! The service controller against an API server in memory and a scripted cloud.
//!
//! The clock is paused: waiting costs nothing, and nothing depends on the speed of the machine. What the controller
//! says to the API server about Services, and what it asks of the cloud, is compared line by line.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the helpers of tests say what they expect by panicking, as the tests do"
)]

mod absence;
mod another_provider;
#[path = "../support/base.rs"]
#[allow(dead_code, reason = "the worlds use different parts")]
mod base;
mod canary;
mod cloud;
mod faults;
mod ip_mode;
mod life;
mod node_changes;
mod recovery;
mod reporting;
mod wire;
mod world;
