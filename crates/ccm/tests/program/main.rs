//! The whole program between a simulated Kubernetes and a simulated OpenStack: objects in; status, events, cloud and
//! calls out.
//!
//! The clock is paused: waiting costs nothing, and nothing depends on the speed of the machine.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the helpers of tests say what they expect by panicking, as the tests do"
)]

mod absence;
mod allowed;
mod another_cluster;
mod bad_input;
mod bursts;
mod calls;
mod chains;
mod cloud_faults;
mod clusters;
mod contract;
mod crash;
mod doctor_breaks;
mod drift;
mod error_recovery;
mod extensions;
mod fallback;
mod fault_run;
mod fence;
mod field_reports;
mod floating_ip_swap;
mod history;
mod lasting_warnings;
mod lost_work;
mod main_job;
mod members;
mod metrics_page;
mod missing;
mod nodes;
#[path = "../occm/mod.rs"]
#[allow(dead_code, reason = "the page of metrics needs a part of it")]
mod occm;
mod octavia_releases;
mod optional_parts;
mod orphan_report;
mod orphans;
mod owners;
#[path = "../reference/page.rs"]
mod page;
mod plan;
mod refused;
#[path = "../reference/released.rs"]
#[allow(dead_code, reason = "the page of metrics needs a part of it")]
mod released;
mod requested;
mod retained;
mod rules;
mod shared_address;
mod shares;
mod support;
mod switch;
mod takeover;
mod tenants;
mod unchanged;
mod upgrade;
mod verification;
mod watch;
mod writes;
mod wrong_values;
