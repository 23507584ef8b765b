//! A plan: steps, and how it ends.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::notice::{Notice, Severity};
use openstack_ccm_openstack_api::octavia::ProvisioningStatus;

use crate::load_balancer::objects::step::{ListenerStep, PoolStep, Refused, Step};
use crate::load_balancer::objects::{ListenerKey, ObservedLoadBalancer};

/// The steps to the desired state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// All steps, in order. Only those are applied for which [`Step::is_applicable`] holds, up to and including the first that
    /// locks the load balancer.
    pub(crate) steps: Vec<Step>,
    pub(crate) then: Then,
    /// Notices for the user.
    pub(crate) notices: Vec<Notice>,
    /// Whether a step sends again what failed inside Octavia before. Such a plan needs a back-off: it may fail for ever.
    pub(crate) heals: bool,
    /// The places in `steps` of those that only repair.
    pub(crate) repairs: BTreeSet<usize>,
    /// Places of steps that must not precede a repair.
    pub(crate) after_repairs: BTreeSet<usize>,
    /// The places in `steps` of those that only say who owns an object, as its name and description do already: these can wait,
    /// even for days.
    pub(crate) identity_tags: BTreeSet<usize>,
    /// Steps that are left out, because the cloud refused them or a step that they need.
    pub(crate) refused: Vec<Refused>,
    /// The ports that get no listener because of `refused`.
    pub(crate) closed: BTreeSet<ListenerKey>,
    /// The ports that keep a listener of another protocol because of `refused`.
    pub(crate) stuck: BTreeSet<ListenerKey>,
    /// The address that clients use when the plan is done, if known.
    pub(crate) address: Option<IpAddr>,
}

/// How a plan ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Then {
    /// The desired state is reached. With no steps, the reconciliation is done.
    #[default]
    Done,
    /// Octavia has to finish first; the rest is not known before.
    WaitFor(Wait),
    /// The desired state seems reached, but the load balancer is in a state that makes this unreliable, and that the controller
    /// leaves alone.
    Held(Failure),
    /// Only what the failure says helps. The steps keep up what exists already.
    Blocked(Failure),
}

/// An object whose change Octavia has to finish.
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
    /// Returns the plan without repairs and without steps that must follow them, for the pause between repairs.
    #[must_use]
    pub(crate) fn without_repairs(&self) -> Self {
        let waits = |place: usize| self.repairs.contains(&place) || self.after_repairs.contains(&place);
        self.clone().keeping(|place| !waits(place))
    }

    /// Returns the notices that are warnings.
    pub(crate) fn warnings(&self) -> Vec<Notice> {
        let warnings = self.notices.iter().filter(|notice| notice.severity == Severity::Warning);
        warnings.cloned().collect()
    }

    /// Returns whether only identity tags are left to be set.
    pub(crate) fn only_identity_tags(&self) -> bool {
        !self.identity_tags.is_empty()
            && self.steps.len() == self.identity_tags.len()
            && self.then == Then::Done
    }

    /// Returns the plan without the steps that only say who owns an object.
    #[must_use]
    pub(crate) fn without_identity_tags(self) -> Self {
        let tags = self.identity_tags.clone();
        self.keeping(|place| !tags.contains(&place))
    }

    /// Returns the plan with only the steps at these places.
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

    /// Returns whether a change of a port's protocol or pool is left out.
    pub(crate) fn keeps_protocols(&self) -> bool {
        let of_listener = |step: &Step| {
            matches!(step, Step::Listener(ListenerStep::Create { .. } | ListenerStep::SwapDefaultPool { .. }))
        };
        self.refused.iter().any(|refused| of_listener(&refused.step))
    }

    /// Returns whether a pool is created.
    pub(crate) fn makes_pool(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Pool(PoolStep::Create { .. })))
    }

    /// Returns the steps that are sent before Octavia's lock has to be waited for.
    pub(crate) fn sent_now(&self) -> &[Step] {
        let locks = self.steps.iter().position(Step::locks);
        locks.and_then(|place| self.steps.get(..=place)).unwrap_or(&self.steps)
    }

    /// Returns the steps that create listeners in place of a listener that the plan deletes first.
    pub(crate) fn successors(&self) -> Vec<Step> {
        let succeeds = |step: &&Step| step.created_listener().is_some_and(|key| deletes(&self.steps, key));
        self.steps.iter().filter(succeeds).cloned().collect()
    }

    /// Returns whether a listener is deleted now so that another one can be created in its place.
    pub(crate) fn makes_way_now(&self) -> bool {
        self.steps.iter().filter_map(Step::created_listener).any(|key| deletes(self.sent_now(), key))
    }

    /// Returns why steps are left out, each cause once.
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

    /// Returns whether nothing has to be done: the cloud is in the desired state.
    pub(crate) fn is_converged(&self) -> bool {
        self.steps.is_empty() && self.refused.is_empty() && self.then == Then::Done
    }
}

fn deletes(steps: &[Step], of: ListenerKey) -> bool {
    steps.iter().any(|step| matches!(step, Step::Listener(ListenerStep::Delete { key, .. }) if *key == of))
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
