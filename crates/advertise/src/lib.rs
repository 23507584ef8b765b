//! How the address of a load balancer is published on this cluster.
//!
//! The provider says whether clients need the load balancer ([`Path`]); the cluster says what it honours
//! ([`cluster::Cluster`]); user and operator say what they prefer ([`Preference`]). [`decide`] turns the three into the
//! entries of `status.loadBalancer.ingress`, with the reason.
//!
//! Nothing here creates a load balancer or depends on a provider.
//!
//! | module | holds |
//! | --- | --- |
//! | [`decision`] | which entries, and why, and whether the status has them already (pure) |
//! | [`advertisement`] | the decision: mode, reason, warnings (pure) |
//! | [`cluster`] | what the cluster honours, and what stands in the way (pure) |
//! | [`node`] | the verdict on the service proxy of each node (pure) |
//! | [`measured`] | measured verdicts, which outweigh what nodes show (pure) |
//! | [`canary`] | the permanent canary: writes the status of its Services, reads its pods |
//! | [`kube_proxy`] | what kube-proxy itself reports, where it can be reached |
//! | [`entry`] | entries of a status: read, created and compared (pure) |
//! | [`shared`] | Services on one address agree on its mode (pure) |
//! | [`announce`] | which parts of a decision are news (pure) |
//! | [`server`] | whether the API server keeps `ipMode`: probed, remembered, probed again |
//! | [`writer`] | the calls that read and write Services |
//! | [`metrics`] | what the cluster honours and what is published, as metrics |
//!
//! [`Path`]: openstack_ccm_core::advertise::Path
//! [`Preference`]: openstack_ccm_core::advertise::Preference

pub mod advertisement;
pub mod announce;
pub mod canary;
pub mod cluster;
pub mod decision;
pub mod entry;
pub mod kube_proxy;
pub mod measured;
pub mod metrics;
pub mod node;
mod remedy;
pub mod server;
pub mod shared;
pub mod writer;

pub use advertisement::{Advertisement, Mode, Reason};
pub use decision::{Publication, decide};
