//! Forgiving reading of JSON: OpenStack services leave attributes out or write null where a list is empty.

use serde::{Deserialize, Deserializer};

/// Reads null like an absent attribute.
pub(crate) fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// What a switch means that a service leaves out.
pub(crate) const fn enabled() -> bool {
    true
}
