//! The Helm chart, rendered by the pinned Helm 3 of `charts/tools`. Without Go, and without `HELM`, these tests say what
//! they leave out and pass.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the helpers of tests say what they expect by panicking, as the tests do"
)]

mod alerts;
mod annotation_policy;
mod annotation_policy_at_work;
mod any_values;
mod arguments;
mod canary;
mod cluster;
mod configuration;
mod documented;
mod fields;
mod guides;
mod helm;
mod helm_4;
mod helm_test;
mod image;
mod kubernetes;
mod manifests;
mod metrics;
mod occm;
mod overlay;
mod overlay_at_work;
#[path = "../documentation/pages.rs"]
#[expect(dead_code, reason = "the tests of the documentation use the rest")]
mod pages;
mod placement;
mod quoted;
mod release;
mod rendered;
mod rights;
mod scraped;
mod served;
mod trial;
mod upgrade;
mod workload_at_work;
mod workload_cluster;
