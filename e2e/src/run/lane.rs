//! One world after another until there is no work: a world that hangs or breaks is replaced, and what it ran has failed.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::artifacts::release::Release;
use crate::machine::watch::last_lines;
use crate::machine::{say, world};
use crate::report::Finding;
use crate::run::number::Worlds;
use crate::run::queue::Queue;
use crate::scenario::GROUPS;

/// Longest time from the start of a world to its first group; making the databases is part of it.
const START_LIMIT: Duration = Duration::from_secs(900);
/// Worlds of one lane that may break before they take a group.
const ATTEMPTS: u32 = 3;
const INTERVAL: Duration = Duration::from_millis(200);

/// What every lane of a run works with.
#[derive(Debug)]
pub(crate) struct Lane<'a> {
    /// The copy of this program.
    pub program: PathBuf,
    /// The folder of the run.
    pub run: PathBuf,
    pub queue: Queue,
    pub worlds: &'a Worlds,
    /// Longest time for one group.
    pub group_limit: Duration,
    /// When every group has to be over.
    pub end: Option<Instant>,
    /// Whether groups run on the newest release, so that its clouds may start while programs are built.
    pub with_newest: bool,
}

/// The file in which a world says which group it runs.
pub(crate) fn present_file(world: &Path) -> PathBuf {
    world.join("group")
}

/// What a world is at.
struct Present {
    /// Empty before its cloud answers, and a dash between groups.
    group: String,
    since: Instant,
}

impl Lane<'_> {
    /// Works until the queue is over.
    pub(crate) fn work(&self, number: usize) -> Result<()> {
        let mut broken = 0;
        for attempt in 0.. {
            let Some(release) = self.next_release(attempt == 0) else { return Ok(()) };
            let name =
                if attempt == 0 { format!("world-{number}") } else { format!("world-{number}-{attempt}") };
            let folder = self.run.join(name);
            std::fs::create_dir_all(&folder)?;
            let mut present = Present { group: String::new(), since: Instant::now() };
            let outcome = self.one_world(&folder, release, &mut present);
            self.worlds.ended(present.group.is_empty());
            let Some(reason) = outcome? else { continue };
            if !self.blame(&folder, &reason, present.since.elapsed())? {
                broken += 1;
                anyhow::ensure!(
                    broken < ATTEMPTS,
                    "{broken} worlds broke before they took a group: {reason}"
                );
            }
        }
        Ok(())
    }

    /// Waits until a world may start, and returns the release of OpenStack that it has; none when there is no work left.
    fn next_release(&self, first: bool) -> Option<Release> {
        loop {
            // Looked at first: what is offered before the queue closes is seen after it.
            let closed = self.queue.is_closed();
            let wanted = self.queue.next().map(|group| group.release);
            let early = (first && self.with_newest && !closed).then_some(Release::NEWEST);
            match wanted.or(early) {
                None if closed => return None,
                _ if self.is_over() => return None,
                Some(release) if self.worlds.may_start() => return Some(release),
                _ => std::thread::sleep(INTERVAL),
            }
        }
    }

    /// Runs one world to its end, keeps what it is at, and returns why it did not come to a good one.
    fn one_world(&self, folder: &Path, release: Release, present: &mut Present) -> Result<Option<String>> {
        let (run, path) = (self.run.to_string_lossy(), folder.to_string_lossy());
        let mut child = world::start(&self.program, &["inside", &run, &path, release.name()])?;
        loop {
            if let Some(status) = child.try_wait()? {
                let reason =
                    || world::why_ended(folder).unwrap_or_else(|| format!("its world ended ({status})"));
                return Ok((!status.success()).then(reason));
            }
            self.follow(folder, present);
            // A world without a group waits for one to become ready, unless it has not started yet.
            let limit = match present.group.as_str() {
                "" => START_LIMIT,
                "-" => Duration::MAX,
                _ => self.group_limit,
            };
            if present.since.elapsed() > limit {
                end(&mut child)?;
                return Ok(Some(format!("it was ended after {} s", limit.as_secs())));
            }
            if self.is_over() {
                end(&mut child)?;
                return Ok(Some("it was ended, because the time for second attempts is over".to_owned()));
            }
            if world::complains(folder)
                && let Some(number) = self.worlds.are_too_many()
            {
                say(&format!(
                    "     this machine is too slow for {number} worlds: one of them ends after its group"
                ));
                self.queue.end_one()?;
            }
            std::thread::sleep(INTERVAL);
        }
    }

    fn is_over(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() > end)
    }

    /// Looks what a world is at.
    fn follow(&self, folder: &Path, present: &mut Present) {
        let group = std::fs::read_to_string(present_file(folder)).unwrap_or_default();
        if group != present.group {
            if present.group.is_empty() {
                self.worlds.answers();
            }
            *present = Present { group, since: Instant::now() };
        }
    }

    /// A failure for the group that a broken world was at. Returns whether there is one.
    fn blame(&self, folder: &Path, reason: &str, took: Duration) -> Result<bool> {
        let name = std::fs::read_to_string(present_file(folder)).unwrap_or_default();
        let Some(group) = GROUPS.iter().find(|group| group.name == name) else {
            say(&format!("     a world broke before it took a group: {reason}"));
            return Ok(false);
        };
        let seen = if world::why_ended(folder).is_some() {
            reason.to_owned()
        } else {
            let log = folder.join(group.name).join("openstack-ccm.log");
            format!("{reason}; the controller's last lines: {}", last_lines(&log, 3))
        };
        let finding = Finding { took, ..Finding::failure("group", group.name, &seen) };
        say(&finding.line());
        self.queue.record(group, &finding)?;
        self.queue.finish(group)?;
        Ok(true)
    }
}

/// Ends a world: `unshare` takes the first process of it along, and the kernel the rest.
fn end(child: &mut Child) -> Result<()> {
    child.kill().context("a world cannot be ended")?;
    child.wait()?;
    Ok(())
}
