//! The contract between the controllers and a cloud provider, and the decisions that belong to neither.
//!
//! Everything here is pure: no async runtime, no Kubernetes client, no HTTP, no word of one cloud. The controllers turn
//! Kubernetes objects into these types, a provider turns them into cloud objects, and the two meet only in the
//! binary. The layout follows one Service on its way:
//!
//! | module | holds |
//! | --- | --- |
//! | [`service`] | what one Service asks for |
//! | [`node`] | what is known of a node, and which nodes are backends |
//! | [`node_selector`] | which nodes a Service selects by their labels |
//! | [`instance`] | the machines behind nodes, and what follows for the Node objects |
//! | [`provider`] | the load balancer interface of a provider, and the result of a reconciliation |
//! | [`permit`] | the checks before each write |
//! | [`failure`] | the classes of failure, which choose retry, event and metric |
//! | [`backoff`] | delays that grow |
//! | [`notice`] | notices to users |
//! | [`advertise`] | whether clients need the load balancer, and how its address shall be published |
//! | [`route`] | routes to the pods of nodes |
//! | [`duration`] | durations as users write them |
//! | [`text`] | printable forms of untrusted values; shortened lists of names |
//! | [`command`] | shell commands for people, of quoted words |
//! | [`lock`] | locks for small critical sections |
//! | [`cloud`] | the providers of a binary, their configuration, and the cloud after the login |

#![deny(missing_docs)]

pub mod advertise;
pub mod backoff;
pub mod cloud;
pub mod command;
pub mod duration;
pub mod failure;
pub mod instance;
pub mod lock;
pub mod node;
pub mod node_selector;
pub mod notice;
pub mod permit;
pub mod provider;
pub mod route;
pub mod service;
pub mod text;
