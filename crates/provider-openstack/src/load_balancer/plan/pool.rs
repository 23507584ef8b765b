//! What makes a pool, with its members and monitor, the wanted one.

use openstack_ccm_openstack_api::change::Change;
use openstack_ccm_openstack_api::octavia::{
    HealthMonitorType, SessionPersistence, SessionPersistenceType, UpdatePool,
};

use super::draft::{Draft, tags_without};
use super::members::Extent;
use super::{members, monitor, serial};
use crate::load_balancer::objects::step::{Changes as _, Handle, MemberStep, MonitorStep, PoolStep, Step};
use crate::load_balancer::objects::{
    DesiredPool, FormerListener, ListenerSpec, ObservedListener, ObservedPool, Persistence, PoolSpec, former,
    pool,
};

/// Makes a new pool that no listener uses, with all that belongs to it.
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
        let (pool, monitor) = (handle.clone(), Box::new(monitor.clone()));
        draft.step(Step::Monitor(MonitorStep::Create { pool, monitor }));
    }
    handle
}

/// Makes an existing pool the wanted one.
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
        // What OCCM set because the Service asks for it is noted when the load balancer gets its identity tags.
        let labels = changes.only_tags().is_some();
        // Without it ovn-octavia-provider (11.0) leaves the listener PENDING for ever, and fails at session persistence.
        changes.admin_state_up = draft.is_ovn.then_some(observed.admin_state_up);
        let step = Step::Pool(PoolStep::Update { id: observed.id.clone(), changes });
        draft.label_or_change(labels, whole, step);
    }
    if draft.kept_up.contains(&observed.id) {
        let kept = observed.monitor.as_ref().filter(|_| wanted.monitor.is_some());
        monitor::converge(draft, &observed.id, kept, wanted.monitor.as_ref());
    } else {
        complete(draft, observed, wanted);
    }
    Handle::Id(observed.id.clone())
}

/// Has the members of a pool in use follow the nodes, before anything else. One that does not stay follows them until another one takes its
/// place.
///
/// A monitor that goes does so before the members change: an HTTP check of the health check node port must never meet members without
/// `monitor_port`, which would take them all down. So where the deletion of such a monitor failed, the members wait with it. They do
/// not wait with that of another one. Where it is refused, the monitor stays, and the members with what it checks.
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

/// Makes members and monitor of a pool that no listener uses the wanted ones: the monitor comes last.
fn complete(draft: &mut Draft, observed: &ObservedPool, wanted: &DesiredPool) {
    let removal = draft.plan.steps.len();
    let kept = monitor::remove_unfit(draft, observed, wanted.monitor.as_ref());
    let after_removal = draft.plan.steps.len();
    converge_members(draft, observed, wanted, Extent::Whole);
    monitor::converge(draft, &observed.id, kept, wanted.monitor.as_ref());
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

/// Notes on a pool what its listener is, before that makes way for one of another protocol. Not where Octavia has no tags, or it is noted.
pub(super) fn note_former(
    pool: &ObservedPool,
    listener: &ObservedListener,
    wanted: &ListenerSpec,
) -> Option<Step> {
    let tags = FormerListener::of(listener).to_tags();
    let notes = !wanted.tags.is_empty() && !tags.is_subset(&pool.tags);
    let changes = UpdatePool { tags: Some(&pool.tags | &tags), ..UpdatePool::default() };
    notes.then(|| Step::Pool(PoolStep::Update { id: pool.id.clone(), changes }))
}

/// With `settled`, the pool serves the listener that it is to serve, and what a former one was counts no more.
fn changes(observed: &ObservedPool, wanted: &PoolSpec, settled: bool) -> UpdatePool {
    let (before, after) = (&observed.attributes, &wanted.attributes);
    let persistence_stale = pool::stale(&observed.tags, &wanted.tags);
    let is_former = |tag: &&String| settled && former::is_about_former(tag);
    let mut stale = persistence_stale.clone();
    stale.extend(observed.tags.iter().filter(is_former).cloned());
    UpdatePool {
        session_persistence: persistence(
            before.session_persistence.as_ref(),
            after.session_persistence.as_ref(),
            !persistence_stale.is_empty(),
        ),
        tags: tags_without(&observed.tags, &wanted.tags, &stale),
        ..UpdatePool::default()
    }
}

/// The change of the algorithm, alone: a provider may refuse it, and that must not stop anything else.
fn algorithm(observed: &ObservedPool, wanted: &PoolSpec, whole: bool) -> UpdatePool {
    let after = &wanted.attributes.lb_algorithm;
    let changes = whole || observed.attributes.lb_algorithm != *after;
    UpdatePool { lb_algorithm: changes.then(|| after.clone()), ..UpdatePool::default() }
}

/// The change of session persistence. What the Service asks for is set; what it asked for and does not any more is
/// cleared, as a tag shows. Anything else was set by somebody else, and stays.
fn persistence(
    before: Option<&Persistence>,
    wanted: Option<&Persistence>,
    set_here: bool,
) -> Change<SessionPersistence> {
    match (before, wanted) {
        (Some(before), Some(wanted)) if before.satisfies(wanted) => Change::Keep,
        (_, Some(wanted)) => Change::Set(wanted.request()),
        // Cookies are not what a Service can ask for: somebody chose them since.
        (Some(before), None) if set_here && before.kind == SessionPersistenceType::SourceIp => Change::Clear,
        (_, None) => Change::Keep,
    }
}
