//! The documentation: its links lead somewhere, its examples can be read, and what it names exists.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the helpers of tests say what they expect by panicking, as the tests do"
)]

mod blocks;
mod commands;
mod links;
mod logs;
mod names;
mod pages;
mod workflows;
