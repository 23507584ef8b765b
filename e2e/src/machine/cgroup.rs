//! The cgroups of one machine among several that share a kernel.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};

const ROOT: &str = "/sys/fs/cgroup";
/// The file of a hierarchy of version 2.
const CONTROLLERS: &str = "cgroup.controllers";

/// A cgroup of one name in each hierarchy.
#[derive(Clone, Debug)]
pub(crate) struct Cgroups {
    /// Its path in each hierarchy, as a kubelet takes it.
    pub name: String,
    folders: Vec<PathBuf>,
}

impl Cgroups {
    /// Makes it, empty.
    ///
    /// # Errors
    /// There is no hierarchy, or nothing may be made in one.
    pub(crate) fn make(name: &str) -> Result<Self> {
        let folders: Vec<PathBuf> = hierarchies()?.into_iter().map(|root| root.join(name)).collect();
        ensure!(!folders.is_empty(), "{ROOT} has no hierarchy");
        for folder in &folders {
            remove(folder);
            std::fs::create_dir_all(folder)
                .with_context(|| format!("{} cannot be made", folder.display()))?;
        }
        Ok(Self { name: format!("/{name}"), folders })
    }

    /// Kills all processes in it.
    pub(crate) fn kill(&self) {
        for folder in &self.folders {
            kill(folder);
        }
    }

    pub(crate) fn processes(&self) -> Vec<i32> {
        self.folders.first().map(|folder| processes(folder)).unwrap_or_default()
    }

    /// Removes it. What still has processes stays.
    pub(crate) fn remove(&self) {
        self.folders.iter().for_each(|folder| remove(folder));
    }
}

/// The mounted hierarchies: one of version 2, or those of version 1.
fn hierarchies() -> Result<Vec<PathBuf>> {
    let root = Path::new(ROOT);
    if root.join(CONTROLLERS).exists() {
        return Ok(vec![root.to_owned()]);
    }
    let entries = std::fs::read_dir(root).with_context(|| format!("there is no {ROOT}"))?;
    let folders = entries.flatten().map(|entry| entry.path());
    Ok(folders.filter(|path| !path.is_symlink() && path.join("cgroup.procs").exists()).collect())
}

fn children(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir())
}

fn processes(folder: &Path) -> Vec<i32> {
    let own = std::fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    let below = children(folder).flat_map(|child| processes(&child));
    own.lines().filter_map(|line| line.parse().ok()).chain(below).collect()
}

fn kill(folder: &Path) {
    for process in processes(folder).into_iter().filter_map(Pid::from_raw) {
        // It may have ended meanwhile.
        kill_process(process, Signal::KILL).ok();
    }
}

/// Deepest first. A folder of cgroups cannot be removed with its files.
fn remove(folder: &Path) {
    children(folder).for_each(|child| remove(&child));
    std::fs::remove_dir(folder).ok();
}
