//! What is told about a configuration: errors that stop the program, and warnings.
//!
//! Texts are made for the person who wrote the file: they name file, line, section, key, the value where it is not
//! secret, what is wrong and what to do.

use std::fmt;

use super::gcfg::Position;

/// A value longer than this is cut in messages.
const LONGEST_SHOWN_VALUE: usize = 80;

/// What is wrong with a value, and what to do. The texts never hold a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueFault {
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub fix: String,
}

impl ValueFault {
    /// A fault.
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

/// An error in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    /// Where it is.
    pub origin: ConfigOrigin,
    /// Section, with the sub-section's name where it has one: `LoadBalancerClass "dmz"`.
    pub section: Option<String>,
    /// Key.
    pub key: Option<String>,
    /// Value as written. Never present for secrets.
    pub value: Option<String>,
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub fix: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_place(formatter, &self.origin, self.section.as_deref())?;
        if let Some(key) = &self.key {
            write!(formatter, "{key}")?;
            if let Some(value) = &self.value {
                write!(formatter, " = {}", shown(value))?;
            }
            formatter.write_str(": ")?;
        }
        write!(formatter, "{}; {}", self.problem, self.fix)
    }
}

/// Where something is, as messages begin.
fn write_place(
    formatter: &mut fmt::Formatter<'_>,
    origin: &ConfigOrigin,
    section: Option<&str>,
) -> fmt::Result {
    write!(formatter, "{origin}: ")?;
    section.map_or(Ok(()), |section| write!(formatter, "[{section}] "))
}

fn shown(value: &str) -> String {
    let cut: String = value.chars().take(LONGEST_SHOWN_VALUE).collect();
    if cut.len() < value.len() { format!("{cut:?}...") } else { format!("{cut:?}") }
}

/// Everything that is wrong with a configuration, in the order of the files.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ConfigErrors {
    /// The errors; at least one.
    pub errors: Vec<ConfigError>,
    /// What was found beside them.
    pub warnings: Vec<Warning>,
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

/// Something that works and is most likely not what was meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Where it is.
    pub origin: ConfigOrigin,
    /// Section, with the sub-section's name where it has one.
    pub section: Option<String>,
    /// Key.
    pub key: Option<String>,
    /// What to know about it.
    pub text: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_place(formatter, &self.origin, self.section.as_deref())?;
        if let Some(key) = &self.key {
            write!(formatter, "{key}: ")?;
        }
        formatter.write_str(&self.text)
    }
}
