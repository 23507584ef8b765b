//! How many worlds work at the same time: as many as the machine bears.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// More than these disturb each other on any machine.
pub(crate) const MOST: usize = 4;

/// Worlds for this number of cores. What is compiled takes a core; a world mostly waits.
fn wanted(cores: usize, is_compiling: bool, most: usize, too_slow: usize) -> usize {
    let by_cores = if is_compiling { cores } else { 2 * cores };
    by_cores.min(most).saturating_sub(too_slow).max(1)
}

/// The worlds of a run.
#[derive(Debug)]
pub(crate) struct Worlds {
    cores: usize,
    most: usize,
    present: Mutex<Tally>,
}

#[derive(Debug)]
struct Tally {
    is_compiling: bool,
    live: usize,
    /// One whose cloud does not answer yet. The next one waits for it: clouds that start side by side are ready together, and late.
    starts: bool,
    /// So many worlds have been too many.
    too_slow: usize,
}

impl Worlds {
    pub(crate) fn new(cores: usize, most: usize, is_compiling: bool) -> Self {
        let present = Tally { is_compiling, live: 0, starts: false, too_slow: 0 };
        Self { cores, most, present: Mutex::new(present) }
    }

    fn present(&self) -> MutexGuard<'_, Tally> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The most that there will be.
    pub(crate) fn most(&self) -> usize {
        wanted(self.cores, false, self.most, 0)
    }

    /// Nothing is compiled any more.
    pub(crate) fn all_is_built(&self) {
        self.present().is_compiling = false;
    }

    /// Whether another world may start now, which then counts.
    pub(crate) fn may_start(&self) -> bool {
        let mut present = self.present();
        let wanted = wanted(self.cores, present.is_compiling, self.most, present.too_slow);
        let may = !present.starts && present.live < wanted;
        if may {
            present.live += 1;
            present.starts = true;
        }
        may
    }

    /// The cloud of the world that starts answers.
    pub(crate) fn answers(&self) {
        self.present().starts = false;
    }

    /// A world is over.
    pub(crate) fn ended(&self, was_starting: bool) {
        let mut present = self.present();
        present.live -= 1;
        if was_starting {
            present.starts = false;
        }
    }

    /// An API server answers too late. Returns the number of worlds if one of them is to end; the last one stays.
    pub(crate) fn are_too_many(&self) -> Option<usize> {
        let mut present = self.present();
        let live = present.live;
        let wanted = wanted(self.cores, present.is_compiling, self.most, present.too_slow);
        // One is to end already.
        if live < 2 || live > wanted {
            return None;
        }
        present.too_slow += 1 + (wanted - live);
        Some(live)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_twice_as_many_worlds_once_nothing_is_compiled() {
        assert_eq!((wanted(2, true, MOST, 0), wanted(2, false, MOST, 0)), (2, 4));
        assert_eq!((wanted(1, true, MOST, 0), wanted(1, false, MOST, 0)), (1, 2));
        assert_eq!((wanted(16, true, MOST, 0), wanted(16, false, MOST, 0)), (4, 4));
        assert_eq!(wanted(16, false, 1, 0), 1);
        assert_eq!(wanted(2, false, MOST, 9), 1);
    }

    #[test]
    fn worlds_start_one_after_another() {
        let worlds = Worlds::new(2, MOST, true);
        assert!(worlds.may_start() && !worlds.may_start());
        worlds.answers();
        assert!(worlds.may_start());
        worlds.answers();
        assert!(!worlds.may_start());
        worlds.all_is_built();
        assert!(worlds.may_start());
        worlds.ended(true);
        assert!(worlds.may_start());
    }

    #[test]
    fn a_slow_machine_gets_one_world_fewer_at_a_time_and_keeps_one() {
        let worlds = Worlds::new(2, MOST, false);
        for _ in 0..3 {
            assert!(worlds.may_start());
            worlds.answers();
        }
        assert_eq!(worlds.are_too_many(), Some(3));
        assert_eq!(worlds.are_too_many(), None, "one is to end already");
        worlds.ended(false);
        assert!(!worlds.may_start());
        assert_eq!(worlds.are_too_many(), Some(2));
        worlds.ended(false);
        assert_eq!(worlds.are_too_many(), None, "the last one stays");
    }
}
