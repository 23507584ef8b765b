//! The findings about a configuration: errors, which stop the program, and warnings.
//!
//! The texts are for the author of the file: they name file, line, section, key, the value unless it is secret, the problem and the
//! fix.

use std::fmt;

use super::Config;
use super::gcfg::Position;

/// Longer values are truncated in messages.
const MAX_SHOWN_LENGTH: usize = 80;

/// The problem of a value, and its fix. The texts never contain a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueFault {
    pub problem: String,
    /// What to do.
    pub fix: String,
}

impl ValueFault {
    pub fn new(problem: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { problem: problem.into(), fix: fix.into() }
    }
}

/// The origin of a value: a file, and the position in it if known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigOrigin {
    /// Path as given.
    pub file: String,
    /// Place in the file.
    pub position: Option<Position>,
}

impl ConfigOrigin {
    /// Returns the origin of a whole file.
    pub fn file(file: impl Into<String>) -> Self {
        Self { file: file.into(), position: None }
    }
}

impl fmt::Display for ConfigOrigin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.file)?;
        match self.position {
            Some(Position { line, column }) => write!(formatter, ":{line}:{column}"),
            None => Ok(()),
        }
    }
}

/// A finding about a configuration: an error, or a warning about something valid that is probably a mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Origin of the problem.
    pub origin: ConfigOrigin,
    /// Section, key and message.
    pub text: String,
}

impl Finding {
    /// Creates an error, with section, key and value if there are any; a secret value must be omitted.
    pub(super) fn error(
        origin: ConfigOrigin,
        section: Option<&str>,
        key: Option<&str>,
        value: Option<&str>,
        fault: &ValueFault,
    ) -> Self {
        let value = value.map(|value| format!(" = {}", shown(value))).unwrap_or_default();
        let key = key.map(|key| format!("{key}{value}"));
        Self::warning(origin, section, key.as_deref(), format_args!("{}; {}", fault.problem, fault.fix))
    }

    pub(super) fn warning(
        origin: ConfigOrigin,
        section: Option<&str>,
        key: Option<&str>,
        text: impl fmt::Display,
    ) -> Self {
        let section = section.map(|section| format!("[{section}] ")).unwrap_or_default();
        let key = key.map(|key| format!("{key}: ")).unwrap_or_default();
        Self { origin, text: format!("{section}{key}{text}") }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.origin, self.text)
    }
}

/// Returns a value for messages: quoted, and truncated if it is long.
pub(crate) fn shown(value: &str) -> String {
    let cut: String = value.chars().take(MAX_SHOWN_LENGTH).collect();
    if cut.len() < value.len() { format!("{cut:?}...") } else { format!("{cut:?}") }
}

/// All errors of a configuration, in the order of the files.
#[derive(Clone, Debug, thiserror::Error)]
pub struct ConfigErrors {
    /// The errors; at least one.
    pub errors: Vec<Finding>,
    /// Warnings in addition to the errors.
    pub warnings: Vec<Finding>,
    /// The parts that could be read, for finding all errors at once. It must not be used.
    pub config: Box<Config>,
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.errors.len() {
            1 => formatter.write_str("the cloud configuration has an error:")?,
            count => write!(formatter, "the cloud configuration has {count} errors:")?,
        }
        self.errors.iter().try_for_each(|error| write!(formatter, "\n  {error}"))
    }
}
