//! What every controller needs of a Kubernetes client, whatever it controls.
//!
//! | module | holds |
//! | --- | --- |
//! | [`call`] | one bounded call to the API server, with an error text fit for users |
//! | [`listed`] | objects from lists and watches, without fields that are never read |
//! | [`watch`] | list and watch with recovery |
//! | [`events`] | Events, folded and rate-limited |
//! | [`election`] | leader election on a Lease |
//! | [`parts`] | the tasks of a controller, which run for ever |
//! | [`metrics`] | helpers for the metrics of all controllers |
//!
//! The client that is passed in must not repeat requests by itself (`kube::Config::default_retry = false`): every
//! retry is decided by the controllers, by class of failure, and no repeated request may outlive the decision that sent
//! it.

pub mod call;
pub mod election;
pub mod events;
pub mod listed;
pub mod metrics;
pub mod parts;
pub mod watch;
