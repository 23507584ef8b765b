//! One key: its name, its type, its field, and its documentation.

use std::time::Duration;

use openstack_ccm_core::duration::{self, DurationError};
use secrecy::SecretString;

use crate::config::error::ValueFault;
use crate::config::gcfg::EntryValue;
use crate::config::value::{parse_bool, parse_integer, parse_unsigned};

/// A key of a section of type `S`.
pub struct Key<S: 'static> {
    pub name: &'static str,
    /// Type of the value, and the field of the section.
    pub field: Field<S>,
    /// Default value, as it would be written; empty for none.
    pub default: &'static str,
    /// The effect, as a single line of Markdown.
    pub meaning: &'static str,
    /// The version of this controller that added it; `OCCM` for keys with OCCM's meaning.
    pub since: &'static str,
}

/// The origin of most keys.
const OCCM: &str = "OCCM";

/// Returns a key of OCCM without a default.
pub(super) const fn key<S>(name: &'static str, field: Field<S>, meaning: &'static str) -> Key<S> {
    defaulting_key(name, field, "", meaning)
}

/// Returns a text key of OCCM without a default.
pub(super) const fn text<S>(
    name: &'static str,
    field: fn(&mut S) -> &mut Option<String>,
    meaning: &'static str,
) -> Key<S> {
    key(name, Field::Text(field), meaning)
}

/// Returns a key of OCCM with its default.
pub(super) const fn defaulting_key<S>(
    name: &'static str,
    field: Field<S>,
    default: &'static str,
    meaning: &'static str,
) -> Key<S> {
    Key { name, field, default, meaning, since: OCCM }
}

/// Returns a key that this controller added, with its default.
pub(super) const fn added_key<S>(
    name: &'static str,
    field: Field<S>,
    default: &'static str,
    meaning: &'static str,
) -> Key<S> {
    Key { name, field, default, meaning, since: "0.1.0" }
}

/// Returns a key that version 0.2 added.
pub(super) const fn key_since_0_2<S>(
    name: &'static str,
    field: Field<S>,
    default: &'static str,
    meaning: &'static str,
) -> Key<S> {
    Key { name, field, default, meaning, since: "0.2.0" }
}

/// Returns a key that version 0.3 added.
pub(super) const fn key_since_0_3<S>(
    name: &'static str,
    field: Field<S>,
    default: &'static str,
    meaning: &'static str,
) -> Key<S> {
    Key { name, field, default, meaning, since: "0.3.0" }
}

/// The result of setting a value: a warning, if any, or an error.
pub type Parsed = Result<Option<String>, ValueFault>;

/// Type of a value, and access to its field.
pub enum Field<S: 'static> {
    /// Text; empty is the same as absent.
    Text(fn(&mut S) -> &mut Option<String>),
    /// Text that is never shown; empty is the same as absent.
    Secret(fn(&mut S) -> &mut Option<SecretString>),
    /// Text that must not be empty.
    NonEmptyText(fn(&mut S) -> &mut String),
    /// A bool; the key alone means true.
    Bool(fn(&mut S) -> &mut bool),
    /// A bool, or a word; the key alone means true.
    BoolOr {
        /// The form, for the reference page.
        form: &'static str,
        /// Parses and stores the value.
        set: fn(&mut S, &str) -> Parsed,
    },
    /// An integer from 0, with an optional plus sign.
    Count(fn(&mut S) -> &mut u32),
    /// An integer without a sign.
    Unsigned(fn(&mut S) -> &mut u32),
    Duration(fn(&mut S) -> &mut Duration),
    /// A list with one name per line; the key alone empties it.
    Names(fn(&mut S) -> &mut Vec<String>),
    /// Text in another form. `Ok(Some(text))` is a warning.
    Form {
        /// The form, for the reference page.
        form: &'static str,
        /// Parses and stores the value.
        set: fn(&mut S, &str) -> Parsed,
    },
}

impl<S> Field<S> {
    /// Returns the name of the type for the reference page.
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::Text(_) | Self::NonEmptyText(_) => "text",
            Self::Secret(_) => "secret",
            Self::Bool(_) => "bool",
            Self::Count(_) | Self::Unsigned(_) => "number",
            Self::Duration(_) => "duration",
            Self::Names(_) => "list",
            Self::BoolOr { form, .. } | Self::Form { form, .. } => form,
        }
    }

    /// Returns whether each line adds a value.
    pub const fn is_list(&self) -> bool {
        matches!(self, Self::Names(_))
    }

    /// Returns whether values must never be shown.
    pub const fn is_secret(&self) -> bool {
        matches!(self, Self::Secret(_))
    }

    /// Stores a value in its field.
    ///
    /// # Errors
    /// The problem, without the value.
    pub fn set(&self, section: &mut S, value: &EntryValue) -> Parsed {
        match value {
            EntryValue::Text(text) => self.set_text(section, text),
            EntryValue::Absent => self.set_absent(section).map(|()| None),
            EntryValue::Broken => Ok(None),
        }
    }

    fn set_text(&self, section: &mut S, text: &str) -> Parsed {
        match self {
            Self::Text(field) => *field(section) = Some(text.to_owned()).filter(|text| !text.is_empty()),
            Self::Secret(field) => {
                *field(section) = Some(text).filter(|text| !text.is_empty()).map(SecretString::from);
            }
            Self::NonEmptyText(field) if text.is_empty() => {
                let fix = format!("remove the key to use `{}`", field(section));
                return Err(ValueFault::new("the value is empty", fix));
            }
            Self::NonEmptyText(field) => *field(section) = text.to_owned(),
            Self::Bool(field) => *field(section) = parse_bool(text).ok_or_else(not_a_bool)?,
            Self::Count(field) => *field(section) = count(text)?,
            Self::Unsigned(field) => *field(section) = unsigned(text)?,
            Self::Duration(field) => {
                *field(section) = duration::parse(text).map_err(|error| not_a_duration(error, text))?;
            }
            Self::Names(field) => {
                field(section).push(text.to_owned());
                if text.is_empty() {
                    return Ok(Some("adds an empty name, which matches no network".to_owned()));
                }
            }
            Self::BoolOr { set, .. } | Self::Form { set, .. } => return set(section, text),
        }
        Ok(None)
    }

    fn set_absent(&self, section: &mut S) -> Result<(), ValueFault> {
        match self {
            Self::Bool(field) => *field(section) = true,
            Self::BoolOr { set, .. } => return set(section, "true").map(drop),
            Self::Names(field) => field(section).clear(),
            _ => {
                let fix = "write `key = value`; only a bool may stand alone";
                return Err(ValueFault::new("the key has no value", fix));
            }
        }
        Ok(())
    }
}

fn not_a_bool() -> ValueFault {
    ValueFault::new(
        "the value is not a bool",
        "use `true` or `false` (also `yes`, `on`, `1` and `no`, `off`, `0`)",
    )
}

fn count(text: &str) -> Result<u32, ValueFault> {
    let number = parse_integer(text).ok_or_else(not_a_number)?;
    u32::try_from(number).ok().ok_or_else(|| {
        ValueFault::new("the number is out of range", format!("use a number from 0 to {}", u32::MAX))
    })
}

fn unsigned(text: &str) -> Result<u32, ValueFault> {
    let number = parse_unsigned(text).ok_or_else(not_a_number)?;
    u32::try_from(number)
        .map_err(|_| ValueFault::new("the number is out of range", format!("use at most {}", u32::MAX)))
}

fn not_a_number() -> ValueFault {
    let fix = "write digits only, such as `3`; hexadecimal numbers start with `0x`";
    ValueFault::new("the value is not a whole number", fix)
}

fn not_a_duration(error: DurationError, text: &str) -> ValueFault {
    let fix = match error {
        DurationError::MissingUnit if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("write `{text}s` for seconds")
        }
        _ => "write a number with a unit, such as `5s`, `1m30s` or `500ms`".to_owned(),
    };
    ValueFault::new(error.to_string(), fix)
}
