//! One go through groups: builds what they need, and lets worlds run them meanwhile.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Error, Result, bail};

use crate::artifacts::part::Part;
use crate::artifacts::release::Release;
use crate::artifacts::{Artifacts, Pace, last_release};
use crate::machine::cache::Cache;
use crate::machine::fetch::NotFetched;
use crate::machine::process::OutOfTime;
use crate::machine::{containers, packages, say};
use crate::run::lane::Lane;
use crate::run::number::Worlds;
use crate::run::outcome::{Cause, Outcome};
use crate::run::own_copies;
use crate::run::parts::Parts;
use crate::run::preface::{Lateness, Preface};
use crate::run::queue::Queue;
use crate::scenario::{CORE, Group};

/// The groups of a go, and what it may take.
pub(crate) struct Plan {
    pub groups: Vec<&'static Group>,
    pub began: Instant,
    /// After this time nothing more is built and no further group is begun, but for the core of them.
    pub budget: Option<Duration>,
    /// The most worlds.
    pub most: usize,
    /// Longest time for one group.
    pub group_limit: Duration,
    /// When everything has to be over.
    pub end: Option<Instant>,
}

/// Why groups were not offered, by their names.
type Causes = RefCell<BTreeMap<&'static str, Cause>>;

impl Plan {
    /// Runs everything in a folder, and returns what became of each group.
    ///
    /// # Errors
    /// The run cannot begin.
    pub(crate) fn carry_out(&self, folder: &Path) -> Result<Vec<Outcome>> {
        let queue = Queue::open(folder)?;
        let program = own_copies(folder)?;
        let artifacts = Artifacts::new(Cache::of_user()?);
        let parts = Parts::of(&self.groups, &artifacts)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let worlds = Worlds::new(cores, self.most.min(self.groups.len()), parts.missing() > 0);
        let preface = self.preface(&parts, &worlds);
        if self.end.is_none() {
            say(&preface.text());
        }
        let causes = Causes::default();
        let lane = self.lane(folder, program, &queue, &worlds);
        let worked = self.work(&lane, &parts, &causes, Lateness::new(self.began, &preface));
        let rest = worked.map_or_else(|error| Cause::Broken(format!("{error:#}")), |()| self.no_time());
        let causes = causes.into_inner();
        let cause = |group: &Group| causes.get(group.name).unwrap_or(&rest).clone();
        self.groups.iter().map(|group| Outcome::of(group, &queue, || cause(group))).collect()
    }

    fn preface(&self, parts: &Parts, worlds: &Worlds) -> Preface {
        let (missing, all) = (parts.missing(), parts.all());
        Preface { groups: self.groups.len(), missing, parts: all, worlds: worlds.most(), budget: self.budget }
    }

    fn lane<'a>(&self, run: &Path, program: PathBuf, queue: &Queue, worlds: &'a Worlds) -> Lane<'a> {
        Lane {
            program,
            run: run.to_owned(),
            queue: queue.clone(),
            worlds,
            group_limit: self.group_limit,
            end: self.end,
            with_newest: self.groups.iter().any(|group| group.release == Release::NEWEST),
        }
    }

    /// Builds and runs. What worlds found is in the queue afterwards.
    fn work(&self, lane: &Lane<'_>, parts: &Parts, causes: &Causes, mut late: Lateness) -> Result<()> {
        // Nothing runs without these, and all worlds need them.
        let mut common = vec![Part::Etcd];
        if lane.with_newest {
            common.splice(..0, [Part::OpenStack(Release::NEWEST), Part::Drivers(Release::NEWEST)]);
        }
        if let Some(cause) = self.make(parts, &common, Pace::default()) {
            causes.borrow_mut().extend(self.groups.iter().map(|group| (group.name, cause.clone())));
            return Ok(());
        }
        std::thread::scope(|scope| {
            let lanes: Vec<_> =
                (1..=lane.worlds.most()).map(|number| scope.spawn(move || lane.work(number))).collect();
            let built = self.build(lane, parts, causes);
            lane.worlds.all_is_built();
            // The worlds must hear that there is no more, also after a failure.
            let closed = lane.queue.close();
            while lanes.iter().any(|lane| !lane.is_finished()) {
                if self.is_late(Duration::ZERO) {
                    lane.queue.withdraw(|group| self.end.is_none() && is_core(group));
                }
                late.look();
                std::thread::sleep(Duration::from_millis(500));
            }
            for lane in lanes {
                lane.join().map_err(|_| anyhow::anyhow!("a lane panicked"))??;
            }
            built.and(closed)
        })
    }

    /// Offers each group as soon as its programs are there, as long as there is time.
    fn build(&self, lane: &Lane<'_>, parts: &Parts, causes: &Causes) -> Result<()> {
        let mut beside_worlds = false;
        let mut left = self.groups.clone();
        while let Some(place) = next(&left, |group| parts.are_made(group))? {
            let group = left.remove(place);
            if let Some(cause) = self.obstacle(group, parts, beside_worlds)? {
                causes.borrow_mut().insert(group.name, cause);
                continue;
            }
            lane.queue.offer(group)?;
            // Up to here everybody has waited for the compiler, and from here on it must not keep worlds waiting.
            beside_worlds = true;
        }
        Ok(())
    }

    /// Builds what a group needs, and returns why it cannot run.
    fn obstacle(&self, group: &Group, parts: &Parts, beside_worlds: bool) -> Result<Option<Cause>> {
        if let Err(error) = possible(group) {
            return Ok(Some(Cause::Machine(format!("{error:#}"))));
        }
        if is_core(group) {
            return Ok(self.make(parts, &group.parts(), Pace { deadline: None, beside_worlds }));
        }
        if self.is_late(parts.longest(group)?) {
            return Ok(Some(self.no_time()));
        }
        let deadline = self.budget.map(|budget| self.began + budget);
        Ok(self.make(parts, &group.parts(), Pace { deadline, beside_worlds }))
    }

    /// Builds parts, and returns why that cannot be done.
    fn make(&self, parts: &Parts, wanted: &[Part], pace: Pace) -> Option<Cause> {
        let error = wanted.iter().find_map(|part| parts.make(*part, pace).err())?;
        say(&format!("     given up: {error:#}"));
        Some(self.cause(&error))
    }

    fn cause(&self, error: &Error) -> Cause {
        match error.downcast_ref::<NotFetched>() {
            Some(reason) => Cause::Machine(reason.to_string()),
            None if error.is::<OutOfTime>() => self.no_time(),
            None => Cause::Broken(format!("{error:#}")),
        }
    }

    fn no_time(&self) -> Cause {
        let seconds = self.budget.unwrap_or_default().as_secs();
        Cause::Time(format!("they could not be built and begun within {seconds} s"))
    }

    /// Whether work of this length would not be done in time.
    fn is_late(&self, work: Duration) -> bool {
        self.budget.is_some_and(|budget| self.began.elapsed() + work > budget)
    }
}

/// The place of the next group to be offered: one that waits for no compiler comes first.
fn next(left: &[&Group], is_made: impl Fn(&Group) -> Result<bool>) -> Result<Option<usize>> {
    for (place, group) in left.iter().enumerate() {
        if is_made(group)? {
            return Ok(Some(place));
        }
    }
    Ok((!left.is_empty()).then_some(0))
}

/// Whether a group is begun however late it is.
fn is_core(group: &Group) -> bool {
    CORE.contains(&group.name)
}

/// Fails, with what is missing, where a group cannot run on this machine; installs its packages.
fn possible(group: &Group) -> Result<()> {
    if let Some(obstacle) = group.release.obstacle() {
        bail!(obstacle);
    }
    if group.with_ovn {
        packages::install(&packages::OVN)?;
    }
    if group.with_kubelet {
        packages::install(&packages::KUBELET)?;
        containers::possible()?;
    }
    if group.with_last_release { last_release::is_in_clone() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::GROUPS;

    #[test]
    fn no_group_waits_for_the_compiler_of_another() {
        let left = [&GROUPS[0], &GROUPS[1], &GROUPS[2]];
        let made = |names: &'static [&str]| move |group: &Group| Ok(names.contains(&group.name));
        assert_eq!(next(&left, made(&["life", "traffic"])).unwrap(), Some(1));
        assert_eq!(next(&left, made(&[])).unwrap(), Some(0));
        assert_eq!(next(&[], made(&[])).unwrap(), None);
    }
}
