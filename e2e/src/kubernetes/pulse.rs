//! Whether an API server still answers in time: where it does not, controllers lose their Leases, and nothing that is seen then says
//! anything about them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::api::Kubernetes;
use crate::machine::world;

/// Longest time for an answer about itself.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two questions.
const INTERVAL: Duration = Duration::from_secs(5);
/// So many late answers in a row are no accident.
const LATE_ANSWERS: u32 = 3;

/// An API server is asked again and again for as long as this is there.
pub(crate) struct Pulse(Arc<AtomicBool>);

impl Pulse {
    pub(super) fn feel(api: &Kubernetes) -> Self {
        let (api, over) = (api.clone(), Arc::new(AtomicBool::new(false)));
        let ended = Arc::clone(&over);
        std::thread::spawn(move || {
            let mut late = LateAnswers::default();
            loop {
                std::thread::sleep(INTERVAL);
                let asked = Instant::now();
                // Whatever it answers: this is about the time that it takes.
                api.raw("/readyz").ok();
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                if late.is_too_slow(asked.elapsed()) {
                    world::complain();
                }
            }
        });
        Self(over)
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Late answers in a row.
#[derive(Debug, Default)]
struct LateAnswers(u32);

impl LateAnswers {
    /// Whether the machine is too slow for what goes on in it, after an answer that took so long.
    fn is_too_slow(&mut self, took: Duration) -> bool {
        self.0 = if took > PATIENCE { self.0 + 1 } else { 0 };
        let too_slow = self.0 == LATE_ANSWERS;
        if too_slow {
            self.0 = 0;
        }
        too_slow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_late_answers_in_a_row_are_too_many() {
        let mut late = LateAnswers::default();
        let seconds = [3, 3, 1, 3, 3, 3, 3, 3, 3].map(Duration::from_secs);
        let said = seconds.map(|took| late.is_too_slow(took));
        assert_eq!(said, [false, false, false, false, false, true, false, false, true]);
    }
}
