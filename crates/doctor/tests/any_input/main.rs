//! Any dump of rules, near to what is read and far from it: nothing panics, and everything ends.
//!
//! The function is that of the fuzz target in `fuzz/`, and so are the first inputs. `ANY_INPUT_RUNS=100000` makes more of them,
//! `ANY_INPUT_SEED=7` others.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "the fuzz target names the function")]

mod entries;
#[path = "../../../provider-openstack/tests/any_input/mutation.rs"]
mod mutation;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Inputs that are made from the first ones.
const RUNS: usize = 200;

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[track_caller]
fn feed(input: &[u8], what: &str) {
    let result = catch_unwind(AssertUnwindSafe(|| entries::rules(input)));
    assert!(result.is_ok(), "{what}: {:?}", String::from_utf8_lossy(input));
}

#[test]
fn nothing_panics_and_everything_ends() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/rules");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let inputs: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    for (file, input) in files.iter().zip(&inputs) {
        feed(input, &file.display().to_string());
    }
    let seed = from_environment("ANY_INPUT_SEED").unwrap_or(1);
    let mut generator = fastrand::Rng::with_seed(seed);
    let runs = from_environment("ANY_INPUT_RUNS").and_then(|runs| usize::try_from(runs).ok()).unwrap_or(RUNS);
    for run in 0..runs {
        let input = &inputs[run % inputs.len()];
        let other = &inputs[generator.usize(..inputs.len())];
        let changed = mutation::changed(input, other, &mut |below| generator.usize(..below.max(1)));
        feed(&changed, &format!("seed {seed}, run {run}, from {}", files[run % inputs.len()].display()));
    }
}
