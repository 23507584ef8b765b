//! Kubernetes controllers over the provider traits of [`openstack_ccm_core`].
//!
//! Everything that talks to a Kubernetes API server lives here; nothing here knows OpenStack. One Service travels
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
//! | [`election`] | leader election on the Lease that all cloud-controller-managers share |
//! | [`nodes`] | the nodes of the cluster: one watch and one store for all controllers, and writing them |
//! | `capability` | whether this cluster honours `ipMode` |
//! | `events` | Events, folded and rate-limited |
//! | [`route`] | the route controller: routes to the pods of nodes |
//! | `watch` | list and watch with recovery |
//! | `call` | one bounded call to the API server |
//!
//! The client that is passed in must not repeat requests by itself (`kube::Config::default_retry = false`): every
//! retry is decided here, by class of failure, and no repeated request may outlive the decision that sent it.

mod call;
mod capability;
pub mod election;
mod events;
mod lock;
mod metrics;
pub mod node;
pub mod node_lifecycle;
pub mod nodes;
mod parts;
mod queue_metrics;
pub mod route;
pub mod service;
mod watch;

pub use parts::ControllerError;
pub use queue_metrics::WorkQueues;
