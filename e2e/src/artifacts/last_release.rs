//! The program of the last release, built from its commit as a debug build like the one under test.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::{Artifacts, source};
use crate::machine::cache::{Key, beside};
use crate::machine::process::{run, run_logged};

pub(crate) const VERSION: &str = "0.2.0";
/// The last commit that calls itself so: there is no tag.
const COMMIT: &str = "ca26d3f20e8a19d614616f8ad539b65abf4ea563";
const PROGRAM: &str = "openstack-ccm";

/// Fails where the sources of the release are not in this clone.
pub(crate) fn is_in_clone() -> Result<()> {
    run(git().args(["cat-file", "-e", &format!("{COMMIT}^{{commit}}")]))
        .map(drop)
        .with_context(|| format!("the commit of {VERSION} is not in this clone: git fetch --unshallow"))
}

impl Artifacts {
    /// The program of the last release.
    pub(crate) fn last_release(&self) -> Result<PathBuf> {
        let (name, key) = last_release_entry();
        let folder = self.entry(&name, &key, |folder| self.build_last_release(folder))?;
        Ok(folder.join(PROGRAM))
    }

    /// With a target folder of its own: its dependencies are others than those of the present program.
    fn build_last_release(&self, folder: &Path) -> Result<()> {
        let (log, archive) = (beside(folder, "log"), folder.join("sources.tar"));
        let (sources, target) = (folder.join("sources"), folder.join("target"));
        std::fs::create_dir_all(&sources)?;
        run_logged(&log, git().arg("archive").arg("--output").arg(&archive).arg(COMMIT))?;
        run_logged(&log, Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&sources))?;
        let mut build = self.pace.command("cargo");
        build.args(["build", "--locked", "--package", PROGRAM]);
        build.arg("--target-dir").arg(&target).current_dir(&sources).env("CARGO_INCREMENTAL", "0");
        self.pace.run(&log, &mut build)?;
        std::fs::rename(target.join("debug").join(PROGRAM), folder.join(PROGRAM))?;
        std::fs::remove_dir_all(&target)?;
        std::fs::remove_dir_all(&sources)?;
        Ok(std::fs::remove_file(&archive)?)
    }
}

pub(super) fn last_release_entry() -> (String, Key) {
    (format!("{PROGRAM}-{VERSION}"), Key::of(&[COMMIT]))
}

fn git() -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(source(".."));
    git
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The release itself is made from a tree that names its version already, and cannot know its commit.
    #[test]
    fn the_release_is_the_newest_before_this_tree() {
        let known = std::fs::read_to_string(source("../release/versions.toml")).unwrap();
        let versions = known.lines().filter_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
        let before = versions.into_iter().find(|version| *version != env!("CARGO_PKG_VERSION"));
        assert_eq!(before, Some(VERSION), "give VERSION and COMMIT those of the last release");
    }
}
