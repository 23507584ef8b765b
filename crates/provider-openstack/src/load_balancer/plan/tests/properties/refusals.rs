//! With any one call refused for ever, everything that does not need it becomes as it is wanted, and nothing that serves is lost on the
//! way. The same with one member that no pool can have, and with a quota of members.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::service::Protocol;
use proptest::collection::btree_set;
use proptest::prelude::*;
use proptest::sample::select;
use tokio::time::Instant;

use super::oracle::assert_served;
use super::states::shape;
use crate::load_balancer::objects::step::{
    Answer, Applied, FloatingIpStep, ListenerStep, LoadBalancerStep, MemberStep, MonitorStep, PoolStep,
    Refused, Step,
};
use crate::load_balancer::objects::{
    Children, Desired, FloatingIpGoal, ListenerKey, MemberKey, Observed, ObservedListener, ObservedMember,
};
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
    let changing = changing(&cloud.observed, desired);
    let succeeds = |step: &Step| match step {
        Step::Listener(ListenerStep::Create { listener, .. }) => {
            let wanted = desired.listeners.get(&listener.key());
            changing.contains(&listener.key())
                && wanted.is_some_and(|wanted| wanted.listener.protocol == listener.protocol)
        }
        _ => false,
    };
    let refuses = |_: &Observed, step: &Step| {
        let is_refused = call(step) == refused || (refused == SUCCESSORS && succeeds(step));
        is_refused.then(|| Failure::user_input(refused))
    };
    converge_beside(cloud, desired, refuses).0
}

/// Reconciles while the cloud refuses some steps. Returns the last plan, and how many requests were refused.
fn converge_beside(
    cloud: &mut Cloud,
    desired: &Desired,
    refuses: impl Fn(&Observed, &Step) -> Option<Failure>,
) -> (Plan, usize) {
    let (mut attempts, now) = (Attempts::default(), Instant::now());
    let mut refused = 0;
    for _ in 0..BOUND {
        let refusals = attempts.refusals.at(now, &cloud.observed);
        let plan = serve_beside(desired, &cloud.observed, &refusals);
        let Some(step) = plan.steps.first() else { return (plan, refused) };
        if let Some(failure) = refuses(&cloud.observed, step) {
            refused += 1;
            let refused = Refused { step: step.clone(), failure };
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
    panic!(
        "no end after {BOUND} steps and {refused} refusals:\n{}",
        serve_beside(desired, &cloud.observed, &attempts.refusals.at(now, &cloud.observed))
    );
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

/// The members of all pools.
fn all_members(observed: &Observed) -> impl Iterator<Item = (&str, MemberKey)> {
    let pools = children(observed).pools.iter();
    pools.flat_map(|pool| pool.members.iter().map(|member| (pool.id.as_str(), member.key())))
}

/// How many more members there are after a step, and the addresses of new ones.
fn added(observed: &Observed, step: &Step) -> (usize, BTreeSet<IpAddr>) {
    let Step::Member(step) = step else { return (0, BTreeSet::new()) };
    let pool_id = step.pool_id().expect("the pool is there");
    let there: BTreeSet<MemberKey> =
        all_members(observed).filter(|(pool, _)| *pool == pool_id).map(|(_, key)| key).collect();
    let named: BTreeSet<MemberKey> = step.members().iter().map(|member| member.key()).collect();
    let new: BTreeSet<IpAddr> = named.difference(&there).map(|key| key.address).collect();
    let gone = match step {
        MemberStep::ReplaceAll { .. } => there.difference(&named).count(),
        _ => 0,
    };
    (new.len().saturating_sub(gone), new)
}

/// What Octavia refuses of members, as a whole batch.
#[derive(Clone, Copy, Debug)]
enum Refusal {
    /// The member of this node is new in any pool.
    Of(u8),
    /// More members than there were at the beginning, and so many more.
    BeyondQuota(usize),
}

impl Refusal {
    fn refuses(self, limit: usize, observed: &Observed, step: &Step) -> Option<Failure> {
        let (more, new) = added(observed, step);
        match self {
            Self::Of(node) => new
                .contains(&IpAddr::from([10, 0, 0, 10 + node]))
                .then(|| Failure::user_input("the address is not a valid option for member address")),
            Self::BeyondQuota(_) => (more > 0 && all_members(observed).count() + more > limit)
                .then(|| Failure::new(FailureClass::Quota, "Quota has been met for resources: Member")),
        }
    }
}

/// Each port that is there has the wanted members but for refused ones, and is never without any.
fn assert_lacks_only(desired: &Desired, observed: &Observed, refusal: Refusal, limit: usize) {
    let is_full = all_members(observed).count() >= limit;
    for (key, members) in in_use(observed) {
        let Some(wanted) = desired.listeners.get(&key) else { continue };
        let wanted: BTreeSet<MemberKey> = wanted.pool.members.iter().map(|member| member.key()).collect();
        assert!(!members.is_empty(), "{key} has no members");
        // What is there and not wanted is only the last one, where nothing that is wanted may come.
        let extra = members.difference(&wanted).count();
        assert!(extra == 0 || (extra == 1 && members.len() == 1), "{key}: {members:?} instead of {wanted:?}");
        for missing in wanted.difference(&members) {
            let is_refused = match refusal {
                Refusal::Of(node) => missing.address == IpAddr::from([10, 0, 0, 10 + node]),
                Refusal::BeyondQuota(_) => is_full,
            };
            assert!(is_refused, "{key} lacks {missing} beside {refusal:?}");
        }
    }
    let served: BTreeSet<ListenerKey> = in_use(observed).into_keys().collect();
    for (key, wanted) in &desired.listeners {
        let others = match refusal {
            Refusal::Of(node) => {
                let address = IpAddr::from([10, 0, 0, 10 + node]);
                wanted.pool.members.iter().any(|member| member.address != address)
            }
            Refusal::BeyondQuota(_) => !is_full,
        };
        assert!(!others || served.contains(key), "{key} is not served beside {refusal:?}");
    }
}

fn assert_costs_members_only(before: &Shape, after: &Shape, refusal: Refusal, desired: &Desired) {
    let mut cloud = Cloud::serving(&before.desired());
    let more = if let Refusal::BeyondQuota(more) = refusal { more } else { usize::MAX / 2 };
    let limit = all_members(&cloud.observed).count() + more;
    let refuses = |observed: &Observed, step: &Step| refusal.refuses(limit, observed, step);
    let (plan, _) = converge_beside(&mut cloud, desired, refuses);
    assert_eq!(plan.then, Then::Done);
    assert_lacks_only(desired, &cloud.observed, refusal, limit);
    let plan = converge(&mut cloud, desired, "nothing");
    assert!(plan.refused.is_empty() && plan.then == Then::Done);
    assert_served(&after.desired(), &cloud.observed);
}

fn refusal() -> impl Strategy<Value = Refusal> {
    prop_oneof![(1..=6_u8).prop_map(Refusal::Of), (0..=6_usize).prop_map(Refusal::BeyondQuota)]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_member_that_is_refused_costs_itself(
        before in shape(btree_set(1..=6_u8, 1..=6)),
        after in shape(btree_set(1..=6_u8, 1..=6)),
        refusal in refusal(),
        additive in any::<bool>(),
    ) {
        let desired = Desired { additive, ..after.desired() };
        assert_costs_members_only(&before, &after, refusal, &desired);
    }

    /// Of one batch: at most twice the logarithm of its size for each refused member, and one for the batch.
    #[test]
    fn refused_members_are_found_in_few_requests(
        nodes in btree_set(1..=100_u8, 2..=100),
        refused in btree_set(1..=100_u8, 1..=3),
        goes in any::<bool>(),
    ) {
        let mut before = Shape::web();
        before.nodes = if goes { [200, 201].into() } else { [200].into() };
        let mut cloud = Cloud::serving(&before.desired());
        let mut after = before.clone();
        after.nodes = nodes.iter().copied().chain([200]).collect();
        let desired = after.desired();
        let refused: BTreeSet<IpAddr> =
            refused.intersection(&nodes).map(|node| IpAddr::from([10, 0, 0, 10 + node])).collect();
        let refuses = |observed: &Observed, step: &Step| {
            let is_refused = !added(observed, step).1.is_disjoint(&refused);
            is_refused.then(|| Failure::user_input("the address is not a valid option for member address"))
        };
        let (_, requests) = converge_beside(&mut cloud, &desired, refuses);
        let logarithm = nodes.len().next_power_of_two().ilog2() as usize;
        let most = if refused.is_empty() { 0 } else { 2 * logarithm.max(1) * refused.len() + 2 };
        prop_assert!(requests <= most, "{requests} requests for {} of {}", refused.len(), nodes.len());
        let members = all_members(&cloud.observed).map(|(_, key)| key.address).collect::<BTreeSet<_>>();
        prop_assert_eq!(members.len(), nodes.len() + 1 - refused.len());
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
