//! What became of the comparison with a plan in each test of a scenario that runs the whole program: a line for each in
//! `planned.txt`, which the tests themselves check.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where the tests of the whole program are, from the crates folder.
pub(crate) const WHOLE_PROGRAM: &str = "ccm/tests/program/";
/// All that the program did is what was planned before.
pub(crate) const COMPARED: &str = "compared";
/// Between several causes why something escaped the comparison.
pub(crate) const BETWEEN: &str = "; ";

const HEAD: &str = "\
# Tests of the compatibility page that run the whole program: whether all that it did is what was planned before, or why
# something escaped the comparison. A test fails that does something else than planned and does not say so here; `make docs` writes the rest again.
";

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compatibility/planned.txt")
}

/// What is kept, by the name of the test.
pub(crate) fn kept() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(path()).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.split_once(": "))
        .map(|(test, outcome)| (test.to_owned(), outcome.to_owned()))
        .collect()
}

/// Keeps this instead.
pub(crate) fn keep(outcomes: &BTreeMap<String, String>) {
    let lines = outcomes.iter().map(|(test, outcome)| format!("{test}: {outcome}\n"));
    std::fs::write(path(), format!("{HEAD}{}", lines.collect::<String>())).unwrap();
}

/// The name of a test by its file, from the folder of these tests, and its function.
pub(crate) fn test_name(file: &str, function: &str) -> String {
    let module = file.trim_end_matches(".rs").trim_end_matches("/mod").replace('/', "::");
    format!("{module}::{function}")
}

/// Whether this is the test, or one of its cases.
pub(crate) fn is_case_of(name: &str, test: &str) -> bool {
    name.strip_prefix(test).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}
