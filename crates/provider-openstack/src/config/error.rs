//! What is reported about a configuration: errors that stop the program, and warnings.
//!
//! Texts are made for the person who wrote the file: they name file, line, section, key, the value where it is not
//! secret, what is wrong and what to do.

use std::fmt;

use super::Config;
use super::gcfg::Position;

/// A value longer than this is cut in messages.
const MAX_SHOWN_LENGTH: usize = 80;

/// What is wrong with a value, and what to do. The texts never hold a secret.
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

/// Where something was written: a file, and a place in it where one is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigOrigin {
    /// Path as given.
    pub file: String,
    /// Place in the file.
    pub position: Option<Position>,
}

impl ConfigOrigin {
    /// A whole file.
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

/// Something that is reported about a configuration: an error, or a warning of what works and is most likely not what was meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where it is.
    pub origin: ConfigOrigin,
    /// What it is about, and what there is to know.
    pub text: String,
}

impl Finding {
    /// An error: in a section, of a key, of the value as written where it is not secret, as far as there are such.
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

/// A value as messages show it: quoted, and in part where it is long.
pub(crate) fn shown(value: &str) -> String {
    let cut: String = value.chars().take(MAX_SHOWN_LENGTH).collect();
    if cut.len() < value.len() { format!("{cut:?}...") } else { format!("{cut:?}") }
}

/// Everything that is wrong with a configuration, in the order of the files.
#[derive(Clone, Debug, thiserror::Error)]
pub struct ConfigErrors {
    /// The errors; at least one.
    pub errors: Vec<Finding>,
    /// What was found apart from them.
    pub warnings: Vec<Finding>,
    /// What could be read, for whoever wants to find everything that is wrong with it at once. It must not be used.
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
