//! What is wrong with a Service's settings.

use std::fmt;

use openstack_ccm_core::failure::Failure;

/// Longest part of a value that a message shows, in characters.
const SHOWN: usize = 80;

/// Where a value stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// An annotation, by key.
    Annotation(&'static str),
    /// A field of the Service, for example `spec.loadBalancerIP`.
    Field(&'static str),
    /// A key of `[LoadBalancer]` in cloud.conf.
    Config(&'static str),
    /// A key of a class in cloud.conf.
    Class {
        /// Name of the class.
        class: String,
        /// The key.
        key: &'static str,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Annotation(key) => write!(f, "annotation {key}"),
            Self::Field(field) => f.write_str(field),
            Self::Config(key) => write!(f, "{key} in [LoadBalancer] of cloud.conf"),
            Self::Class { class, key } => write!(f, "{key} in [LoadBalancerClass {class:?}] of cloud.conf"),
        }
    }
}

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
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut letters = self.value.chars();
        let shown: String = letters.by_ref().take(SHOWN).collect();
        let more = if letters.next().is_some() { "..." } else { "" };
        write!(f, "{}: {shown:?}{more} {}; {}", self.origin, self.problem, self.fix)
    }
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
        if let [only] = self.0.as_slice() {
            return only.fmt(f);
        }
        write!(f, "{} settings are wrong", self.0.len())?;
        for (index, error) in self.0.iter().enumerate() {
            write!(f, "{} ({}) {error}", if index == 0 { ":" } else { "." }, index + 1)?;
        }
        Ok(())
    }
}

impl std::error::Error for SettingsErrors {}

impl From<SettingsErrors> for Failure {
    fn from(errors: SettingsErrors) -> Self {
        Self::user_input(errors.to_string())
    }
}
