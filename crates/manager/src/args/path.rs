//! Files and folders. As with Go's flags, an empty value is as good as none.

use std::path::{Path, PathBuf};

/// Reads a path, which may be empty.
pub(crate) fn parse(text: &str) -> Result<PathBuf, std::convert::Infallible> {
    Ok(PathBuf::from(text))
}

/// Returns the path, unless none or an empty one was given.
pub fn given(path: Option<&PathBuf>) -> Option<&Path> {
    path.map(PathBuf::as_path).filter(|path| !path.as_os_str().is_empty())
}
