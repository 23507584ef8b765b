//! Which look a step needs before it is sent. Pure.
//!
//! | Before | if since the last look | look |
//! | --- | --- | --- |
//! | a step on the load balancer itself; any step but on own children of one that others use | another reconciliation began | whole |
//! | a listener gets another pool | a step was made on that pool | check |
//! | the first of several removals | any step was made, or another reconciliation began | check |
//! | a step on the members or the monitor of a pool in use | the other of the two was changed | check |
//! | a step on the load balancer itself, if the last answer that shows it is older than the reconciliation | | whole |
//! | a batch with new members, but for a pool that was just made | they are not those of nodes that joined, and the members were not listed anew | members of that pool |
//! | a batch that names members which are there | another reconciliation began, or only the status tree shows them | members of that pool |
//! | the end, or steps on Neutron that lead to it | any step was made | check |
//!
//! A load balancer that is ACTIVE again proves nothing about its children: it becomes ACTIVE even after a failed listener or batch.
//! An HTTP monitor takes all members down that were not made for it. An update replaces all tags, so that tags which another client
//! added meanwhile would be lost. A lagging replica of Octavia's database may lack members, even all of them, and a batch that names
//! them would undo what administrators set on them.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use crate::load_balancer::objects::step::{
    Handle, ListenerStep, LoadBalancerStep, MemberStep, MonitorStep, PoolStep, Step,
};
use crate::load_balancer::objects::{Children, Member, MemberKey, ObservedMember, Ownership};
use crate::load_balancer::plan::{Plan, Then};

/// A look at the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// The statuses of all children: whether they exist as the steps so far made them.
    Check,
    /// The members of this pool, with what administrators set on them.
    Members(String),
    /// Everything.
    Whole,
}

/// What was looked at, and which steps were accepted since.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Looked {
    /// Whether everything was read in this reconciliation.
    pub(in crate::load_balancer) whole: bool,
    /// Whether everything or the statuses were read in this reconciliation.
    pub(in crate::load_balancer) checked: bool,
    /// The pools whose members were listed in this reconciliation, where not everything was read.
    pub(in crate::load_balancer) members: BTreeSet<String>,
    /// The steps that were accepted since the last look, in this reconciliation or an earlier one.
    pub(in crate::load_balancer) since: Vec<Done>,
    /// Addresses of the nodes that joined since the previous reconciliation.
    pub(in crate::load_balancer) joined: BTreeSet<IpAddr>,
    /// Whether the answer that showed the load balancer is older than this reconciliation.
    pub(in crate::load_balancer) is_older: bool,
}

/// What an accepted step changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::load_balancer) enum Done {
    Members(String),
    Monitor(String),
    Pool(String),
    /// The pool was made.
    NewPool(String),
    /// A listener or a pool was deleted.
    Removal,
    Other,
}

impl Done {
    /// Returns what `step` changed; `made` is the id of the child that it created.
    pub(in crate::load_balancer) fn by(step: &Step, made: Option<&str>) -> Option<Self> {
        match step {
            Step::FloatingIp(_) => None,
            Step::Listener(ListenerStep::Delete { .. }) | Step::Pool(PoolStep::Delete { .. }) => {
                Some(Self::Removal)
            }
            Step::Pool(PoolStep::Update { id, .. }) => Some(Self::Pool(id.clone())),
            Step::Pool(PoolStep::Create { .. }) => {
                Some(made.map_or(Self::Other, |id| Self::NewPool(id.to_owned())))
            }
            Step::Member(step) => pool_of_members(step).map(Self::Members),
            Step::Monitor(step) => pool_of_monitor(step).map(Self::Monitor),
            Step::LoadBalancer(_) | Step::Listener(_) => Some(Self::Other),
        }
    }

    pub(in crate::load_balancer) fn pool(&self) -> Option<&str> {
        match self {
            Self::Members(id) | Self::Monitor(id) | Self::Pool(id) | Self::NewPool(id) => Some(id),
            Self::Removal | Self::Other => None,
        }
    }
}

impl Looked {
    /// Notes that everything was read just now.
    pub(in crate::load_balancer) fn at_everything() -> Self {
        Self { whole: true, checked: true, ..Self::default() }
    }

    /// Notes that the statuses were read just now.
    pub(in crate::load_balancer) fn at_statuses(&mut self) {
        self.checked = true;
        self.since.clear();
    }

    /// Ends a reconciliation; the next one has looked at nothing yet.
    pub(in crate::load_balancer) fn rest(&mut self) {
        let Self { since, joined, .. } = std::mem::take(self);
        *self = Self { since, joined, ..Self::default() };
    }

    /// Returns the look that is needed before the steps that can be sent now, or before the plan counts as finished.
    pub(crate) fn before(
        &self,
        plan: &Plan,
        ownership: Option<Ownership>,
        children: Option<&Children>,
    ) -> Option<Look> {
        let steps = plan.sent_now().iter();
        if self.whole && self.since.is_empty() {
            let writes_all =
                |step: &Step| matches!(step, Step::LoadBalancer(LoadBalancerStep::Update { .. }));
            if self.is_older && steps.clone().any(writes_all) {
                return Some(Look::Whole);
            }
            return steps.filter_map(|step| self.before_addition(step, children)).next();
        }
        // Steps on Neutron alone do not change Octavia's objects: the Service is published after them.
        let ends = !plan.steps.iter().any(Step::locks) && matches!(plan.then, Then::Done | Then::Held(_));
        let end = (ends && !self.since.is_empty()).then_some(Look::Check);
        if plan.steps.is_empty() {
            return end;
        }
        if plan.then != Then::Done && !self.whole {
            return Some(Look::Whole);
        }
        let looks = steps.filter_map(|step| self.before_step(step, ownership, children));
        looks.chain(end).max_by_key(|look| match look {
            Look::Members(_) => 0,
            Look::Check => 1,
            Look::Whole => 2,
        })
    }

    fn before_step(
        &self,
        step: &Step,
        ownership: Option<Ownership>,
        children: Option<&Children>,
    ) -> Option<Look> {
        let check = |needs: bool| (needs && !self.since.is_empty()).then_some(Look::Check);
        match step {
            Step::LoadBalancer(_) => (!self.whole).then_some(Look::Whole),
            Step::FloatingIp(_) => (!self.whole && ownership != Some(Ownership::Sole)).then_some(Look::Whole),
            Step::Listener(ListenerStep::SwapDefaultPool { pool, .. }) => {
                check(self.since.iter().any(|done| done.pool() == pool.id()))
            }
            Step::Listener(ListenerStep::Delete { .. }) | Step::Pool(PoolStep::Delete { .. }) => {
                let goes_on = self.since.iter().all(|done| *done == Done::Removal) && !self.since.is_empty();
                (!goes_on && (!self.since.is_empty() || !self.checked)).then_some(Look::Check)
            }
            Step::Member(members) => {
                let pool_id = pool_of_members(members)?;
                let met = self.since.contains(&Done::Monitor(pool_id.clone()));
                let met = check(met && is_in_use(children, &pool_id));
                met.or_else(|| self.before_batch(members, children))
                    .or_else(|| self.before_addition(step, children))
            }
            Step::Monitor(step) => {
                let pool_id = pool_of_monitor(step)?;
                check(self.since.contains(&Done::Members(pool_id.clone())) && is_in_use(children, &pool_id))
            }
            Step::Listener(ListenerStep::Create { .. } | ListenerStep::Update { .. })
            | Step::Pool(PoolStep::Create { .. } | PoolStep::Update { .. }) => None,
        }
    }

    /// Returns a look that confirms that members are missing, unless they are expected to be.
    fn before_addition(&self, step: &Step, children: Option<&Children>) -> Option<Look> {
        let Step::Member(
            MemberStep::Add { pool: Handle::Id(id), members }
            | MemberStep::ReplaceAll { pool: Handle::Id(id), members },
        ) = step
        else {
            return None;
        };
        let pool = children?.pools.iter().find(|pool| pool.id == *id)?;
        let there: BTreeSet<MemberKey> = pool.members.iter().map(ObservedMember::key).collect();
        let is_expected =
            |member: &Arc<Member>| there.contains(&member.key()) || self.joined.contains(&member.address);
        let is_sure = members.iter().all(is_expected)
            || self.since.contains(&Done::NewPool(id.clone()))
            || self.members.contains(id);
        (!is_sure).then(|| Look::Members(id.clone()))
    }

    fn before_batch(&self, step: &MemberStep, children: Option<&Children>) -> Option<Look> {
        let MemberStep::ReplaceAll { pool: Handle::Id(id), .. } = step else { return None };
        let is_known = self.whole || self.members.contains(id);
        let pool = children?.pools.iter().find(|pool| pool.id == *id)?;
        (!is_known && !pool.members.is_empty()).then(|| Look::Members(id.clone()))
    }
}

fn is_in_use(children: Option<&Children>, pool_id: &str) -> bool {
    let pool = children.and_then(|children| children.pools.iter().find(|pool| pool.id == pool_id));
    pool.is_none_or(|pool| !pool.used_by.is_empty())
}

fn pool_of_members(step: &MemberStep) -> Option<String> {
    step.pool_id().map(str::to_owned)
}

fn pool_of_monitor(step: &MonitorStep) -> Option<String> {
    match step {
        MonitorStep::Create { pool, .. } => pool.id().map(str::to_owned),
        MonitorStep::Update { pool_id, .. } | MonitorStep::Delete { pool_id, .. } => Some(pool_id.clone()),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::load_balancer::objects::{ListenerKey, ObservedPool};
    use crate::load_balancer::plan::tests::cloud::Cloud;
    use crate::load_balancer::plan::tests::shape::Shape;

    const POOL: &str = "pool-2";

    fn members(pool: &str) -> Step {
        Step::Member(MemberStep::Add { pool: Handle::Id(pool.to_owned()), members: Vec::new() })
    }

    fn batch(pool: &str) -> Step {
        Step::Member(MemberStep::ReplaceAll { pool: Handle::Id(pool.to_owned()), members: Vec::new() })
    }

    fn monitor(pool: &str) -> Step {
        Step::Monitor(MonitorStep::Delete { id: "monitor".to_owned(), pool_id: pool.to_owned() })
    }

    fn swap(pool: &str) -> Step {
        let key = ListenerKey::new(openstack_ccm_core::service::Protocol::Tcp, 80);
        let pool = Handle::Id(pool.to_owned());
        Step::Listener(ListenerStep::SwapDefaultPool { listener_id: "listener".to_owned(), key, pool })
    }

    fn delete_pool() -> Step {
        Step::Pool(PoolStep::Delete { id: "old".to_owned(), name: String::new() })
    }

    fn rename() -> Step {
        let changes = openstack_ccm_openstack_api::octavia::UpdateLoadBalancer::default();
        Step::LoadBalancer(LoadBalancerStep::Update { id: "lb".to_owned(), changes })
    }

    fn detach() -> Step {
        let address = [192, 0, 2, 1].into();
        Step::FloatingIp(crate::load_balancer::objects::step::FloatingIpStep::Detach {
            id: "fip".to_owned(),
            address,
        })
    }

    /// What a step needs after others, in the reconciliation that has read everything or in the next one.
    #[rstest]
    #[case::a_pool_that_was_filled(&[members("new")], swap("new"), Some(Look::Check))]
    #[case::a_pool_that_was_there(&[members("another")], swap("new"), None)]
    #[case::the_first_removal_after_a_change(&[swap("new")], delete_pool(), Some(Look::Check))]
    #[case::the_first_removal_in_a_later_reconciliation(&[], delete_pool(), Some(Look::Check))]
    #[case::another_removal(&[delete_pool()], delete_pool(), None)]
    #[case::members_after_a_monitor(&[monitor(POOL)], members(POOL), Some(Look::Check))]
    #[case::a_monitor_after_members(&[members(POOL)], monitor(POOL), Some(Look::Check))]
    #[case::a_monitor_of_another_pool(&[monitor("another")], members(POOL), None)]
    #[case::a_pool_that_no_listener_uses(&[members("unused")], monitor("unused"), None)]
    #[case::members_that_are_there(&[], batch(POOL), Some(Look::Members(POOL.to_owned())))]
    #[case::new_members(&[], members(POOL), None)]
    #[case::tags(&[], rename(), Some(Look::Whole))]
    #[case::an_own_floating_ip(&[], detach(), None)]
    fn a_step_of_a_later_reconciliation_needs_a_look(
        #[case] done: &[Step],
        #[case] step: Step,
        #[case] look: Option<Look>,
    ) {
        let mut cloud = Cloud::serving(&Shape::web().desired());
        let children = cloud.children();
        children.pools.push(ObservedPool {
            id: "unused".to_owned(),
            used_by: BTreeSet::new(),
            ..children.pools[0].clone()
        });
        let looked = Looked {
            since: done.iter().filter_map(|step| Done::by(step, None)).collect(),
            ..Looked::default()
        };
        let plan = Plan { steps: vec![step], ..Plan::default() };
        assert_eq!(looked.before(&plan, Some(Ownership::Sole), Some(children)), look);
        assert_eq!(Looked::at_everything().before(&plan, Some(Ownership::Sole), Some(children)), None);
    }

    /// A list that lags behind may not show a member that is there, which a batch would put back to its defaults.
    #[rstest]
    #[case::of_a_node_that_joined(&["10.0.0.99"], None)]
    #[case::of_a_node_that_was_there(&[], Some(Look::Members(POOL.to_owned())))]
    fn an_unexpected_addition_needs_another_look(#[case] joined: &[&str], #[case] look: Option<Look>) {
        let mut cloud = Cloud::serving(&Shape::web().desired());
        let children = cloud.children();
        let there = &children.pools[0].members[0].member;
        let new = Member { address: [10, 0, 0, 99].into(), ..(**there).clone() };
        let members = vec![Arc::new(new)];
        let step = Step::Member(MemberStep::Add { pool: Handle::Id(POOL.to_owned()), members });
        let plan = Plan { steps: vec![step], ..Plan::default() };
        let joined: BTreeSet<IpAddr> = joined.iter().map(|one| one.parse().unwrap()).collect();
        for looked in [Looked::default(), Looked::at_everything()] {
            let mut looked = Looked { joined: joined.clone(), ..looked };
            assert_eq!(looked.before(&plan, Some(Ownership::Sole), Some(children)), look);
            looked.members.insert(POOL.to_owned());
            assert_eq!(looked.before(&plan, Some(Ownership::Sole), Some(children)), None);
        }
    }

    #[test]
    fn what_is_written_as_a_whole_was_read_in_the_same_reconciliation() {
        let plan = Plan { steps: vec![rename()], ..Plan::default() };
        let older = Looked { is_older: true, ..Looked::at_everything() };
        assert_eq!(older.before(&plan, Some(Ownership::Sole), None), Some(Look::Whole));
    }

    #[test]
    fn only_own_children_of_a_shared_load_balancer_are_changed_without_reading_it() {
        let plan = Plan { steps: vec![detach()], ..Plan::default() };
        for shared in [Ownership::Shared, Ownership::Guest] {
            assert_eq!(Looked::default().before(&plan, Some(shared), None), Some(Look::Whole));
        }
    }

    #[test]
    fn the_end_is_looked_at() {
        let since = vec![Done::Other];
        let looked = Looked { since, ..Looked::default() };
        assert_eq!(looked.before(&Plan::default(), Some(Ownership::Sole), None), Some(Look::Check));
        // A floating IP is attached, and nothing else is to be done.
        let plan = Plan { steps: vec![detach()], ..Plan::default() };
        assert_eq!(looked.before(&plan, Some(Ownership::Sole), None), Some(Look::Check));
        assert_eq!(Looked::default().before(&Plan::default(), Some(Ownership::Sole), None), None);
    }
}
