//! Faults of a Service's settings.

use std::fmt;

use openstack_ccm_core::failure::Failure;

use crate::load_balancer::annotations::{Aspect, Aspects};

/// A setting of a Service that is invalid or impossible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The aspects that depend on the setting.
    pub aspects: Aspects,
    /// The problem, and its fix.
    pub message: String,
}

impl Fault {
    pub fn new(aspects: impl IntoIterator<Item = Aspect>, message: impl Into<String>) -> Self {
        Self { aspects: aspects.into_iter().collect(), message: message.into() }
    }
}

/// All faults of a Service's settings, found in their values or in the cloud.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    messages: Vec<String>,
    unreadable: Aspects,
    /// Whether one of them lies in what was looked up: the cloud can mend it. A text that means nothing stays what it is.
    may_heal: bool,
}

impl Faults {
    /// Adds a fault of a text, without repeating a known message.
    pub fn add(&mut self, fault: Fault) {
        self.unreadable.extend(fault.aspects);
        if !self.messages.contains(&fault.message) {
            self.messages.push(fault.message);
        }
    }

    /// Adds faults of what was looked up in the cloud.
    pub fn extend(&mut self, faults: impl IntoIterator<Item = Fault>) {
        for fault in faults {
            self.may_heal = true;
            self.add(fault);
        }
    }

    /// Adds all faults of another collection.
    pub fn absorb(&mut self, others: Self) {
        self.may_heal |= others.may_heal;
        self.unreadable.extend(others.unreadable);
        for message in others.messages {
            if !self.messages.contains(&message) {
                self.messages.push(message);
            }
        }
    }

    /// Returns the messages, each with a problem and its fix.
    pub fn messages(&self) -> &[String] {
        &self.messages
    }

    /// Returns the aspects of all faults.
    pub fn unreadable(&self) -> &Aspects {
        &self.unreadable
    }

    /// Returns whether the cloud can mend one of them, so that it is worth looking again.
    pub fn may_heal(&self) -> bool {
        self.may_heal
    }

    /// Returns all faults as one failure; `None` without faults.
    pub fn failure(&self) -> Option<Failure> {
        let failure = Failure { lasts: !self.may_heal, ..Failure::user_input(self.to_string()) };
        (!self.messages.is_empty()).then_some(failure)
    }

    /// Adds the faults to another failure.
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
