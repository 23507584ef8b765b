//! Image and release, by the tests in `image/` and `release/`. Without Python these tests say what they leave out and pass.

#![allow(
    clippy::unwrap_used,
    reason = "the helpers of tests say what they expect by panicking, as the tests do"
)]

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

#[test]
fn the_image_is_reproducible_and_holds_what_its_documentation_says() {
    python_tests("image");
}

#[test]
fn a_release_pushes_what_was_built_and_its_signatures_can_be_verified() {
    python_tests("release");
}

/// Runs the tests of a folder of the repository.
fn python_tests(folder: &str) {
    // The standard library reads TOML since 3.11.
    let probe = Command::new("python3").args(["-c", "import tomllib"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        say(&format!("left out: {folder} is not tested, as there is no Python 3.11 or newer"));
        return;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let tests = ["-m", "unittest", "discover", "--verbose", "--start-directory"];
    let output = Command::new("python3").args(tests).arg(path).output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{messages}");
    for line in messages.lines().filter(|line| line.contains(" ... skipped ")) {
        say(&format!("left out: {line}"));
    }
}

/// Straight to the terminal: what a test prints is shown only when it fails.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
