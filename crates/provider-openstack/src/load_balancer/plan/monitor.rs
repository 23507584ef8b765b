//! Changes the health monitor of a pool to the wanted one.

use openstack_ccm_openstack_api::octavia::{Fields as _, HttpCheck, UpdateChild};

use super::draft::{Draft, tags_of_own};
use crate::load_balancer::objects::step::{Changes as _, Handle, MonitorStep, Step};
use crate::load_balancer::objects::{DesiredPool, MonitorSpec, ObservedMonitor, ObservedPool};

/// Returns whether a pool has a monitor of another type than the wanted one: the type cannot be changed, and without a monitor the
/// pool would send traffic to nodes that do not serve.
pub(super) fn is_of_another_type(pool: &ObservedPool, wanted: &DesiredPool) -> bool {
    let (observed, wanted) = (pool.monitor.as_ref(), wanted.monitor.as_ref());
    observed.zip(wanted).is_some_and(|(observed, wanted)| observed.kind != wanted.kind)
}

/// Deletes a monitor that is not wanted, or has another type. Returns a monitor that stays.
pub(super) fn remove_unfit<'a>(
    draft: &mut Draft,
    pool: &'a ObservedPool,
    wanted: Option<&MonitorSpec>,
) -> Option<&'a ObservedMonitor> {
    let observed = pool.monitor.as_ref()?;
    if wanted.is_some_and(|wanted| wanted.kind == observed.kind) {
        return Some(observed);
    }
    let failed = draft.must_heal("health monitor", &observed.name, &observed.id, &observed.status);
    let (id, pool_id) = (observed.id.clone(), pool.id.clone());
    draft.change(failed, Step::Monitor(MonitorStep::Delete { id, pool_id }));
    None
}

/// Creates or updates the monitor of a pool. `kept` is the result of [`remove_unfit`].
pub(super) fn converge(
    draft: &mut Draft,
    pool: &ObservedPool,
    kept: Option<&ObservedMonitor>,
    wanted: Option<&MonitorSpec>,
) {
    let Some(wanted) = wanted else { return };
    let Some(observed) = kept else {
        let (monitor, handle) = (Box::new(wanted.clone()), Handle::Id(pool.id.clone()));
        let before = draft.before_monitor(&handle, Some(pool));
        return draft.step_with(Step::Monitor(MonitorStep::Create { pool: handle, monitor }), before);
    };
    let whole = draft.must_heal("health monitor", &observed.name, &observed.id, &observed.status);
    let mut changes = changes(observed, wanted, whole);
    if let Some(rename) = &draft.rename {
        rename.child("monitor", &observed.name, &observed.tags, &mut changes);
    }
    let waits = draft.can_wait(changes.only_tags().as_ref(), &observed.tags, &wanted.tags);
    if !changes.is_empty() && !waits {
        let labels = changes.only_tags().is_some();
        let (id, pool_id) = (observed.id.clone(), pool.id.clone());
        draft.label_or_change(labels, whole, Step::Monitor(MonitorStep::Update { id, pool_id, changes }));
    }
}

fn changes(observed: &ObservedMonitor, wanted: &MonitorSpec, whole: bool) -> UpdateChild {
    let (before, after) = (&observed.attributes, &wanted.attributes);
    // A request is sent as a whole.
    let request = whole || before.http != after.http;
    let rule = |name: &str| HttpCheck::NAMES.contains(&name).then_some(request);
    let attributes = before.changes(after, whole, |name, _| rule(name));
    UpdateChild { name: None, attributes, tags: tags_of_own(&observed.tags, &wanted.tags) }
}
