//! Where a packet to a load balancer ends, and why: the judgements of `openstack-ccm doctor`.
//!
//! Everything here is pure. The caller gathers [`facts`] once, in the types in which Kubernetes and OpenStack show them; a fact that could not be
//! gathered is represented too ([`facts::Looked`]) and never counts as good. The rules of the controllers are not repeated here:
//! what the controllers would publish, change or refuse is among the facts, in their own words.
//!
//! Each module names only modules above it.
//!
//! | module | holds |
//! | --- | --- |
//! | [`hop`] | the hops of a packet, and its origins |
//! | [`code`] | the table of codes of findings |
//! | [`finding`] | findings with their evidence and fix |
//! | [`question`] | the questions of a hop, and their answers |
//! | [`report`] | the report about one Service, and where packets end |
//! | [`rules`] | how a node treats packets, from a dump of its rules |
//! | [`facts`] | the facts to judge |
//! | `firewall` | whether security groups let packets through |
//! | [`policy`] | whether NetworkPolicies let pods out to an address |
//! | [`backend`] | whether an application expects the PROXY protocol header |
//! | [`leftovers`] | workarounds left in a cluster |
//! | [`hops`] | the checks, in a file for each hop |
//! | [`output`] | the report as a table, as JSON, and as a diagram |

pub mod backend;
pub mod code;
pub mod facts;
pub mod finding;
mod firewall;
pub mod hop;
pub mod hops;
pub mod leftovers;
pub mod output;
pub mod policy;
pub mod question;
pub mod report;
pub mod rules;

/// The number of nodes or Services that a line names; it counts the others.
const MAX_NAMES: usize = 5;
