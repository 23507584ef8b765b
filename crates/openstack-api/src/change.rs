//! The change of one attribute in an update.

use serde::{Serialize, Serializer};

/// The change of a nullable attribute in an update request. `Keep` leaves the attribute out of the request, which OpenStack reads
/// as "no change".
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Change<T> {
    /// The attribute is left out and keeps its value.
    #[default]
    Keep,
    /// The attribute gets this value.
    Set(T),
    /// The attribute is sent as null, which removes its value.
    Clear,
}

impl<T> Change<T> {
    /// Returns whether the attribute is left out of the request.
    pub const fn is_keep(&self) -> bool {
        matches!(self, Self::Keep)
    }
}

impl<T> From<Option<T>> for Change<T> {
    /// Turns `None` into `Clear`.
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Clear, Self::Set)
    }
}

impl<T: Serialize> Serialize for Change<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Set(value) => value.serialize(serializer),
            Self::Keep | Self::Clear => serializer.serialize_none(),
        }
    }
}
