//! The record in the Lease, and who may lead by it. Pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use tokio::time::Instant;

use super::ElectionOptions;

/// The fields that show whether a holder is alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) holder: Option<String>,
    lease_duration: Option<i32>,
    renew_time: Option<Timestamp>,
    acquire_time: Option<Timestamp>,
    transitions: Option<i32>,
}

/// A record and when it was first seen in this form.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    pub(super) record: Record,
    pub(super) at: Instant,
}

/// Who holds the Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// This process.
    Ours,
    /// No holder, or a holder that stopped renewing.
    Free,
    /// Another holder that may still be alive.
    HeldByOther,
}

pub(super) fn of(lease: &Lease) -> Record {
    let spec = lease.spec.clone().unwrap_or_default();
    Record {
        holder: spec.holder_identity.filter(|holder| !holder.is_empty()),
        lease_duration: spec.lease_duration_seconds,
        renew_time: spec.renew_time.map(|time| time.0),
        acquire_time: spec.acquire_time.map(|time| time.0),
        transitions: spec.lease_transitions,
    }
}

pub(super) fn standing(
    lease: &Lease,
    observed: Option<&Observed>,
    options: &ElectionOptions,
    now: Instant,
) -> Standing {
    let record = of(lease);
    match &record.holder {
        None => Standing::Free,
        Some(holder) if *holder == options.identity => Standing::Ours,
        Some(_) => {
            // A holder without a lease duration gets the duration that this process uses itself.
            let seconds = record.lease_duration.and_then(|seconds| u64::try_from(seconds).ok());
            let duration = seconds.map_or(options.lease_duration, Duration::from_secs);
            let lapsed = observed.is_some_and(|observed| {
                observed.record == record && now.duration_since(observed.at) >= duration
            });
            if lapsed { Standing::Free } else { Standing::HeldByOther }
        }
    }
}

pub(super) fn fresh(options: &ElectionOptions) -> Lease {
    let metadata = ObjectMeta {
        name: Some(options.name.clone()),
        namespace: Some(options.namespace.clone()),
        ..ObjectMeta::default()
    };
    let lease = Lease { metadata, spec: Some(LeaseSpec::default()) };
    write(lease, options, |spec, now| {
        spec.acquire_time = Some(now);
        spec.lease_transitions = Some(0);
    })
}

pub(super) fn taken(lease: Lease, options: &ElectionOptions) -> Lease {
    write(lease, options, |spec, now| {
        spec.acquire_time = Some(now);
        spec.lease_transitions = Some(spec.lease_transitions.unwrap_or(0).saturating_add(1));
    })
}

pub(super) fn renewed(lease: Lease, options: &ElectionOptions) -> Lease {
    write(lease, options, |_, _| {})
}

pub(super) fn released(mut lease: Lease) -> Lease {
    let spec = lease.spec.get_or_insert_with(LeaseSpec::default);
    spec.holder_identity = Some(String::new());
    spec.lease_duration_seconds = Some(1);
    spec.renew_time = Some(MicroTime(Timestamp::now()));
    lease
}

fn write(
    mut lease: Lease,
    options: &ElectionOptions,
    change: impl FnOnce(&mut LeaseSpec, MicroTime),
) -> Lease {
    let now = MicroTime(Timestamp::now());
    let annotations = options.annotations.current();
    if !annotations.is_empty() {
        lease.metadata.annotations.get_or_insert_default().extend(annotations);
    }
    let spec = lease.spec.get_or_insert_with(LeaseSpec::default);
    change(spec, now.clone());
    spec.holder_identity = Some(options.identity.clone());
    spec.lease_duration_seconds = i32::try_from(options.lease_duration.as_secs().max(1)).ok();
    spec.renew_time = Some(now);
    lease
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::election::LeaseAnnotations;

    #[test]
    fn the_holder_says_who_it_is_and_leaves_what_others_wrote() {
        let mut lease = fresh(&options("other"));
        lease.metadata.annotations.get_or_insert_default().insert("theirs".into(), "kept".into());
        let annotations = taken(lease, &options("me")).metadata.annotations.unwrap();
        assert_eq!(annotations["leader"], "me");
        assert_eq!(annotations["theirs"], "kept");
    }

    fn options(identity: &str) -> ElectionOptions {
        ElectionOptions {
            namespace: "kube-system".into(),
            name: "cloud-controller-manager".into(),
            identity: identity.into(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            annotations: {
                let leader = BTreeMap::from([("leader".to_owned(), identity.to_owned())]);
                LeaseAnnotations::new(move || leader.clone())
            },
            component: "cloud-controller-manager",
        }
    }

    #[test]
    fn a_live_holder_is_left_alone_until_its_record_stood_still() {
        let (lease, me) = (fresh(&options("other")), options("me"));
        let seen = Observed { record: of(&lease), at: Instant::now() };
        let at = |seconds| seen.at + Duration::from_secs(seconds);
        assert_eq!(standing(&lease, None, &me, at(0)), Standing::HeldByOther);
        assert_eq!(standing(&lease, Some(&seen), &me, at(14)), Standing::HeldByOther);
        assert_eq!(standing(&lease, Some(&seen), &me, at(15)), Standing::Free);
        let renewed = taken(lease, &options("other"));
        assert_eq!(standing(&renewed, Some(&seen), &me, at(99)), Standing::HeldByOther);
    }

    #[test]
    fn a_holder_that_does_not_say_for_how_long_is_waited_for() {
        let mut lease = fresh(&options("other"));
        lease.spec.as_mut().unwrap().lease_duration_seconds = None;
        let seen = Observed { record: of(&lease), at: Instant::now() };
        let at = |seconds| seen.at + Duration::from_secs(seconds);
        assert_eq!(standing(&lease, Some(&seen), &options("me"), at(14)), Standing::HeldByOther);
        assert_eq!(standing(&lease, Some(&seen), &options("me"), at(15)), Standing::Free);
    }

    #[test]
    fn a_released_lease_is_free_at_once() {
        let lease = released(fresh(&options("other")));
        assert_eq!(standing(&lease, None, &options("me"), Instant::now()), Standing::Free);
        assert_eq!(lease.spec.unwrap().lease_duration_seconds, Some(1));
    }

    #[test]
    fn taking_over_counts_a_transition_and_renewing_does_not() {
        let lease = fresh(&options("a"));
        let taken = taken(lease, &options("b"));
        assert_eq!(taken.spec.as_ref().unwrap().lease_transitions, Some(1));
        let renewed = renewed(taken.clone(), &options("b"));
        assert_eq!(renewed.spec.as_ref().unwrap().lease_transitions, Some(1));
        assert_eq!(renewed.spec.unwrap().acquire_time, taken.spec.unwrap().acquire_time);
    }
}
