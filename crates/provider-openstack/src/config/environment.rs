//! The inputs of the configuration outside of cloud.conf.

use std::io;
use std::path::{Path, PathBuf};

/// Files and environment variables; tests provide their own.
pub trait Environment {
    /// Returns the value of an environment variable; `None` if it is unset or not UTF-8.
    fn variable(&self, name: &str) -> Option<String>;

    /// Returns the content of a file.
    ///
    /// # Errors
    /// As [`std::fs::read`]; a file that does not exist is [`io::ErrorKind::NotFound`].
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    fn working_directory(&self) -> PathBuf;
}

#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessEnvironment;

impl Environment for ProcessEnvironment {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }

    fn working_directory(&self) -> PathBuf {
        std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."))
    }
}
