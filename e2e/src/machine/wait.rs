//! Readiness by asking for what is needed.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::machine::process::Ended;

/// Time between the first two attempts, and the longest one; it doubles in between. What takes long is not asked for often:
/// each question costs time of the processors that the answer needs.
const INTERVALS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(400));

/// What did not come about in its time.
#[derive(Debug)]
struct Late {
    what: String,
    patience: Duration,
}

impl std::fmt::Display for Late {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "not within {} s: {}", self.patience.as_secs(), self.what)
    }
}

/// Whether an error says that a step of Octavia or of the controller did not come about in its time.
pub(crate) fn is_late(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Late>().is_some_and(|late| late.patience >= PATIENCE)
}

/// Tries until it works, and returns the result.
pub(crate) fn until<T>(what: &str, patience: Duration, mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
    let deadline = Instant::now() + patience;
    let (mut interval, longest) = INTERVALS;
    loop {
        match attempt() {
            Ok(value) => return Ok(value),
            Err(error) if error.is::<Ended>() => return Err(error).with_context(|| what.to_owned()),
            Err(error) if Instant::now() >= deadline => {
                return Err(error.context(Late { what: what.to_owned(), patience }));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_was_late_is_known_as_such_whatever_is_said_about_it() {
        let late = |patience| {
            let what = "the Service is published".to_owned();
            anyhow::anyhow!("no address").context(Late { what, patience }).context("a node joins")
        };
        assert!(is_late(&late(PATIENCE)));
        assert!(!is_late(&late(Duration::from_secs(60))));
        assert!(!is_late(&anyhow::anyhow!("not within 240 s")));
        assert_eq!(
            format!("{:#}", late(PATIENCE)),
            "a node joins: not within 240 s: the Service is published: no address"
        );
    }
}
