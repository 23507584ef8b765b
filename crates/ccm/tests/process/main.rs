//! The binary as a cluster runs it: its own process, files, signals, sockets, and simulated servers over TCP.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the helpers of tests say what they expect by panicking, as the tests do"
)]

mod another_cloud;
mod asked_once;
mod canary;
mod check_config;
mod configuration;
#[cfg(feature = "demo")]
mod demo;
mod doctor;
mod flags;
mod hand_over;
mod help;
mod log;
mod memory;
mod metrics;
mod overlay;
mod planning;
mod process;
mod secrets;
mod stage;
mod start;
mod status;
mod stop;
mod trouble;
