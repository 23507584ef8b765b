//! `ipMode: Proxy` beside the load balancer controller that a cluster already has.
//!
//! Somebody else makes the load balancers and writes their addresses into `status.loadBalancer.ingress`, and does not know
//! `ipMode`. A status write starts no reconciliation of such an owner, so that the mode can be added afterwards, by an admission
//! policy in the very write ([`policy`]) or by a controller that watches ([`controller`]). Only the status is written:
//! annotations and spec would start reconciliations of the owner.
//!
//! | module | holds |
//! | --- | --- |
//! | [`cloud`] | the clouds whose controllers lack `ipMode`, and how they switch the PROXY protocol on |
//! | [`rules`] | which Services are meant (pure) |
//! | [`selector`] | label selectors as people write them (pure) |
//! | [`refusal`] | which are never touched, whoever means them (pure) |
//! | [`plan`] | what one status should say, and the patch that gets it there (pure) |
//! | [`policy`] | the same as an admission policy of the API server |
//! | [`rewrites`] | the limit that keeps two writers from overtaking each other for ever (pure) |
//! | [`controller`] | watch, decide, patch |
//! | [`check`], [`cleanup`] | say how it stands, give everything back |
//! | [`nodes`] | the nodes: what their service proxies honour, and their addresses |
//! | [`names`] | the names by which users know this program |

pub mod check;
pub mod cleanup;
pub mod cloud;
pub mod controller;
mod metrics;
pub mod names;
pub mod nodes;
pub mod plan;
pub mod policy;
pub mod refusal;
pub mod rewrites;
pub mod rules;
pub mod selector;
mod service;

/// Objects in one answer of a list: of the largest, as text, a quarter of the memory that the chart gives.
const PAGE_SIZE: u32 = 5;
/// Longest wait for one call that a person waits for. That of all Services may take longer.
const CALL_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(30);
