//! Leader election against an API server in memory, on a paused clock: who leads when, to the second.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the helpers of tests say what they expect by panicking, as the tests do"
)]

mod candidate;
mod hand_over;
mod link;
mod partition;
mod record;
