//! Builds what groups are made of, one part after another, and says how far it is.

use std::time::Duration;

use anyhow::Result;

use crate::artifacts::Artifacts;
use crate::artifacts::part::Part;
use crate::machine::progress::announce;
use crate::scenario::Group;

/// The parts that this machine lacks for a run.
pub(crate) struct Parts<'a> {
    artifacts: &'a Artifacts,
    /// Each of them once, in the order in which they are built.
    missing: Vec<Part>,
}

impl<'a> Parts<'a> {
    /// Those of all groups.
    ///
    /// # Errors
    /// A file that a part is made from cannot be read.
    pub(crate) fn of(groups: &[&Group], artifacts: &'a Artifacts) -> Result<Self> {
        let mut missing = Vec::new();
        for part in groups.iter().flat_map(|group| group.parts()) {
            if !missing.contains(&part) && !artifacts.is_made(part)? {
                missing.push(part);
            }
        }
        Ok(Self { artifacts, missing })
    }

    /// Builds a part that is missing.
    ///
    /// # Errors
    /// It cannot be built.
    pub(crate) fn make(&self, part: Part) -> Result<()> {
        let place = self.missing.iter().position(|missing| *missing == part);
        let Some(place) = place.filter(|_| !self.artifacts.is_made(part).unwrap_or_default()) else {
            return self.artifacts.make(part);
        };
        let (number, count) = (place + 1, self.missing.len());
        let log = self.artifacts.log(part)?;
        announce(&format!("building {part}, {number} of {count}, log {}", log.display()), || {
            self.artifacts.make(part)
        })
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
