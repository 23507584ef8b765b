//! Queries over all children of a load balancer, and the removal of our children that are not wanted.

use std::collections::{BTreeMap, BTreeSet};

use openstack_ccm_openstack_api::octavia::ProvisioningStatus;

use super::draft::Draft;
use super::types::Wait;
use crate::load_balancer::objects::step::{ListenerStep, PoolStep, Step};
use crate::load_balancer::objects::{Children, ObservedListener, ObservedPool};

/// Returns whether any child was made for this Service.
pub(crate) fn any_own(children: &Children) -> bool {
    children.listeners.iter().any(|listener| listener.ours) || children.pools.iter().any(|pool| pool.ours)
}

/// Describes the first child that was not made for this Service.
pub(super) fn first_foreign(children: &Children) -> Option<String> {
    let listener = children.listeners.iter().find(|listener| !listener.ours);
    let pool = children.pools.iter().find(|pool| !pool.ours);
    listener
        .map(|listener| format!("the listener {} ({})", listener.name, listener.id))
        .or_else(|| pool.map(|pool| format!("the pool {} ({})", pool.name, pool.id)))
}

/// Returns the first PENDING child of this Service.
///
/// The load balancer and its children are read one after the other, so another client's change may begin in between.
///
/// With ovn, listeners are ignored: its driver leaves them PENDING after changes of pools and monitors, and accepts all further
/// changes.
pub(super) fn pending(children: &Children, is_ovn: bool) -> Option<Wait> {
    let listeners = children.listeners.iter().filter(|listener| listener.ours && !is_ovn);
    let listeners = listeners.map(|listener| ("listener", &listener.id, &listener.status));
    let pools = children.pools.iter().filter(|pool| pool.ours);
    let mut all = listeners.chain(pools.flat_map(statuses));
    all.find(|(_, _, status)| status.is_pending()).map(|(kind, id, status)| Wait {
        kind,
        id: id.clone(),
        status: status.clone(),
    })
}

fn statuses(pool: &ObservedPool) -> impl Iterator<Item = (&'static str, &String, &ProvisioningStatus)> {
    let members = pool.members.iter().map(|member| ("member", &member.id, &member.status));
    let monitor = pool.monitor.iter().map(|monitor| ("health monitor", &monitor.id, &monitor.status));
    std::iter::once(("pool", &pool.id, &pool.status)).chain(members).chain(monitor)
}

/// Removes this Service's listeners that are not wanted, then its pools that no wanted listener claimed.
///
/// The listener goes first: without its pool it would answer for a while, with errors. Two kinds of pools stay, since Octavia would
/// refuse to delete them: those that another client's listener uses, and those to which an L7 policy of a remaining listener
/// redirects.
pub(super) fn remove_unwanted(
    draft: &mut Draft,
    children: &Children,
    is_wanted: impl Fn(&ObservedListener) -> bool,
) {
    let own: BTreeMap<&str, &ObservedListener> =
        children.listeners.iter().filter(|one| one.ours).map(|one| (one.id.as_str(), one)).collect();
    for listener in own.values().filter(|listener| !is_wanted(listener)) {
        draft.step(Step::Listener(ListenerStep::Delete { id: listener.id.clone(), key: listener.key() }));
    }
    let gives_up = |user: &String, pool: &ObservedPool| {
        own.get(user.as_str()).is_some_and(|listener| {
            !is_wanted(listener) || listener.default_pool_id.as_ref() == Some(&pool.id)
        })
    };
    for pool in children.pools.iter().filter(|pool| pool.ours) {
        let is_claimed = draft.claimed_pools.contains(&pool.id);
        if !is_claimed && pool.used_by.iter().all(|user| gives_up(user, pool)) {
            let users =
                children.listeners.iter().filter(|one| one.default_pool_id.as_ref() == Some(&pool.id));
            let users: BTreeSet<&str> = users.map(|listener| listener.id.as_str()).collect();
            let leaving = draft.places(|step| match step {
                Step::Listener(
                    ListenerStep::SwapDefaultPool { listener_id: id, .. } | ListenerStep::Delete { id, .. },
                ) => users.contains(id.as_str()),
                _ => false,
            });
            let step = PoolStep::Delete { id: pool.id.clone(), name: pool.name.clone() };
            draft.step_with(Step::Pool(step), leaving);
        }
    }
}
