//! Builds what groups are made of, one part after another, and says how far it is.

use std::cell::RefCell;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::artifacts::part::Part;
use crate::artifacts::{Artifacts, Pace};
use crate::machine::fetch::NotFetched;
use crate::machine::progress::announce;
use crate::scenario::Group;

/// The parts of a run.
pub(crate) struct Parts<'a> {
    artifacts: &'a Artifacts,
    /// How many there are.
    all: usize,
    /// Each that this machine lacks once, in the order in which they are built.
    missing: Vec<Part>,
    /// What could not be had: several groups may need it, and nobody waits for it twice.
    given_up: RefCell<Vec<(Part, NotFetched)>>,
}

impl<'a> Parts<'a> {
    /// Those of all groups.
    ///
    /// # Errors
    /// A file that a part is made from cannot be read.
    pub(crate) fn of(groups: &[&Group], artifacts: &'a Artifacts) -> Result<Self> {
        let (mut known, mut missing) = (Vec::new(), Vec::new());
        // What a machine cannot run is not built on it.
        let possible = groups.iter().filter(|group| group.release.obstacle().is_none());
        for part in possible.flat_map(|group| group.parts()) {
            if known.contains(&part) {
                continue;
            }
            known.push(part);
            if !artifacts.is_made(part)? {
                missing.push(part);
            }
        }
        Ok(Self { artifacts, all: known.len(), missing, given_up: RefCell::default() })
    }

    pub(crate) fn all(&self) -> usize {
        self.all
    }

    /// How many were missing when the run began.
    pub(crate) fn missing(&self) -> usize {
        self.missing.len()
    }

    /// Builds a part that is missing.
    ///
    /// # Errors
    /// It cannot be fetched or built, now or before.
    pub(crate) fn make(&self, part: Part, pace: Pace) -> Result<()> {
        let artifacts = self.artifacts.at(pace);
        let place = self.missing.iter().position(|missing| *missing == part);
        let Some(place) = place.filter(|_| !artifacts.is_made(part).unwrap_or_default()) else {
            return artifacts.make(part);
        };
        let before = self.given_up.borrow().iter().find(|(known, _)| *known == part).cloned();
        if let Some((_, reason)) = before {
            bail!(reason);
        }
        let (number, count) = (place + 1, self.missing.len());
        let log = artifacts.log(part)?;
        let what = format!("building {part}, {number} of {count}, log {}", log.display());
        let made = announce(&what, || artifacts.make(part));
        if let Some(reason) = made.as_ref().err().and_then(|error| error.downcast_ref::<NotFetched>()) {
            self.given_up.borrow_mut().push((part, reason.clone()));
        }
        made
    }

    /// Whether a group has all its parts by now.
    ///
    /// # Errors
    /// A file that a part is made from cannot be read.
    pub(crate) fn are_made(&self, group: &Group) -> Result<bool> {
        for part in group.parts() {
            if !self.artifacts.is_made(part)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// How long the parts of a group that are missing take at most.
    ///
    /// # Errors
    /// A file that a part is made from cannot be read.
    pub(crate) fn longest(&self, group: &Group) -> Result<Duration> {
        let mut missing: Vec<Part> = Vec::new();
        for part in group.parts() {
            let counted = missing.iter().any(|other| part.shares_build_with(*other));
            if !counted && !self.artifacts.is_made(part)? {
                missing.push(part);
            }
        }
        Ok(missing.into_iter().map(Part::longest).sum())
    }
}
