//! Folding of events, pure: time comes in from outside.
//!
//! As the framework's recorder does: an identical event raises the count of the first one; more than ten different
//! messages of one kind within ten minutes become one combined event; one object may have 25 writes at once and then
//! one per five minutes, but for the first event of a reason. Without this a failing Service floods the cluster's store.

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::Duration;

use openstack_ccm_core::notice::Severity;
use tokio::time::Instant;

/// Different messages of one topic before they are combined.
const MAX_SIMILAR_MESSAGES: usize = 10;
/// How long messages of one topic are looked at together.
const SIMILAR_WINDOW: Duration = Duration::from_secs(600);
/// An event that was not repeated for so long may be gone from the cluster: start a new one.
const SERIES_LIFETIME: Duration = Duration::from_secs(3600);
/// Writes that one object may cause at once.
const MAX_BURST: u32 = 25;
/// One more write per this time.
const REFILL_INTERVAL: Duration = Duration::from_secs(300);
/// Topics that are remembered at most.
const MAX_TOPICS: usize = 8192;
/// What stands before a combined message.
const COMBINED: &str = "(combined from similar events): ";

/// What makes events similar: everything but the message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Topic {
    /// `metadata.uid` of the object.
    pub(super) object: String,
    /// Who says it.
    pub(super) component: &'static str,
    /// Type of the event.
    pub(super) severity: Severity,
    pub(super) reason: &'static str,
}

/// What to do with one occurrence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Write a new event, and report its name with [`Correlator::created`].
    Create {
        /// The message, possibly marked as combined.
        message: String,
    },
    /// Raise the count of a written event.
    Repeat {
        /// `metadata.name` of the event.
        name: String,
        /// The message, possibly newer than the written one.
        message: String,
        /// The new count.
        count: i32,
    },
    /// Write nothing; it counts with the next repeat.
    Drop,
}

/// One event as it stands in the cluster.
#[derive(Debug)]
struct Series {
    /// The message without request ids; absent for the combined event of a topic.
    message: Option<String>,
    /// Absent until it was written.
    name: Option<String>,
    count: i32,
    last: Instant,
}

/// The allowance of one object and component.
#[derive(Debug)]
struct Bucket {
    tokens: u32,
    refilled: Instant,
}

impl Bucket {
    fn take(&mut self, now: Instant) -> bool {
        while self.tokens < MAX_BURST && now.duration_since(self.refilled) >= REFILL_INTERVAL {
            self.tokens += 1;
            self.refilled += REFILL_INTERVAL;
        }
        if self.tokens == MAX_BURST {
            self.refilled = now;
        }
        let allowed = self.tokens > 0;
        self.tokens = self.tokens.saturating_sub(1);
        allowed
    }
}

/// What a request id begins with in the answers of many clouds; a UUID follows.
const REQUEST_ID: &str = "req-";

/// A message as it is compared. Each refusal of the same kind has other request ids.
fn without_request_ids(message: &str) -> Cow<'_, str> {
    let Some((before, rest)) = message.split_once(REQUEST_ID) else { return Cow::Borrowed(message) };
    let rest = rest.trim_start_matches(|letter: char| letter.is_ascii_hexdigit() || letter == '-');
    Cow::Owned(format!("{before}{REQUEST_ID}{}", without_request_ids(rest)))
}

/// Remembers what was written about which object.
#[derive(Debug, Default)]
pub(super) struct Correlator {
    topics: HashMap<Topic, Vec<Series>>,
    buckets: HashMap<(String, &'static str), Bucket>,
    /// The series that the last action was about.
    current: Option<(Topic, Option<String>)>,
}

impl Correlator {
    /// Decides about one occurrence.
    pub(super) fn correlate(&mut self, topic: Topic, message: &str, now: Instant) -> Action {
        self.forget_old(now);
        let series = self.topics.entry(topic.clone()).or_default();
        series.retain(|series| now.duration_since(series.last) < SERIES_LIFETIME);
        let recent = series
            .iter()
            .filter(|series| series.message.is_some() && now.duration_since(series.last) < SIMILAR_WINDOW)
            .count();
        let compared = without_request_ids(message);
        let known = series.iter().any(|series| series.message.as_deref() == Some(&*compared));
        let combined = !known && recent >= MAX_SIMILAR_MESSAGES;
        let key = (!combined).then(|| compared.into_owned());
        let message = if combined { format!("{COMBINED}{message}") } else { message.to_owned() };
        // What may be said once, such as that something stays in the cloud, is not lost among repeats of other reasons.
        let is_first = series.is_empty();
        let index = series.iter().position(|series| series.message == key).unwrap_or_else(|| {
            // Most topics have one.
            series.reserve_exact(1);
            series.push(Series { message: key.clone(), name: None, count: 0, last: now });
            series.len() - 1
        });
        let allowed = self
            .buckets
            .entry((topic.object.clone(), topic.component))
            .or_insert(Bucket { tokens: MAX_BURST, refilled: now })
            .take(now)
            || is_first;
        let entry = &mut series[index];
        entry.count = entry.count.saturating_add(1);
        entry.last = now;
        let (name, count) = (entry.name.clone(), entry.count);
        self.current = Some((topic, key));
        match (allowed, name) {
            (false, _) => Action::Drop,
            (true, None) => Action::Create { message },
            (true, Some(name)) => Action::Repeat { name, message, count },
        }
    }

    /// The event of the last action exists now under this name.
    pub(super) fn created(&mut self, name: String) {
        if let Some(series) = self.current_series() {
            series.name = Some(name);
        }
    }

    /// The last action could not be carried out: the next occurrence starts over.
    pub(super) fn failed(&mut self) {
        let Some((topic, key)) = self.current.take() else { return };
        if let Some(series) = self.topics.get_mut(&topic) {
            series.retain(|series| series.message != key);
        }
    }

    fn current_series(&mut self) -> Option<&mut Series> {
        let (topic, key) = self.current.as_ref()?;
        self.topics.get_mut(topic)?.iter_mut().find(|series| series.message == *key)
    }

    fn forget_old(&mut self, now: Instant) {
        if self.topics.len() < MAX_TOPICS {
            return;
        }
        let newest = |series: &Vec<Series>| series.iter().map(|series| series.last).max();
        self.topics
            .retain(|_, series| newest(series).is_some_and(|last| now.duration_since(last) < SIMILAR_WINDOW));
        self.buckets.retain(|_, bucket| now.duration_since(bucket.refilled) < REFILL_INTERVAL);
        if self.topics.len() >= MAX_TOPICS {
            self.topics.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(object: &str) -> Topic {
        Topic {
            object: object.into(),
            component: "service-controller",
            severity: Severity::Warning,
            reason: "SyncLoadBalancerFailed",
        }
    }

    fn later(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    #[test]
    fn an_identical_event_raises_the_count() {
        let now = Instant::now();
        let mut correlator = Correlator::default();
        let first = correlator.correlate(topic("u"), "quota", now);
        assert_eq!(first, Action::Create { message: "quota".into() });
        correlator.created("svc.1".into());
        let second = correlator.correlate(topic("u"), "quota", later(now, 5));
        assert_eq!(second, Action::Repeat { name: "svc.1".into(), message: "quota".into(), count: 2 });
        let other = correlator.correlate(topic("u"), "refused", later(now, 6));
        assert_eq!(other, Action::Create { message: "refused".into() });
    }

    #[test]
    fn refusals_that_differ_in_their_request_ids_are_one_event() {
        let now = Instant::now();
        let mut correlator = Correlator::default();
        let refusal = |id: &str| {
            format!("500 in use\nrequest_ids: ['req-{id}'] (request req-{id}); choose another address")
        };
        let (first, second) = (
            refusal("0b6d2c54-7d3a-4b43-8c86-4f4ce1a0f2c1"),
            refusal("9e1f7a30-11aa-4d0e-a4c5-55d1f5e8b7aa"),
        );
        correlator.correlate(topic("u"), &first, now);
        correlator.created("svc.1".into());
        let repeat = correlator.correlate(topic("u"), &second, later(now, 5));
        assert_eq!(repeat, Action::Repeat { name: "svc.1".into(), message: second, count: 2 });
    }

    #[test]
    fn one_object_cannot_flood_the_cluster() {
        let now = Instant::now();
        let mut correlator = Correlator::default();
        let mut written = 0;
        for second in 0..200 {
            match correlator.correlate(topic("noisy"), "quota", later(now, second)) {
                Action::Drop => {}
                Action::Create { .. } => {
                    written += 1;
                    correlator.created("svc.1".into());
                }
                Action::Repeat { .. } => written += 1,
            }
        }
        assert_eq!(written, 25);
        // Another object has its own allowance, and the noisy one gets a new write in time, with the whole count.
        assert!(matches!(
            correlator.correlate(topic("quiet"), "quota", later(now, 200)),
            Action::Create { .. }
        ));
        let repeat = correlator.correlate(topic("noisy"), "quota", later(now, 301));
        assert_eq!(repeat, Action::Repeat { name: "svc.1".into(), message: "quota".into(), count: 201 });
    }

    #[test]
    fn the_first_event_of_a_reason_is_not_lost_among_repeats_of_others() {
        let now = Instant::now();
        let mut correlator = Correlator::default();
        for second in 0..100 {
            correlator.correlate(topic("u"), "quota", later(now, second));
        }
        let said_once = Topic { reason: "LoadBalancerLeft", ..topic("u") };
        let first = correlator.correlate(said_once.clone(), "it stays", later(now, 100));
        assert_eq!(first, Action::Create { message: "it stays".into() });
        correlator.created("svc.2".into());
        assert_eq!(correlator.correlate(said_once, "it stays", later(now, 101)), Action::Drop);
    }

    #[test]
    fn many_different_messages_become_one() {
        let now = Instant::now();
        let mut correlator = Correlator::default();
        for number in 0..10 {
            let message = format!("request {number} failed");
            assert_eq!(
                correlator.correlate(topic("u"), &message, now),
                Action::Create { message: message.clone() }
            );
            correlator.created(format!("svc.{number}"));
        }
        let combined = "(combined from similar events): request 10 failed".to_owned();
        assert_eq!(
            correlator.correlate(topic("u"), "request 10 failed", now),
            Action::Create { message: combined }
        );
        correlator.created("svc.10".into());
        let combined = "(combined from similar events): request 11 failed".to_owned();
        assert_eq!(
            correlator.correlate(topic("u"), "request 11 failed", now),
            Action::Repeat { name: "svc.10".into(), message: combined, count: 2 }
        );
    }

    #[test]
    fn an_old_series_starts_anew() {
        let now = Instant::now();
        let mut correlator = Correlator::default();
        correlator.correlate(topic("u"), "quota", now);
        correlator.created("svc.1".into());
        let action = correlator.correlate(topic("u"), "quota", later(now, 3700));
        assert_eq!(action, Action::Create { message: "quota".into() });
    }

    #[test]
    fn a_failed_write_is_tried_as_a_new_event() {
        let now = Instant::now();
        let mut correlator = Correlator::default();
        correlator.correlate(topic("u"), "quota", now);
        correlator.failed();
        assert_eq!(
            correlator.correlate(topic("u"), "quota", now),
            Action::Create { message: "quota".into() }
        );
    }
}
