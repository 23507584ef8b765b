//! What is there, and what a plan that is made from it may do.

use std::time::Duration;

use openstack_ccm_openstack_api::octavia::LbAlgorithm;
use tokio::time::Instant;

use crate::load_balancer::belief::{Belief, Cached, Digest, Event};
use crate::load_balancer::model::observed::{Children, Observed, Ownership};
use crate::load_balancer::model::tree::Desired;
use crate::load_balancer::plan::{Plan, Then};
use crate::load_balancer::settings::Fault;
use crate::load_balancer::step::{MemberStep, Step};

/// What is there.
#[derive(Debug)]
pub(crate) struct Observation {
    source: Source,
    seen: Box<Cached>,
    /// What showed to be wrong with the Service's wishes on the way.
    faults: Vec<Fault>,
}

/// How it was obtained.
#[derive(Debug)]
pub(super) enum Source {
    /// Everything was read just now.
    Read,
    /// It was read when the chain of changes began, and what was changed since was read again.
    Changing,
    /// It agreed with the Service when it was read last.
    Converged {
        /// Whether batches of members were confirmed just now.
        confirmed: bool,
    },
    /// Lists show the load balancer and its floating IPs. For what hangs on it stands the digest that the Service carries.
    Listed {
        /// The digest.
        digest: String,
        /// What was believed before.
        believed: Belief,
    },
}

impl Observation {
    pub(super) fn new(source: Source, seen: Box<Cached>) -> Self {
        Self { source, seen, faults: Vec::new() }
    }

    pub(super) fn with_faults(self, faults: Vec<Fault>) -> Self {
        Self { faults, ..self }
    }

    /// What is there, as far as it can be told without knowing what is wanted: see [`Observation::beside`].
    pub(crate) fn seen(&self) -> &Observed {
        &self.seen.observed
    }

    /// Owner of the load balancer.
    pub(crate) fn project_id(&self) -> Option<&str> {
        self.seen.project_id.as_deref()
    }

    /// What showed to be wrong with the Service's wishes.
    pub(crate) fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// Whether nothing was spared, so that reading again would show nothing else.
    pub(crate) fn was_read(&self) -> bool {
        matches!(self.source, Source::Read)
    }

    /// Whether it was found in lists, which all Services are after a start.
    pub(crate) fn was_listed(&self) -> bool {
        matches!(self.source, Source::Listed { .. })
    }

    /// Whether it matters that what the user names is there. Not where a digest says that everything agreed: it was then.
    pub(crate) fn verifies_names(&self) -> bool {
        !self.was_listed()
    }

    /// Whether it tells what stands in for wishes that cannot be read. Digests do not. Nor does what was read longer ago than
    /// drift is looked for: the queue does that for Services with which all is well, and goes on trying where something is
    /// wrong.
    pub(crate) fn tells_current_values(&self, drift_check_interval: Duration) -> bool {
        match self.source {
            Source::Read => true,
            Source::Listed { .. } => false,
            Source::Changing | Source::Converged { .. } => {
                let stale = !drift_check_interval.is_zero() && self.seen.age() >= drift_check_interval;
                !stale && !self.seen.has_digests()
            }
        }
    }

    /// What is there, for a plan of what is wanted: where a digest agrees, what it stands for is as wanted. `None` where the
    /// digest on the Service does not agree, so that nothing is known. `refused` as in [`Cached::seen_beside`].
    pub(crate) fn beside(&self, desired: &Desired, refused: &[(String, LbAlgorithm)]) -> Option<Observed> {
        let mut observed = self.seen.seen_beside(desired, refused);
        if let Source::Listed { digest, .. } = &self.source {
            let now = self.seen.digest(desired)?.to_string();
            let load_balancer = observed.load_balancer.as_mut().filter(|_| now == *digest)?;
            load_balancer.children = Some(Children::as_wanted(desired));
        }
        Some(observed)
    }

    /// Whether a plan may be carried out that was made from it.
    ///
    /// On a load balancer that others use too, a chain of changes goes on with what hangs on the Service's own listeners:
    /// others have no part in that, and a port that they have taken meanwhile is refused by Octavia, which leads to a
    /// reading.
    pub(crate) fn permits(&self, plan: &Plan) -> bool {
        let may = match self.source {
            Source::Read => return true,
            Source::Changing => {
                let sole = self.seen.load_balancer().is_some_and(|there| there.ownership == Ownership::Sole);
                let may_change = sole || plan.steps.iter().all(Step::concerns_own_children);
                may_change && self.seen.may_go_on_with(plan)
            }
            Source::Converged { .. } => {
                let replaces = |step: &Step| matches!(step, Step::Member(MemberStep::ReplaceAll { .. }));
                plan.steps.iter().all(replaces) && !plan.heals
            }
            Source::Listed { .. } => plan.is_converged() && plan.address.is_some(),
        };
        // The next step shows whether Octavia has finished.
        let may_follow =
            |next: &Step| next.concerns_own_children() && self.seen.may_go_on_unseen(&next.needs());
        let tells = !self.seen.is_presumed_unlocked() || plan.steps.first().is_some_and(may_follow);
        may && tells && plan.then == Then::Done
    }

    /// Whether a plan changes the load balancer, and nobody has looked at it before: its last change may not have been ours.
    pub(crate) fn changes_unseen(&self, plan: &Plan) -> bool {
        let is_begun = self.seen.is_presumed_unlocked();
        matches!(self.source, Source::Converged { .. }) && !plan.steps.is_empty() && !is_begun
    }

    /// The id of the load balancer, unless somebody else is known to have changed it since it was read.
    pub(super) fn id_if_not_changed_by_others(&self) -> Option<String> {
        let there = self.seen.load_balancer().filter(|_| !self.seen.changed_by_others())?;
        Some(there.id.clone())
    }

    /// The load balancer was changed last at this time, by whomever.
    pub(super) fn was_changed_at(&mut self, updated_at: Option<&str>) {
        self.seen.was_changed_at(updated_at);
    }

    /// Whether lists may also show that the security group is as wanted: nothing else was read either, or what many
    /// Services read at about the same time agrees.
    pub(crate) fn lists_may_show_group(&self, plan: &Plan) -> bool {
        match self.source {
            Source::Listed { .. } => true,
            Source::Converged { confirmed } => confirmed && plan.steps.is_empty(),
            Source::Read | Source::Changing => false,
        }
    }

    /// The digest for the case that everything agrees. Absent where nothing new stands behind it: members that were sent count
    /// when they are confirmed, all batches at once, because every write of a Service goes to all nodes.
    pub(crate) fn digest(&self, desired: &Desired) -> Option<Digest> {
        match self.source {
            Source::Read | Source::Changing | Source::Converged { confirmed: true } => {
                self.seen.digest(desired)
            }
            Source::Converged { confirmed: false } | Source::Listed { .. } => None,
        }
    }

    /// What is believed from here on.
    pub(crate) fn into_belief(self) -> Belief {
        match self.source {
            Source::Read | Source::Changing => Belief::Changing(self.seen),
            Source::Converged { .. } => Belief::Converged(self.seen),
            Source::Listed { believed, .. } => believed.after(&Event::ListsAgree, Instant::now()),
        }
    }

    /// How it was obtained, for logs.
    pub(crate) fn source(&self) -> &'static str {
        match self.source {
            Source::Read => "read",
            Source::Changing | Source::Converged { confirmed: false } => "cached",
            Source::Converged { confirmed: true } => "confirmed",
            Source::Listed { .. } => "listed",
        }
    }
}
