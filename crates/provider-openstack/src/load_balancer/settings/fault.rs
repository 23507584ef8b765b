//! What is wrong with a Service's settings.

use std::fmt;

use openstack_ccm_core::failure::Failure;

use super::aspect::{Aspect, Aspects};
use super::origin::Origin;

/// Longest part of a value that a message shows, in characters.
const SHOWN: usize = 80;

/// One value that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError {
    /// Where it stands.
    pub origin: Origin,
    /// The value.
    pub value: String,
    /// What is wrong with it; goes on after the value.
    pub problem: String,
    /// What to do.
    pub fix: String,
    /// The aspects of the wish that it spoils.
    pub aspects: Aspects,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {}; {}", self.origin, shown(&self.value), self.problem, self.fix)
    }
}

/// A value as messages show it: quoted, and in part where it is long.
pub(super) fn shown(value: &str) -> String {
    let mut letters = value.chars();
    let shown: String = letters.by_ref().take(SHOWN).collect();
    let more = if letters.next().is_some() { "..." } else { "" };
    format!("{shown:?}{more}")
}

impl std::error::Error for SettingsError {}

/// Everything that is wrong with a Service's settings. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsErrors(Vec<SettingsError>);

impl SettingsErrors {
    /// The errors, if there are any. One that is found twice is reported once.
    pub(super) fn of(found: Vec<SettingsError>) -> Option<Self> {
        let mut errors: Vec<SettingsError> = Vec::new();
        for error in found {
            if !errors.contains(&error) {
                errors.push(error);
            }
        }
        (!errors.is_empty()).then_some(Self(errors))
    }

    /// One by one.
    pub fn iter(&self) -> impl Iterator<Item = &SettingsError> {
        self.0.iter()
    }
}

impl fmt::Display for SettingsErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        numbered(f, &self.0)
    }
}

/// Several messages as one; a single one as it is.
fn numbered<T: fmt::Display>(f: &mut fmt::Formatter<'_>, messages: &[T]) -> fmt::Result {
    if let [only] = messages {
        return only.fmt(f);
    }
    write!(f, "{} settings are wrong", messages.len())?;
    for (index, message) in messages.iter().enumerate() {
        write!(f, "{} ({}) {message}", if index == 0 { ":" } else { "." }, index + 1)?;
    }
    Ok(())
}

impl std::error::Error for SettingsErrors {}

impl From<SettingsErrors> for Failure {
    fn from(errors: SettingsErrors) -> Self {
        Self::user_input(errors.to_string())
    }
}

/// Everything that is wrong with what a Service asks for, wherever that showed: in its values, or in the cloud.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    messages: Vec<String>,
    unreadable: Aspects,
}

impl Faults {
    /// Adds what was found in the cloud. What is known already is not said again.
    pub fn add(&mut self, fault: Fault) {
        self.unreadable.extend(fault.aspects);
        if !self.messages.contains(&fault.message) {
            self.messages.push(fault.message);
        }
    }

    /// Adds several.
    pub fn extend(&mut self, faults: impl IntoIterator<Item = Fault>) {
        faults.into_iter().for_each(|fault| self.add(fault));
    }

    /// The aspects that they are about.
    pub fn unreadable(&self) -> &Aspects {
        &self.unreadable
    }

    /// All of them as one failure; `None` where nothing is wrong.
    pub fn failure(&self) -> Option<Failure> {
        (!self.messages.is_empty()).then(|| Failure::user_input(self.to_string()))
    }

    /// A failure of another kind, with what is wrong besides.
    #[must_use]
    pub fn beside(&self, mut failure: Failure) -> Failure {
        let all = self.to_string();
        if !all.is_empty() && !failure.message.contains(&all) {
            failure.message = format!("{}. Besides: {all}", failure.message);
        }
        failure
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.messages.is_empty() { Ok(()) } else { numbered(f, &self.messages) }
    }
}

impl From<&SettingsErrors> for Faults {
    fn from(errors: &SettingsErrors) -> Self {
        let mut faults = Self::default();
        for error in errors.iter() {
            faults.add(Fault { aspects: error.aspects.clone(), message: error.to_string() });
        }
        faults
    }
}

/// Something that a Service asks for and cannot have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The aspects of the wish that it spoils.
    pub aspects: Aspects,
    /// What is wrong, and what to do.
    pub message: String,
}

impl Fault {
    /// A fault of these aspects.
    pub fn new(aspects: impl IntoIterator<Item = Aspect>, message: impl Into<String>) -> Self {
        Self { aspects: aspects.into_iter().collect(), message: message.into() }
    }
}
