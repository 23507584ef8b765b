//! Steps that the cloud refused for a Service: they are not sent again until the Service changes, or until a growing pause is over.
//!
//! A step that takes down what serves is held longer. A refused one is sent again when the Service asks for something else in its
//! place, and nothing else of the Service counts; one that failed, once after the usual pause, then once an hour, and only while what
//! it takes down serves.

use std::collections::BTreeMap;
use std::time::Duration;

use openstack_ccm_core::backoff::Backoff;
use openstack_ccm_core::failure::{Failure, FailureClass};
use tokio::time::Instant;

use crate::load_balancer::objects::step::{
    FloatingIpStep, Handle, ListenerStep, MemberStep, PoolStep, Refused, Step,
};
use crate::load_balancer::objects::{
    Desired, FloatingIpGoal, FormerListener, ListenerKey, Observed, ObservedFloatingIp,
};
use crate::load_balancer::plan::refusals::{
    Predecessor, Refusals, TO_TRY_AGAIN, TRIED_RARELY, floating_ip_tag, is_same,
};

/// Pause after the first refusal, and the longest pause; the pause doubles in between.
const PAUSES: Backoff = Backoff::doubling(Duration::from_secs(10), Duration::from_secs(600));

/// Pause after a second failure of a step that takes down what serves.
const INTERRUPTION_PAUSE: Duration = Duration::from_secs(3600);

/// A refusal that does not recur for this long after its pause is forgotten: by then the Service asks for something else.
const REFUSAL_LIFETIME: Duration = Duration::from_secs(1800);

#[derive(Clone, Debug, PartialEq, Eq)]
struct StandingRefusal {
    refused: Refused,
    times: u32,
    /// When the step may be sent again; `None` where only a change is a reason to retry.
    not_before: Option<Instant>,
    /// Whether the step takes down what serves.
    interrupts: bool,
    /// Whether a listener that made way for the one of the step has yet to come back.
    comes_back: bool,
    /// The floating IP of the step as it was when the step was refused.
    floating_ip: Option<ObservedFloatingIp>,
}

impl StandingRefusal {
    fn is_due(&self, now: Instant, observed: &Observed) -> bool {
        let is_changed = |before: &ObservedFloatingIp| {
            observed.floating_ips.iter().any(|one| one.id == before.id && one != before)
        };
        self.not_before.is_some_and(|time| time <= now) || self.floating_ip.as_ref().is_some_and(is_changed)
    }
}

/// The refusals of one Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RefusalRecord {
    kept: Vec<StandingRefusal>,
    /// The listeners that were deleted for a listener of another protocol which does not exist yet.
    predecessors: BTreeMap<ListenerKey, Predecessor>,
}

impl RefusalRecord {
    /// Notes a refusal if it is `certain`, or not the first, or the step interrupts traffic. Returns whether it was noted.
    pub(in crate::load_balancer) fn note(
        &mut self,
        mut refused: Refused,
        observed: &Observed,
        certain: bool,
        now: Instant,
    ) -> bool {
        if refused.failure.class == FailureClass::Busy {
            // Waiting does not create a missing object.
            refused.failure.class = FailureClass::UserInput;
        }
        let interrupts = self.interrupts(&refused.step, observed);
        let is_first = !self.kept.iter().any(|kept| is_akin(&kept.refused.step, &refused.step));
        if is_first && !certain && !interrupts {
            return false;
        }
        if interrupts {
            refused.failure.message = format!("{}; {TO_TRY_AGAIN}", refused.failure.message);
        }
        self.keep(refused, |times| (!interrupts).then(|| PAUSES.delay(times)), observed, now);
        true
    }

    /// Notes a failure that may pass by itself, if the step interrupts traffic.
    pub(in crate::load_balancer) fn failed(
        &mut self,
        mut failed: Refused,
        observed: &Observed,
        now: Instant,
    ) {
        if self.interrupts(&failed.step, observed) {
            failed.failure.message = format!("{}; {TRIED_RARELY}", failed.failure.message);
            let pause = |times| if times == 0 { PAUSES.delay(0) } else { INTERRUPTION_PAUSE };
            self.keep(failed, |times| Some(pause(times)), observed, now);
        }
    }

    /// Keeps a step back for the pause that follows after so many earlier failures, or for good.
    fn keep(
        &mut self,
        mut refused: Refused,
        pause: impl FnOnce(u32) -> Option<Duration>,
        observed: &Observed,
        now: Instant,
    ) {
        let is_akin = |kept: &StandingRefusal| is_akin(&kept.refused.step, &refused.step);
        let known = self.kept.iter().filter(|kept| is_akin(kept)).max_by_key(|kept| kept.times);
        let times = known.map_or(0, |kept| kept.times);
        // What is refused while the whole rests is a part of it, and rests with it.
        let resting = known.and_then(|kept| kept.not_before).filter(|time| *time > now);
        let not_before = resting.or_else(|| pause(times).map(|pause| now + pause));
        let is_forgotten =
            |kept: &StandingRefusal| kept.not_before.is_some_and(|time| time + REFUSAL_LIFETIME < now);
        let interrupts = self.interrupts(&refused.step, observed);
        self.kept.retain(|kept| !is_forgotten(kept) && (resting.is_some() || !is_akin(kept)));
        refused.failure.rests = not_before.map(|time| time - now);
        self.kept.push(StandingRefusal {
            floating_ip: floating_ip(&refused.step, observed).filter(|_| interrupts),
            comes_back: interrupts && matches!(refused.step, Step::Listener(_)),
            refused,
            times: times.saturating_add(u32::from(resting.is_none())),
            not_before,
            interrupts,
        });
    }

    /// Returns whether something that serves is taken down before the step is tried.
    fn interrupts(&self, step: &Step, observed: &Observed) -> bool {
        match step {
            Step::Listener(ListenerStep::Create { listener, .. }) => {
                let before = self.predecessors(observed).remove(&listener.key());
                before.is_some_and(|before| before.listener.protocol != listener.protocol)
            }
            Step::FloatingIp(FloatingIpStep::Attach { instead_of, .. }) => instead_of.is_some(),
            _ => false,
        }
    }

    /// Notes accepted steps of a plan that was made for `observed`.
    pub(in crate::load_balancer) fn accepted(
        &mut self,
        steps: &[Step],
        accepted: &[&Step],
        observed: &Observed,
    ) {
        let has_room = |refused: &Refused| {
            refused.failure.class == FailureClass::Quota
                && accepted.iter().any(|step| makes_room(step, &refused.step))
        };
        self.kept.retain(|kept| {
            !accepted.iter().any(|step| is_same(&kept.refused.step, step)) && !has_room(&kept.refused)
        });
        for step in accepted {
            match step {
                Step::Listener(ListenerStep::Create { listener, .. }) => {
                    self.predecessors.remove(&listener.key());
                    let of_port = self
                        .kept
                        .iter_mut()
                        .filter(|kept| kept.refused.step.created_listener() == Some(listener.key()));
                    of_port.for_each(|kept| kept.comes_back = false);
                }
                Step::Listener(ListenerStep::Delete { id, key })
                    if steps.iter().any(|step| step.created_listener() == Some(*key)) =>
                {
                    self.predecessors.extend(predecessor(observed, id).map(|before| (*key, before)));
                }
                _ => {}
            }
        }
    }

    /// Drops the refusals because the Service changed, which may mend their causes; not those of steps that take down what serves.
    pub(in crate::load_balancer) fn service_changed(mut self) -> Self {
        self.kept.retain(|kept| kept.interrupts);
        self
    }

    /// Drops the refusals of steps that take down what serves, where the Service asks for something else in its place.
    pub(in crate::load_balancer) fn asked(&mut self, desired: &Desired) {
        self.kept.retain(|kept| !kept.interrupts || is_asked(desired, &kept.refused.step));
    }

    /// Returns the replaced listeners: those that this process deleted, and those that the tags of their former pools describe.
    fn predecessors(&self, observed: &Observed) -> BTreeMap<ListenerKey, Predecessor> {
        let children = observed.load_balancer.as_ref().and_then(|there| there.children.as_ref());
        let pools = children.into_iter().flat_map(|children| &children.pools);
        let left = pools.filter(|pool| pool.ours && pool.used_by.is_empty()).filter_map(|pool| {
            let listener = FormerListener::from_tags(&pool.tags)?;
            Some((listener.key(), Predecessor { listener, pool: pool.clone() }))
        });
        left.chain(self.predecessors.clone()).collect()
    }

    /// Returns the refusals that apply now: those that this process noted, and exchanges of floating IPs that an earlier process noted
    /// in tags. A listener that made way comes back before its successor is tried again.
    pub(crate) fn at(&self, now: Instant, observed: &Observed) -> Refusals {
        let resting = self.kept.iter().filter(|kept| kept.comes_back || !kept.is_due(now, observed));
        let mut steps: Vec<Refused> =
            resting.filter_map(|kept| kept.refused.of_what_is_missing(observed)).collect();
        steps.extend(noted_exchanges(observed));
        Refusals { steps, predecessors: self.predecessors(observed), new_members: false }
    }

    /// Returns the time until the next refused step may be sent again.
    pub(crate) fn pause(&self, now: Instant) -> Option<Duration> {
        let times = self.kept.iter().filter_map(|kept| kept.not_before);
        times.filter(|time| *time > now).map(|time| time - now).min()
    }

    /// Returns whether any step is held back now.
    pub(crate) fn is_any(&self, now: Instant) -> bool {
        self.kept.iter().any(|kept| kept.not_before.is_none_or(|time| time > now))
    }
}

/// Returns whether a deletion makes room for members that the quota had no room for. A batch that would have removed the same
/// member had this room already.
fn makes_room(deletion: &Step, refused: &Step) -> bool {
    let Step::Member(refused) = refused else { return false };
    match deletion {
        Step::Member(MemberStep::Delete { pool_id, .. }) => {
            !matches!(refused, MemberStep::ReplaceAll { .. }) || refused.pool_id() != Some(pool_id.as_str())
        }
        Step::Pool(PoolStep::Delete { .. }) => true,
        _ => false,
    }
}

/// Returns whether two steps are the same, or batches of members of one pool.
fn is_akin(one: &Step, other: &Step) -> bool {
    let batch_of = |step: &Step| match step {
        Step::Member(step @ (MemberStep::Add { .. } | MemberStep::ReplaceAll { .. })) => {
            step.pool_id().map(str::to_owned)
        }
        _ => None,
    };
    is_same(one, other) || batch_of(one).is_some_and(|pool| batch_of(other) == Some(pool))
}

fn predecessor(observed: &Observed, listener_id: &str) -> Option<Predecessor> {
    let children = observed.load_balancer.as_ref()?.children.as_ref()?;
    let listener = children.listeners.iter().find(|listener| listener.id == listener_id)?;
    let mut pool = children.default_pool(listener)?.clone();
    pool.members = Vec::new();
    Some(Predecessor { listener: FormerListener::of(listener), pool })
}

/// Returns whether a Service wants what this step makes.
fn is_asked(desired: &Desired, step: &Step) -> bool {
    match step {
        Step::Listener(ListenerStep::Create { listener, .. }) => {
            let wanted = desired.listeners.get(&listener.key());
            wanted.is_some_and(|wanted| {
                FormerListener::of_wanted(&wanted.listener) == FormerListener::of_wanted(listener)
            })
        }
        Step::FloatingIp(FloatingIpStep::Attach { address, .. }) => match &desired.floating_ip {
            FloatingIpGoal::External(spec) => spec.address == Some(*address),
            FloatingIpGoal::Unknown { .. } => true,
            FloatingIpGoal::Internal { .. } | FloatingIpGoal::NotNeeded => false,
        },
        _ => true,
    }
}

/// Returns the refused exchanges of a floating IP, which are noted in the tags of the floating IP that still serves.
fn noted_exchanges(observed: &Observed) -> Vec<Refused> {
    let serving = observed.floating_ips.iter().filter(|one| one.ours && one.port_id.is_some());
    let exchanges = serving.flat_map(|serving| {
        let port = Handle::Id(serving.port_id.clone().unwrap_or_default());
        let is_noted = |asked: &&ObservedFloatingIp| serving.tags.contains(&floating_ip_tag(asked));
        observed.floating_ips.iter().filter(is_noted).map(move |asked| {
            let (id, address) = (asked.id.clone(), asked.address);
            let attach =
                FloatingIpStep::Attach { id, address, port: port.clone(), vip: None, instead_of: None };
            let message = format!(
                "the load balancer keeps its floating IP {}: the cloud refused to attach {address} ({}) instead, as an earlier Event \
                 reported; {TO_TRY_AGAIN}",
                serving.address, asked.id
            );
            Refused { step: Step::FloatingIp(attach), failure: Failure::user_input(message) }
        })
    });
    exchanges.collect()
}

fn floating_ip(step: &Step, observed: &Observed) -> Option<ObservedFloatingIp> {
    let Step::FloatingIp(FloatingIpStep::Attach { id, .. }) = step else { return None };
    observed.floating_ips.iter().find(|one| one.id == *id).cloned()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use openstack_ccm_core::failure::Failure;

    use super::*;
    use crate::load_balancer::objects::Member;

    fn refused() -> Refused {
        let step = Step::Pool(PoolStep::Delete { id: "pool".to_owned(), name: String::new() });
        Refused { step, failure: Failure::user_input("no") }
    }

    fn batch(nodes: &[u8]) -> Refused {
        let member = |node: &u8| Member {
            name: format!("n{node}"),
            address: [10, 0, 0, *node].into(),
            port: 30080,
            subnet_id: None,
            monitor_port: None,
            monitor_address: None,
            weight: 1,
            backup: false,
            admin_state_up: true,
        };
        let members = nodes.iter().map(|node| Arc::new(member(node))).collect();
        let step = Step::Member(MemberStep::Add { pool: Handle::Id("pool".to_owned()), members });
        Refused { step, failure: Failure::user_input("no") }
    }

    /// However long the search for the refused one takes.
    #[tokio::test(start_paused = true)]
    async fn parts_of_a_batch_rest_with_it_and_longer_when_they_are_refused_together_again() {
        let (mut record, observed, now) = (RefusalRecord::default(), Observed::default(), Instant::now());
        assert!(record.note(batch(&[1, 2, 3, 4]), &observed, true, now));
        let later = now + Duration::from_secs(4);
        assert!(record.note(batch(&[1, 2]), &observed, false, later), "the whole is certain");
        assert!(record.note(batch(&[1]), &observed, false, later));
        assert_eq!(record.pause(later), Some(Duration::from_secs(6)));
        let due = now + Duration::from_secs(10);
        assert!(!record.is_any(due));
        assert!(record.note(batch(&[1]), &observed, false, due));
        assert_eq!(record.pause(due), Some(Duration::from_secs(20)));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_refused_rests_longer_each_time_until_the_service_changes() {
        let (mut record, observed) = (RefusalRecord::default(), Observed::default());
        let mut now = Instant::now();
        let mut pauses = Vec::new();
        assert!(!record.note(refused(), &observed, false, now), "what was not looked at may be the reason");
        for round in 0..8 {
            assert!(record.at(now, &observed).of(&refused().step).is_none());
            assert!(record.note(refused(), &observed, round == 0, now));
            assert!(record.at(now, &observed).of(&refused().step).is_some() && record.is_any(now));
            let pause = record.pause(now).expect("a pause");
            pauses.push(pause.as_secs());
            now += pause;
        }
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 600, 600]);
        let mut accepted = record.clone();
        accepted.accepted(&[], &[&refused().step], &observed);
        for after in [record.service_changed(), accepted] {
            assert_eq!((after.pause(now), after.is_any(now)), (None, false));
        }
    }
}
