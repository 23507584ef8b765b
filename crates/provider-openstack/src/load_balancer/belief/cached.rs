//! The load balancer of a Service as it was read, kept up with every change since.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use openstack_ccm_openstack_api::octavia::{LoadBalancer, ProvisioningStatus, StatusTree};
use tokio::time::Instant;

use super::answered;
use super::confirm;
use super::digest::{Digest, MemberDigests};
use super::event::{Goal, LockEnd};
use super::unconfirmed::UnconfirmedBatches;
use crate::load_balancer::apply::{Answer, Applied};
use crate::load_balancer::model::observed::{
    Children, Observed, ObservedFloatingIp, ObservedLoadBalancer, Ownership,
};
use crate::load_balancer::model::tree::Desired;
use crate::load_balancer::plan::Plan;
use crate::load_balancer::step::{Child, Handle, MemberStep, Needs, Step, Touched};

/// What is known of a load balancer and its floating IPs.
#[derive(Clone, Debug)]
pub(crate) struct Cached {
    /// Owner of the load balancer, to list no others.
    pub(crate) project_id: Option<String>,
    /// As read last. Members that a digest stands for are left out.
    pub(crate) observed: Observed,
    /// What was changed since, and not read again.
    pub(crate) touched: Vec<Touched>,
    /// `updated_at` of the load balancer after the last change; absent where somebody else may have changed it before that.
    pub(super) updated_at: Option<String>,
    /// Whether somebody else may have changed it since it was read.
    pub(super) changed_by_others: bool,
    /// When it was read as a whole.
    pub(super) read_at: Instant,
    /// Children that count as Octavia's answers showed them.
    pub(super) answered: BTreeSet<Child>,
    /// What the next step of the plan needs.
    pub(super) next_needs: Needs,
    /// Whether nobody has seen that Octavia has ended the work that the last step began: the next step will tell.
    pub(super) presumed_unlocked: bool,
    /// The others of the load balancer's name, as listed when Octavia had ended its last work.
    pub(crate) namesakes: Option<Vec<LoadBalancer>>,
    /// Batches of members that count as made, although nobody has read the result.
    pub(super) unconfirmed: Option<UnconfirmedBatches>,
    /// By id of the pool.
    pub(super) members: BTreeMap<String, MemberDigests>,
}

impl Cached {
    /// What was read just now.
    pub(crate) fn new(
        mut observed: Observed,
        project_id: Option<String>,
        updated_at: Option<String>,
    ) -> Self {
        // It is kept for as long as the Service is there, and lists that were collected have room for more.
        if let Some(children) = observed.load_balancer.as_mut().and_then(|there| there.children.as_mut()) {
            children.listeners.shrink_to_fit();
            children.pools.shrink_to_fit();
        }
        Self {
            project_id,
            observed,
            touched: Vec::new(),
            updated_at,
            changed_by_others: false,
            read_at: Instant::now(),
            answered: BTreeSet::new(),
            next_needs: Needs::Everything,
            presumed_unlocked: false,
            namesakes: None,
            unconfirmed: None,
            members: BTreeMap::new(),
        }
    }

    /// The load balancer; absent where there is none.
    pub(crate) fn load_balancer(&self) -> Option<&ObservedLoadBalancer> {
        self.observed.load_balancer.as_ref()
    }

    /// How long ago it was read as a whole.
    pub(crate) fn age(&self) -> Duration {
        self.read_at.elapsed()
    }

    /// The digest of what is there, for the case that everything is as the Service asks for.
    pub(crate) fn digest(&self, desired: &Desired) -> Option<Digest> {
        Some(Digest::of_tree(&self.load_balancer()?.id, self.updated_at.as_deref()?, desired))
    }

    /// Whether the load balancer is as it was after its last change, with the same owner and children: `updated_at` moves with
    /// every change of anything on it.
    pub(crate) fn is_unchanged(&self, seen: &LoadBalancer, ownership: Ownership) -> bool {
        let Some(there) = self.load_balancer() else { return false };
        there.id == seen.id
            && there.ownership == ownership
            && seen.provisioning_status == ProvisioningStatus::Active
            && seen.updated_at.is_some()
            && seen.updated_at == self.updated_at
            && self.has_the_children_of(seen)
    }

    /// The load balancer was changed last at this time. If that is not when it was seen last, somebody else has changed it, and what
    /// is changed from here on covers that up.
    pub(crate) fn was_changed_at(&mut self, updated_at: Option<&str>) {
        if self.updated_at.is_none() || self.updated_at.as_deref() != updated_at {
            self.changed_by_others = true;
            self.updated_at = None;
        }
    }

    /// Whether somebody else may have changed the load balancer since it was read.
    pub(crate) fn changed_by_others(&self) -> bool {
        self.changed_by_others
    }

    /// The load balancer was found unchanged, with these floating IPs.
    pub(crate) fn found_again(
        &mut self,
        without_children: ObservedLoadBalancer,
        floating_ips: Vec<ObservedFloatingIp>,
    ) {
        let children = self.observed.load_balancer.take().and_then(|there| there.children);
        self.observed = Observed {
            load_balancer: Some(ObservedLoadBalancer { children, ..without_children }),
            floating_ips,
        };
    }

    /// All children, where none of them is anybody else's.
    pub(crate) fn own_children(&self) -> Option<&Children> {
        let children = self.load_balancer()?.children.as_ref()?;
        let ours = children.listeners.iter().all(|one| one.ours) && children.pools.iter().all(|one| one.ours);
        ours.then_some(children)
    }

    /// Whether batches of members wait for being confirmed.
    pub(crate) fn has_unconfirmed(&self) -> bool {
        self.unconfirmed.is_some()
    }

    /// Whether a child that was touched counts as it was sent, or as Octavia answered.
    pub(crate) fn counts_as_sent(&self, child: &Child) -> bool {
        if self.answered.contains(child) {
            return true;
        }
        let Child::Members(pool_id) = child else { return false };
        self.unconfirmed.as_ref().is_some_and(|batches| batches.concern(pool_id))
    }

    /// Whether all children that count as answered have to be confirmed now: the chain of changes is at its end, or about to take
    /// something away for them.
    pub(crate) fn is_to_be_confirmed(&self) -> bool {
        let relies_on_all = match &self.next_needs {
            Needs::Nothing => false,
            Needs::Pool { listener_id, .. } => self.answered.contains(&Child::Listener(listener_id.clone())),
            Needs::Check { pool_id } => self.may_check_others(pool_id),
            Needs::Everything => true,
        };
        relies_on_all && !self.answered.is_empty()
    }

    /// The children that count as answered and belong to the pool that is about to take the place of another one. It hangs on no
    /// listener yet, so they are read.
    pub(crate) fn take_answered_of_next_pool(&mut self) -> Vec<Child> {
        let Needs::Pool { id, .. } = &self.next_needs else { return Vec::new() };
        let children = self.observed.load_balancer.as_ref().and_then(|there| there.children.as_ref());
        let Some(pool) = children.and_then(|below| below.pools.iter().find(|pool| pool.id == *id)) else {
            return Vec::new();
        };
        let (of_pool, others) =
            std::mem::take(&mut self.answered).into_iter().partition(|child| confirm::is_in(child, pool));
        self.answered = others;
        children.map(|below| confirm::of_pools(below, of_pool, |one| one.id == *id)).unwrap_or_default()
    }

    /// Whether the status tree would show any child that counts as answered.
    pub(crate) fn is_shown_by_status_tree(&self) -> bool {
        let below = self.load_balancer().and_then(|there| there.children.as_ref());
        below.is_some_and(|below| confirm::any_is_shown(below, &self.answered))
    }

    /// Takes over the statuses of all that hangs on the load balancer. Answers what is to be read besides; `None` where
    /// there is something else than is believed.
    pub(crate) fn confirm(&mut self, tree: &StatusTree) -> Option<Vec<Child>> {
        let answered = std::mem::take(&mut self.answered);
        let digests = &self.members;
        let there = self.observed.load_balancer.as_mut()?;
        confirm::confirm(there, answered, tree, |pool| digests.get(&pool.id).map(|digests| digests.keys))
    }

    /// The children that count as answered, which are to be read one by one: all that are there, or those of pools that no
    /// listener uses.
    pub(crate) fn take_answered(&mut self, all: bool) -> Vec<Child> {
        let answered = std::mem::take(&mut self.answered);
        let Some(below) = self.load_balancer().and_then(|there| there.children.as_ref()) else {
            return Vec::new();
        };
        if all {
            return answered.into_iter().collect();
        }
        confirm::of_pools(below, answered, |pool| pool.used_by.is_empty())
    }

    /// Whether a plan may be carried out in a chain of changes: where a digest stands for members that change, what an
    /// administrator set on those that stay has to be read. While children count as answered, the next step needs none of
    /// them, and does not change again what an answer showed, as if the answer had not told of the last change.
    pub(crate) fn may_go_on_with(&self, plan: &Plan) -> bool {
        let unread = |step: &Step| match step {
            Step::Member(MemberStep::ReplaceAll { pool: Handle::Id(id), .. }) => {
                self.members.contains_key(id)
            }
            _ => false,
        };
        if plan.steps.iter().any(unread) {
            return false;
        }
        let repeats = |step: &Step| match step.touches(None) {
            Touched::Child(child) => self.answered.contains(&child),
            Touched::LoadBalancer | Touched::FloatingIps | Touched::Everything => false,
        };
        let relies_on_answered = |step: &Step| match step.needs() {
            Needs::Nothing => false,
            Needs::Pool { id, .. } => self.has_answered_in(&id),
            Needs::Check { pool_id } => self.may_check_others(&pool_id),
            Needs::Everything => true,
        };
        let may_follow = |next: &Step| !relies_on_answered(next) && !repeats(next);
        self.answered.is_empty() || plan.steps.first().is_some_and(may_follow)
    }

    /// Whether children of a pool count as answered.
    fn has_answered_in(&self, pool_id: &str) -> bool {
        let children = self.load_balancer().and_then(|there| there.children.as_ref());
        let pool = children.and_then(|below| below.pools.iter().find(|pool| pool.id == pool_id));
        pool.is_none_or(|pool| self.answered.iter().any(|child| confirm::is_in(child, pool)))
    }

    /// The time until unconfirmed batches are to be read; absent where all were seen.
    pub(crate) fn confirm_in(&self) -> Option<Duration> {
        self.unconfirmed.as_ref().map(UnconfirmedBatches::due_in)
    }

    /// The pools whose members are to be read now, because they were only sent; each with those that were sent.
    pub(crate) fn take_due(&mut self) -> BTreeMap<String, Digest> {
        let due = self.unconfirmed.take_if(|batches| batches.due_in().is_zero());
        due.map(UnconfirmedBatches::into_pools).unwrap_or_default()
    }

    /// Whether nobody has seen that Octavia has ended the work that the last step began.
    pub(crate) fn is_presumed_unlocked(&self) -> bool {
        self.presumed_unlocked
    }

    /// Whether a step with such needs may follow although nobody has seen that Octavia has ended its work: it relies on nothing that was
    /// not confirmed, and nothing is to be read before.
    pub(crate) fn may_go_on_unseen(&self, next: &Needs) -> bool {
        let Some(there) = self.load_balancer() else { return false };
        // That a listener or pool is gone shows in the list in which the lock ends, on a load balancer that nobody else uses.
        let children = there.children.as_ref();
        let is_gone = |child| children.is_some_and(|children| !answered::is_there(children, child));
        let all_is_gone = || there.ownership == Ownership::Sole && self.answered.iter().all(is_gone);
        // What is being deleted still counts towards a quota, which Octavia looks at before the lock.
        let any_is_gone = || self.answered.iter().any(is_gone);
        let is_read = |touched: &Touched| touched.child().is_none_or(|child| !self.counts_as_sent(child));
        let may_follow = match next {
            Needs::Nothing => !any_is_gone(),
            Needs::Check { pool_id } => !self.may_check_others(pool_id) && !any_is_gone(),
            Needs::Pool { .. } | Needs::Everything => all_is_gone(),
        };
        may_follow && !self.touched.iter().any(is_read)
    }

    /// Octavia has probably ended its work.
    pub(super) fn presumed_unlocked(mut self: Box<Self>) -> Box<Self> {
        self.presumed_unlocked = true;
        self.namesakes = None;
        self
    }

    /// The next step showed that Octavia has not ended its work.
    pub(super) fn still_locked(mut self: Box<Self>) -> Box<Self> {
        self.presumed_unlocked = false;
        self.touched.push(Touched::LoadBalancer);
        self
    }

    /// Octavia has ended its work.
    pub(super) fn lock_ended(mut self: Box<Self>, end: &LockEnd<'_>, now: Instant) -> Box<Self> {
        let LockEnd { listed, previous_name, namesakes } = end;
        self.presumed_unlocked = false;
        self.namesakes = namesakes.map(<[_]>::to_vec);
        self.updated_at = listed.updated_at.clone().filter(|_| !self.changed_by_others);
        if let Some(batches) = &mut self.unconfirmed {
            batches.ended(now);
        }
        if let Some(there) = &mut self.observed.load_balancer {
            there.previous_name.clone_from(previous_name);
            there.name.clone_from(&listed.name);
            there.description.clone_from(&listed.description);
            there.tags.clone_from(&listed.tags);
        }
        self
    }

    /// Whether a load balancer that Octavia is done with still has the children that are known.
    pub(crate) fn has_the_children_of(&self, listed: &LoadBalancer) -> bool {
        self.load_balancer().is_none_or(|there| answered::has_the_children(listed, there, &self.answered))
    }

    /// Steps were applied.
    pub(super) fn applied(mut self: Box<Self>, applied: &Applied) -> Box<Self> {
        self.presumed_unlocked = false;
        self.touched.extend_from_slice(&applied.touched);
        self.observed.floating_ips.extend_from_slice(&applied.floating_ips);
        self
    }

    /// What Octavia answered to the last step counts as done, as far as the answer shows it.
    pub(super) fn answered(mut self: Box<Self>, applied: &Applied) -> Box<Self> {
        self.next_needs = applied.next_needs.clone();
        let below = self.observed.load_balancer.as_mut().and_then(|there| there.children.as_mut());
        let child = below.zip(applied.answer.as_ref()).map(|(below, answer)| answered::put(below, answer));
        match child {
            Some(Ok(Some(child))) => {
                if let Child::Members(pool_id) = &child {
                    self.members.remove(pool_id);
                }
                self.answered.insert(child);
            }
            Some(Ok(None) | Err(_)) | None => {
                // What no answer shows is read.
                for child in applied.touched.iter().filter_map(Touched::child) {
                    self.answered.remove(child);
                }
            }
        }
        self
    }

    /// The load balancer was made. `None` where the answer does not show it whole. Many that are made at the same time wait for Octavia
    /// for minutes: they do not keep what was just sent.
    pub(super) fn created(
        mut self: Box<Self>,
        applied: &Applied,
        goal: Option<&Goal<'_>>,
    ) -> Option<Box<Self>> {
        let Some(Answer::LoadBalancer(made)) = &applied.answer else { return None };
        let there = answered::created(&made.load_balancer, made.tree.as_ref()?).ok()??;
        self.answered = there.children.as_ref().map(answered::all).unwrap_or_default();
        self.project_id.clone_from(&made.load_balancer.project_id);
        self.observed.load_balancer = Some(there);
        self.observed.floating_ips.extend_from_slice(&applied.floating_ips);
        self.touched = vec![Touched::LoadBalancer];
        self.next_needs = applied.next_needs.clone();
        Some(match goal {
            Some(goal) => self.with_digests(goal),
            None => self,
        })
    }
}
