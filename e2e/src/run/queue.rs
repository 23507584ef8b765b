//! Which groups are ready to run and who runs them: files in a folder, because the worlds are processes of their own.
//!
//! ```text
//! queue/ready/00-current     its programs are built; renamed by the world that takes it
//! queue/taken/00-current
//! queue/findings/00-current  one line of JSON for each case
//! queue/done/00-current      it came to its end
//! queue/closed               nothing more will be ready
//! queue/one-fewer            the world that sees it first ends
//! ```

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::artifacts::release::Release;
use crate::report::Finding;
use crate::scenario::{GROUPS, Group};

/// The folder of a run's queue.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    folder: PathBuf,
}

impl Queue {
    /// The queue in the folder of a run.
    pub(crate) fn open(run: &Path) -> Result<Self> {
        let folder = run.join("queue");
        for state in ["ready", "taken", "findings", "done"] {
            std::fs::create_dir_all(folder.join(state))?;
        }
        Ok(Self { folder })
    }

    fn file(&self, state: &str, group: &Group) -> PathBuf {
        let number = GROUPS.iter().position(|known| known.name == group.name).unwrap_or_default();
        self.folder.join(state).join(format!("{number:02}-{}", group.name))
    }

    /// A group can run.
    pub(crate) fn offer(&self, group: &Group) -> Result<()> {
        Ok(std::fs::write(self.file("ready", group), "")?)
    }

    /// Nothing more will be offered.
    pub(crate) fn close(&self) -> Result<()> {
        Ok(std::fs::write(self.folder.join("closed"), "")?)
    }

    /// Takes back what nobody has taken yet, unless it is kept.
    pub(crate) fn withdraw(&self, is_kept: impl Fn(&Group) -> bool) {
        for group in GROUPS.iter().filter(|group| !is_kept(group)) {
            // A world may be faster.
            std::fs::remove_file(self.file("ready", group)).ok();
        }
    }

    /// One world is to end before it takes another group.
    pub(crate) fn end_one(&self) -> Result<()> {
        Ok(std::fs::write(self.folder.join("one-fewer"), "")?)
    }

    /// Waits for a group that runs on a release of OpenStack, and takes it; absent when there will be none for this world.
    pub(crate) fn take(&self, release: Release) -> Option<&'static Group> {
        loop {
            // Looked at first: what is offered before the queue closes is seen after it.
            let closed = self.is_closed();
            if std::fs::remove_file(self.folder.join("one-fewer")).is_ok() {
                return None;
            }
            let taken = GROUPS.iter().find(|group| {
                group.release == release
                    && std::fs::rename(self.file("ready", group), self.file("taken", group)).is_ok()
            });
            if taken.is_some() || closed {
                return taken;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// A group that is ready and that no world has taken.
    pub(crate) fn next(&self) -> Option<&'static Group> {
        GROUPS.iter().find(|group| self.file("ready", group).exists())
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.folder.join("closed").exists()
    }

    /// Keeps a finding of a group.
    pub(crate) fn record(&self, group: &Group, finding: &Finding) -> Result<()> {
        let file = self.file("findings", group);
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(file)?;
        let line = serde_json::to_string(finding)?;
        Ok(writeln!(file, "{line}")?)
    }

    /// A group came to its end.
    pub(crate) fn finish(&self, group: &Group) -> Result<()> {
        Ok(std::fs::write(self.file("done", group), "")?)
    }

    /// Whether a world has taken a group.
    pub(crate) fn was_taken(&self, group: &Group) -> bool {
        self.file("taken", group).exists()
    }

    /// Whether a group came to its end.
    pub(crate) fn is_done(&self, group: &Group) -> bool {
        self.file("done", group).exists()
    }

    /// The findings of a group so far.
    pub(crate) fn findings(&self, group: &Group) -> Result<Vec<Finding>> {
        let text = std::fs::read_to_string(self.file("findings", group)).unwrap_or_default();
        // A world that was killed may have left half a line.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let finding = |line| serde_json::from_str(line).with_context(|| format!("no finding: {line}"));
        whole.lines().map(finding).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verdict;
    use crate::report::cost::Cost;

    fn queue(name: &str) -> Queue {
        let folder = std::env::temp_dir().join(format!("openstack-ccm-e2e-{}-{name}", std::process::id()));
        std::fs::remove_dir_all(&folder).ok();
        Queue::open(&folder).unwrap()
    }

    fn sample() -> Finding {
        let took = Duration::from_millis(1500);
        let cost = Some(Cost { octavia: 8, ..Cost::default() });
        Finding { took, cost, verdict: Verdict::Passed, ..Finding::failure("1 x", "a", "well") }
    }

    #[test]
    fn each_group_is_run_once_and_in_order() {
        let queue = queue("order");
        for group in [&GROUPS[1], &GROUPS[0]] {
            queue.offer(group).unwrap();
        }
        queue.close().unwrap();
        assert_eq!(queue.next().unwrap().name, GROUPS[0].name);
        assert_eq!(queue.take(Release::NEWEST).unwrap().name, GROUPS[0].name);
        assert_eq!(queue.take(Release::NEWEST).unwrap().name, GROUPS[1].name);
        assert!(queue.take(Release::NEWEST).is_none() && queue.next().is_none());
    }

    #[test]
    fn one_world_of_several_ends_and_leaves_its_groups_to_the_others() {
        let queue = queue("one-fewer");
        queue.offer(&GROUPS[0]).unwrap();
        queue.end_one().unwrap();
        assert!(queue.take(Release::NEWEST).is_none());
        assert_eq!(queue.take(Release::NEWEST).unwrap().name, GROUPS[0].name);
    }

    #[test]
    fn what_is_kept_is_not_taken_back() {
        let queue = queue("kept");
        for group in [&GROUPS[0], &GROUPS[4]] {
            queue.offer(group).unwrap();
        }
        queue.withdraw(|group| group.name == GROUPS[0].name);
        queue.close().unwrap();
        assert_eq!(queue.take(Release::NEWEST).unwrap().name, GROUPS[0].name);
        assert!(queue.take(Release::NEWEST).is_none());
    }

    #[test]
    fn what_a_killed_world_found_is_kept() {
        let queue = queue("killed");
        queue.record(&GROUPS[0], &sample()).unwrap();
        let file = queue.file("findings", &GROUPS[0]);
        let half = std::fs::read_to_string(&file).unwrap() + "{\"scen";
        std::fs::write(file, half).unwrap();
        let findings = queue.findings(&GROUPS[0]).unwrap();
        assert_eq!(findings.len(), 1);
        assert_eq!((findings[0].seen.as_str(), findings[0].took), ("well", sample().took));
        assert_eq!(findings[0].cost, sample().cost);
        assert!(!queue.is_done(&GROUPS[0]));
    }
}
