//! The commands for users. Each subcommand has a folder: its flags are in `args`, and `run` runs it.
//!
//! Each module names only modules above it.
//!
//! | module | subcommand |
//! | --- | --- |
//! | [`help`] | none: examples and exit codes |
//! | [`output`] | none: writing to standard output |
//! | `cloud` | none: the login of a person |
//! | `service_events` | none: the Events of a Service |
//! | [`check_config`] | `check-config`: whether the configuration, the cloud and the Services work |
//! | [`canary`] | `canary`: whether the service proxies honour `ipMode` |
//! | [`status`] | `status`: the leader, and how load balancers are published |
//! | [`as_leader`] | none: what a command takes from the leader |
//! | `from_cluster` | none: the configuration of the cloud |
//! | [`plan`] | `plan` and `adopt`: what the controllers would change |
//! | [`doctor`] | `doctor`: where a packet to a load balancer ends, and why |
//! | [`hand_back`] | `hand-back`: what OCCM will change when it takes over again |
//! | [`orphans`] | `orphans`: cloud objects of deleted Services |
//! | [`complete`] | `__complete`: the completions that kubectl offers after `kubectl openstack-ccm` |
//! | [`overlay`] | `overlay`: the program `ip-mode-overlay`, for clusters of other clouds |

pub mod as_leader;
pub mod canary;
pub mod check_config;
mod cloud;
pub mod complete;
pub mod doctor;
mod from_cluster;
pub mod hand_back;
pub mod help;
pub mod orphans;
pub mod output;
pub mod overlay;
pub mod plan;
mod service_events;
pub mod status;
