//! An environment of files and variables in memory.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use openstack_ccm_provider_openstack::config::{ConfigErrors, Environment, Loaded, load};

/// Working directory of the environment.
pub(crate) const DIRECTORY: &str = "/here";

#[derive(Default)]
pub(crate) struct Memory {
    files: BTreeMap<PathBuf, Vec<u8>>,
    variables: BTreeMap<String, String>,
}

impl Memory {
    /// With one cloud.conf.
    pub(crate) fn with_cloud_conf(text: impl AsRef<[u8]>) -> Self {
        Self::default().file("cloud.conf", text)
    }

    pub(crate) fn file(mut self, path: &str, content: impl AsRef<[u8]>) -> Self {
        self.files.insert(path.into(), content.as_ref().to_owned());
        self
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Loads `cloud.conf`.
    pub(crate) fn load(&self) -> Result<Loaded, ConfigErrors> {
        self.load_files(&["cloud.conf"])
    }

    pub(crate) fn load_files(&self, paths: &[&str]) -> Result<Loaded, ConfigErrors> {
        load(&paths.iter().map(PathBuf::from).collect::<Vec<_>>(), self)
    }
}

impl Environment for Memory {
    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.files.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn working_directory(&self) -> PathBuf {
        DIRECTORY.into()
    }
}

/// A `[Global]` that is complete, to which tests add their lines.
pub(crate) const LOGIN: &str = "[Global]
auth-url = https://keystone.example.org:5000/v3
application-credential-id = 21dced0f
application-credential-secret = \"s3cr#t\"
";

/// Loads [`LOGIN`] and more, which must work.
pub(crate) fn loaded(more: &str) -> Loaded {
    Memory::with_cloud_conf(format!("{LOGIN}{more}")).load().unwrap()
}

/// Loads [`LOGIN`] and more, which must fail, and gives the whole message.
pub(crate) fn message(more: &str) -> String {
    Memory::with_cloud_conf(format!("{LOGIN}{more}")).load().unwrap_err().to_string()
}

/// Loads [`LOGIN`] and more, and gives the warnings, one per line.
pub(crate) fn warnings(more: &str) -> String {
    loaded(more).warnings.iter().map(|warning| format!("{warning}\n")).collect()
}

/// Each case with what is said about it.
pub(crate) fn transcript(cases: &[&str], say: impl Fn(&str) -> String) -> String {
    cases
        .iter()
        .map(|case| format!("--- {}\n{}\n", case.trim().replace('\n', " | "), say(case).trim_end()))
        .collect()
}
