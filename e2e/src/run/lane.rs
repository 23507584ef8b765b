//! One world after another until there is no work: a world that hangs or breaks is replaced, and what it ran has failed.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::artifacts::release::Release;
use crate::machine::process::last_lines;
use crate::machine::world;
use crate::report::Finding;
use crate::run::queue::Queue;
use crate::scenario::GROUPS;

/// Longest time from the start of a world to its first group; making the databases is part of it.
const START_LIMIT: Duration = Duration::from_secs(900);
/// Worlds that may break in one lane before it gives up.
const ATTEMPTS: u32 = 3;

/// What every lane of a run works with.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    /// The copy of this program.
    pub program: PathBuf,
    /// The folder of the run.
    pub run: PathBuf,
    pub queue: Queue,
    /// Longest time for one group.
    pub group_limit: Duration,
    /// Whether groups run on the newest release, so that its clouds may start while programs are built.
    pub with_newest: bool,
}

/// The file in which a world says which group it runs.
pub(crate) fn present_file(world: &Path) -> PathBuf {
    world.join("group")
}

impl Lane {
    /// Works until the queue is over.
    pub(crate) fn work(&self, number: usize) -> Result<()> {
        let mut broken = 0;
        for attempt in 0.. {
            let Some(release) = self.next_release(attempt == 0) else { return Ok(()) };
            let name =
                if attempt == 0 { format!("world-{number}") } else { format!("world-{number}-{attempt}") };
            let folder = self.run.join(name);
            std::fs::create_dir_all(&folder)?;
            let mut present = (String::new(), Instant::now());
            let Some(reason) = self.one_world(&folder, release, &mut present)? else { continue };
            self.blame(&folder, &reason, present.1.elapsed())?;
            broken += 1;
            anyhow::ensure!(broken < ATTEMPTS, "{broken} worlds of one lane broke, the last one: {reason}");
        }
        Ok(())
    }

    /// The release of OpenStack that the next world has; none when there is no work left.
    fn next_release(&self, first: bool) -> Option<Release> {
        if first && self.with_newest {
            return Some(Release::NEWEST);
        }
        self.queue.next().map(|group| group.release)
    }

    /// Runs one world to its end, keeps which group it is at and since when, and returns why it did not come to a good one.
    fn one_world(
        &self,
        folder: &Path,
        release: Release,
        present: &mut (String, Instant),
    ) -> Result<Option<String>> {
        let (run, path) = (self.run.to_string_lossy(), folder.to_string_lossy());
        let mut child = world::start(&self.program, &["inside", &run, &path, release.name()])?;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok((!status.success()).then(|| format!("its world ended ({status})")));
            }
            let group = std::fs::read_to_string(present_file(folder)).unwrap_or_default();
            if group != present.0 {
                *present = (group, Instant::now());
            }
            // A world without a group waits for one to become ready, unless it has not started yet.
            let limit = match present.0.as_str() {
                "" => START_LIMIT,
                "-" => Duration::MAX,
                _ => self.group_limit,
            };
            if present.1.elapsed() > limit {
                end(&mut child)?;
                return Ok(Some(format!("it was ended after {} s", limit.as_secs())));
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// A failure for the group that a broken world was at.
    fn blame(&self, folder: &Path, reason: &str, took: Duration) -> Result<()> {
        let name = std::fs::read_to_string(present_file(folder)).unwrap_or_default();
        let Some(group) = GROUPS.iter().find(|group| group.name == name) else {
            crate::machine::say(&format!("     a world broke before it took a group: {reason}"));
            return Ok(());
        };
        let log = folder.join(group.name).join("openstack-ccm.log");
        let seen = format!("{reason}; the controller's last lines: {}", last_lines(&log, 3));
        let finding = Finding { took, ..Finding::failure("group", group.name, &seen) };
        crate::machine::say(&finding.line());
        self.queue.record(group, &finding)?;
        self.queue.finish(group)
    }
}

/// Ends a world: `unshare` takes the first process of it along, and the kernel the rest.
fn end(child: &mut Child) -> Result<()> {
    child.kill().context("a world cannot be ended")?;
    child.wait()?;
    Ok(())
}
