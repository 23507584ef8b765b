//! The Helm chart, rendered by the pinned Helm of `charts/tools`. Without Go, and without `HELM`, these tests say what
//! they leave out and pass.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the helpers of tests say what they expect by panicking, as the tests do"
)]

mod arguments;
mod cluster;
mod configuration;
mod helm;
mod manifests;
mod metrics;
mod occm;
mod rendered;
mod rights;
mod upgrade;
