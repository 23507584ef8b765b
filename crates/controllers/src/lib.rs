//! Kubernetes controllers over the provider traits of [`openstack_ccm_core`].
//!
//! Nothing here knows a cloud: names that depend on the cloud come from the provider
//! ([`openstack_ccm_core::provider::ProviderNames`]). One Service travels
//! through [`service`]:
//!
//! ```text
//! watch -> queue -> intent -> LoadBalancers::reconcile -> publish -> events, metrics
//! ```
//!
//! | module | holds |
//! | --- | --- |
//! | [`service`] | the service controller: which Services are served, when, and what is written about them |
//! | [`node`] | the node controller: new nodes get provider id, labels and addresses |
//! | [`node_lifecycle`] | the node lifecycle controller: taints nodes that are shut down, deletes those that are gone |
//! | [`nodes`] | the nodes of the cluster: one watch and one store for all controllers, and writing them |
//! | [`dry_run`] | what the controllers would do, for `plan` |
//! | [`route`] | the route controller: routes to the pods of nodes |
//!
//! How an address is published is decided in [`openstack_ccm_advertise`]; watches, Events and leader election come from
//! [`openstack_ccm_runtime`].
//!
//! The client that is passed in must not repeat requests by itself (`kube::Config::default_retry = false`): every
//! retry is decided here, by class of failure, and no repeated request may outlive the decision that sent it.

pub mod dry_run;
mod known_cluster;
mod metrics;
mod names;
pub mod node;
pub mod node_lifecycle;
pub mod nodes;
mod queue;
pub mod route;
pub mod service;
mod version;

pub use known_cluster::{ClusterClient, KnownCluster};
pub use openstack_ccm_runtime::parts::ControllerError;
pub use queue::WorkQueues;

/// Objects in one page of a list: the text of the largest takes a quarter of the memory that the chart gives.
pub const PAGE_SIZE: u32 = 40;
