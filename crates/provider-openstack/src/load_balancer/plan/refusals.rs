//! Leaves out of a plan what the cloud has refused, and what needs it ([`super::needs`]). Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use openstack_ccm_core::failure::{Failure, FailureClass};

use super::types::Plan;
use crate::load_balancer::names;
use crate::load_balancer::objects::digest::Digest;
use crate::load_balancer::objects::step::{FloatingIpStep, ListenerStep, MemberStep, Refused, Step};
use crate::load_balancer::objects::{
    FormerListener, ListenerKey, ListenerSpec, Member, MemberKey, Observed, ObservedFloatingIp,
    ObservedMember, ObservedPool,
};

/// A listener that was deleted for one of another protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Predecessor {
    pub(crate) listener: FormerListener,
    pub(crate) pool: ObservedPool,
}

/// The steps that the cloud refused, as they were sent, and that are not sent again for now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Refusals {
    pub(crate) steps: Vec<Refused>,
    /// The listeners that were deleted for a listener that does not exist yet.
    pub(crate) predecessors: BTreeMap<ListenerKey, Predecessor>,
    /// Whether a new load balancer may have been refused for its members, which are added afterwards then.
    pub(crate) new_members: bool,
}

impl Refusals {
    /// Returns why a step is not sent again for now.
    pub(crate) fn of(&self, step: &Step) -> Option<&Failure> {
        self.steps.iter().find(|refused| refused.implies(step)).map(|refused| &refused.failure)
    }
}

impl Refused {
    /// Returns whether the cloud would refuse `step` as well. A batch with all members of a refused one is refused, and where the quota
    /// had no room for some new members, it has none for as many others.
    fn implies(&self, step: &Step) -> bool {
        match (&self.step, step) {
            (
                Step::Member(MemberStep::Add { pool, members }),
                Step::Member(MemberStep::Add { pool: of, members: all }),
            ) => {
                let is_larger = self.failure.class == FailureClass::Quota && members.len() <= all.len();
                pool == of && (is_larger || contains(all, members))
            }
            (
                Step::Member(MemberStep::ReplaceAll { pool, members }),
                Step::Member(MemberStep::ReplaceAll { pool: of, members: all }),
            ) => pool == of && contains(all, members),
            (refused, step) => is_same(refused, step),
        }
    }

    /// Returns the refusal of a batch without the new members that are there by now: one of those that are left was the reason.
    pub(crate) fn of_what_is_missing(&self, observed: &Observed) -> Option<Self> {
        let mut left = self.clone();
        let Step::Member(MemberStep::Add { pool, members } | MemberStep::ReplaceAll { pool, members }) =
            &mut left.step
        else {
            return Some(left);
        };
        let children = observed.load_balancer.as_ref().and_then(|there| there.children.as_ref());
        let mut pools = children.into_iter().flat_map(|children| &children.pools);
        let there = pools.find(|there| Some(there.id.as_str()) == pool.id())?;
        let there: BTreeSet<MemberKey> = there.members.iter().map(ObservedMember::key).collect();
        members.retain(|member| !there.contains(&member.key()));
        match members.is_empty() {
            // Something else than a new member was the reason.
            true => matches!(self.step, Step::Member(MemberStep::ReplaceAll { .. })).then(|| self.clone()),
            false => Some(left),
        }
    }
}

/// Returns whether `all` contain the `members`; both are sorted by key.
fn contains(all: &[Arc<Member>], members: &[Arc<Member>]) -> bool {
    let is_in = |member: &Arc<Member>| {
        all.binary_search_by_key(&member.key(), |one| one.key()).is_ok_and(|place| all[place] == *member)
    };
    members.iter().all(is_in)
}

/// How a refused step that takes down what serves is tried again.
pub(crate) const TO_TRY_AGAIN: &str = "an attempt interrupts connections, so it is not repeated for the same setting: once the \
     cloud accepts the change, change the Service back, and then again";

/// When such a step is tried again after another failure.
pub(crate) const TRIED_RARELY: &str =
    "an attempt interrupts connections, so after the second failure there is one attempt an hour";

/// Returns the tag of a listener that keeps serving because `wanted` was refused in its place.
pub(crate) fn listener_tag(wanted: &ListenerSpec) -> String {
    names::refused_tag(Digest::of(FormerListener::of_wanted(wanted)))
}

/// Returns the tag of a floating IP that keeps serving because `asked`, as it is now, was refused in its place.
pub(crate) fn floating_ip_tag(asked: &ObservedFloatingIp) -> String {
    names::refused_tag(Digest::of(asked))
}

/// Returns whether a failure lasts until something else is asked for. One that may pass by itself comes with a pause.
pub(crate) fn is_for_good(failure: &Failure) -> bool {
    failure.rests.is_none()
}

/// Returns whether the cloud would answer both steps alike. Of a listener, what depends on its protocol decides; the floating IP that
/// another one replaces makes no difference.
pub(crate) fn is_same(one: &Step, other: &Step) -> bool {
    match (one, other) {
        (
            Step::Listener(ListenerStep::Create { listener: one, load_balancer_id: id, .. }),
            Step::Listener(ListenerStep::Create { listener: other, load_balancer_id: other_id, .. }),
        ) => id == other_id && FormerListener::of_wanted(one) == FormerListener::of_wanted(other),
        (
            Step::FloatingIp(FloatingIpStep::Attach { id, port, .. }),
            Step::FloatingIp(FloatingIpStep::Attach { id: other_id, port: other_port, .. }),
        ) => id == other_id && port == other_port,
        _ => one == other,
    }
}

/// Leaves out the refused steps, and all steps that need them. `needs`: the places of the steps that a step needs, by its place;
/// `own_listeners`: the ports that have a listener.
pub(super) fn leave_out(
    mut plan: Plan,
    refusals: &Refusals,
    needs: &[Vec<usize>],
    own_listeners: &BTreeSet<ListenerKey>,
) -> Plan {
    let refused = plan.steps.iter().enumerate();
    let refused = refused.filter_map(|(place, step)| Some((place, refusals.of(step)?.clone())));
    let mut causes: BTreeMap<usize, Failure> = refused.collect();
    if causes.is_empty() {
        return plan;
    }
    loop {
        let is_news = |place: &usize| !causes.contains_key(place);
        let next = (0..plan.steps.len()).filter(is_news).find_map(|place| {
            let cause = needs.get(place)?.iter().find_map(|needed| causes.get(needed))?;
            Some((place, cause.clone()))
        });
        let Some((place, cause)) = next else { break };
        causes.insert(place, cause);
    }
    for (place, failure) in &causes {
        let step = plan.steps[*place].clone();
        if let Step::Listener(ListenerStep::Create { listener, default_pool: Some(_), .. }) = &step {
            let key = listener.key();
            let closes = if own_listeners.contains(&key) { &mut plan.stuck } else { &mut plan.closed };
            closes.insert(key);
        }
        plan.refused.push(Refused { step, failure: failure.clone() });
    }
    plan.keeping(|place| !causes.contains_key(&place))
}
