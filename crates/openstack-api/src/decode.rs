//! Tolerant reading of JSON: OpenStack services leave attributes out, or write null for an empty list.

use serde::{Deserialize, Deserializer};

/// Reads null as the default, like an absent attribute.
pub(crate) fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// The value of a switch that a service leaves out.
pub(crate) const fn enabled() -> bool {
    true
}
