//! Controllers in a dry run: the real reconciliations, each object once, without watches, Leases and Events.
//!
//! The caller gives the controllers clients that write nothing.

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_runtime::events::EventWriter;

/// An Event that would have been written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedEvent {
    /// Kind of the object: `Service`, `Node`.
    pub kind: String,
    /// Namespace and name, or the name alone.
    pub object: String,
    pub notice: Notice,
}

/// How far a dry run got with an object.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// Nothing more would be done.
    Done,
    /// The cloud is working, and nothing more can be done before it has finished.
    Waits,
    /// A failure ended the run.
    Failed(Failure),
}

/// How a dry run over one object, or over all nodes, ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Concluded {
    /// How far the dry run got.
    pub end: End,
    /// The Events that would have been written, in order.
    pub events: Vec<RecordedEvent>,
}

/// Takes the unwritten Events, which a dry run never writes.
pub(crate) fn recorded(events: &mut EventWriter) -> Vec<RecordedEvent> {
    let unwritten = events.take_unwritten().into_iter();
    unwritten
        .map(|(object, notice)| {
            let name = object.name.unwrap_or_default();
            let namespaced = object.namespace.map(|namespace| format!("{namespace}/{name}"));
            RecordedEvent {
                kind: object.kind.unwrap_or_default(),
                object: namespaced.unwrap_or(name),
                notice,
            }
        })
        .collect()
}
