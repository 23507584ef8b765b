//! Changes a pool, its members and its monitor to the wanted ones.

use openstack_ccm_openstack_api::octavia::{
    Fields as _, HealthMonitorType, SessionPersistence, SessionPersistenceType, UpdateChild,
};

use super::draft::{Draft, tags_without};
use super::members::Extent;
use super::{members, monitor, serial};
use crate::load_balancer::objects::pool::PERSISTENCE;
use crate::load_balancer::objects::step::{Changes as _, Handle, MemberStep, MonitorStep, PoolStep, Step};
use crate::load_balancer::objects::{
    DesiredPool, FormerListener, ListenerSpec, ObservedListener, ObservedPool, PoolSpec, former, pool,
};

/// Creates a pool that no listener uses, with members and monitor.
pub(super) fn create(draft: &mut Draft, load_balancer_id: &str, wanted: &DesiredPool) -> Handle {
    draft.step(Step::Pool(PoolStep::Create {
        load_balancer_id: load_balancer_id.to_owned(),
        pool: Box::new(wanted.pool.clone()),
    }));
    let handle = Handle::New(wanted.pool.name.clone());
    if draft.serial {
        serial::fill(draft, &handle, &wanted.members);
    } else if !wanted.members.is_empty() {
        let (pool, members) = (handle.clone(), wanted.members.clone());
        draft.step(Step::Member(MemberStep::ReplaceAll { pool, members }));
    }
    if let Some(monitor) = &wanted.monitor {
        let before = draft.before_monitor(&handle, None);
        let (pool, monitor) = (handle.clone(), Box::new(monitor.clone()));
        draft.step_with(Step::Monitor(MonitorStep::Create { pool, monitor }), before);
    }
    handle
}

/// Changes an existing pool to the wanted one.
pub(super) fn converge(
    draft: &mut Draft,
    observed: &ObservedPool,
    wanted: &DesiredPool,
    settled: bool,
) -> Handle {
    let whole = draft.must_heal("pool", &observed.name, &observed.id, &observed.status);
    let mut attributes = changes(observed, &wanted.pool, settled);
    if let Some(rename) = &draft.rename {
        rename.child("pool", &observed.name, &observed.tags, &mut attributes);
    }
    let algorithm = algorithm(observed, &wanted.pool, whole);
    let only_tags = attributes.only_tags().filter(|_| algorithm.is_empty());
    if draft.can_wait(only_tags.as_ref(), &observed.tags, &wanted.pool.tags) {
        attributes.tags = None;
    }
    let updates = [attributes, algorithm];
    for mut changes in updates.into_iter().filter(|changes| !changes.is_empty()) {
        // The tags that record which settings OCCM made for the Service are not written before the identity tags of the load
        // balancer: each write of tags makes Octavia reload it.
        let labels = changes.only_tags().is_some();
        // Without `admin_state_up`, ovn-octavia-provider (11.0) leaves the listener PENDING for ever, and fails to set session
        // persistence.
        if draft.is_ovn {
            changes.attributes.set("admin_state_up", observed.admin_state_up.into());
        }
        let step = Step::Pool(PoolStep::Update { id: observed.id.clone(), changes });
        draft.label_or_change(labels, whole, step);
    }
    if draft.kept_up.contains(&observed.id) {
        let kept = observed.monitor.as_ref().filter(|_| wanted.monitor.is_some());
        monitor::converge(draft, observed, kept, wanted.monitor.as_ref());
    } else {
        complete(draft, observed, wanted);
    }
    Handle::Id(observed.id.clone())
}

/// Makes the members of a pool in use follow the nodes, before anything else. A pool that will be replaced follows them until then.
///
/// A monitor is deleted before the members change: an HTTP check of the health check node port must never meet members without
/// `monitor_port`, which it would all take down. So if the deletion of an HTTP monitor has to be repaired, the members wait for it;
/// they do not wait for other types. If the deletion is refused, the monitor stays, and the members keep their monitor ports.
pub(super) fn keep_up(draft: &mut Draft, observed: &ObservedPool, wanted: &DesiredPool, stays: bool) {
    if !stays {
        return converge_members(draft, observed, wanted, Extent::Keys);
    }
    let removal = draft.plan.steps.len();
    let kept = monitor::remove_unfit(draft, observed, wanted.monitor.as_ref());
    let after_removal = draft.plan.steps.len();
    let removed = observed.monitor.as_ref().filter(|_| kept.is_none());
    let is_refused = draft.plan.steps[removal..].iter().any(|step| draft.refusals.of(step).is_some());
    converge_members(draft, observed, wanted, if is_refused { Extent::Keys } else { Extent::Whole });
    if removed.is_some_and(|removed| removed.kind == HealthMonitorType::Http) {
        draft.wait_with(removal, after_removal);
    }
}

/// Changes members and monitor of a pool that no listener uses: the monitor comes last.
fn complete(draft: &mut Draft, observed: &ObservedPool, wanted: &DesiredPool) {
    let removal = draft.plan.steps.len();
    let kept = monitor::remove_unfit(draft, observed, wanted.monitor.as_ref());
    let after_removal = draft.plan.steps.len();
    converge_members(draft, observed, wanted, Extent::Whole);
    monitor::converge(draft, observed, kept, wanted.monitor.as_ref());
    if observed.monitor.is_some() && kept.is_none() {
        draft.wait_with(removal, after_removal);
    }
}

fn converge_members(draft: &mut Draft, observed: &ObservedPool, wanted: &DesiredPool, extent: Extent) {
    if draft.serial {
        serial::converge(draft, observed, &wanted.members, extent);
    } else {
        members::converge(draft, observed, &wanted.members, extent);
    }
}

/// Notes a listener in its pool's tags before it is replaced by one of another protocol. `None` without tags in Octavia, or if
/// noted.
pub(super) fn note_former(
    draft: &Draft,
    pool: &ObservedPool,
    listener: &ObservedListener,
    wanted: &ListenerSpec,
) -> Option<Step> {
    let tags = FormerListener::of(listener).to_tags();
    let known = draft.tags_of(pool);
    let notes = !wanted.tags.is_empty() && !tags.is_subset(known);
    let changes = UpdateChild { tags: Some(known | &tags), ..UpdateChild::default() };
    notes.then(|| Step::Pool(PoolStep::Update { id: pool.id.clone(), changes }))
}

/// With `settled`, the pool serves the wanted listener, and the tags about a former one are removed.
fn changes(observed: &ObservedPool, wanted: &PoolSpec, settled: bool) -> UpdateChild {
    let (before, after) = (&observed.attributes, &wanted.attributes);
    let persistence_stale = pool::stale(&observed.tags, &wanted.tags);
    let is_former = |tag: &&String| settled && former::is_about_former(tag);
    let mut stale = persistence_stale.clone();
    stale.extend(observed.tags.iter().filter(is_former).cloned());
    let (is, now) = (before.session_persistence.as_ref(), after.session_persistence.as_ref());
    let changes = persistence_changes(is, now, !persistence_stale.is_empty());
    let attributes = before.changes(after, false, |name, _| Some(changes && name == PERSISTENCE));
    UpdateChild { name: None, attributes, tags: tags_without(&observed.tags, &wanted.tags, &stale) }
}

/// Returns the change of the algorithm, alone: a provider may refuse it, which must not stop other changes.
fn algorithm(observed: &ObservedPool, wanted: &PoolSpec, whole: bool) -> UpdateChild {
    let not_persistence = |name: &str| (name == PERSISTENCE).then_some(false);
    let attributes = observed.attributes.changes(&wanted.attributes, whole, |name, _| not_persistence(name));
    UpdateChild { attributes, ..UpdateChild::default() }
}

/// Returns whether session persistence changes. It is set if the Service asks for it, and cleared if a tag shows that the Service
/// used to ask for it. Anything else was set by another client, and stays.
fn persistence_changes(
    before: Option<&SessionPersistence>,
    wanted: Option<&SessionPersistence>,
    set_here: bool,
) -> bool {
    match (before, wanted) {
        (Some(before), Some(wanted)) => !before.satisfies(wanted),
        (None, wanted) => wanted.is_some(),
        // A Service cannot ask for cookies: another client set them since.
        (Some(before), None) => set_here && before.kind == SessionPersistenceType::SourceIp,
    }
}
