//! Digests of content that is compared but not kept.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use openstack_ccm_core::service::{Service, ServiceKey};
use tokio::time::Instant;

use crate::load_balancer::annotations::{
    CONVERGED_DIGEST, LOAD_BALANCER_ADDRESS, LOAD_BALANCER_ID, OWNED_LOAD_BALANCER_ID,
};
use crate::load_balancer::objects::Desired;
use crate::load_balancer::objects::step::Step;

/// Seconds of a day.
const DAY: u64 = 24 * 3600;

/// 64 bits of a hash. Equal digests mean equal content.
///
/// Not stable between versions of this controller. In the cloud a digest only says that something was tried already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Digest(u64);

/// The desired and the existing state were equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agreement {
    wanted: Digest,
    shown: Digest,
    /// When everything was read.
    pub(crate) looked: Instant,
}

impl Agreement {
    /// Notes that a load balancer was as `desired` while it showed this `updated_at`. Octavia sets that with every change of a load
    /// balancer or its children, when the change begins and when it ends, failed or not: as long as it is the same, they agree.
    pub(crate) fn new(desired: &Desired, load_balancer_id: &str, updated_at: &str, looked: Instant) -> Self {
        Self { wanted: Digest::of_wanted(desired), shown: Digest::of((load_balancer_id, updated_at)), looked }
    }

    /// Returns whether this is what was wanted.
    pub(crate) fn wants(&self, desired: &Desired) -> bool {
        self.wanted == Digest::of_wanted(desired)
    }

    /// Returns whether the load balancer was not changed since, as its `updated_at` shows.
    pub(crate) fn is_unchanged(&self, load_balancer_id: &str, updated_at: Option<&str>) -> bool {
        updated_at.is_some_and(|updated_at| self.shown == Digest::of((load_balancer_id, updated_at)))
    }

    /// Returns whether the agreement still holds: clocks may be set back and replicas may lag, so everything is read once a day, each
    /// Service at a time of its own. That is in the second half of the days that begin with the start, which reads everything.
    pub(crate) fn stands(&self, service: &ServiceKey, started: Instant, now: Instant) -> bool {
        let Digest(hash) = Digest::of((&service.namespace, &service.name));
        let day = |at: Instant| {
            let since = at.saturating_duration_since(started).as_secs();
            since.saturating_add(hash % (DAY / 2)) / DAY
        };
        day(self.looked) == day(now)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Digest {
    pub(crate) fn of(content: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        content.hash(&mut hasher);
        Self(hasher.finish())
    }

    /// Returns the digest of the steps of a plan, as they are displayed.
    pub(crate) fn of_steps(steps: &[Step]) -> Self {
        Self::of(steps.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    /// Returns the digest of a Service without what this controller writes into it.
    pub(crate) fn of_service(service: &Service) -> Self {
        let mut input = Service {
            published: Vec::new(),
            published_hostnames: Vec::new(),
            is_published: false,
            ..service.clone()
        };
        for output in [LOAD_BALANCER_ID, LOAD_BALANCER_ADDRESS, OWNED_LOAD_BALANCER_ID, CONVERGED_DIGEST] {
            input.annotations.remove(output.key);
        }
        Self::of(input)
    }

    /// Returns the digest of what a Service wants of a load balancer.
    fn of_wanted(desired: &Desired) -> Self {
        // Only the tags of the load balancer itself are compared; floating IPs are compared by their list.
        let Desired { load_balancer, listeners, metrics, .. } = desired;
        Self::of((&load_balancer.tags, listeners, metrics))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Each stands for a day at most, at first for half a day at least, and they do not end together.
    #[tokio::test(start_paused = true)]
    async fn an_agreement_ends_within_a_day_at_an_hour_of_its_own() {
        let started = Instant::now();
        let hours: Vec<u64> = (0..100)
            .map(|number| {
                let service = ServiceKey::new("default", format!("web-{number}"));
                let agreement = Agreement { wanted: Digest(0), shown: Digest(0), looked: started };
                let after = |hours: u64| started + Duration::from_secs(3600 * hours);
                assert!(!agreement.stands(&service, started, after(24)));
                (0..=24).find(|hour| !agreement.stands(&service, started, after(*hour))).unwrap()
            })
            .collect();
        for (day_part, counts) in [(0..=12, 0..=0), (13..=18, 30..=70), (19..=24, 30..=70)] {
            let count = hours.iter().filter(|hour| day_part.contains(*hour)).count();
            assert!(counts.contains(&count), "{day_part:?}: {hours:?}");
        }
    }
}
