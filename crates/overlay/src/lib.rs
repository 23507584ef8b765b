//! Sets `ipMode: Proxy` beside the load balancer controller that a cluster already has.
//!
//! Another controller makes the load balancers and writes their addresses into `status.loadBalancer.ingress`, without `ipMode`. A
//! status write does not make that controller reconcile, so the mode can be added afterwards: by an admission policy in the same
//! write ([`policy`]), or by a controller that watches Services ([`controller`]). This program writes only the status: a write of
//! annotations or spec would start reconciliations of the owner.
//!
//! | module | holds |
//! | --- | --- |
//! | [`cloud`] | the clouds whose controllers lack `ipMode`, and how they switch the PROXY protocol on |
//! | [`rules`] | which Services are chosen (pure) |
//! | [`selector`] | label selectors in kubectl's syntax (pure) |
//! | [`untouched`] | which Services are never touched, even if chosen (pure) |
//! | [`wanted_status`] | the wanted entries of one status, and the patch that writes them (pure) |
//! | [`policy`] | the rules as an admission policy of the API server |
//! | [`rewrites`] | the limit that keeps two writers from overwriting each other for ever (pure) |
//! | [`controller`] | watch, decide, patch |
//! | [`check`], [`cleanup`] | report each Service, revert all statuses |
//! | [`nodes`] | the nodes: what their service proxies honour, and their addresses |
//! | [`names`] | the names by which users know this program |

pub mod check;
pub mod cleanup;
pub mod cloud;
pub mod controller;
mod metrics;
pub mod names;
pub mod nodes;
pub mod policy;
pub mod rewrites;
pub mod rules;
pub mod selector;
mod service;
pub mod untouched;
pub mod wanted_status;

/// Objects per page of a list: five objects of the largest size fill, as text, a quarter of the memory limit in the chart.
const PAGE_SIZE: u32 = 5;
/// Timeout of one call in an interactive command. The list of all Services has a longer one.
const CALL_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(30);
