//! What is wrong with what a Service asks for.

use std::fmt;

use openstack_ccm_core::failure::Failure;

use super::aspect::{Aspect, Aspects};

/// Something that a Service asks for and cannot have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The aspects of the wish that it spoils.
    pub aspects: Aspects,
    /// What is wrong, and what to do.
    pub message: String,
}

impl Fault {
    pub fn new(aspects: impl IntoIterator<Item = Aspect>, message: impl Into<String>) -> Self {
        Self { aspects: aspects.into_iter().collect(), message: message.into() }
    }
}

/// Everything that is wrong with what a Service asks for, wherever that showed: in its values, or in the cloud.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    messages: Vec<String>,
    unreadable: Aspects,
}

impl Faults {
    /// Adds what was found. What is known already is not said again.
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

    /// Adds all of another collection.
    pub fn absorb(&mut self, others: Self) {
        self.unreadable.extend(others.unreadable);
        for message in others.messages {
            if !self.messages.contains(&message) {
                self.messages.push(message);
            }
        }
    }

    /// One by one, what is wrong and what to do.
    pub fn messages(&self) -> &[String] {
        &self.messages
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
    pub fn add_to(&self, mut failure: Failure) -> Failure {
        let all = self.to_string();
        if !all.is_empty() && !failure.message.contains(&all) {
            failure.message = format!("{}. Besides: {all}", failure.message);
        }
        failure
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.messages.as_slice() {
            [] => return Ok(()),
            [only] => return f.write_str(only),
            several => write!(f, "{} settings are invalid", several.len())?,
        }
        for (index, message) in self.messages.iter().enumerate() {
            write!(f, "{} ({}) {message}", if index == 0 { ":" } else { "." }, index + 1)?;
        }
        Ok(())
    }
}
