//! The documentation: its links lead somewhere, its examples can be read, what it names exists, the order of crates and modules is kept,
//! and each type has a name of its own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the helpers of tests say what they expect by panicking, as the tests do"
)]

mod advice;
mod blocks;
mod changelog;
mod commands;
mod crates;
mod layers;
mod links;
mod logs;
mod names;
mod pages;
mod types;
mod workflows;
mod writes;
