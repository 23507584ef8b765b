//! What is built or installed once on a machine, in the user's cache folder, keyed by the content it is made from.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use ring::digest::{Context, SHA256};

/// The folder of all entries.
#[derive(Clone)]
pub(crate) struct Cache {
    root: PathBuf,
}

impl Cache {
    /// The cache of this user: `$XDG_CACHE_HOME/openstack-ccm-e2e`, by default below `~/.cache`.
    pub(crate) fn of_user() -> Result<Self> {
        let base = match std::env::var_os("XDG_CACHE_HOME") {
            Some(folder) => PathBuf::from(folder),
            None => PathBuf::from(std::env::var_os("HOME").context("HOME is not set")?).join(".cache"),
        };
        let root = base.join("openstack-ccm-e2e");
        std::fs::create_dir_all(&root).with_context(|| format!("{} cannot be made", root.display()))?;
        Ok(Self { root })
    }

    /// The folder of an entry, which may not exist yet.
    pub(crate) fn path(&self, name: &str, key: &Key) -> PathBuf {
        self.root.join(format!("{name}-{}", key.text()))
    }

    /// The folder of an entry. If it is not there, `build` fills it. A build that fails or is killed leaves no entry.
    ///
    /// The builder works in the final place, because virtual environments hold their own path; a mark beside it says
    /// that it was completed.
    pub(crate) fn entry(
        &self,
        name: &str,
        key: &Key,
        build: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<PathBuf> {
        let folder = self.path(name, key);
        if self.has(name, key) {
            return Ok(folder);
        }
        // Whoever comes second waits, and then finds it done. The lock goes with the process.
        let lock = std::fs::File::create(beside(&folder, "lock"))?;
        lock.lock()?;
        if self.has(name, key) {
            return Ok(folder);
        }
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::create_dir_all(&folder)?;
        build(&folder).with_context(|| format!("{name} cannot be built"))?;
        std::fs::write(complete(&folder), "")?;
        Ok(folder)
    }

    /// Whether the entry is there and complete.
    pub(crate) fn has(&self, name: &str, key: &Key) -> bool {
        complete(&self.path(name, key)).exists()
    }
}

fn complete(folder: &Path) -> PathBuf {
    beside(folder, "complete")
}

/// A path beside an entry: names of entries hold dots, so this is no extension.
pub(crate) fn beside(folder: &Path, suffix: &str) -> PathBuf {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    folder.with_file_name(format!("{name}.{suffix}"))
}

/// What an entry is made from.
pub(crate) struct Key(Context);

impl Key {
    /// A key for this much text.
    pub(crate) fn of(texts: &[&str]) -> Self {
        texts.iter().fold(Self(Context::new(&SHA256)), |key, text| key.text_part(text))
    }

    fn text_part(mut self, text: &str) -> Self {
        self.0.update(&text.len().to_le_bytes());
        self.0.update(text.as_bytes());
        self
    }

    /// Adds a file, or all files of a folder, by name and content.
    pub(crate) fn file(mut self, path: &Path) -> Result<Self> {
        if path.is_dir() {
            let mut names: Vec<PathBuf> =
                std::fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
            names.sort();
            let wanted = |name: &&PathBuf| !name.ends_with("__pycache__");
            return names.iter().filter(wanted).try_fold(self, |key, name| key.file(name));
        }
        let content = std::fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
        self = self.text_part(&path.file_name().unwrap_or_default().to_string_lossy());
        self.0.update(&content.len().to_le_bytes());
        self.0.update(&content);
        Ok(self)
    }

    fn text(&self) -> String {
        let digest = self.0.clone().finish();
        digest.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_in_names_stay_apart() {
        assert_ne!(
            complete(Path::new("/c/kube-proxy-1.29-ab")),
            complete(Path::new("/c/kube-proxy-1.36-ab"))
        );
    }

    #[test]
    fn different_content_has_a_different_key() {
        assert_ne!(Key::of(&["ab", "c"]).text(), Key::of(&["a", "bc"]).text());
        assert_eq!(Key::of(&["ab", "c"]).text(), Key::of(&["ab", "c"]).text());
    }
}
