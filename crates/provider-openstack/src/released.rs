//! Marks unreleased versions on reference pages.

/// Suffix of the version under development.
const DEVELOPMENT: &str = "-dev";

/// Returns the version that a program has, or will have when it is released.
#[must_use]
pub fn developed(program: &str) -> &str {
    program.strip_suffix(DEVELOPMENT).unwrap_or(program)
}

/// Returns a version for a page of a program, with a mark if it is the one under development.
#[must_use]
pub fn marked(version: &str, program: &str) -> String {
    if program != version && developed(program) == version {
        format!("{version}, not released yet")
    } else {
        version.to_owned()
    }
}

pub const PROGRAM: &str = env!("CARGO_PKG_VERSION");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_version_that_is_developed_is_marked() {
        assert_eq!(marked("0.3.0", "0.3.0-dev"), "0.3.0, not released yet");
        assert_eq!(marked("0.2.0", "0.3.0-dev"), "0.2.0");
        assert_eq!(marked("0.3.0", "0.3.0"), "0.3.0");
    }
}
