//! How many creations are under way at once: more while that makes none of them slower, fewer when it does. Pure.
//!
//! Two times tell. How long Octavia takes to answer the request is known within seconds, so it ends the quick growth of the
//! beginning; a cloud that answers as quickly as ever gets everything at once, however long a creation itself takes. How long it takes
//! until the load balancer serves is known only then: it makes the window smaller, and larger in small steps. Where that is a matter of
//! seconds it alone tells, and the first creation of a burst is made alone.

use std::time::Duration;

use openstack_ccm_openstack_api::adaptive_limit::{ANSWER_NOISE, AdaptiveLimit, Shortest};
use tokio::time::Instant;

/// Random variation of the time of a creation, the end of which is seen when the poller asks.
const CREATION_NOISE: Duration = Duration::from_secs(3);
/// A creation that takes no longer tells soon enough whether there may be more.
const SOON: Duration = Duration::from_secs(8);
/// Where nobody knows what a creation takes, the first one of a burst is made alone for the time of so many answers, but for no less
/// than [`LEAST_ALONE`] and no more than [`SOON`]. On a small cloud one machine answers and creates, and has finished it by then; a
/// large one takes half a minute or more, so that this is little.
const ANSWERS_ALONE: u32 = 5;
/// See [`ANSWERS_ALONE`].
pub(super) const LEAST_ALONE: Duration = Duration::from_secs(2);
/// How many may be under way when the first one has ended within [`SOON`]: a small cloud, too, has an API, a database and workers, which
/// work at the same time.
const AFTER_FIRST: u16 = 4;

/// The number and what it follows from.
#[derive(Debug)]
pub(super) struct Window {
    limit: AdaptiveLimit,
    /// Whether it grows with each answer, so that it doubles with each round.
    ramps: bool,
    /// Whether nothing has ended since the burst began.
    is_first: bool,
    /// What the first creation of the last burst took, which was made alone as long as that was possible.
    first_took: Option<Duration>,
    answer: Shortest,
    creation: Shortest,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            limit: AdaptiveLimit::new(1),
            ramps: true,
            is_first: true,
            first_took: None,
            answer: Shortest::default(),
            creation: Shortest::default(),
        }
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

    /// A creation begins, and nothing was under way or waited. What the window grew to before would make all that follow equally late.
    pub(super) fn begins_anew(&mut self) {
        let Self { first_took, answer, creation, .. } = *self;
        *self = Self { first_took, answer, creation, ..Self::default() };
    }

    /// For how long the first creation of a burst is made alone, as far as is known by now.
    pub(super) fn first_alone(&self) -> Duration {
        match (self.first_took, self.answer.get()) {
            (Some(took), _) if took > SOON => Duration::ZERO,
            (Some(_), _) | (None, None) => SOON,
            (None, Some(answer)) => (answer * ANSWERS_ALONE).clamp(LEAST_ALONE, SOON),
        }
    }

    /// Somebody has waited for so long while nothing ended.
    pub(super) fn has_waited(&mut self, time: Duration) {
        if self.is_first && self.size() == 1 && time >= self.first_alone() {
            self.limit.grow(1);
            // If it was short, it takes longer than it did.
            self.first_took = None;
        }
    }

    /// What the first creation took, where that was no longer than [`SOON`].
    fn short_first(&self) -> Option<Duration> {
        self.first_took.filter(|took| *took <= SOON)
    }

    /// Whether answers tell how many more there may be. Not while the first creation is to be made alone, and not where the ends of
    /// creations tell soon.
    fn answers_count(&self) -> bool {
        self.short_first().is_none() && (self.first_took.is_some() || self.size() > 1)
    }

    /// Octavia has answered the request.
    pub(super) fn answered(&mut self, request: Measured) {
        if self.answer.is_longer(request.took, request.company, ANSWER_NOISE) {
            self.ramps = false;
        } else if self.ramps && self.is_full(request) && self.answers_count() {
            self.limit.grow(2);
        }
    }

    /// The load balancer serves.
    pub(super) fn ended(&mut self, creation: Measured, now: Instant) {
        let is_first = std::mem::take(&mut self.is_first);
        if is_first {
            self.first_took = Some(creation.took);
        }
        let is_longer = self.is_longer(creation);
        if is_first && self.size() == 1 && self.short_first().is_some() {
            self.limit = AdaptiveLimit::new(AFTER_FIRST);
        } else if is_longer {
            self.ramps &= !self.limit.shrink(creation.began, now);
        } else if self.is_full(creation) {
            // Until they took longer once, nobody knows how far it goes.
            if self.limit.has_shrunk() { self.limit.grow_slowly() } else { self.limit.grow(1) }
        }
    }

    /// Whether a creation took longer than one does by itself. A short first one tells that better than those that were made by twos since.
    fn is_longer(&mut self, creation: Measured) -> bool {
        let Measured { took, company, .. } = creation;
        let is_longer = self.creation.is_longer(took, company, CREATION_NOISE);
        let first = self.short_first().map(Shortest::from);
        first.map_or(is_longer, |mut first| first.is_longer(took, company, CREATION_NOISE))
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
        if !answers.is_empty() {
            window.has_waited(SOON);
        }
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
    #[case::each_quick_answer_lets_two_more_in(&[ANSWER; 6], &[], 14)]
    #[case::noise_is_no_sign(&[ANSWER, 1.9, 1.9], &[], 8)]
    #[case::a_slow_answer_ends_the_growth(&[ANSWER, ANSWER, 3.0, ANSWER, ANSWER], &[], 6)]
    #[case::creations_that_take_no_longer_let_one_more_in(&[ANSWER, 3.0], &[CREATION; 12], 16)]
    #[case::creations_that_take_longer_let_fewer_in(&[ANSWER; 6], &[CREATION, 15.0], 10)]
    #[case::again(&[ANSWER; 6], &[CREATION, 15.0, 15.0], 7)]
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
        assert_eq!(window.size(), 13);
    }

    #[test]
    fn what_few_creations_take_is_the_new_measure() {
        let mut window = after(&[ANSWER, 3.0], &[20.0, 50.0, 50.0]);
        assert_eq!(window.size(), 2);
        // Each takes longer than before, whatever is beside it: fewer would not help.
        let mut now = Instant::now() + Duration::from_secs(100);
        for _ in 0..8 {
            let creation = Measured { took: Duration::from_secs(50), began: now, company: window.size() };
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
            window.begins_anew();
            assert_eq!(window.size(), 1);
            window.answered(alone);
            assert_eq!(window.size(), 1);
            window.ended(alone, alone.began + alone.took);
        }
    }

    /// A window at the beginning of a second burst, after a creation alone that took so long.
    fn second_burst(seconds: u64) -> Window {
        let mut window = Window::default();
        let alone = Measured { took: Duration::from_secs(seconds), began: Instant::now(), company: 1 };
        window.ended(alone, alone.began + alone.took);
        window.begins_anew();
        window.answered(Measured { took: Duration::from_secs(1), ..alone });
        window
    }

    #[test]
    fn the_first_one_is_made_alone_where_that_takes_a_few_seconds() {
        let mut window = second_burst(6);
        assert_eq!(window.size(), 1);
        let first = Measured { took: Duration::from_secs(6), began: Instant::now(), company: 1 };
        window.ended(first, first.began + first.took);
        assert_eq!(window.size(), 4);
        window.answered(Measured { took: Duration::from_secs(1), company: 4, ..first });
        assert_eq!(window.size(), 4, "an answer tells nothing that its end will not tell soon");
        assert_eq!(second_burst(60).size(), 3, "nobody waits for a minute");
    }

    #[rstest]
    #[case::while_it_is_not_answered(&[], 8.0)]
    #[case::where_answers_are_quick(&[0.05], 2.0)]
    #[case::on_a_small_cloud(&[0.8], 4.0)]
    #[case::where_answers_take_long(&[3.0], 8.0)]
    fn the_first_of_all_is_made_alone_for_some_answers(#[case] answers: &[f64], #[case] seconds: f64) {
        let mut window = Window::default();
        for seconds in answers {
            let took = Duration::from_secs_f64(*seconds);
            window.answered(Measured { took, began: Instant::now(), company: 1 });
        }
        assert_eq!((window.size(), window.first_alone().as_secs_f64()), (1, seconds));
    }

    #[test]
    fn nobody_waits_for_a_first_one_that_does_not_end() {
        let mut window = second_burst(6);
        window.has_waited(LEAST_ALONE);
        assert_eq!(window.size(), 1);
        window.has_waited(SOON);
        window.has_waited(SOON);
        assert_eq!(window.size(), 2);
        window.answered(Measured { took: Duration::from_secs(1), began: Instant::now(), company: 2 });
        assert_eq!(window.size(), 4, "it is a long one");
    }
}
