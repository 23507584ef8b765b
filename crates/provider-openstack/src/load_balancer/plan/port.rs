//! One port of a Service: its listener and the pool behind it.
//!
//! A pool is always complete before a listener gets it: it is created on the load balancer, filled, given its monitor, and only
//! then becomes the default pool. So a change of the pool's protocol (PROXY on or off) interrupts nothing, and no listener lacks
//! members. A pool that an interrupted reconciliation left is found again by its name and protocol, or is deleted if not needed.

use openstack_ccm_openstack_api::octavia::PoolProtocol;

use super::draft::Draft;
use super::{held_back, listener, members, monitor, pool};
use crate::load_balancer::annotations::METRICS_PORT;
use crate::load_balancer::objects::step::{Changes as _, Handle, ListenerStep, Step};
use crate::load_balancer::objects::{
    Children, DesiredListener, DesiredPool, FormerListener, ListenerKey, ListenerSpec, ObservedListener,
    ObservedPool,
};

/// A change interrupts connections, because Octavia offers no other way.
const LISTENER_REPLACED: &str = "LoadBalancerListenerReplaced";

/// The port for the load balancer's metrics is in use by another listener.
const NO_METRICS: &str = "LoadBalancerMetricsPortTaken";

/// The pods have to switch the PROXY protocol at the same moment.
const PROXY_SWITCHED: &str = "LoadBalancerProxyProtocolSwitched";

/// A port of the Service, its existing objects, and its wanted ones.
pub(super) struct Port<'a> {
    pub(super) key: ListenerKey,
    wanted: &'a DesiredListener,
    /// The Service's listener on this port, of any protocol.
    existing: Option<&'a ObservedListener>,
    /// The pool that this listener uses.
    present: Option<&'a ObservedPool>,
    /// That pool, or the one that the listener used before it made way for one of another protocol.
    former: Option<&'a ObservedPool>,
    /// The existing pool that is to be the default pool.
    pool: Option<&'a ObservedPool>,
}

impl<'a> Port<'a> {
    pub(super) fn of(
        draft: &mut Draft,
        children: &'a Children,
        key: ListenerKey,
        wanted: &'a DesiredListener,
    ) -> Self {
        let existing = children.listeners.iter().find(|listener| listener.key() == key && listener.ours);
        let present = existing.and_then(|listener| children.default_pool(listener));
        // The listener may just have been deleted for one of another protocol.
        let predecessor = draft.refusals.predecessors.get(&key);
        let left =
            predecessor.and_then(|before| children.pools.iter().find(|pool| pool.id == before.pool.id));
        let left = left.filter(|pool| pool.used_by.is_empty());
        let former = present.or(left);
        let pool = find_pool(draft, children, former, &wanted.pool);
        draft.claimed_pools.extend(pool.map(|pool| pool.id.clone()));
        Self { key, wanted, existing, present, former, pool }
    }

    /// Returns the existing listener, if it need not be replaced.
    fn fitting(&self) -> Option<&'a ObservedListener> {
        self.existing.filter(|listener| listener.protocol == self.wanted.listener.protocol)
    }
}

/// Makes the pool that serves the port follow the nodes, even if it is about to be replaced.
pub(super) fn keep_up(draft: &mut Draft, port: &Port<'_>) {
    let Some(present) = port.present.filter(|pool| pool.ours) else { return };
    let stays = port.pool.is_some_and(|pool| pool.id == present.id);
    if draft.kept_up.insert(present.id.clone()) {
        pool::keep_up(draft, present, &port.wanted.pool, stays);
        members::warn_if_drained(draft, present, &port.wanted.pool.members, port.key);
    }
}

/// Plans all of a port but its switch to another pool; the port is free or has a listener of this Service. Returns the pool that it gets.
pub(super) fn build(
    draft: &mut Draft,
    load_balancer_id: &str,
    children: &Children,
    port: &Port<'_>,
) -> Handle {
    let Port { key, wanted, existing, former, pool, .. } = *port;
    let fitting = port.fitting();
    if let Some(fitting) = fitting {
        draft.plan.notices.extend(listener::not_inserted(fitting, &wanted.pool.pool.protocol));
        update(draft, fitting, key, &wanted.listener);
    }
    let takes_over = former.filter(|former| former.ours && pool.is_none_or(|pool| pool.id != former.id));
    let taken_over = takes_over.map(|former| DesiredPool {
        members: members::inherit(draft, former, &wanted.pool.members),
        ..wanted.pool.clone()
    });
    let wanted_pool = taken_over.as_ref().unwrap_or(&wanted.pool);
    let default_pool = match pool {
        Some(found) => pool::converge(draft, found, wanted_pool, fitting.is_some()),
        None => pool::create(draft, load_balancer_id, wanted_pool),
    };
    if existing.is_some() && draft.is_under_repair(&default_pool) {
        draft.unready.insert(key);
    }
    match (fitting, existing) {
        (Some(fitting), _) if fitting.default_pool_id.as_deref() != default_pool.id() => {
            warn_of_proxy(draft, children, fitting, &wanted.pool);
        }
        (Some(_), _) | (None, None) => {}
        (None, Some(existing)) => {
            if draft.stuck.contains(&key) {
                let kept = held_back::listener(&wanted.listener, &FormerListener::of(existing));
                update(draft, existing, key, &kept);
            }
            let message = format!(
                "port {key} changes from {} to {}, which requires replacing the listener: connections to this port fail for a few seconds",
                existing.protocol, wanted.listener.protocol
            );
            draft.warn(LISTENER_REPLACED, message);
        }
    }
    default_pool
}

/// Gives the port's listener its pool, if it has another one. A listener that does not exist, or has another protocol, is created with it.
pub(super) fn switch(draft: &mut Draft, load_balancer_id: &str, port: &Port<'_>, pool: Handle) {
    let (key, wanted) = (port.key, &port.wanted.listener);
    if port.fitting().is_some_and(|fitting| fitting.default_pool_id.as_deref() == pool.id()) {
        return;
    }
    let mut needed = draft.completing(&pool, port.pool, port.present);
    if let Some(fitting) = port.fitting() {
        let listener_id = fitting.id.clone();
        let swap = ListenerStep::SwapDefaultPool { listener_id, key, pool };
        return draft.step_with(Step::Listener(swap), needed);
    }
    if let Some(existing) = port.existing {
        let before = draft.plan.steps.len();
        let left = port.present.filter(|pool| pool.ours);
        let note = left.and_then(|left| pool::note_former(draft, left, existing, wanted));
        note.into_iter().for_each(|step| draft.step(step));
        let deletion = draft.plan.steps.len();
        needed.push(deletion);
        // The note, and the successor, which follows.
        let others = (before..deletion).chain([deletion + 1]).collect();
        let delete = ListenerStep::Delete { id: existing.id.clone(), key };
        draft.step_with(Step::Listener(delete), others);
    }
    let create = ListenerStep::Create {
        load_balancer_id: load_balancer_id.to_owned(),
        listener: Box::new(wanted.clone()),
        default_pool: Some(pool),
    };
    draft.step_with(Step::Listener(create), needed);
}

/// Plans the listener for the load balancer's metrics. Returns its key, if it can exist: another listener may occupy the port.
pub(super) fn converge_metrics(
    draft: &mut Draft,
    load_balancer_id: &str,
    children: &Children,
    wanted: Option<&ListenerSpec>,
) -> Option<ListenerKey> {
    let wanted = wanted?;
    let key = wanted.key();
    let there = children.listeners.iter().find(|listener| listener.key() == key);
    match there {
        Some(there) if there.ours && there.is_of_metrics() => update(draft, there, key, wanted),
        // A listener of a port that the Service no longer has is deleted first.
        Some(there) if there.ours => return None,
        Some(there) => {
            let message = format!(
                "metrics are not served: port {key} is already used by listener {} ({}); choose another port with {}",
                there.name, there.id, METRICS_PORT.key
            );
            draft.warn(NO_METRICS, message);
            return None;
        }
        None => draft.step(Step::Listener(ListenerStep::Create {
            load_balancer_id: load_balancer_id.to_owned(),
            listener: Box::new(wanted.clone()),
            default_pool: None,
        })),
    }
    Some(key)
}

fn is_proxy(protocol: &PoolProtocol) -> bool {
    matches!(protocol, PoolProtocol::Proxy | PoolProtocol::ProxyV2)
}

/// Warns about a PROXY protocol switch: Octavia switches without a gap, but the pods must understand what they get from then on.
fn warn_of_proxy(draft: &mut Draft, children: &Children, listener: &ObservedListener, wanted: &DesiredPool) {
    let default_id = listener.default_pool_id.as_deref();
    let Some(before) = children.pools.iter().find(|pool| Some(pool.id.as_str()) == default_id) else {
        return;
    };
    let (before, after) = (&before.protocol, &wanted.pool.protocol);
    let port = listener.key();
    let duty = match (is_proxy(before), is_proxy(after)) {
        (false, true) => format!(
            "the load balancer now sends the PROXY header ({after}) on port {port}: the pods must accept this header"
        ),
        (true, false) => format!(
            "the load balancer no longer sends the PROXY header on port {port}: the pods must not expect this header"
        ),
        (true, true) if before != after => format!(
            "the load balancer now sends {after} instead of {before} on port {port}: the pods must accept {after}"
        ),
        _ => return,
    };
    draft.warn(PROXY_SWITCHED, format!("{duty} from now on, or every connection fails"));
}

fn update(draft: &mut Draft, observed: &ObservedListener, key: ListenerKey, wanted: &ListenerSpec) {
    let whole = draft.must_heal("listener", &observed.name, &observed.id, &observed.status);
    let mut changes = listener::changes(observed, wanted, whole);
    if let Some(rename) = &draft.rename {
        rename.child("listener", &observed.name, &observed.tags, &mut changes);
    }
    let waits = draft.can_wait(changes.only_tags().as_ref(), &observed.tags, &wanted.tags);
    if !changes.is_empty() && !waits {
        let labels = changes.only_tags().is_some();
        let changes = Box::new(changes);
        let step = Step::Listener(ListenerStep::Update { id: observed.id.clone(), key, changes });
        draft.label_or_change(labels, whole, step);
    }
}

/// Returns the existing pool that becomes or stays the default pool: the present one, if its protocol fits, no other port claimed
/// it, and it can be changed while it serves; else one that an interrupted reconciliation made for this port.
fn find_pool<'a>(
    draft: &Draft,
    children: &'a Children,
    present: Option<&'a ObservedPool>,
    wanted: &DesiredPool,
) -> Option<&'a ObservedPool> {
    let usable = |pool: &&ObservedPool| {
        pool.ours
            && pool.protocol == wanted.pool.protocol
            && !draft.claimed_pools.contains(&pool.id)
            && !members::need_another_subnet(draft, pool, &wanted.members)
            && !monitor::is_of_another_type(pool, wanted)
    };
    present.filter(usable).or_else(|| {
        let unused = children.pools.iter().filter(|pool| pool.used_by.is_empty());
        unused.filter(|pool| pool.name == wanted.pool.name).filter(usable).min_by_key(|pool| &pool.id)
    })
}
