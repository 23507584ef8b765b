//! Where a packet to a load balancer ends, and why: the judgements of `openstack-ccm doctor`.
//!
//! Everything here is pure. Whoever calls it gathers [`facts`] once, as Kubernetes and the cloud show them; what could not be
//! looked at is a fact too ([`facts::Looked`]) and never counts as good. The rules of the controllers are not repeated here: what
//! they would publish, change or refuse is among the facts, in their own words.
//!
//! Each module names only modules above it.
//!
//! | module | holds |
//! | --- | --- |
//! | [`hop`] | the hops of a packet, and where it may come from |
//! | [`code`] | what may be found: the table of codes |
//! | [`finding`] | what was found, with evidence and fix |
//! | [`question`] | the questions of a hop, and what they came to |
//! | [`report`] | all of it about one Service, and where packets end |
//! | [`rules`] | what a node does, from a dump of its rules |
//! | [`facts`] | what there is to judge |
//! | [`policy`] | whether NetworkPolicies let pods out to an address |
//! | [`backend`] | whether an application expects the PROXY protocol header |
//! | [`leftovers`] | workarounds that somebody left in a cluster |
//! | [`hops`] | the judgements, a file for each hop |
//! | [`output`] | the report as a table, as JSON, and as a diagram |

pub mod backend;
pub mod code;
pub mod facts;
pub mod finding;
pub mod hop;
pub mod hops;
pub mod leftovers;
pub mod output;
pub mod policy;
pub mod question;
pub mod report;
pub mod rules;

/// Nodes or Services that a line names; the others are counted.
const MAX_NAMES: usize = 5;
