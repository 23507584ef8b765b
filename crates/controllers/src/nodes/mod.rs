//! The nodes of the cluster, for all controllers: followed by one watch, kept once, and written with patches.

mod informer;
mod object;
mod store;
mod write;

pub use informer::NodeInformer;
pub(crate) use informer::NodeListener;
pub(crate) use object::{NodeObject, is_shutdown_taint};
pub(crate) use store::{NodeChange, NodeStore};
pub(crate) use write::{CONFLICT_DELAY, MAX_TRIES, NodeWriter, until_accepted};
