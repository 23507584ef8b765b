//! Changes the members of a pool to the wanted ones, one by one (`provider-requires-serial-api-calls`).
//!
//! The members are the same as in normal mode except for their names. New ones are created before old ones are deleted, so that the
//! pool is never empty in between.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use openstack_ccm_openstack_api::octavia::ProvisioningStatus;

use super::draft::Draft;
use super::members::Extent;
use crate::load_balancer::objects::step::{Handle, MemberStep, Step};
use crate::load_balancer::objects::{Member, MemberKey, ObservedMember, ObservedPool};

/// Fills a new pool.
pub(super) fn fill(draft: &mut Draft, pool: &Handle, wanted: &[Arc<Member>]) {
    for member in wanted {
        draft.step(create(pool, member));
    }
}

/// Creates missing members, updates those that failed or need another monitor port, and deletes those that are not wanted. Names
/// are not compared: a member from normal mode stays. An empty set of nodes deletes nothing.
pub(super) fn converge(draft: &mut Draft, pool: &ObservedPool, wanted: &[Arc<Member>], extent: Extent) {
    if wanted.is_empty() {
        return;
    }
    let before: BTreeMap<MemberKey, &ObservedMember> =
        pool.members.iter().map(|member| (member.key(), member)).collect();
    let handle = Handle::Id(pool.id.clone());
    let like = pool.members.first().filter(|_| extent == Extent::Keys);
    let first = draft.plan.steps.len();
    for member in wanted.iter().filter(|member| !before.contains_key(&member.key())) {
        let monitor_port = like.map_or(member.monitor_port, |like| like.member.monitor_port);
        draft.step(create(&handle, &Arc::new(Member { monitor_port, ..(**member).clone() })));
    }
    let new: Vec<usize> = (first..draft.plan.steps.len()).collect();
    for member in wanted {
        let Some(existing) = before.get(&member.key()) else { continue };
        let failed = existing.status == ProvisioningStatus::Error;
        if failed {
            draft.must_heal("member", &existing.member.name, &existing.id, &existing.status);
        }
        let checked = match extent {
            Extent::Whole => member.monitor_port,
            Extent::Keys => existing.member.monitor_port,
        };
        if failed || existing.member.monitor_port != checked {
            draft.change(failed, update(pool, existing, checked));
        }
    }
    let wanted: BTreeSet<MemberKey> = wanted.iter().map(|member| member.key()).collect();
    let none_stays = before.keys().all(|key| !wanted.contains(key));
    for member in pool.members.iter().filter(|member| !wanted.contains(&member.key())) {
        let needed = if none_stays { new.clone() } else { Vec::new() };
        draft.step_with(delete(pool, member), needed);
    }
}

fn create(pool: &Handle, member: &Arc<Member>) -> Step {
    Step::Member(MemberStep::Create { pool: pool.clone(), member: Arc::clone(member) })
}

fn update(pool: &ObservedPool, existing: &ObservedMember, monitor_port: Option<u16>) -> Step {
    let updated = Member { monitor_port, ..(*existing.member).clone() };
    let (pool_id, id) = (pool.id.clone(), existing.id.clone());
    Step::Member(MemberStep::Update { pool_id, id, member: Arc::new(updated) })
}

fn delete(pool: &ObservedPool, member: &ObservedMember) -> Step {
    let (pool_id, id, name) = (pool.id.clone(), member.id.clone(), member.member.name.clone());
    Step::Member(MemberStep::Delete { pool_id, id, name })
}
