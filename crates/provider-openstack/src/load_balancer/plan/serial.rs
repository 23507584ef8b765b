//! What makes the members of a pool the wanted ones, one by one (`provider-requires-serial-api-calls`).
//!
//! The members are those of the normal mode but for their names. New ones come before old ones go, so that the pool is
//! never empty in between.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use openstack_ccm_openstack_api::octavia::ProvisioningStatus;

use super::draft::Draft;
use crate::load_balancer::model::{Member, MemberKey, ObservedMember, ObservedPool};
use crate::load_balancer::step::{Handle, MemberStep, Step};

/// Fills a new pool.
pub(super) fn fill(draft: &mut Draft, pool: &Handle, wanted: &[Arc<Member>]) {
    for member in wanted {
        draft.step(create(pool, member));
    }
}

/// Adds what is missing, replaces what failed or is checked on another port, and takes away what is not wanted. Names
/// are not compared: a member that was made in the normal mode stays.
pub(super) fn converge(draft: &mut Draft, pool: &ObservedPool, wanted: &[Arc<Member>]) {
    let before: BTreeMap<MemberKey, &ObservedMember> =
        pool.members.iter().map(|member| (member.key(), member)).collect();
    let handle = Handle::Id(pool.id.clone());
    for member in wanted.iter().filter(|member| !before.contains_key(&member.key())) {
        draft.step(create(&handle, member));
    }
    for member in wanted {
        let Some(existing) = before.get(&member.key()) else { continue };
        let failed = existing.status == ProvisioningStatus::Error;
        if failed {
            draft.must_heal("member", &existing.member.name, &existing.id, &existing.status);
        }
        if failed || existing.member.monitor_port != member.monitor_port {
            draft.change(failed, delete(pool, existing));
            draft.change(failed, create(&handle, member));
        }
    }
    let wanted: BTreeSet<MemberKey> = wanted.iter().map(|member| member.key()).collect();
    for member in pool.members.iter().filter(|member| !wanted.contains(&member.key())) {
        draft.step(delete(pool, member));
    }
}

fn create(pool: &Handle, member: &Arc<Member>) -> Step {
    Step::Member(MemberStep::Create { pool: pool.clone(), member: Arc::clone(member) })
}

fn delete(pool: &ObservedPool, member: &ObservedMember) -> Step {
    let (pool_id, id, name) = (pool.id.clone(), member.id.clone(), member.member.name.clone());
    Step::Member(MemberStep::Delete { pool_id, id, name })
}
