//! What a person types. Each subcommand has a folder: its flags are in `args`, `run` does it.
//!
//! Each module names only modules above it.
//!
//! | module | subcommand |
//! | --- | --- |
//! | [`help`] | none: examples and exit codes |
//! | [`output`] | none: what they write to standard output |
//! | `service_events` | none: the Events of a Service |
//! | [`check_config`] | `check-config`: whether the configuration works, and with it the cloud and the Services |
//! | [`canary`] | `canary`: whether the service proxies honour `ipMode` |
//! | [`status`] | `status`: who leads, and how load balancers are published |
//! | [`plan`] | `plan` and `adopt`: what the controllers would do |
//! | [`doctor`] | `doctor`: where a packet to a load balancer ends, and why |
//! | [`hand_back`] | `hand-back`: what OCCM will do after the way back |
//! | [`orphans`] | `orphans`: what is left of Services that are gone |
//! | [`complete`] | `__complete`: what kubectl offers behind `kubectl openstack-ccm` |
//! | [`overlay`] | `overlay`: the program `ip-mode-overlay`, for clusters of other clouds |
//! | `demo` | `demo`: the demonstration on embedded simulators (cargo feature `demo`) |

pub mod canary;
pub mod check_config;
pub mod complete;
#[cfg(feature = "demo")]
pub mod demo;
pub mod doctor;
pub mod hand_back;
pub mod help;
pub mod orphans;
pub mod output;
pub mod overlay;
pub mod plan;
mod service_events;
pub mod status;
