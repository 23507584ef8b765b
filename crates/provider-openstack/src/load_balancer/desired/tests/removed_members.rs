//! Why members go.

use openstack_ccm_openstack_api::octavia::ProvisioningStatus;

use super::*;
use crate::load_balancer::desired::removed_members::reasons;
use crate::load_balancer::known::advance::new_pool;
use crate::load_balancer::objects::step::{Handle, MemberStep, Step};
use crate::load_balancer::objects::{Children, ObservedMember, ObservedPool};

/// The pool with the members that the nodes of a world give.
fn children(world: &World) -> Children {
    let pool = world.listener(Protocol::Tcp, 80).pool;
    let members = pool.members.into_iter().enumerate().map(|(number, member)| {
        let id = format!("m{number}");
        ObservedMember { id, status: ProvisioningStatus::Active, member }
    });
    let members = members.collect();
    Children { listeners: Vec::new(), pools: vec![ObservedPool { members, ..new_pool("p", &pool.pool) }] }
}

#[rstest]
#[case::gone(|world: &mut World| drop(world.nodes.pop()), "n2: node gone")]
#[case::excluded(
    |world: &mut World| leave_out(world, LeftOut::Excluded),
    "n2: excluded by label node.kubernetes.io/exclude-from-external-load-balancers"
)]
#[case::deleting(|world: &mut World| leave_out(world, LeftOut::Deleting), "n2: node being deleted")]
#[case::not_selected(
    |world: &mut World| {
        world.nodes[0].labels.insert("pool".to_owned(), "edge".to_owned());
        let key = "loadbalancer.openstack.org/node-selector".to_owned();
        world.service.annotations.insert(key, "pool=edge".to_owned());
    },
    "n2: not selected by loadbalancer.openstack.org/node-selector"
)]
#[case::address(
    |world: &mut World| world.nodes[1].addresses[1].address = "10.0.0.99".to_owned(),
    "n2: address changed"
)]
#[case::node_port(
    |world: &mut World| world.service.ports[0].node_port = Some(31000),
    "n1: node port changed, n2: node port changed"
)]
fn a_member_that_is_removed_has_its_reason(#[case] change: fn(&mut World), #[case] expected: &str) {
    let mut world = World::new();
    let children = children(&world);
    change(&mut world);
    let members = world.listener(Protocol::Tcp, 80).pool.members;
    let step = Step::Member(MemberStep::ReplaceAll { pool: Handle::Id("p".to_owned()), members });
    let reasons = world.with_sources(|sources| reasons(sources, &step, &children));
    assert_eq!(reasons.as_deref(), Some(expected));
}

fn leave_out(world: &mut World, reason: LeftOut) {
    let node = world.nodes.pop().expect("two nodes");
    world.left_out.insert(node.name, reason);
}

#[test]
fn a_member_that_is_deleted_by_itself_has_its_reason() {
    let mut world = World::new();
    let children = children(&world);
    world.nodes.pop();
    let (pool_id, id, name) = ("p".to_owned(), "m1".to_owned(), "n2".to_owned());
    let step = Step::Member(MemberStep::Delete { pool_id, id, name });
    assert_eq!(
        world.with_sources(|sources| reasons(sources, &step, &children)).as_deref(),
        Some("n2: node gone")
    );
}

#[test]
fn where_members_only_come_nothing_is_said() {
    let mut world = World::new();
    let children = children(&world);
    world.nodes.push(node(3));
    let members = world.listener(Protocol::Tcp, 80).pool.members;
    let step = Step::Member(MemberStep::ReplaceAll { pool: Handle::Id("p".to_owned()), members });
    assert_eq!(world.with_sources(|sources| reasons(sources, &step, &children)), None);
}
