//! The kinds of objects that are served, and the rules that each adds to the common ones.

mod catalogue;
mod event;
mod namespace;
mod node;
mod plain;
mod service;

pub(crate) use catalogue::{Resource, View, all, built_in, find};
pub(crate) use service::Allocations;

use serde_json::Value;

use crate::failure::FieldError;
use crate::names::NameRule;
use crate::version::ApiVersion;

/// Which part of an object a request writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything but `status`.
    Main,
    /// `status` and `metadata`.
    Status,
}

/// A write that is validated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Write<'a> {
    pub(crate) new: &'a Value,
    /// Absent on creation.
    pub(crate) old: Option<&'a Value>,
    pub(crate) part: Part,
    pub(crate) version: ApiVersion,
}

/// What distinguishes one kind from another on its way through the server.
///
/// The order is that of the server: decode, `set_defaults`, `before_create` or `before_update`, `validate`,
/// `allocate`, store. Objects that another release stored pass through decode and `set_defaults` on reading as well.
pub(crate) trait Rules: Send + Sync {
    /// Which names are allowed.
    fn name_rule(&self, _version: ApiVersion) -> NameRule {
        NameRule::Subdomain
    }

    /// Fills in what was not given. Must not change a complete object.
    fn set_defaults(&self, _object: &mut Value, _version: ApiVersion) {}

    /// Takes away what a client may not set on creation, and adds what admission adds.
    fn before_create(&self, _object: &mut Value) {}

    /// Brings `new` together with what `old` has and the written part may not change.
    fn before_update(&self, new: &mut Value, old: &Value, part: Part, _version: ApiVersion) {
        match part {
            Part::Main => crate::object::carry_over("status", old, new),
            Part::Status => crate::object::carry_over("spec", old, new),
        }
    }

    /// Problems of the kind's own fields.
    fn validate(&self, _write: &Write<'_>) -> Vec<FieldError> {
        Vec::new()
    }

    /// Gives out addresses and ports. Takes note of them only when the object is stored.
    fn allocate(
        &self,
        _new: &mut Value,
        _old: Option<&Value>,
        _allocations: &Allocations,
    ) -> Result<(), FieldError> {
        Ok(())
    }

    /// Whether a PUT of an absent object creates it.
    fn creates_on_update(&self) -> bool {
        false
    }

    /// Whether a PUT without resourceVersion is taken.
    fn allows_unconditional_update(&self) -> bool {
        true
    }

    /// Whether DELETE answers with the object instead of a `Status`.
    fn returns_deleted_object(&self) -> bool {
        false
    }

    /// JSON pointers of the fields that field selectors may name, beside `metadata.name` and `.namespace`.
    fn selectable_fields(&self, _version: ApiVersion) -> &'static [(&'static str, &'static str)] {
        &[]
    }
}

/// An event as it is stored, from its events.k8s.io form.
pub(crate) fn core_form(event: &Value) -> Value {
    event::to_core(event)
}

/// A stored event in its events.k8s.io form.
pub(crate) fn events_group_form(event: &Value) -> Value {
    event::to_events_group(event)
}
