//! How many creations are under way at once: more while that makes none of them slower, fewer when it does. Pure.
//!
//! Two times tell. How long Octavia takes to answer the request is known within seconds, so it ends the quick growth of the
//! beginning; a cloud that answers as quickly as ever gets everything at once, however long a creation itself takes. How long it takes
//! until the load balancer serves is known only then: it makes the window smaller, and larger in small steps.

use std::time::Duration;

use openstack_ccm_openstack_api::adaptive_limit::{ANSWER_NOISE, AdaptiveLimit, Shortest};
use tokio::time::Instant;

/// Random variation of the time of a creation, the end of which is seen when the poller asks.
const CREATION_NOISE: Duration = Duration::from_secs(3);

/// The number and what it follows from.
#[derive(Debug)]
pub(super) struct Window {
    limit: AdaptiveLimit,
    /// Whether it grows with each answer, so that it doubles with each round.
    ramps: bool,
    answer: Shortest,
    creation: Shortest,
}

impl Default for Window {
    fn default() -> Self {
        let limit = AdaptiveLimit::new(1);
        Self { limit, ramps: true, answer: Shortest::default(), creation: Shortest::default() }
    }
}

/// One creation, as far as the window is concerned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    /// What it took.
    pub(super) took: Duration,
    /// When it began.
    pub(super) began: Instant,
    /// The most creations that were under way at once meanwhile, this one included.
    pub(super) company: usize,
}

impl Window {
    /// How many may be under way.
    pub(super) fn size(&self) -> usize {
        self.limit.size()
    }

    /// A creation begins, and nothing was under way or waited. It is made alone, so that it serves early and tells what one takes
    /// now; what the window grew to before would make all that follow equally late.
    pub(super) fn begins_anew(&mut self) {
        *self = Self { answer: self.answer, creation: self.creation, ..Self::default() };
    }

    /// Octavia has answered the request.
    pub(super) fn answered(&mut self, request: Measured) {
        if self.answer.is_longer(request.took, request.company, ANSWER_NOISE) {
            self.ramps = false;
        } else if self.ramps && self.is_full(request) {
            self.limit.grow(2);
        }
    }

    /// The load balancer serves, or has failed.
    pub(super) fn ended(&mut self, creation: Measured, now: Instant) {
        if self.creation.is_longer(creation.took, creation.company, CREATION_NOISE) {
            self.ramps &= !self.limit.shrink(creation.began, now);
        } else if self.is_full(creation) {
            // Until they took longer once, nobody knows how far it goes.
            if self.limit.has_shrunk() { self.limit.grow_slowly() } else { self.limit.grow(1) }
        }
    }

    /// Whether a larger window would have made a difference.
    fn is_full(&self, measured: Measured) -> bool {
        measured.company >= self.size()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const ANSWER: f64 = 1.2;
    const CREATION: f64 = 6.0;

    /// A window after answers and creations of these lengths, in seconds, each made in a full window.
    fn after(answers: &[f64], creations: &[f64]) -> Window {
        let start = Instant::now();
        let mut window = Window::default();
        let mut now = start;
        let mut measured = |window: &Window, seconds: f64| {
            let took = Duration::from_secs_f64(seconds);
            let began = now;
            now += took;
            Measured { took, began, company: window.size() }
        };
        for seconds in answers {
            let request = measured(&window, *seconds);
            window.answered(request);
        }
        for seconds in creations {
            let creation = measured(&window, *seconds);
            window.ended(creation, creation.began + creation.took);
        }
        window
    }

    #[rstest]
    #[case::one_alone_at_first(&[], &[], 1)]
    #[case::each_quick_answer_lets_two_more_in(&[ANSWER; 6], &[], 13)]
    #[case::noise_is_no_sign(&[ANSWER, 1.9, 1.9], &[], 7)]
    #[case::a_slow_answer_ends_the_growth(&[ANSWER, ANSWER, 3.0, ANSWER, ANSWER], &[], 5)]
    #[case::creations_that_take_no_longer_let_one_more_in(&[ANSWER, 3.0], &[CREATION; 12], 15)]
    #[case::creations_that_take_longer_let_fewer_in(&[ANSWER; 6], &[CREATION, 15.0], 9)]
    #[case::again(&[ANSWER; 6], &[CREATION, 15.0, 15.0], 6)]
    #[case::never_fewer_than_two(&[ANSWER; 6], &[CREATION, 15.0, 15.0, 15.0, 15.0, 15.0], 2)]
    #[case::then_in_small_steps(&[ANSWER; 6], &[CREATION, 15.0, CREATION, CREATION, CREATION, CREATION], 10)]
    fn the_window_follows_the_times(#[case] answers: &[f64], #[case] creations: &[f64], #[case] size: usize) {
        assert_eq!(after(answers, creations).size(), size);
    }

    #[test]
    fn creations_that_were_sent_into_the_larger_window_count_once() {
        let mut window = after(&[ANSWER; 8], &[CREATION]);
        let began = Instant::now();
        let late = Measured { took: Duration::from_secs(20), began, company: window.size() };
        for _ in 0..5 {
            window.ended(late, began + late.took);
        }
        assert_eq!(window.size(), 12);
    }

    #[test]
    fn what_few_creations_take_is_the_new_measure() {
        let mut window = after(&[ANSWER, 3.0], &[CREATION, 15.0]);
        assert_eq!(window.size(), 2);
        // Each takes twice as long as they did, whatever is beside it: fewer would not help.
        let mut now = Instant::now() + Duration::from_secs(100);
        for _ in 0..8 {
            let creation = Measured { took: Duration::from_secs(15), began: now, company: window.size() };
            now += creation.took;
            window.ended(creation, now);
        }
        assert!(window.size() > 2, "{window:?}");
    }

    #[test]
    fn single_creations_open_no_window() {
        let mut window = Window::default();
        let alone = Measured { took: Duration::from_secs(5), began: Instant::now(), company: 1 };
        for _ in 0..20 {
            window.answered(alone);
            window.ended(alone, alone.began + alone.took);
        }
        assert_eq!(window.size(), 3);
    }
}
