//! Values of flags in the notation of Go, with errors that say what is expected.

use std::convert::Infallible;
use std::path::{Path, PathBuf};

/// Reads a boolean.
pub(super) fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(format!("{text:?} is not a boolean; write true or false")),
    }
}

/// Reads a port.
pub(super) fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| "use a port from 0 to 65535".to_owned())
}

/// Reads a verbosity. klog takes any number; nothing is said beyond 10.
pub(super) fn verbosity(text: &str) -> Result<u8, String> {
    text.parse().map_err(|_| "use a number from 0 to 10".to_owned())
}

/// Reads a path, which may be empty: as good as none.
pub(crate) fn path(text: &str) -> Result<PathBuf, Infallible> {
    Ok(PathBuf::from(text))
}

/// Returns the path, unless none or an empty one was given.
pub fn given(path: Option<&PathBuf>) -> Option<&Path> {
    path.map(PathBuf::as_path).filter(|path| !path.as_os_str().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_go_are_read_and_others_are_not() {
        assert_eq!((boolean("T"), boolean("0")), (Ok(true), Ok(false)));
        assert!(boolean("yes").unwrap_err().contains("true or false"));
    }

    #[test]
    fn what_is_no_number_of_the_kind_is_refused_with_the_range() {
        assert_eq!((port("10258"), verbosity("4")), (Ok(10258), Ok(4)));
        assert!(port("99999").unwrap_err().contains("65535") && port("http").is_err());
        assert!(verbosity("-1").unwrap_err().contains("0 to 10"));
    }
}
