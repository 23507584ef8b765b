//! How a step names the object that it is about.

/// The id of an object that a step names.
///
/// A plan holds all that is to be done, also what only becomes possible after an earlier step. Steps on an object that
/// does not exist yet are there to be shown and counted; they are applied in a later reconciliation, which finds the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Handle {
    /// The object exists and has this id.
    Id(String),
    /// An earlier step of this plan makes the object, with this name.
    New(String),
}

impl Handle {
    /// The id, where the object exists.
    pub(crate) fn id(&self) -> Option<&str> {
        match self {
            Self::Id(id) => Some(id),
            Self::New(_) => None,
        }
    }
}
