//! Limits of what is under way at once that follow from how long it takes: a cloud that gets more than it can work on takes
//! longer for each. Pure.

use std::time::Duration;

use tokio::time::Instant;

/// A limit does not become smaller than this.
pub const FEWEST: u16 = 2;
/// Random variation of the time until OpenStack has answered a request.
pub const ANSWER_NOISE: Duration = Duration::from_millis(200);
/// A time counts as longer if it is this many times the shortest one, and random variation on top of that.
const LONGER: f64 = 1.5;
/// What is left of a limit when something took longer.
const LESS: f64 = 0.7;

/// How many may be under way at once.
#[derive(Clone, Debug)]
pub struct AdaptiveLimit {
    size: f64,
    shrunk_at: Option<Instant>,
}

impl AdaptiveLimit {
    /// A limit under which nothing has been measured yet.
    pub fn new(size: u16) -> Self {
        Self { size: f64::from(size), shrunk_at: None }
    }

    /// How many may be under way.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is small and positive")]
    pub fn size(&self) -> usize {
        self.size as usize
    }

    /// Whether something ever took longer.
    pub fn has_shrunk(&self) -> bool {
        self.shrunk_at.is_some()
    }

    /// Lets so many more in.
    pub fn grow(&mut self, by: u16) {
        self.size += f64::from(by);
    }

    /// Lets one more in when as many have ended as fit in.
    pub fn grow_slowly(&mut self) {
        self.size += 1.0 / self.size;
    }

    /// Something that began at `began` took longer. Answers whether the limit is smaller now: what began before it shrank
    /// last was sent under the larger one, and does not count again.
    pub fn shrink(&mut self, began: Instant, now: Instant) -> bool {
        let counts = self.shrunk_at.is_none_or(|at| began >= at);
        if counts {
            self.size = (self.size * LESS).max(f64::from(FEWEST));
            self.shrunk_at = Some(now);
        }
        counts
    }
}

/// The time that something takes when it is hardly disturbed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shortest(Option<Duration>);

impl From<Duration> for Shortest {
    fn from(time: Duration) -> Self {
        Self(Some(time))
    }
}

impl Shortest {
    /// The time; absent where nothing was measured yet.
    pub fn get(self) -> Option<Duration> {
        self.0
    }

    /// Whether it took longer than it does undisturbed, and by more than `noise`. `company` is the most that were under way
    /// meanwhile, this one included. With so few as there always may be, fewer would not help: then that is the new measure.
    pub fn is_longer(&mut self, took: Duration, company: usize, noise: Duration) -> bool {
        let shortest = match self.0 {
            Some(shortest) if company > usize::from(FEWEST) => shortest.min(took),
            Some(_) | None => took,
        };
        self.0 = Some(shortest);
        took > shortest.mul_f64(LONGER) + noise
    }
}
