//! What came of a round, and what follows from it for the next one.

use std::time::Duration;

use openstack_ccm_core::backoff::Backoff;
use openstack_ccm_openstack_api::error::{ApiError, ErrorKind};
use tokio::time::Instant;
use tracing::warn;

/// Pauses while lists fail.
const PAUSES_AFTER_ERRORS: Backoff = Backoff::doubling(Duration::from_secs(2), Duration::from_secs(30));

/// For so long after an overload lists are asked for in place of many single load balancers.
const LISTS_AFTER_OVERLOAD: Duration = Duration::from_secs(60);

/// How the next round begins.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NextRound {
    /// How long to rest at least; absent where everything was answered.
    pub(super) rest: Option<Duration>,
    /// Rounds in a row that failed, since anything was answered.
    failures: u32,
    /// Until when the lists of projects are asked for, also where these are long: Octavia had too much to do with requests for single
    /// load balancers.
    lists_until: Option<Instant>,
}

impl NextRound {
    /// Whether a round that begins now asks for the lists of projects, however long they are.
    pub(super) fn takes_lists(&self, now: Instant) -> bool {
        self.lists_until.is_some_and(|until| now < until)
    }
}

/// The answers of a round.
#[derive(Debug, Default)]
pub(super) struct RoundTally {
    answers: usize,
    /// How many load balancers they list.
    listed: usize,
    failures: usize,
    first_error: Option<ApiError>,
    /// For how long Octavia wants to be left alone.
    asked_for: Duration,
    is_overloaded: bool,
}

impl RoundTally {
    /// Counts an answer, which lists so many load balancers.
    pub(super) fn add(&mut self, answer: Result<usize, ApiError>) {
        match answer {
            Ok(listed) => {
                self.answers += 1;
                self.listed += listed;
            }
            Err(error) => {
                self.failures += 1;
                self.asked_for = self.asked_for.max(error.retry_after().unwrap_or_default());
                self.is_overloaded |= is_overload(&error);
                self.first_error.get_or_insert(error);
            }
        }
    }

    /// How many load balancers are listed, where everything was answered so far.
    pub(super) fn listed(&self) -> Option<usize> {
        (self.answers > 0 && self.failures == 0).then_some(self.listed)
    }

    /// Whether Octavia had too much to do, so that further requests would fail as well.
    pub(super) fn is_overloaded(&self) -> bool {
        self.is_overloaded
    }

    /// What follows, where this round began like that at `asked`. Lists that fail are followed by requests for single load balancers
    /// again: neither of the two, failing for a reason of its own, keeps the other one from being tried.
    pub(super) fn next(self, before: NextRound, asked: Instant) -> NextRound {
        let took_lists = before.takes_lists(asked);
        let Some(error) = self.first_error else {
            return NextRound { lists_until: before.lists_until, ..NextRound::default() };
        };
        let failures = if self.answers > 0 && !self.is_overloaded { 0 } else { before.failures };
        let rest = PAUSES_AFTER_ERRORS.delay(failures).max(self.asked_for).min(PAUSES_AFTER_ERRORS.longest);
        warn!(
            %error,
            failed = self.failures,
            answered = self.answers,
            retry_seconds = rest.as_secs(),
            "could not list the load balancers that are pending"
        );
        NextRound {
            rest: Some(rest),
            failures: failures + 1,
            lists_until: (self.is_overloaded && !took_lists).then(|| asked + LISTS_AFTER_OVERLOAD),
        }
    }
}

/// Whether it tells of Octavia as a whole, not of this request.
fn is_overload(error: &ApiError) -> bool {
    matches!(error.kind(), ErrorKind::RateLimited | ErrorKind::Unavailable | ErrorKind::LostAnswer)
}
