//! Compares what counts as answered with the statuses that Octavia shows.

use std::collections::{BTreeMap, BTreeSet};

use openstack_ccm_openstack_api::octavia::{MemberStatus, PoolStatus, ProvisioningStatus, StatusTree};

use super::digest::Digest;
use super::sent::shows_members;
use crate::load_balancer::model::member::MemberKey;
use crate::load_balancer::model::observed::{Children, ObservedLoadBalancer, ObservedPool, Ownership};
use crate::load_balancer::step::Child;

/// Compares what is believed with what the status tree shows, and takes over the statuses. `digest` is
/// what stands for the addresses and ports of a pool's members where they are not kept. Answers which of the children `answered` the tree
/// does not show, so that they have to be read; `None` where it shows something else than is believed.
pub(super) fn confirm(
    there: &mut ObservedLoadBalancer,
    answered: BTreeSet<Child>,
    tree: &StatusTree,
    digest: impl Fn(&ObservedPool) -> Option<Digest>,
) -> Option<Vec<Child>> {
    if tree.provisioning_status != ProvisioningStatus::Active {
        return None;
    }
    let alone = there.ownership == Ownership::Sole;
    let children = there.children.as_mut()?;
    let mut pools = BTreeMap::new();
    let mut listeners = BTreeSet::new();
    for seen in &tree.listeners {
        pools.extend(seen.pools.iter().map(|pool| (pool.id.as_str(), pool)));
        match children.listeners.iter_mut().find(|listener| listener.id == seen.id) {
            Some(listener) => {
                let default = listener.default_pool_id.as_ref();
                if default.is_some_and(|id| seen.pools.iter().all(|pool| pool.id != *id)) {
                    return None;
                }
                listener.status = seen.provisioning_status.clone();
                listeners.insert(seen.id.as_str());
            }
            None if alone => return None,
            None => {}
        }
    }
    if children.listeners.iter().any(|one| one.ours && !listeners.contains(one.id.as_str())) {
        return None;
    }
    for pool in children.pools.iter_mut().filter(|pool| pool.ours) {
        if let Some(seen) = pools.get(pool.id.as_str()) {
            confirm_pool(pool, seen, digest(pool))?;
        }
    }
    let on_none = |pool: &ObservedPool| !pools.contains_key(pool.id.as_str());
    Some(of_pools(children, answered, on_none))
}

/// Whether a status tree shows any of the children, or that a pool has lost its monitor. Listeners and pools that are gone, and pools that
/// hang on no listener, are in none.
pub(super) fn any_is_shown(children: &Children, answered: &BTreeSet<Child>) -> bool {
    let has_listener = |child: &Child| children.listeners.iter().any(|listener| listener.id == child.id());
    let in_pool =
        |child: &Child| children.pools.iter().any(|pool| !pool.used_by.is_empty() && is_in(child, pool));
    answered.iter().any(|child| has_listener(child) || in_pool(child))
}

/// The children that belong to such pools. Members that are there tell that the pool is, too.
pub(super) fn of_pools(
    children: &Children,
    answered: BTreeSet<Child>,
    is_meant: impl Fn(&ObservedPool) -> bool,
) -> Vec<Child> {
    let with_members: BTreeSet<String> = answered
        .iter()
        .filter_map(|child| if let Child::Members(id) = child { Some(id.clone()) } else { None })
        .collect();
    let needs_a_look = |child: &Child| !matches!(child, Child::Pool(id) if with_members.contains(id));
    let meant = |child: &Child| children.pools.iter().any(|pool| is_meant(pool) && is_in(child, pool));
    answered.into_iter().filter(|child| needs_a_look(child) && meant(child)).collect()
}

fn confirm_pool(pool: &mut ObservedPool, seen: &PoolStatus, digest: Option<Digest>) -> Option<()> {
    pool.status = seen.provisioning_status.clone();
    match (&mut pool.monitor, &seen.health_monitor) {
        (None, None) => {}
        (Some(monitor), Some(seen)) if monitor.id == seen.id => {
            monitor.status = seen.provisioning_status.clone();
        }
        (Some(_), _) | (None, Some(_)) => return None,
    }
    // A digest does not tell which of them failed.
    if let Some(digest) = digest {
        return shows_members(seen, digest).then_some(());
    }
    let mut shown: BTreeMap<MemberKey, &MemberStatus> = BTreeMap::new();
    for member in &seen.members {
        let key = MemberKey { address: member.address.parse().ok()?, port: member.protocol_port };
        shown.insert(key, member);
    }
    if shown.len() != pool.members.len() {
        return None;
    }
    for member in &mut pool.members {
        let seen = shown.get(&member.key())?;
        member.id.clone_from(&seen.id);
        member.status = seen.provisioning_status.clone();
    }
    Some(())
}

/// Whether a child is a pool, or belongs to it, or did so.
pub(super) fn is_in(child: &Child, pool: &ObservedPool) -> bool {
    match child {
        Child::Pool(id) | Child::Members(id) | Child::Monitor { pool_id: id, .. } => pool.id == *id,
        Child::Listener(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::load_balancer::model::observed::ObservedMember;
    use crate::load_balancer::plan::tests::cloud::Cloud;
    use crate::load_balancer::plan::tests::shape::Shape;

    fn serving() -> ObservedLoadBalancer {
        Cloud::serving(&Shape::web().desired()).load_balancer().clone()
    }

    /// The status tree of a load balancer on which all is well, edited.
    fn tree(there: &ObservedLoadBalancer, edit: impl FnOnce(&mut Value)) -> StatusTree {
        let children = there.children.as_ref().expect("it was read");
        let active = |id: &str| json!({"id": id, "provisioning_status": "ACTIVE"});
        let pool = |pool: &ObservedPool| {
            let mut node = active(&pool.id);
            node["health_monitor"] = pool.monitor.as_ref().map_or(Value::Null, |monitor| active(&monitor.id));
            node["members"] = pool
                .members
                .iter()
                .map(|member| {
                    let mut node = active(&member.id);
                    node["address"] = json!(member.member.address);
                    node["protocol_port"] = json!(member.member.port);
                    node
                })
                .collect();
            node
        };
        let listeners = children.listeners.iter().map(|listener| {
            let mut node = active(&listener.id);
            node["pools"] = children.default_pool(listener).map(pool).into_iter().collect();
            node
        });
        let mut tree = json!({"provisioning_status": "ACTIVE", "listeners": listeners.collect::<Vec<_>>()});
        edit(&mut tree);
        serde_json::from_value(tree).expect("a status tree")
    }

    /// What is to be read after a comparison, and the statuses that are not ACTIVE then; nothing where it does not agree.
    fn confirmed(edit: impl FnOnce(&mut Value)) -> Option<(usize, Vec<ProvisioningStatus>)> {
        let mut there = serving();
        let tree = tree(&there, edit);
        let unseen = confirm(&mut there, BTreeSet::new(), &tree, |_| None)?;
        let children = there.children.expect("it was read");
        let of_pool = |pool: ObservedPool| {
            let monitor = pool.monitor.map(|monitor| monitor.status);
            pool.members.into_iter().map(|member| member.status).chain([pool.status]).chain(monitor)
        };
        let statuses = children.listeners.into_iter().map(|listener| listener.status);
        let mut statuses: Vec<_> = statuses.chain(children.pools.into_iter().flat_map(of_pool)).collect();
        statuses.retain(|status| *status != ProvisioningStatus::Active);
        Some((unseen.len(), statuses))
    }

    #[test]
    fn what_is_there_as_answered_agrees() {
        assert_eq!(confirmed(|_| {}), Some((0, Vec::new())));
    }

    #[test]
    fn each_child_that_failed_shows() {
        for place in [
            "/listeners/0/provisioning_status",
            "/listeners/0/pools/0/provisioning_status",
            "/listeners/0/pools/0/members/0/provisioning_status",
        ] {
            let failed = confirmed(|tree| *tree.pointer_mut(place).expect(place) = json!("ERROR"));
            assert_eq!(failed, Some((0, vec![ProvisioningStatus::Error])), "{place}");
        }
    }

    #[test]
    fn what_is_not_as_answered_agrees_with_nothing() {
        type Edit = fn(&mut Value);
        let edits: [(&str, Edit); 6] = [
            ("somebody began something", |tree| tree["provisioning_status"] = json!("PENDING_UPDATE")),
            ("another listener", |tree| {
                let more = json!({"id": "another", "provisioning_status": "ACTIVE", "pools": []});
                tree["listeners"].as_array_mut().expect("a list").push(more);
            }),
            ("no listener", |tree| tree["listeners"] = json!([])),
            ("another pool", |tree| tree["listeners"][0]["pools"][0]["id"] = json!("another")),
            ("a monitor that is to be gone", |tree| {
                let monitor = json!({"id": "monitor", "provisioning_status": "ERROR"});
                tree["listeners"][0]["pools"][0]["health_monitor"] = monitor;
            }),
            ("a member less", |tree| {
                tree["listeners"][0]["pools"][0]["members"].as_array_mut().expect("a list").pop();
            }),
        ];
        for (what, edit) in edits {
            assert_eq!(confirmed(edit), None, "{what}");
        }
    }

    #[test]
    fn members_that_a_digest_stands_for_are_compared_too() {
        let confirmed = |member: &str, edit: fn(&mut Value)| {
            let mut there = serving();
            let tree = tree(&there, |tree| edit(&mut tree["listeners"][0]["pools"][0]["members"]));
            let pool = &mut there.children.as_mut().expect("it was read").pools[0];
            let members = std::mem::take(&mut pool.members);
            let digest = Digest::of_member_keys(members.iter().map(ObservedMember::key));
            let agrees = confirm(&mut there, BTreeSet::new(), &tree, |_| Some(digest)).is_some();
            assert_eq!(agrees, member.is_empty(), "{member}");
        };
        confirmed("", |_| {});
        confirmed("one less", |members| drop(members.as_array_mut().expect("a list").pop()));
        confirmed("another one", |members| members[0]["address"] = json!("192.0.2.99"));
        confirmed("one that failed", |members| members[0]["provisioning_status"] = json!("ERROR"));
    }

    #[test]
    fn a_pool_that_hangs_on_no_listener_is_read() {
        let mut there = serving();
        let tree = tree(&there, |_| {});
        let children = there.children.as_mut().expect("it was read");
        let mut lone = children.pools[0].clone();
        (lone.id, lone.used_by) = ("lone".to_owned(), BTreeSet::new());
        children.pools.push(lone);
        let members = Child::Members("lone".to_owned());
        let answered = BTreeSet::from([Child::Pool("lone".to_owned()), members.clone()]);
        assert!(!any_is_shown(children, &answered));
        assert_eq!(confirm(&mut there, answered, &tree, |_| None), Some(vec![members]));
    }
}
