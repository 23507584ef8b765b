//! What an update does to one attribute.

use serde::{Serialize, Serializer};

/// What an update request says about an attribute that can be null. `Keep` leaves the attribute out of the request,
/// which OpenStack reads as "no change".
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Change<T> {
    /// Not mentioned: stays as it is.
    #[default]
    Keep,
    /// Gets this value.
    Set(T),
    /// Is sent as null: goes back to nothing.
    Clear,
}

impl<T> Change<T> {
    /// Whether the attribute is left out of the request.
    pub const fn is_keep(&self) -> bool {
        matches!(self, Self::Keep)
    }
}

impl<T> From<Option<T>> for Change<T> {
    /// `None` clears.
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
