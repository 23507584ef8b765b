//! Changes the members of a pool to the wanted ones.
//!
//! A batch resets weight, backup, `admin_state_up` and monitor port of each member that it names to the values in the batch. So new
//! members are added by a batch that names only them, and a single member is deleted by its id. Any other change is one batch of
//! all members, which keeps what an administrator set.
//!
//! Octavia refuses a batch as a whole, for one new member or for want of quota. After such a refusal what goes is deleted by id, which
//! asks for neither, and what comes is added in parts ([`super::batch`]).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use openstack_ccm_openstack_api::octavia::ProvisioningStatus;

use super::batch::BatchChange;
use super::draft::Draft;
use crate::load_balancer::objects::step::Handle;
use crate::load_balancer::objects::{ListenerKey, Member, MemberKey, ObservedMember, ObservedPool};

/// No member of a pool in use takes connections, because of what an administrator set.
pub(crate) const DRAINED: &str = "LoadBalancerMembersDrained";

/// How far the members follow the desired state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// In everything.
    Whole,
    /// In everything but their monitor ports, which stay.
    Keys,
}

/// Returns whether a failed member needs another subnet. The subnet of a member cannot be changed.
pub(super) fn need_another_subnet(draft: &Draft, pool: &ObservedPool, wanted: &[Arc<Member>]) -> bool {
    let vip_subnet = draft.vip_subnet_id.as_deref();
    let differs = |failed: &ObservedMember| {
        let place = wanted.binary_search_by_key(&failed.key(), |member| member.key());
        place.is_ok_and(|place| {
            let (before, wanted) = (failed.member.subnet_id.as_deref(), wanted[place].subnet_id.as_deref());
            before.or(vip_subnet) != wanted.or(vip_subnet)
        })
    };
    let failed = pool.members.iter().filter(|member| member.status == ProvisioningStatus::Error);
    !pool.members_from_status && failed.into_iter().any(differs)
}

/// Changes the members in one batch, if they differ: even an unchanged batch locks the load balancer for seconds. An empty set of
/// nodes removes nothing.
pub(super) fn converge(draft: &mut Draft, pool: &ObservedPool, wanted: &[Arc<Member>], extent: Extent) {
    if wanted.is_empty() {
        return;
    }
    let before: BTreeMap<MemberKey, &ObservedMember> =
        pool.members.iter().map(|member| (member.key(), member)).collect();
    let failed = pool.members.iter().filter(|member| member.status == ProvisioningStatus::Error);
    for member in failed {
        draft.must_heal("member", &member.member.name, &member.id, &member.status);
    }
    let mut merged = inherit(draft, pool, wanted);
    for member in &mut merged {
        let there = before.get(&member.key()).copied();
        let subnet_id = there.map_or(&member.subnet_id, |there| &there.member.subnet_id).clone();
        // New members get the monitor port of existing members.
        let like = there.or(pool.members.first()).filter(|_| extent == Extent::Keys);
        let monitor_port = like.map_or(member.monitor_port, |like| like.member.monitor_port);
        if (&subnet_id, monitor_port) != (&member.subnet_id, member.monitor_port) {
            *member = Arc::new(Member { subnet_id, monitor_port, ..Member::clone(member) });
        }
    }
    let from_status = pool.members_from_status;
    let same = |member: &Arc<Member>| {
        before.get(&member.key()).is_some_and(|before| match from_status {
            true => before.member.name == member.name && !draft.replaced_servers.contains(&member.address),
            false => before.member == *member,
        })
    };
    let (stay, new): (Vec<_>, Vec<_>) =
        merged.iter().cloned().partition(|member| before.contains_key(&member.key()));
    let is_wanted =
        |one: &ObservedMember| merged.binary_search_by_key(&one.key(), |member| member.key()).is_ok();
    let change = BatchChange {
        pool: Handle::Id(pool.id.clone()),
        stay_as_they_are: stay.iter().all(same),
        are_sound: pool.members.iter().all(|one| one.status != ProvisioningStatus::Error),
        gone: before.values().copied().filter(|one| !is_wanted(one)).collect(),
        // The status tree does not show the monitor ports that new members get.
        additive: draft.additive && (extent == Extent::Whole || !from_status),
        all: merged,
        stay,
        new,
    };
    change.plan(draft);
}

/// Returns the wanted members with what an administrator set on their machines in this pool.
pub(super) fn inherit(draft: &Draft, pool: &ObservedPool, wanted: &[Arc<Member>]) -> Vec<Arc<Member>> {
    let there: BTreeMap<IpAddr, &Member> =
        pool.members.iter().map(|one| (one.member.address, &*one.member)).collect();
    let merge = |wanted: &Arc<Member>| {
        let is_another = |before: &Member| {
            draft.replaced_servers.contains(&wanted.address) || before.is_of_another_node(wanted)
        };
        let before = there.get(&wanted.address).filter(|before| !is_another(before));
        let merged = before.map(|before| Member::clone(wanted).inheriting(before));
        merged.filter(|merged| *merged != **wanted).map_or_else(|| Arc::clone(wanted), Arc::new)
    };
    wanted.iter().map(merge).collect()
}

/// Warns if no member of a pool in use will take connections, because of what an administrator set.
pub(super) fn warn_if_drained(
    draft: &mut Draft,
    pool: &ObservedPool,
    wanted: &[Arc<Member>],
    port: ListenerKey,
) {
    let there = pool.members.iter().map(|one| Arc::clone(&one.member));
    let members = if wanted.is_empty() { there.collect() } else { inherit(draft, pool, wanted) };
    if members.is_empty() || members.iter().any(|member| member.takes_connections()) {
        return;
    }
    let ObservedPool { id, name, .. } = pool;
    let message = format!(
        "port {port} takes no connections: somebody set weight 0 or admin_state_up false in Octavia on each member of pool {name} \
         ({id}); take that back with openstack loadbalancer member set --weight 1 --enable {id} MEMBER"
    );
    draft.warn(DRAINED, message);
}
