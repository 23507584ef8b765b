//! Keeps the protocol of a listener that cannot change it, with all that depends on the protocol. Pure.
//!
//! Octavia can change a protocol only by replacing the listener. So where the new listener is refused, or the old one has something
//! that would be lost, the listener keeps what depends on its protocol (TLS, headers, the protocol of the pool), and follows the
//! Service in everything else.

use std::borrow::Cow;
use std::collections::BTreeSet;

use openstack_ccm_core::failure::Failure;

use super::refusals::{Predecessor, Refusals, TO_TRY_AGAIN, is_for_good, listener_tag};
use crate::load_balancer::objects::step::{ListenerStep, Refused, Step};
use crate::load_balancer::objects::{
    Children, Desired, DesiredListener, FormerListener, InsertedHeader, ListenerKey, ListenerSpec,
    ObservedListener, ObservedLoadBalancer, Tags, header, tls,
};

/// Returns the desired state without the protocol changes that are held back, and these changes.
pub(super) fn hold_back<'a>(
    desired: &'a Desired,
    there: &ObservedLoadBalancer,
    refusals: &Refusals,
) -> (Cow<'a, Desired>, Vec<Refused>) {
    let mut held = Vec::new();
    let mut desired = Cow::Borrowed(desired);
    let Some(children) = &there.children else { return (desired, held) };
    let keys: Vec<ListenerKey> = desired.listeners.keys().copied().collect();
    for key in keys {
        let Some(wanted) = desired.listeners.get(&key) else { continue };
        let Some((predecessor, is_there)) = predecessor(children, key, wanted, refusals) else { continue };
        let step = Step::Listener(ListenerStep::Create {
            load_balancer_id: there.id.clone(),
            listener: Box::new(wanted.listener.clone()),
            default_pool: None,
        });
        let tag = listener_tag(&wanted.listener);
        let refusal = refusals.of(&step).cloned();
        let returned = is_there.filter(|listener| listener.tags.contains(&tag));
        let is_noted = returned.is_some() || is_there.is_none() && refusal.as_ref().is_some_and(is_for_good);
        let failure =
            refusal.or_else(|| returned.map(refused_before)).or_else(|| is_there.and_then(lost_with));
        let Some(failure) = failure else { continue };
        let mut kept = keeping(wanted, &predecessor);
        if is_noted && !kept.listener.tags.is_empty() {
            kept.listener.tags.insert(tag);
        }
        desired.to_mut().listeners.insert(key, kept);
        held.push(Refused { step, failure });
    }
    (desired, held)
}

/// Returns the listener of another protocol that exists, or existed before its successor was refused; and the existing one, if any.
fn predecessor<'a>(
    children: &'a Children,
    key: ListenerKey,
    wanted: &DesiredListener,
    refusals: &Refusals,
) -> Option<(Predecessor, Option<&'a ObservedListener>)> {
    let is_at = |listener: &&ObservedListener| listener.key() == key && !listener.is_of_metrics();
    match children.listeners.iter().find(is_at) {
        Some(listener) if listener.ours && listener.protocol != wanted.listener.protocol => {
            let pool = children.default_pool(listener)?.clone();
            Some((Predecessor { listener: FormerListener::of(listener), pool }, Some(listener)))
        }
        Some(_) => None,
        None => Some((refusals.predecessors.get(&key)?.clone(), None)),
    }
}

/// Returns a failure if replacing the listener would delete L7 policies, which only the user can recreate.
fn lost_with(listener: &ObservedListener) -> Option<Failure> {
    listener.has_policies.then(|| {
        Failure::user_input(format!(
            "listener {} ({}) keeps its protocol {}: replacing the listener would delete its L7 policies; delete the policies, or revert \
             the setting that asks for another protocol",
            listener.name, listener.id, listener.protocol
        ))
    })
}

/// Says that an earlier process met the refusal.
fn refused_before(listener: &ObservedListener) -> Failure {
    Failure::user_input(format!(
        "listener {} ({}) keeps its protocol {}: the cloud refused the replacement, as an earlier Event reported; {}",
        listener.name, listener.id, listener.protocol, TO_TRY_AGAIN
    ))
}

fn keeping(wanted: &DesiredListener, predecessor: &Predecessor) -> DesiredListener {
    let Predecessor { listener: before, pool } = predecessor;
    let mut kept = wanted.clone();
    kept.listener = listener(&wanted.listener, before);
    kept.pool.pool.protocol = pool.protocol.clone();
    kept
}

/// Returns the desired listener with the present protocol and all that depends on it.
pub(super) fn listener(wanted: &ListenerSpec, before: &FormerListener) -> ListenerSpec {
    let mut kept = wanted.clone();
    kept.protocol = before.protocol.clone();
    kept.tags = tags(&wanted.tags, &before.tags);
    let attributes = &mut kept.attributes;
    attributes.insert_headers.clone_from(&before.insert_headers);
    attributes.tls_container_ref.clone_from(&before.tls_container_ref);
    attributes.tls.clone_from(&before.tls);
    kept
}

/// Returns the wanted tags, but the present ones about the origin of TLS settings and headers.
fn tags(wanted: &Tags, before: &Tags) -> Tags {
    let tags = header::with_kept(wanted, &BTreeSet::from(InsertedHeader::ALL), before);
    let none = Tags::new();
    &(&tags - &tls::stale(wanted, &none)) | &tls::stale(before, &none)
}
