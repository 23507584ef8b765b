//! Changes the members of a pool to the wanted ones.
//!
//! A batch resets weight, backup, `admin_state_up` and monitor port of each member that it names to the values in the batch. So new
//! members are added by a batch that names only them, and a single member is deleted by its id. Any other change is one batch of
//! all members, which keeps what an administrator set.

use std::collections::BTreeMap;
use std::sync::Arc;

use openstack_ccm_openstack_api::octavia::ProvisioningStatus;

use super::draft::Draft;
use crate::load_balancer::objects::step::{Handle, MemberStep, Step};
use crate::load_balancer::objects::{Member, MemberKey, ObservedMember, ObservedPool};

/// How far the members follow the desired state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// In everything.
    Whole,
    /// In which members exist. Their monitor ports stay.
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
    let like = pool.members.first().filter(|_| extent == Extent::Keys);
    let merged: Vec<Arc<Member>> = wanted
        .iter()
        .map(|member| match (before.get(&member.key()), extent) {
            (Some(before), Extent::Keys) => Arc::clone(&before.member),
            (before, _) => merge(before.copied(), like, member),
        })
        .collect();
    let from_status = pool.members_from_status;
    let same = |member: &Arc<Member>| {
        before.get(&member.key()).is_some_and(|before| from_status || is_same(before, member))
    };
    let is_sound = |member: &ObservedMember| member.status != ProvisioningStatus::Error;
    let handle = Handle::Id(pool.id.clone());
    let new: Vec<Arc<Member>> =
        merged.iter().filter(|member| !before.contains_key(&member.key())).cloned().collect();
    let stay_as_they_are = merged.iter().filter(|member| before.contains_key(&member.key())).all(same);
    let gone: Vec<&ObservedMember> = before
        .values()
        .copied()
        .filter(|one| merged.binary_search_by_key(&one.key(), |member| member.key()).is_err())
        .collect();
    // New members get the monitor port of existing members, which the status tree does not show.
    let is_known = extent == Extent::Whole || !from_status;
    if stay_as_they_are && before.values().all(|one| is_sound(one)) {
        match (new.as_slice(), gone.as_slice()) {
            ([], []) => return,
            ([_, ..], []) if draft.additive && is_known => {
                return draft.step(Step::Member(MemberStep::Add { pool: handle, members: new }));
            }
            ([], [gone]) if !gone.id.is_empty() => {
                let (pool_id, id, name) = (pool.id.clone(), gone.id.clone(), gone.member.name.clone());
                return draft.step(Step::Member(MemberStep::Delete { pool_id, id, name }));
            }
            _ => {}
        }
    }
    // Failed members are sent with any other change, at once; sending only them is a repair.
    let repairs = stay_as_they_are && new.is_empty() && gone.is_empty();
    draft.change(repairs, Step::Member(MemberStep::ReplaceAll { pool: handle, members: merged }));
}

/// Returns a wanted member as it is sent: with what an administrator may have set on the existing member, and its subnet, which
/// cannot be changed. A new member gets the monitor port of `like`.
fn merge(
    before: Option<&ObservedMember>,
    like: Option<&ObservedMember>,
    wanted: &Arc<Member>,
) -> Arc<Member> {
    let merged = match (before, like) {
        (None, None) => return Arc::clone(wanted),
        (None, Some(like)) => Member { monitor_port: like.member.monitor_port, ..(**wanted).clone() },
        (Some(ObservedMember { member: before, .. }), _) => Member {
            subnet_id: before.subnet_id.clone(),
            monitor_address: before.monitor_address,
            weight: before.weight,
            backup: before.backup,
            admin_state_up: before.admin_state_up,
            ..(**wanted).clone()
        },
    };
    if merged == **wanted { Arc::clone(wanted) } else { Arc::new(merged) }
}

fn is_same(before: &ObservedMember, merged: &Member) -> bool {
    before.member.name == merged.name && before.member.monitor_port == merged.monitor_port
}
