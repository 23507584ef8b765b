//! The programs that run in a cluster: the controllers with everything around them, the controller of `ip-mode-overlay`, and the roles of
//! pods. The commands for people are in `openstack-ccm-tools`, which calls this crate and is never named here.
//!
//! Each module uses only modules above it.
//!
//! | module | holds |
//! | --- | --- |
//! | [`version`], [`error_text`] | the version of the program, and error texts |
//! | [`args`] | flags of the controllers, and those that subcommands share |
//! | [`logging`] | records to standard error |
//! | [`waiting`] | telling a person for whom they wait |
//! | [`kubernetes`] | clients of the Kubernetes API |
//! | [`signals`] | the signals that end the program |
//! | [`canary`], [`dial`] | what pods of the canary and of `doctor --live` do |
//! | [`health`], [`admin`] | the endpoints for probes and scrapers |
//! | [`backoff`] | retries during start-up |
//! | [`cloud_metrics`], [`process_metrics`] | metrics that no controller has |
//! | [`leadership`], [`leader_migration`] | the lease, and what was once a second one |
//! | [`overlay`] | the controller that sets ipMode beside another cloud's controller |
//! | [`wiring`] | which controllers run over a provider, and with which settings |
//! | [`program`] | what a leader runs: the controllers over the cloud |
//! | [`run`] | start, leader election, stop |

pub mod admin;
pub mod args;
pub mod backoff;
pub mod canary;
pub mod cloud_metrics;
pub mod dial;
pub mod error_text;
pub mod health;
pub mod kubernetes;
pub mod leader_migration;
pub mod leadership;
pub mod logging;
pub mod overlay;
pub mod process_metrics;
pub mod program;
pub mod run;
pub mod signals;
pub mod version;
pub mod waiting;
pub mod wiring;
