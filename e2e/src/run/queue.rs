//! Which groups are ready to run and who runs them: files in a folder, because the worlds are processes of their own.
//!
//! ```text
//! queue/ready/00-current     its programs are built; renamed by the world that takes it
//! queue/taken/00-current
//! queue/findings/00-current  one line of JSON for each case
//! queue/done/00-current      it came to its end
//! queue/closed               nothing more will be ready
//! ```

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::artifacts::release::Release;
use crate::report::Finding;
use crate::scenario::{GROUPS, Group};

/// The folder of a run's queue.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    folder: PathBuf,
}

/// What a world finds when it looks for work.
pub(crate) enum Work {
    /// A group that nobody else runs.
    Group(&'static Group),
    /// Not now.
    Later,
    /// Never again.
    Nothing,
}

impl Queue {
    /// The queue in the folder of a run.
    ///
    /// # Errors
    /// Its folders cannot be made.
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
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(crate) fn offer(&self, group: &Group) -> Result<()> {
        Ok(std::fs::write(self.file("ready", group), "")?)
    }

    /// Nothing more will be offered.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(crate) fn close(&self) -> Result<()> {
        Ok(std::fs::write(self.folder.join("closed"), "")?)
    }

    /// Takes back what nobody has taken yet, and closes.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(crate) fn withdraw(&self) -> Result<()> {
        for group in GROUPS {
            // A world may be faster.
            std::fs::remove_file(self.file("ready", group)).ok();
        }
        self.close()
    }

    /// Takes the first group that is ready and runs on a release of OpenStack.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(crate) fn take(&self, release: Release) -> Result<Work> {
        // Looked at first: what is offered before the queue closes is seen after it.
        let closed = self.folder.join("closed").exists();
        for group in GROUPS.iter().filter(|group| group.release == release) {
            if std::fs::rename(self.file("ready", group), self.file("taken", group)).is_ok() {
                return Ok(Work::Group(group));
            }
        }
        Ok(if closed { Work::Nothing } else { Work::Later })
    }

    /// Waits for work.
    ///
    /// # Errors
    /// As for [`Queue::take`].
    pub(crate) fn wait(&self, release: Release) -> Result<Option<&'static Group>> {
        loop {
            match self.take(release)? {
                Work::Group(group) => return Ok(Some(group)),
                Work::Nothing => return Ok(None),
                Work::Later => std::thread::sleep(Duration::from_millis(200)),
            }
        }
    }

    /// The release of the first group that is ready.
    pub(crate) fn release(&self) -> Option<Release> {
        GROUPS.iter().find(|group| self.file("ready", group).exists()).map(|group| group.release)
    }

    /// Whether all work is taken and no more will come.
    pub(crate) fn is_over(&self) -> bool {
        self.folder.join("closed").exists() && !GROUPS.iter().any(|group| self.file("ready", group).exists())
    }

    /// Keeps a finding of a group.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn record(&self, group: &Group, finding: &Finding) -> Result<()> {
        let file = self.file("findings", group);
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(file)?;
        let line = json!({
            "scenario": finding.scenario, "case": finding.case, "seen": finding.seen, "passed": finding.passed,
            "milliseconds": u64::try_from(finding.took.as_millis())?, "cost": finding.cost,
        });
        Ok(writeln!(file, "{line}")?)
    }

    /// A group came to its end.
    ///
    /// # Errors
    /// The folder cannot be written.
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
    ///
    /// # Errors
    /// A line is no finding.
    pub(crate) fn findings(&self, group: &Group) -> Result<Vec<Finding>> {
        let text = std::fs::read_to_string(self.file("findings", group)).unwrap_or_default();
        // A world that was killed may have left half a line.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(finding).collect()
    }
}

fn finding(line: &str) -> Result<Finding> {
    let value: Value = serde_json::from_str(line).with_context(|| format!("no finding: {line}"))?;
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    Ok(Finding {
        scenario: text("scenario"),
        case: text("case"),
        seen: text("seen"),
        passed: value["passed"] == true,
        took: Duration::from_millis(value["milliseconds"].as_u64().unwrap_or_default()),
        cost: serde_json::from_value(value["cost"].clone())?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::cost::Cost;

    fn queue(name: &str) -> Queue {
        let folder = std::env::temp_dir().join(format!("openstack-ccm-e2e-{}-{name}", std::process::id()));
        std::fs::remove_dir_all(&folder).ok();
        Queue::open(&folder).unwrap()
    }

    fn sample() -> Finding {
        let took = Duration::from_millis(1500);
        let cost = Some(Cost { octavia: 8, ..Cost::default() });
        Finding { scenario: "1 x".into(), case: "a".into(), seen: "well".into(), passed: true, took, cost }
    }

    #[test]
    fn each_group_is_run_once_and_in_order() {
        let queue = queue("order");
        for group in [&GROUPS[1], &GROUPS[0]] {
            queue.offer(group).unwrap();
        }
        queue.close().unwrap();
        assert_eq!(queue.wait(Release::NEWEST).unwrap().unwrap().name, GROUPS[0].name);
        assert!(!queue.is_over());
        assert_eq!(queue.wait(Release::NEWEST).unwrap().unwrap().name, GROUPS[1].name);
        assert!(queue.wait(Release::NEWEST).unwrap().is_none() && queue.is_over());
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
