//! What holds for every pair of states, at every step between them.

use std::collections::BTreeSet;

use openstack_ccm_core::service::Protocol;
use openstack_ccm_openstack_api::octavia::ProvisioningStatus;
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::cloud::Cloud;
use super::shape::{Kind, Port, Shape};
use crate::load_balancer::model::floating_ip::FloatingIpGoal;
use crate::load_balancer::model::listener::ListenerKey;
use crate::load_balancer::model::observed::{
    Children, Observed, ObservedFloatingIp, ObservedListener, ObservedPool, Ownership,
};
use crate::load_balancer::model::tree::{Desired, DesiredListener};
use crate::load_balancer::plan::{Then, serve};

const KEYS: [(Protocol, u16); 5] = [
    (Protocol::Tcp, 80),
    (Protocol::Udp, 80),
    (Protocol::Tcp, 443),
    (Protocol::Udp, 53),
    (Protocol::Sctp, 132),
];

fn kind() -> impl Strategy<Value = Kind> {
    select(vec![Kind::Plain, Kind::Proxy, Kind::ProxyV2, Kind::Http, Kind::Tls, Kind::TlsProxy])
}

fn ports() -> impl Strategy<Value = Vec<Port>> {
    let keys = subsequence(KEYS.to_vec(), 1..=KEYS.len()).prop_shuffle();
    let details = vec((kind(), select(vec![30080, 30081]), proptest::option::of(Just(32000))), KEYS.len());
    (keys, details).prop_map(|(keys, details)| {
        let pairs = keys.into_iter().zip(details);
        let port = |((transport, port), (kind, node_port, health_check_port))| Port {
            key: ListenerKey::new(transport, port),
            kind,
            node_port,
            health_check_port,
        };
        pairs.map(port).collect()
    })
}

fn floating_ip() -> impl Strategy<Value = FloatingIpGoal> {
    let external = Shape::web().floating_ip;
    prop_oneof![
        3 => Just(external),
        1 => any::<bool>().prop_map(|keep| FloatingIpGoal::Internal { keep }),
        1 => Just(FloatingIpGoal::NotNeeded),
    ]
}

fn shape(nodes: impl Strategy<Value = BTreeSet<u8>>) -> impl Strategy<Value = Shape> {
    let listener =
        (select(vec![-1, 100]), select(vec![50000, 60000]), select(vec!["0.0.0.0/0", "10.0.0.0/8"]));
    let pool = (proptest::option::of(select(vec![5, 20])), any::<bool>(), any::<bool>());
    (ports(), nodes, listener, pool, floating_ip()).prop_map(|(ports, nodes, listener, pool, floating_ip)| {
        let (connection_limit, client_timeout, cidr) = listener;
        let (monitor_delay, least_connections, sticky) = pool;
        Shape {
            ports,
            nodes,
            monitor_delay,
            least_connections,
            sticky,
            connection_limit,
            client_timeout,
            cidrs: vec![cidr],
            floating_ip,
        }
    })
}

fn any_nodes() -> impl Strategy<Value = BTreeSet<u8>> {
    btree_set(1..=4_u8, 0..=4)
}

/// What may happen to a cloud behind the back of the program.
#[derive(Clone, Copy, Debug)]
enum Accident {
    ListenerError,
    PoolError,
    MemberError,
    MemberOnWrongSubnet,
    MonitorError,
    ListenerLosesPool,
    PoolGone,
    ListenerGone,
    MonitorGone,
    MembersGone,
    SharedPool,
    Untagged,
    ForeignListener,
    ForeignPoolOnOwnListener,
    ForeignPool,
    Broken,
    FloatingIpGone,
    FloatingIpDetached,
    FloatingIpForeign,
}

const ACCIDENTS: [Accident; 19] = [
    Accident::ListenerError,
    Accident::PoolError,
    Accident::MemberError,
    Accident::MemberOnWrongSubnet,
    Accident::MonitorError,
    Accident::ListenerLosesPool,
    Accident::PoolGone,
    Accident::ListenerGone,
    Accident::MonitorGone,
    Accident::MembersGone,
    Accident::SharedPool,
    Accident::Untagged,
    Accident::ForeignListener,
    Accident::ForeignPoolOnOwnListener,
    Accident::ForeignPool,
    Accident::Broken,
    Accident::FloatingIpGone,
    Accident::FloatingIpDetached,
    Accident::FloatingIpForeign,
];

fn accidents() -> impl Strategy<Value = Vec<(Accident, usize)>> {
    vec((select(ACCIDENTS.to_vec()), 0..5_usize), 0..4)
}

/// The element that an accident meets.
fn pick<T>(items: &mut [T], which: usize) -> Option<&mut T> {
    let count = items.len();
    items.get_mut(which.checked_rem(count)?)
}

fn happen(cloud: &mut Cloud, accident: Accident, which: usize) {
    if cloud.observed.load_balancer.is_none() {
        return;
    }
    match accident {
        Accident::Broken => cloud.load_balancer().status = ProvisioningStatus::Error,
        Accident::Untagged => untag(cloud),
        Accident::FloatingIpGone => drop(cloud.observed.floating_ips.pop()),
        Accident::FloatingIpDetached => {
            cloud.observed.floating_ips.iter_mut().for_each(|floating_ip| floating_ip.port_id = None);
        }
        Accident::FloatingIpForeign => {
            cloud.observed.floating_ips.iter_mut().for_each(|floating_ip| floating_ip.ours = false);
        }
        Accident::ListenerError
        | Accident::ListenerLosesPool
        | Accident::ListenerGone
        | Accident::ForeignListener
        | Accident::ForeignPoolOnOwnListener
        | Accident::SharedPool => happen_to_listener(cloud.children(), accident, which),
        Accident::PoolError
        | Accident::MemberError
        | Accident::MemberOnWrongSubnet
        | Accident::MonitorError
        | Accident::PoolGone
        | Accident::MonitorGone
        | Accident::MembersGone
        | Accident::ForeignPool => happen_to_pool(cloud.children(), accident, which),
    }
}

fn untag(cloud: &mut Cloud) {
    cloud.load_balancer().tags.clear();
    for pool in cloud.children().pools.iter_mut().filter(|pool| pool.ours) {
        pool.tags.clear();
        pool.monitor.iter_mut().for_each(|monitor| monitor.tags.clear());
    }
    cloud.observed.floating_ips.iter_mut().for_each(|floating_ip| floating_ip.tags.clear());
}

fn happen_to_listener(children: &mut Children, accident: Accident, which: usize) {
    let pools: Vec<String> = children.pools.iter().map(|pool| pool.id.clone()).collect();
    let Some(listener) = pick(&mut children.listeners, which).filter(|listener| listener.ours) else {
        return;
    };
    let mut uses = listener.default_pool_id.clone();
    match accident {
        Accident::ListenerError => listener.status = ProvisioningStatus::Error,
        Accident::ListenerLosesPool => uses = None,
        Accident::SharedPool => uses = pools.get(which).cloned().or(uses),
        Accident::ForeignListener => listener.ours = false,
        _ => {}
    }
    let (id, protocol) = (listener.id.clone(), listener.protocol.clone());
    if let Accident::ForeignPoolOnOwnListener = accident {
        let used = children.pools.iter_mut().find(|pool| Some(&pool.id) == uses.as_ref());
        used.into_iter().for_each(|pool| pool.ours = false);
    }
    // A shared pool has to be one that the listener could really have.
    let twin = children.listeners.iter().find(|other| other.default_pool_id == uses && other.id != id);
    if twin.is_some_and(|twin| twin.protocol != protocol || !twin.ours) {
        return;
    }
    let fits = accident != Accident::SharedPool || twin.is_some();
    if fits {
        relink(children, &id, uses);
    }
    if let Accident::ListenerGone = accident {
        relink(children, &id, None);
        children.listeners.retain(|listener| listener.id != id);
    }
}

impl PartialEq for Accident {
    fn eq(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

fn relink(children: &mut Children, listener_id: &str, pool_id: Option<String>) {
    for pool in &mut children.pools {
        pool.used_by.remove(listener_id);
        if Some(&pool.id) == pool_id.as_ref() {
            pool.used_by.insert(listener_id.to_owned());
        }
    }
    let listener = children.listeners.iter_mut().find(|listener| listener.id == listener_id);
    listener.into_iter().for_each(|listener| listener.default_pool_id.clone_from(&pool_id));
}

fn happen_to_pool(children: &mut Children, accident: Accident, which: usize) {
    let Some(pool) = pick(&mut children.pools, which).filter(|pool| pool.ours) else { return };
    match accident {
        Accident::PoolError => pool.status = ProvisioningStatus::Error,
        Accident::MonitorError => {
            pool.monitor.iter_mut().for_each(|monitor| monitor.status = ProvisioningStatus::Error);
        }
        Accident::MonitorGone => pool.monitor = None,
        Accident::MembersGone => pool.members.clear(),
        Accident::MemberError | Accident::MemberOnWrongSubnet => {
            if let Some(member) = pick(&mut pool.members, which) {
                member.status = ProvisioningStatus::Error;
                if let Accident::MemberOnWrongSubnet = accident {
                    member.member.subnet_id = Some("unknown".to_owned());
                }
            }
        }
        Accident::ForeignPool => {
            let mut foreign = pool.clone();
            foreign.id = format!("foreign-{}", foreign.id);
            foreign.ours = false;
            foreign.used_by.clear();
            if children.pools.iter().all(|pool| pool.id != foreign.id) {
                children.pools.push(foreign);
            }
        }
        Accident::PoolGone => {
            let id = pool.id.clone();
            let users: Vec<String> = pool.used_by.iter().cloned().collect();
            let own = |user: &String| children.listeners.iter().any(|one| one.ours && one.id == *user);
            if users.iter().all(own) {
                users.iter().for_each(|user| relink(children, user, None));
                children.pools.retain(|pool| pool.id != id);
            }
        }
        _ => {}
    }
}

/// All that is not the Service's: it must look the same at the end.
fn foreign(observed: &Observed) -> (Vec<ObservedListener>, Vec<ObservedPool>, Vec<String>) {
    let children =
        observed.load_balancer.as_ref().and_then(|there| there.children.clone()).unwrap_or_default();
    let foreign_ip = |floating_ip: &ObservedFloatingIp| (!floating_ip.ours).then(|| floating_ip.id.clone());
    let pools = children.pools.into_iter().filter(|pool| !pool.ours).map(|pool| {
        // Which own listener uses a foreign pool is a matter of the own listener.
        ObservedPool { used_by: BTreeSet::new(), ..pool }
    });
    (
        children.listeners.into_iter().filter(|listener| !listener.ours).collect(),
        pools.collect(),
        observed.floating_ips.iter().filter_map(foreign_ip).collect(),
    )
}

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

/// Says by itself, without any plan, whether a Service is served.
fn assert_served(desired: &Desired, observed: &Observed) {
    let load_balancer = observed.load_balancer.as_ref().expect("there is a load balancer");
    assert!(desired.load_balancer.tags.is_subset(&load_balancer.tags));
    let children = load_balancer.children.as_ref().unwrap();
    let own: Vec<_> = children.listeners.iter().filter(|listener| listener.ours).collect();
    assert_eq!(own.len(), desired.listeners.len(), "listeners: {own:#?}");
    for (key, wanted) in &desired.listeners {
        let listener = own.iter().find(|listener| listener.key() == *key).expect("the port is served");
        assert_port_served(wanted, listener, children);
    }
    let used: BTreeSet<_> = own.iter().filter_map(|listener| listener.default_pool_id.as_ref()).collect();
    let own_pools = children.pools.iter().filter(|pool| pool.ours);
    for leftover in own_pools.filter(|pool| !used.contains(&pool.id)) {
        let kept_for_others = !leftover.used_by.is_empty();
        assert!(kept_for_others, "a pool is left over: {leftover:#?}");
    }
    let on_vip = observed.floating_ips.iter().filter(|one| one.port_id == load_balancer.vip_port_id).count();
    match desired.floating_ip {
        FloatingIpGoal::External(_) => assert_eq!(on_vip, 1),
        FloatingIpGoal::Internal { .. } => assert_eq!(on_vip, 0),
        FloatingIpGoal::NotNeeded => {}
    }
}

fn assert_port_served(wanted: &DesiredListener, listener: &ObservedListener, children: &Children) {
    assert_eq!(listener.status, ProvisioningStatus::Active);
    assert_eq!(listener.protocol, wanted.listener.protocol);
    assert_eq!(listener.attributes, wanted.listener.attributes);
    let id = listener.default_pool_id.as_ref().expect("it has a pool");
    let pool = children.pools.iter().find(|pool| pool.id == *id).expect("its pool exists");
    assert!(pool.ours);
    assert_eq!((&pool.status, &pool.protocol), (&ProvisioningStatus::Active, &wanted.pool.pool.protocol));
    assert_eq!(pool.attributes, wanted.pool.pool.attributes);
    assert!(pool.members.iter().all(|member| member.status == ProvisioningStatus::Active));
    let mut members: Vec<_> = pool.members.iter().map(|member| member.member.clone()).collect();
    members.sort_by_key(super::super::super::model::member::Member::key);
    assert_eq!(members, wanted.pool.members);
    match (&pool.monitor, &wanted.pool.monitor) {
        (Some(seen), Some(wanted)) => {
            assert_eq!((&seen.kind, &seen.attributes), (&wanted.kind, &wanted.attributes));
            assert_eq!(seen.status, ProvisioningStatus::Active);
        }
        (None, None) => {}
        (seen, wanted) => panic!("monitor is {seen:?} instead of {wanted:?}"),
    }
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
    ) {
        let mut cloud = cloud_after(&before, &between, steps, &accidents);
        let others = foreign(&cloud.observed);
        let desired = after.desired();
        let plan = cloud.converge(&desired, |_| {});
        prop_assert!(plan.steps.is_empty());
        prop_assert_eq!(foreign(&cloud.observed), others);
        match plan.then {
            Then::Done => assert_served(&desired, &cloud.observed),
            Then::Blocked(failure) => prop_assert!(
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
        let with = |kinds: &[Kind]| shape.clone().with(|shape| {
            for (port, kind) in shape.ports.iter_mut().zip(kinds) {
                port.kind = *kind;
            }
        });
        let (before, after) = (with(&kinds[..5]), with(&kinds[5..]));
        let mut cloud = cloud_after(&before, &after, steps, &[]);
        let listeners: Vec<String> = cloud.children().listeners.iter().map(|listener| listener.id.clone()).collect();
        cloud.converge(&after.desired(), |observed| {
            let children = observed.load_balancer.as_ref().and_then(|there| there.children.as_ref()).unwrap();
            let now: Vec<&String> = children.listeners.iter().map(|listener| &listener.id).collect();
            assert_eq!(now, listeners.iter().collect::<Vec<_>>());
        });
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
