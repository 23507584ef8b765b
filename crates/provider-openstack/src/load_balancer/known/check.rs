//! Compares the statuses that Octavia shows with the expected children of a load balancer. Pure.
//!
//! The status tree shows which objects exist, their statuses, and members by name, address and port. It shows no other attributes, no
//! tags, and no pools without a listener.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use openstack_ccm_openstack_api::octavia::{
    MemberStatus, MonitorStatus, PoolStatus, ProvisioningStatus, StatusTree,
};

use crate::load_balancer::objects::{
    Children, Member, MemberKey, ObservedLoadBalancer, ObservedMember, ObservedPool, Ownership,
};

/// How members are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::load_balancer) enum Members {
    /// The shown members must be the known ones.
    Compare,
    /// The shown members replace the known ones.
    TakeOver,
}

/// Compares the status tree with what is expected, and takes over ids and statuses. Returns whether all that the tree shows is as
/// expected, and nothing has failed.
pub(in crate::load_balancer) fn agrees(
    there: &mut ObservedLoadBalancer,
    tree: &StatusTree,
    members: Members,
) -> bool {
    let alone = there.ownership == Ownership::Sole;
    let Some(children) = there.children.as_mut().filter(|_| is_active(&tree.provisioning_status)) else {
        return false;
    };
    listeners_agree(children, tree, alone) && pools_agree(children, tree, members)
}

fn is_active(status: &ProvisioningStatus) -> bool {
    *status == ProvisioningStatus::Active
}

fn listeners_agree(children: &Children, tree: &StatusTree, alone: bool) -> bool {
    let shown: BTreeSet<&str> = tree.listeners.iter().map(|listener| listener.id.as_str()).collect();
    let known: BTreeSet<&str> = children.listeners.iter().map(|listener| listener.id.as_str()).collect();
    let own = children.listeners.iter().filter(|listener| listener.ours);
    let are_there = own.clone().all(|listener| {
        let seen = tree.listeners.iter().find(|seen| seen.id == listener.id);
        seen.is_some_and(|seen| {
            let default = listener.default_pool_id.as_ref();
            let has_pool = default.is_none_or(|id| seen.pools.iter().any(|pool| pool.id == *id));
            is_active(&seen.provisioning_status) && has_pool
        })
    });
    are_there && (!alone || shown.is_subset(&known))
}

fn pools_agree(children: &mut Children, tree: &StatusTree, members: Members) -> bool {
    let shown = tree.listeners.iter().flat_map(|listener| &listener.pools);
    let shown: BTreeMap<&str, &PoolStatus> = shown.map(|pool| (pool.id.as_str(), pool)).collect();
    let mut own = children.pools.iter_mut().filter(|pool| pool.ours && !pool.used_by.is_empty());
    own.all(|pool| shown.get(pool.id.as_str()).is_some_and(|seen| pool_agrees(pool, seen, members)))
}

/// Compares one pool with its status, members and monitor included.
pub(in crate::load_balancer) fn pool_agrees(
    pool: &mut ObservedPool,
    seen: &PoolStatus,
    members: Members,
) -> bool {
    let PoolStatus { id: _, provisioning_status, health_monitor, members: listed } = seen;
    let monitor_agrees = match (&pool.monitor, health_monitor) {
        (None, None) => true,
        (Some(known), Some(MonitorStatus { id, provisioning_status })) => {
            known.id == *id && is_active(provisioning_status)
        }
        (Some(_), None) | (None, Some(_)) => false,
    };
    is_active(provisioning_status)
        && monitor_agrees
        && match members {
            Members::Compare => members_agree(pool, listed),
            Members::TakeOver => take_over(pool, listed),
        }
}

/// Compares all members: Octavia still shows a member that is being deleted.
fn members_agree(pool: &mut ObservedPool, listed: &[MemberStatus]) -> bool {
    let Some(shown) = by_key(listed) else { return false };
    shown.len() == pool.members.len()
        && pool.members.iter_mut().all(|member| {
            shown.get(&member.key()).is_some_and(|seen| {
                member.id.clone_from(&seen.id);
                member.status.clone_from(&seen.provisioning_status);
                is_active(&seen.provisioning_status)
            })
        })
}

fn take_over(pool: &mut ObservedPool, listed: &[MemberStatus]) -> bool {
    let Some(shown) = by_key(listed) else { return false };
    pool.members_from_status = true;
    pool.members = shown.into_iter().map(|(key, seen)| from_status(key, seen)).collect();
    pool.members.iter().all(|member| is_active(&member.status))
}

fn by_key(listed: &[MemberStatus]) -> Option<BTreeMap<MemberKey, &MemberStatus>> {
    let key = |member: &MemberStatus| {
        Some(MemberKey { address: member.address.parse().ok()?, port: member.protocol_port })
    };
    listed.iter().map(|member| Some((key(member)?, member))).collect()
}

/// Makes a member of a status, which has no attributes but the name: other values here are never compared.
fn from_status(key: MemberKey, seen: &MemberStatus) -> ObservedMember {
    let member = Member {
        name: seen.name.clone(),
        address: key.address,
        port: key.port,
        subnet_id: None,
        monitor_port: None,
        monitor_address: None,
        weight: 1,
        backup: false,
        admin_state_up: true,
    };
    ObservedMember { id: seen.id.clone(), status: seen.provisioning_status.clone(), member: Arc::new(member) }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::load_balancer::plan::tests::cloud::Cloud;
    use crate::load_balancer::plan::tests::shape::Shape;

    fn checked() -> ObservedLoadBalancer {
        let shape = Shape::web().with(|shape| shape.monitor_delay = Some(5));
        Cloud::serving(&shape.desired()).load_balancer().clone()
    }

    /// The status tree of a load balancer.
    fn tree(there: &ObservedLoadBalancer) -> Value {
        let children = there.children.as_ref().expect("it was read");
        let listeners: Vec<Value> = children
            .listeners
            .iter()
            .map(|listener| {
                let pools = children.pools.iter().filter(|pool| pool.used_by.contains(&listener.id)).map(pool);
                json!({"id": listener.id, "provisioning_status": "ACTIVE", "pools": pools.collect::<Vec<_>>()})
            })
            .collect();
        json!({"provisioning_status": "ACTIVE", "listeners": listeners})
    }

    fn pool(pool: &ObservedPool) -> Value {
        let members: Vec<Value> = pool
            .members
            .iter()
            .map(|member| {
                json!({"id": member.id, "provisioning_status": "ACTIVE",
                    "address": member.member.address.to_string(), "protocol_port": member.member.port})
            })
            .collect();
        let monitor =
            pool.monitor.as_ref().map(|monitor| json!({"id": monitor.id, "provisioning_status": "ACTIVE"}));
        json!({"id": pool.id, "provisioning_status": "ACTIVE", "health_monitor": monitor, "members": members})
    }

    const POOL: &str = "/listeners/0/pools/0";

    #[rstest]
    #[case::as_expected(|_: &mut Value| {}, true)]
    #[case::somebody_is_at_work(|tree: &mut Value| tree["provisioning_status"] = json!("PENDING_UPDATE"), false)]
    #[case::a_listener_failed(|tree: &mut Value| tree["listeners"][0]["provisioning_status"] = json!("ERROR"), false)]
    #[case::a_listener_is_gone(|tree: &mut Value| tree["listeners"] = json!([]), false)]
    #[case::a_listener_more(
        |tree: &mut Value| {
            let more = json!({"id": "more", "provisioning_status": "ACTIVE"});
            tree["listeners"].as_array_mut().unwrap().push(more);
        },
        false
    )]
    #[case::a_listener_lost_its_pool(|tree: &mut Value| tree["listeners"][0]["pools"] = json!([]), false)]
    #[case::a_pool_failed(|tree: &mut Value| tree.pointer_mut(POOL).unwrap()["provisioning_status"] = json!("ERROR"), false)]
    #[case::the_monitor_is_gone(|tree: &mut Value| tree.pointer_mut(POOL).unwrap()["health_monitor"] = json!(null), false)]
    #[case::a_member_failed(
        |tree: &mut Value| tree.pointer_mut(POOL).unwrap()["members"][0]["provisioning_status"] = json!("ERROR"),
        false
    )]
    #[case::a_member_is_missing(
        |tree: &mut Value| drop(tree.pointer_mut(POOL).unwrap()["members"].as_array_mut().unwrap().pop()),
        false
    )]
    fn what_the_status_tree_shows_is_compared(#[case] edit: impl Fn(&mut Value), #[case] expected: bool) {
        let mut there = checked();
        let mut tree = tree(&there);
        edit(&mut tree);
        let tree = serde_json::from_value(tree).expect("a status tree");
        assert_eq!(agrees(&mut there, &tree, Members::Compare), expected);
    }

    #[test]
    fn listeners_of_others_do_not_matter_on_a_shared_load_balancer() {
        let mut there = ObservedLoadBalancer { ownership: Ownership::Shared, ..checked() };
        let mut tree = tree(&there);
        tree["listeners"].as_array_mut().unwrap().push(json!({"id": "more", "provisioning_status": "ERROR"}));
        assert!(agrees(&mut there, &serde_json::from_value(tree).unwrap(), Members::Compare));
    }

    #[test]
    fn members_that_are_shown_are_taken_over_for_a_change_of_nodes() {
        let mut there = checked();
        let mut tree = tree(&there);
        drop(tree.pointer_mut(POOL).unwrap()["members"].as_array_mut().unwrap().pop());
        assert!(agrees(&mut there, &serde_json::from_value(tree).unwrap(), Members::TakeOver));
        let pool = &there.children.unwrap().pools[0];
        assert!(pool.members.len() == 1 && pool.members_from_status);
    }
}
