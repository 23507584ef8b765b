//! What a run says while something takes long: nobody should wonder for more than a minute whether it still works.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::say;

/// Longest silence of work under way.
const SAY_INTERVAL: Duration = Duration::from_secs(50);

/// What this process is at, and when that was said last; absent while it waits for others, who say what they do.
static PRESENT: Mutex<Option<(String, Instant)>> = Mutex::new(None);

/// From now on this is what [`break_silence`] speaks of.
pub(crate) fn set_present(what: Option<&str>) {
    *PRESENT.lock().unwrap_or_else(PoisonError::into_inner) =
        what.map(|what| (what.to_owned(), Instant::now()));
}

/// Says every now and then what this process is still at.
pub(crate) fn break_silence() {
    std::thread::spawn(|| {
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let mut present = PRESENT.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((what, said)) = present.as_mut()
                && said.elapsed() >= SAY_INTERVAL
            {
                say(&format!("     still at: {what}"));
                *said = Instant::now();
            }
        }
    });
}

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
