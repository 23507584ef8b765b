//! Any input, near to what is read and far from it: nothing panics, and everything ends.
//!
//! The functions are those of the fuzz targets in `fuzz/`, and so are the first inputs. `ANY_INPUT_RUNS=100000` makes more
//! of them, `ANY_INPUT_SEED=7` others.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "the fuzz targets name the functions")]

mod answers;
mod entries;
mod mutation;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use rstest::rstest;

/// Inputs that are made from each of the first ones.
const RUNS: usize = 300;

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The first inputs of a function.
fn corpus(name: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut inputs: Vec<(String, Vec<u8>)> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.display().to_string(), std::fs::read(&path).unwrap()))
        .collect();
    inputs.sort();
    assert!(!inputs.is_empty(), "{} is empty", folder.display());
    inputs
}

#[track_caller]
fn feed(entry: entries::Entry, input: &[u8], what: &str) {
    let result = catch_unwind(AssertUnwindSafe(|| entry(input)));
    assert!(result.is_ok(), "{what}: {:?}", String::from_utf8_lossy(input));
}

#[rstest]
fn nothing_panics_and_everything_ends(
    #[values("annotations", "floating_subnet", "cloud_conf", "clouds_yaml", "answers")] name: &str,
) {
    let (_, entry) = entries::ENTRIES.into_iter().find(|(known, _)| *known == name).unwrap();
    let inputs = corpus(name);
    for (file, input) in &inputs {
        feed(entry, input, file);
    }
    let seed = from_environment("ANY_INPUT_SEED").unwrap_or(1);
    let mut generator = fastrand::Rng::with_seed(seed);
    let runs = from_environment("ANY_INPUT_RUNS").and_then(|runs| usize::try_from(runs).ok()).unwrap_or(RUNS);
    for run in 0..runs {
        let (file, input) = &inputs[run % inputs.len()];
        let other = &inputs[generator.usize(..inputs.len())].1;
        let changed = mutation::changed(input, other, &mut |below| generator.usize(..below.max(1)));
        feed(entry, &changed, &format!("seed {seed}, run {run}, from {file}"));
    }
}
