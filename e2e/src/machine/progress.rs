//! What a run says while something takes long: nobody should wonder for more than a minute whether it still works.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::say;

/// Longest silence of work under way.
const SAY_INTERVAL: Duration = Duration::from_secs(50);

/// Says what is being done, that it still is, and when it is done.
///
/// # Errors
/// Those of the work.
pub(crate) fn announce<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    say(what);
    let began = Instant::now();
    std::thread::scope(|scope| {
        let (end, ended) = mpsc::channel::<()>();
        scope.spawn(move || {
            while ended.recv_timeout(SAY_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                say(&format!("     still {what}, for {} s", began.elapsed().as_secs()));
            }
        });
        let done = work();
        drop(end);
        if done.is_ok() {
            say(&format!("     done in {} s: {what}", began.elapsed().as_secs()));
        }
        done
    })
}
