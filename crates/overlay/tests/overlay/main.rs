//! The overlay beside an owner of load balancers that does not know `ipMode`, on an API server in memory and a paused clock.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the helpers of tests say what they expect by panicking, as the tests do"
)]

#[path = "../../../controllers/tests/support/base.rs"]
#[allow(dead_code, reason = "the worlds use different parts")]
mod base;
mod canary;
mod check;
mod contest;
mod crash;
mod fallback;
mod lasting_warnings;
mod life;
mod many;
mod policy;
mod world;
