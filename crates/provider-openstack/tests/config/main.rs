//! The configuration, from files to typed sections and a login.

// Helpers of tests say what they expect by panicking, as the tests do.
#![allow(clippy::unwrap_used)]

mod clouds;
mod dialect;
mod environment;
mod loading;
mod login;
mod messages;
mod reference;
mod secrets;
