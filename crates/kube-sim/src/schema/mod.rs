//! What the server knows about the fields of its objects: names, types, when an empty value is left out, how a
//! list is merged, and since which release a field exists.
//!
//! One description serves decoding, field validation, strategic merge and managed fields. The descriptions of
//! the kinds are written in a small language, see [`parse`].

mod decode;
mod parse;

pub(crate) use decode::{DecodeError, decode};
pub(crate) use parse::parse;

/// The type of one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Schema {
    /// A single value.
    Scalar(Scalar),
    /// Keys chosen by the user, string values.
    Map,
    /// Not described: taken as it is.
    Anything,
    /// Known fields, each a value of its own.
    Object(Vec<Field>),
    /// Known fields that are one value in managed fields.
    AtomicObject(Vec<Field>),
    /// Several values of one type.
    List(Box<Schema>, Topology),
}

/// The type of a single value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scalar {
    Text,
    Integer,
    Flag,
    /// `metav1.Time`, whole seconds.
    Time,
    /// `metav1.MicroTime`, exactly six fractional digits.
    MicroTime,
    /// `intstr.IntOrString`.
    IntegerOrText,
}

/// How the entries of a list are matched when two writers meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Topology {
    /// The list is one value.
    Atomic,
    /// Each entry is a value of its own.
    Set,
    /// Entries are objects with these key fields. Strategic merge uses the first one only.
    Keyed(Vec<ListKey>),
}

/// One key field of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListKey {
    pub(crate) name: String,
    /// What an entry without the field means.
    pub(crate) default: Option<String>,
}

/// What happens to an empty value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// Empty values are left out (Go: `omitempty`).
    Optional,
    /// Only null is left out (Go: a pointer with `omitempty`).
    Pointer,
    /// Always shown; empty where it was not given.
    Always,
}

/// One named field of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) schema: Schema,
    pub(crate) presence: Presence,
    /// First minor release that knows the field.
    pub(crate) since: u8,
}

impl Schema {
    /// The description of a field, if this is an object that knows it.
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        match self {
            Self::Object(fields) | Self::AtomicObject(fields) => {
                fields.iter().find(|field| field.name == name)
            }
            Self::Scalar(_) | Self::Map | Self::Anything | Self::List(..) => None,
        }
    }
}
