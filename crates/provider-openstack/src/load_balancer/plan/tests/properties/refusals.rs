//! With any one call refused for ever, everything that does not need it becomes as it is wanted, and nothing that serves is lost on the
//! way.

use std::collections::{BTreeMap, BTreeSet};

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::service::Protocol;
use proptest::collection::btree_set;
use proptest::prelude::*;
use proptest::sample::select;
use tokio::time::Instant;

use super::oracle::assert_served;
use super::states::shape;
use crate::load_balancer::objects::step::{Answer, Applied};
use crate::load_balancer::objects::step::{
    FloatingIpStep, ListenerStep, LoadBalancerStep, MemberStep, MonitorStep, PoolStep, Step,
};
use crate::load_balancer::objects::{
    Children, Desired, FloatingIpGoal, ListenerKey, MemberKey, Observed, ObservedListener, ObservedMember,
};
use crate::load_balancer::plan::Refused;
use crate::load_balancer::plan::tests::cloud::Cloud;
use crate::load_balancer::plan::tests::shape::{Kind, Port, Shape, tcp};
use crate::load_balancer::plan::{Plan, Then, serve_beside};
use crate::load_balancer::state::attempts::Attempts;

/// More steps than any change of the test states takes.
const BOUND: usize = 200;

/// What a listener of another protocol is to be, and not what it was.
const SUCCESSORS: &str = "POST successors of listeners";

const CALLS: [&str; 18] = [
    "PUT loadbalancers",
    "POST listeners",
    SUCCESSORS,
    "PUT listeners",
    "DELETE listeners",
    "POST pools",
    "PUT pools",
    "DELETE pools",
    "PUT members",
    "POST members",
    "DELETE members",
    "POST healthmonitors",
    "PUT healthmonitors",
    "DELETE healthmonitors",
    "POST floatingips",
    "PUT floatingips",
    "PUT tags",
    "DELETE floatingips",
];

/// Method and path of a step, without ids.
fn call(step: &Step) -> &'static str {
    match step {
        Step::LoadBalancer(LoadBalancerStep::Update { .. }) => "PUT loadbalancers",
        Step::LoadBalancer(_) => "another",
        Step::Listener(ListenerStep::Create { .. }) => "POST listeners",
        Step::Listener(ListenerStep::Update { .. } | ListenerStep::SwapDefaultPool { .. }) => "PUT listeners",
        Step::Listener(ListenerStep::Delete { .. }) => "DELETE listeners",
        Step::Pool(PoolStep::Create { .. }) => "POST pools",
        Step::Pool(PoolStep::Update { .. }) => "PUT pools",
        Step::Pool(PoolStep::Delete { .. }) => "DELETE pools",
        Step::Member(MemberStep::ReplaceAll { .. } | MemberStep::Add { .. } | MemberStep::Update { .. }) => {
            "PUT members"
        }
        Step::Member(MemberStep::Create { .. }) => "POST members",
        Step::Member(MemberStep::Delete { .. }) => "DELETE members",
        Step::Monitor(MonitorStep::Create { .. }) => "POST healthmonitors",
        Step::Monitor(MonitorStep::Update { .. }) => "PUT healthmonitors",
        Step::Monitor(MonitorStep::Delete { .. }) => "DELETE healthmonitors",
        Step::FloatingIp(FloatingIpStep::Create { .. }) => "POST floatingips",
        Step::FloatingIp(FloatingIpStep::Attach { .. } | FloatingIpStep::Detach { .. }) => "PUT floatingips",
        Step::FloatingIp(FloatingIpStep::Tag { .. }) => "PUT tags",
        Step::FloatingIp(FloatingIpStep::Delete { .. }) => "DELETE floatingips",
    }
}

fn children(observed: &Observed) -> &Children {
    let there = observed.load_balancer.as_ref().expect("there is a load balancer");
    there.children.as_ref().expect("the children are known")
}

/// The members that the listeners of a Service lead to.
fn in_use(observed: &Observed) -> BTreeMap<ListenerKey, BTreeSet<MemberKey>> {
    let children = children(observed);
    let own = children.listeners.iter().filter(|listener| listener.ours);
    own.filter_map(|listener| {
        let pool = children.default_pool(listener)?;
        Some((listener.key(), pool.members.iter().map(ObservedMember::key).collect()))
    })
    .collect()
}

/// Of the wanted members no listener that stays loses one.
fn assert_keeps(before: &Observed, after: &Observed, desired: &Desired, step: &Step) {
    let (before, after) = (in_use(before), in_use(after));
    for (key, wanted) in &desired.listeners {
        let (Some(before), Some(after)) = (before.get(key), after.get(key)) else { continue };
        let wanted: BTreeSet<MemberKey> = wanted.pool.members.iter().map(|member| member.key()).collect();
        let lost: Vec<_> = before.difference(after).filter(|member| wanted.contains(member)).collect();
        assert!(lost.is_empty(), "{step} takes {lost:?} from {key}");
        assert!(before.is_empty() || !after.is_empty(), "{step} empties {key}");
    }
}

/// The listeners that are to have another protocol.
fn changing(observed: &Observed, desired: &Desired) -> BTreeSet<ListenerKey> {
    let changes = |one: &&ObservedListener| {
        desired.listeners.get(&one.key()).is_some_and(|wanted| wanted.listener.protocol != one.protocol)
    };
    children(observed).listeners.iter().filter(changes).map(ObservedListener::key).collect()
}

/// Reconciles while one call is refused for ever.
fn converge(cloud: &mut Cloud, desired: &Desired, refused: &str) -> Plan {
    let (mut attempts, now) = (Attempts::default(), Instant::now());
    let changing = changing(&cloud.observed, desired);
    let succeeds = |step: &Step| match step {
        Step::Listener(ListenerStep::Create { listener, .. }) => {
            let wanted = desired.listeners.get(&listener.key());
            changing.contains(&listener.key())
                && wanted.is_some_and(|wanted| wanted.listener.protocol == listener.protocol)
        }
        _ => false,
    };
    for _ in 0..BOUND {
        let refusals = attempts.refusals.at(now, &cloud.observed);
        let plan = serve_beside(desired, &cloud.observed, &refusals);
        let Some(step) = plan.steps.first() else { return plan };
        if call(step) == refused || (refused == SUCCESSORS && succeeds(step)) {
            let refused = Refused { step: step.clone(), failure: Failure::user_input(refused) };
            assert!(attempts.refused(refused, &cloud.observed, true, now), "it is noted");
            continue;
        }
        let before = cloud.observed.clone();
        cloud.apply(step);
        let applied = Applied { accepted: vec![(0, Answer::Nothing)], ..Applied::default() };
        attempts.accepted(&plan.steps, &applied, &before);
        assert_keeps(&before, &cloud.observed, desired, step);
        cloud.finish_pending();
    }
    panic!("no end without {refused} after {BOUND} steps");
}

fn assert_degraded(
    desired: &Desired,
    observed: &Observed,
    refused: &str,
    changes_protocol: &BTreeSet<ListenerKey>,
) {
    let children = children(observed);
    let about_members = refused.ends_with(" members");
    for (key, wanted) in &desired.listeners {
        let found = children.listeners.iter().find(|listener| listener.ours && listener.key() == *key);
        let Some(listener) = found else {
            let is_left_out = matches!(refused, "POST listeners" | "POST pools" | "POST healthmonitors");
            assert!(is_left_out || about_members, "{key} is not served without {refused}");
            continue;
        };
        let pool = children.default_pool(listener).expect("it has a pool");
        let members: BTreeSet<MemberKey> = pool.members.iter().map(ObservedMember::key).collect();
        let expected: BTreeSet<MemberKey> = wanted.pool.members.iter().map(|member| member.key()).collect();
        assert!(
            about_members || expected.is_empty() || members == expected,
            "{key} without {refused}: {members:?}"
        );
        if refused != "PUT listeners" {
            let (seen, wanted) = (&listener.attributes, &wanted.listener.attributes);
            assert_eq!(
                (seen.limits, &seen.allowed_cidrs),
                (wanted.limits, &wanted.allowed_cidrs),
                "{refused}"
            );
        }
        // What a listener was is noted on its pool before it makes way.
        let notes = refused == "PUT pools" && changes_protocol.contains(key);
        let builds =
            refused.starts_with("POST") || refused == "PUT listeners" || refused == "DELETE listeners";
        if !builds && !notes && !about_members {
            assert_eq!(listener.protocol, wanted.listener.protocol, "{refused}");
            assert_eq!(pool.protocol, wanted.pool.pool.protocol, "{refused}");
        }
    }
    let own = children.listeners.iter().filter(|listener| listener.ours);
    let unwanted = own.filter(|listener| !desired.listeners.contains_key(&listener.key())).count();
    assert!(unwanted == 0 || refused == "DELETE listeners", "{unwanted} ports stay open without {refused}");
    let lost = changes_protocol.iter().filter(|key| !children.listeners.iter().any(|one| one.key() == **key));
    assert!(lost.count() == 0 || refused == "POST listeners", "a port is lost without {refused}");
    let vip_port = observed.load_balancer.as_ref().and_then(|there| there.vip_port_id.clone());
    let on_vip = observed.floating_ips.iter().filter(|one| one.port_id == vip_port).count();
    match desired.floating_ip {
        _ if refused.ends_with("floatingips") => {}
        FloatingIpGoal::External(_) => assert_eq!(on_vip, 1, "{refused}"),
        FloatingIpGoal::Internal { .. } => assert_eq!(on_vip, 0, "{refused}"),
        FloatingIpGoal::NotNeeded | FloatingIpGoal::Unknown { .. } => {}
    }
}

fn assert_costs_what_needs_it(before: &Shape, after: &Shape, refused: &str, serial: bool) {
    let mut cloud = Cloud::serving(&before.desired());
    let desired = Desired { serial, ..after.desired() };
    let changes_protocol = changing(&cloud.observed, &desired);
    let plan = converge(&mut cloud, &desired, refused);
    assert_eq!(plan.then, Then::Done);
    assert_degraded(&desired, &cloud.observed, refused, &changes_protocol);
    if refused == SUCCESSORS {
        // Another process takes nothing off that came back.
        let refusals = Attempts::default().refusals.at(Instant::now(), &cloud.observed);
        let plan = serve_beside(&desired, &cloud.observed, &refusals);
        assert!(plan.steps.is_empty(), "{plan}");
    }
    // When it is not refused any more, and what asks for it was taken away and put back, nothing is missing.
    converge(&mut cloud, &Desired { serial, ..before.desired() }, "nothing");
    let plan = converge(&mut cloud, &desired, "nothing");
    assert!(plan.refused.is_empty() && plan.then == Then::Done);
    assert_served(&desired, &cloud.observed);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_one_call_that_is_refused_costs_what_needs_it(
        before in shape(btree_set(1..=4_u8, 1..=4)),
        after in shape(btree_set(1..=4_u8, 1..=4)),
        refused in select(CALLS.to_vec()),
        serial in any::<bool>(),
    ) {
        assert_costs_what_needs_it(&before, &after, refused, serial);
    }
}

/// The pool that a port gives up has the name of the new port's, and a health monitor that does not fit there.
#[test]
fn a_new_port_takes_no_pool_whose_health_monitor_would_have_to_go_first() {
    let port = |protocol, port, health_check_port| Port {
        key: ListenerKey::new(protocol, port),
        kind: Kind::Plain,
        node_port: 30080,
        health_check_port,
    };
    let with = |ports| {
        Shape::web().with(|shape| {
            shape.ports = ports;
            shape.monitor_delay = Some(5);
        })
    };
    let before = with(vec![tcp(443, 30080), port(Protocol::Udp, 53, None), tcp(80, 30080)]);
    let local = Some(32000);
    let after = with(vec![tcp(80, 30080), port(Protocol::Udp, 80, local), port(Protocol::Udp, 53, local)]);
    assert_costs_what_needs_it(&before, &after, "DELETE healthmonitors", false);
}
