//! What makes the members of a pool the wanted ones.
//!
//! A batch puts weight, backup, `admin_state_up` and monitor port of each member that it names back to what it says of them. So new
//! members come in a batch that names them alone, and a single one goes by its id. Everything else is one batch of all members,
//! which keeps what an administrator has set.

use std::collections::BTreeMap;
use std::sync::Arc;

use openstack_ccm_openstack_api::octavia::ProvisioningStatus;

use super::draft::Draft;
use crate::load_balancer::model::{Member, MemberKey, ObservedMember, ObservedPool};
use crate::load_balancer::step::{Handle, MemberStep, Step};

/// Replaces the members in one batch, if they differ: even an unchanged batch locks the load balancer for seconds.
pub(super) fn converge(draft: &mut Draft, pool: &ObservedPool, wanted: &[Arc<Member>]) {
    let before: BTreeMap<MemberKey, &ObservedMember> =
        pool.members.iter().map(|member| (member.key(), member)).collect();
    let failed = pool.members.iter().filter(|member| member.status == ProvisioningStatus::Error);
    for member in failed {
        draft.must_heal("member", &member.member.name, &member.id, &member.status);
    }
    let merged: Vec<Arc<Member>> =
        wanted.iter().map(|member| merge(before.get(&member.key()).copied(), member)).collect();
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
    if stay_as_they_are && before.values().all(|one| is_sound(one)) {
        match (new.as_slice(), gone.as_slice()) {
            ([], []) => return,
            ([_, ..], []) if draft.additive => {
                return draft.step(Step::Member(MemberStep::Add { pool: handle, members: new }));
            }
            ([], [gone]) if !gone.id.is_empty() => {
                let (pool_id, id, name) = (pool.id.clone(), gone.id.clone(), gone.member.name.clone());
                return draft.step(Step::Member(MemberStep::Delete { pool_id, id, name }));
            }
            _ => {}
        }
    }
    // What failed goes along with every other change, at once; alone it is a repair.
    let repairs = stay_as_they_are && new.is_empty() && gone.is_empty();
    let (broken, sound): (Vec<&Arc<Member>>, Vec<&Arc<Member>>) = merged.iter().partition(|member| {
        before.get(&member.key()).is_some_and(|before| is_on_wrong_subnet(before, member))
    });
    if !broken.is_empty() {
        // The subnet of a member cannot be changed, so it is taken out before it comes back on the right one.
        let members = sound.into_iter().cloned().collect();
        draft.change(repairs, Step::Member(MemberStep::ReplaceAll { pool: handle.clone(), members }));
    }
    draft.change(repairs, Step::Member(MemberStep::ReplaceAll { pool: handle, members: merged }));
}

/// A wanted member as it is sent: what an administrator may have set on the existing one stays.
fn merge(before: Option<&ObservedMember>, wanted: &Arc<Member>) -> Arc<Member> {
    let Some(ObservedMember { status, member: before, .. }) = before else { return Arc::clone(wanted) };
    // The subnet of a member that failed may be the reason why it failed.
    let subnet = if *status == ProvisioningStatus::Error { &wanted.subnet_id } else { &before.subnet_id };
    let merged = Member {
        subnet_id: subnet.clone(),
        monitor_address: before.monitor_address,
        weight: before.weight,
        backup: before.backup,
        admin_state_up: before.admin_state_up,
        ..(**wanted).clone()
    };
    if merged == **wanted { Arc::clone(wanted) } else { Arc::new(merged) }
}

fn is_same(before: &ObservedMember, merged: &Member) -> bool {
    before.member.name == merged.name && before.member.monitor_port == merged.monitor_port
}

fn is_on_wrong_subnet(before: &ObservedMember, merged: &Member) -> bool {
    before.status == ProvisioningStatus::Error && before.member.subnet_id != merged.subnet_id
}
