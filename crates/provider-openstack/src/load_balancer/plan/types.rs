//! A plan: steps, and what comes after them.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::notice::{Notice, Severity};
use openstack_ccm_openstack_api::octavia::ProvisioningStatus;

use crate::load_balancer::objects::step::{ListenerStep, Step};
use crate::load_balancer::objects::{ListenerKey, ObservedLoadBalancer};

/// A step that is left out, and the refusal that is the cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) step: Step,
    pub(crate) failure: Failure,
}

/// What is to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// All steps, in order. Only those are applied for which [`Step::is_applicable`] holds, and none after the first
    /// that locks the load balancer.
    pub(crate) steps: Vec<Step>,
    pub(crate) then: Then,
    /// What the user should know.
    pub(crate) notices: Vec<Notice>,
    /// Whether a step sends something again because it failed inside Octavia before. Such a plan is worth a
    /// back-off: what failed once may fail for ever.
    pub(crate) heals: bool,
    /// The places in `steps` of those that do nothing else.
    pub(crate) repairs: BTreeSet<usize>,
    /// Places of steps that must not come before one of these repairs.
    pub(crate) after_repairs: BTreeSet<usize>,
    /// The places in `steps` of those that do nothing but say who owns an object, which its name and description say as
    /// well: they can wait, for days if need be.
    pub(crate) identity_tags: BTreeSet<usize>,
    /// What is left out, because the cloud has refused it or something that it needs.
    pub(crate) refused: Vec<Refused>,
    /// The ports that get no listener for that.
    pub(crate) closed: BTreeSet<ListenerKey>,
    /// The ports that keep a listener of another protocol for that.
    pub(crate) stuck: BTreeSet<ListenerKey>,
    /// The address that clients use when the plan is done, as far as it is known already.
    pub(crate) address: Option<IpAddr>,
}

/// What comes after the steps of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Then {
    /// Nothing: what is wanted is there. With no steps, this is the end.
    #[default]
    Done,
    /// Octavia has to finish first; nothing more can be said before.
    WaitFor(Wait),
    /// What is wanted is there as far as can be seen, but it is in a state in which nobody may rely on that, and which is
    /// left alone.
    Held(Failure),
    /// Nothing helps but what the failure says. Steps before it keep up what is there already.
    Blocked(Failure),
}

/// What Octavia has to finish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    /// Kind of object, for example `load balancer`.
    pub(crate) kind: &'static str,
    pub(crate) id: String,
    pub(crate) status: ProvisioningStatus,
}

impl Wait {
    pub(super) fn load_balancer(load_balancer: &ObservedLoadBalancer) -> Self {
        Self { kind: "load balancer", id: load_balancer.id.clone(), status: load_balancer.status.clone() }
    }
}

impl Plan {
    /// What need not wait until that which failed inside Octavia may be sent again. No step where a repair is all that can be done.
    #[must_use]
    pub(crate) fn without_repairs(&self) -> Self {
        let waits = |place: usize| self.repairs.contains(&place) || self.after_repairs.contains(&place);
        self.clone().keeping(|place| !waits(place))
    }

    /// What the user should know that is no good news.
    pub(crate) fn warnings(&self) -> Vec<Notice> {
        let warnings = self.notices.iter().filter(|notice| notice.severity == Severity::Warning);
        warnings.cloned().collect()
    }

    /// Whether nothing is left to do but to say who owns the objects.
    pub(crate) fn only_identity_tags(&self) -> bool {
        !self.identity_tags.is_empty()
            && self.steps.len() == self.identity_tags.len()
            && self.then == Then::Done
    }

    /// The plan without the steps that only say who owns an object.
    #[must_use]
    pub(crate) fn without_identity_tags(self) -> Self {
        let tags = self.identity_tags.clone();
        self.keeping(|place| !tags.contains(&place))
    }

    /// The plan with the steps at these places alone.
    #[must_use]
    pub(super) fn keeping(self, stays: impl Fn(usize) -> bool) -> Self {
        let kept: Vec<usize> = (0..self.steps.len()).filter(|place| stays(*place)).collect();
        let moved = |places: &BTreeSet<usize>| {
            kept.iter()
                .enumerate()
                .filter(|(_, before)| places.contains(before))
                .map(|(now, _)| now)
                .collect()
        };
        Self {
            steps: kept.iter().map(|place| self.steps[*place].clone()).collect(),
            repairs: moved(&self.repairs),
            after_repairs: moved(&self.after_repairs),
            identity_tags: moved(&self.identity_tags),
            ..self
        }
    }

    /// Whether a change of what a port speaks is left out.
    pub(crate) fn keeps_protocols(&self) -> bool {
        let of_listener = |step: &Step| {
            matches!(step, Step::Listener(ListenerStep::Create { .. } | ListenerStep::SwapDefaultPool { .. }))
        };
        self.refused.iter().any(|refused| of_listener(&refused.step))
    }

    /// The steps that make a listener for which one of another protocol is deleted before.
    pub(crate) fn successors(&self) -> Vec<Step> {
        let is_deleted = |of: ListenerKey| {
            let deletes =
                |step: &Step| matches!(step, Step::Listener(ListenerStep::Delete { key, .. }) if *key == of);
            self.steps.iter().any(deletes)
        };
        let succeeds = |step: &&Step| match step {
            Step::Listener(ListenerStep::Create { listener, .. }) => is_deleted(listener.key()),
            _ => false,
        };
        self.steps.iter().filter(succeeds).cloned().collect()
    }

    /// Why something is left out, each cause once.
    pub(crate) fn refusal(&self) -> Option<Failure> {
        let mut all = self.refused.iter().map(|refused| &refused.failure);
        let mut first = all.next()?.clone();
        let mut said = BTreeSet::from([first.message.clone()]);
        for failure in all {
            if said.insert(failure.message.clone()) {
                first.message = format!("{}. Besides: {}", first.message, failure.message);
            }
        }
        Some(first)
    }

    /// Whether nothing is to be done: the state of the cloud is the wanted one.
    pub(crate) fn is_converged(&self) -> bool {
        self.steps.is_empty() && self.refused.is_empty() && self.then == Then::Done
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} is {}", self.kind, self.id, self.status)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            writeln!(f, "{step}")?;
        }
        for Refused { step, .. } in &self.refused {
            writeln!(f, "left out: {step}")?;
        }
        match &self.then {
            Then::Done if self.steps.is_empty() => f.write_str("nothing to do"),
            Then::Done => f.write_str("done"),
            Then::WaitFor(wait) => write!(f, "wait: {wait}"),
            Then::Held(failure) => write!(f, "held ({}): {failure}", failure.class),
            Then::Blocked(failure) => write!(f, "blocked ({}): {failure}", failure.class),
        }
    }
}
