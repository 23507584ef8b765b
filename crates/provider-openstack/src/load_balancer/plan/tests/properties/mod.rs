//! What holds for every pair of states, at every step between them.

mod accidents;
mod current;
mod oracle;
mod refusals;
mod rest;
pub(crate) mod states;

use openstack_ccm_openstack_api::octavia::ProvisioningStatus;
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use proptest::sample::select;

use super::cloud::Cloud;
use super::shape::{Kind, Shape};
use crate::load_balancer::objects::{Desired, Ownership};
use crate::load_balancer::plan::{Then, serve};
use accidents::{Accident, accidents, happen};
use oracle::{assert_served, foreign};
use states::{any_nodes, shape};

/// A cloud that served one Service, was on its way to another when the process died, and then met with accidents.
fn cloud_after(before: &Shape, between: &Shape, steps: usize, accidents: &[(Accident, usize)]) -> Cloud {
    let mut cloud = Cloud::serving(&before.desired());
    for _ in 0..steps {
        let plan = serve(&between.desired(), &cloud.observed);
        plan.steps.first().into_iter().for_each(|step| cloud.apply(step));
        cloud.finish_pending();
    }
    for (accident, which) in accidents {
        happen(&mut cloud, *accident, *which);
    }
    cloud
}

/// The same Service with ports of these kinds.
fn of_kinds(shape: &Shape, kinds: &[Kind]) -> Shape {
    shape.clone().with(|shape| {
        for (port, kind) in shape.ports.iter_mut().zip(kinds) {
            port.kind = *kind;
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the cloud looks like, plans lead to what is wanted and then to an empty plan; a new plan after every
    /// single step stands for a process that died there.
    #[test]
    fn every_state_leads_to_the_wanted_one(
        before in shape(any_nodes()),
        between in shape(any_nodes()),
        steps in 0..12_usize,
        accidents in accidents(),
        after in shape(any_nodes()),
        serial in proptest::bool::ANY,
    ) {
        let mut cloud = cloud_after(&before, &between, steps, &accidents);
        let others = foreign(&cloud.observed);
        let desired = Desired { serial, ..after.desired() };
        let plan = cloud.converge(&desired, |_| {});
        prop_assert!(plan.steps.is_empty());
        prop_assert_eq!(foreign(&cloud.observed), others);
        match plan.then {
            Then::Done => assert_served(&desired, &cloud.observed),
            Then::Blocked(failure) | Then::Held(failure) => prop_assert!(
                accidents.iter().any(|(accident, _)| matches!(accident,
                    Accident::ForeignListener | Accident::ForeignPool | Accident::ForeignPoolOnOwnListener
                    | Accident::FloatingIpForeign)),
                "blocked without a foreign object: {}", failure
            ),
            Then::WaitFor(wait) => prop_assert!(false, "waits for {wait} for ever"),
        }
    }

    /// A listener of a Service with nodes always has a pool with members, whatever changes: PROXY protocol, health
    /// checks, nodes, ports.
    #[test]
    fn a_listener_never_lacks_members(
        before in shape(btree_set(1..=4_u8, 1..=4)),
        between in shape(btree_set(1..=4_u8, 1..=4)),
        steps in 0..12_usize,
        after in shape(btree_set(1..=4_u8, 1..=4)),
    ) {
        let mut cloud = cloud_after(&before, &between, steps, &[]);
        cloud.converge(&after.desired(), |observed| {
            let children = observed.load_balancer.as_ref().and_then(|there| there.children.as_ref()).unwrap();
            for listener in &children.listeners {
                let pool = children.pools.iter().find(|pool| Some(&pool.id) == listener.default_pool_id.as_ref());
                assert!(pool.is_some_and(|pool| !pool.members.is_empty()), "{} has no members", listener.key());
            }
        });
    }

    /// While only PROXY protocol is switched, every port stays open all the time.
    #[test]
    fn switching_proxy_protocol_interrupts_nothing(
        shape in shape(btree_set(1..=4_u8, 1..=4)),
        kinds in vec(select(vec![Kind::Plain, Kind::Proxy, Kind::ProxyV2]), 10),
        steps in 0..12_usize,
    ) {
        let (before, after) = (of_kinds(&shape, &kinds[..5]), of_kinds(&shape, &kinds[5..]));
        let mut cloud = cloud_after(&before, &after, steps, &[]);
        let listeners: Vec<String> = cloud.children().listeners.iter().map(|listener| listener.id.clone()).collect();
        cloud.converge(&after.desired(), |observed| {
            let children = observed.load_balancer.as_ref().and_then(|there| there.children.as_ref()).unwrap();
            let now: Vec<&String> = children.listeners.iter().map(|listener| &listener.id).collect();
            assert_eq!(now, listeners.iter().collect::<Vec<_>>());
        });
    }

    /// While Octavia fails at the members of pools that no listener has yet, each listener keeps the pool that serves it.
    #[test]
    fn no_listener_gets_a_pool_that_octavia_failed_at(
        shape in shape(btree_set(1..=4_u8, 1..=4)),
        kinds in vec(select(vec![Kind::Plain, Kind::Proxy, Kind::ProxyV2]), 10),
        steps in 0..12_usize,
    ) {
        let (before, after) = (of_kinds(&shape, &kinds[..5]), of_kinds(&shape, &kinds[5..]));
        let mut cloud = cloud_after(&before, &after, steps, &[]);
        for _ in 0..20 {
            let unused = cloud.children().pools.iter_mut().filter(|pool| pool.used_by.is_empty());
            for member in unused.flat_map(|pool| &mut pool.members) {
                member.status = ProvisioningStatus::Error;
            }
            let plan = serve(&after.desired(), &cloud.observed);
            let due = if plan.heals { plan.without_repairs() } else { plan };
            let Some(step) = due.steps.first() else { break };
            cloud.apply(step);
            cloud.finish_pending();
            let children = cloud.children();
            for listener in &children.listeners {
                let pool = children.pools.iter().find(|pool| Some(&pool.id) == listener.default_pool_id.as_ref());
                let members = pool.map(|pool| &pool.members).expect("it has a pool");
                prop_assert!(
                    members.iter().any(|member| member.status != ProvisioningStatus::Error),
                    "{} after {step}", listener.key()
                );
            }
        }
    }

    /// Nothing of the Service is left after its release, and all that is not the Service's.
    #[test]
    fn a_release_leaves_nothing_and_takes_nothing_else(
        before in shape(any_nodes()),
        between in shape(any_nodes()),
        steps in 0..12_usize,
        accidents in accidents(),
        ownership in select(vec![Ownership::Sole, Ownership::Sole, Ownership::Shared, Ownership::Guest]),
        cascade in any::<bool>(),
    ) {
        let mut cloud = cloud_after(&before, &between, steps, &accidents);
        cloud.load_balancer().ownership = ownership;
        let others = foreign(&cloud.observed);
        let mut terms = Shape::release_terms();
        terms.cascade = cascade;
        let plan = cloud.release(&terms);
        prop_assert!(plan.steps.is_empty());
        prop_assert_eq!(foreign(&cloud.observed), others);
        if let Then::Blocked(failure) = plan.then {
            let broken = accidents.iter().any(|(accident, _)| *accident == Accident::Broken);
            prop_assert!(broken, "blocked though nothing is broken: {}", failure);
        } else if let Some(load_balancer) = &cloud.observed.load_balancer {
            let children = load_balancer.children.as_ref().unwrap();
            prop_assert!(children.listeners.iter().all(|listener| !listener.ours));
            prop_assert!(children.pools.iter().all(|pool| !pool.ours || !pool.used_by.is_empty()));
            prop_assert!(load_balancer.tags.is_disjoint(&terms.tags));
            prop_assert!(load_balancer.tags.is_disjoint(&terms.common_tags));
        } else {
            prop_assert!(cloud.observed.floating_ips.iter().all(|floating_ip| !floating_ip.ours));
        }
    }
}
