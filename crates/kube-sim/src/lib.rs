//! A Kubernetes API to run against, with all objects in memory.
//!
//! It behaves as real API servers were recorded to behave: lists and watches with one global resourceVersion, merge,
//! strategic and JSON patches, sub-resource `status`, finalizers, dry runs, conflicts, and the texts of refusals. The release can
//! be switched while it runs, which decides what happens to `status.loadBalancer.ingress[].ipMode`.
//!
//! [`Sim`] holds the cluster. [`Sim::service`] serves a client in the same process without sockets, so that tests can
//! pause tokio's clock; [`Server`] serves over TCP, also for kubectl.
//!
//! Nothing runs in this cluster: no controller, no scheduler, no garbage collector. The only exceptions are that a
//! deleted namespace is emptied, and that Events go after an hour.

mod access;
mod answer;
mod body;
mod clock;
mod discovery;
mod failure;
mod faults;
mod go_text;
mod handler;
mod kinds;
mod log;
mod managed_fields;
mod names;
mod object;
mod openapi;
mod parameters;
mod patch;
mod protobuf;
mod restore;
mod review;
mod route;
mod schema;
mod selector;
mod server;
mod service;
mod shared;
mod sim;
mod store;
mod table;
mod token;
mod traffic;
mod verbs;
mod version;
mod watch;

pub use access::{Attributes, User};
pub use answer::SimBody;
pub use failure::{Failure, FieldError};
pub use faults::{Fault, FaultId};
pub use json_patch::merge as merge_patch;
pub use log::RequestRecord;
pub use restore::ClusterBackup;
pub use server::Server;
pub use service::SimService;
pub use sim::{ObjectChange, Sim};
pub use traffic::{
    DataPath, Departure, Destination, READS_HEADER, Reached, Reading, Sender, Stop, Transport,
    honours_ip_mode,
};
pub use version::{ApiVersion, VersionError};
