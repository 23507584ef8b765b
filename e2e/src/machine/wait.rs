//! Readiness by asking for what is needed.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::machine::process::Ended;

/// Time between the first two attempts, and the longest one; it doubles in between. What takes long is not asked for often:
/// each question costs time of the processors that the answer needs.
const INTERVALS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(400));

/// Tries until it works, and returns the result.
pub(crate) fn until<T>(what: &str, patience: Duration, mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
    let deadline = Instant::now() + patience;
    let (mut interval, longest) = INTERVALS;
    loop {
        match attempt() {
            Ok(value) => return Ok(value),
            Err(error) if error.is::<Ended>() => return Err(error).with_context(|| what.to_owned()),
            Err(error) if Instant::now() >= deadline => {
                return Err(error).with_context(|| format!("not within {} s: {what}", patience.as_secs()));
            }
            Err(_) => std::thread::sleep(interval),
        }
        interval = (interval * 2).min(longest);
    }
}

/// Longest time of a step of Octavia or of the controller, on a machine with much other work to do: only failures wait for it.
const PATIENCE: Duration = Duration::from_secs(240);

/// [`until`] with the time that a step of Octavia may need.
pub(crate) fn soon<T>(what: &str, attempt: impl FnMut() -> Result<T>) -> Result<T> {
    until(what, PATIENCE, attempt)
}
