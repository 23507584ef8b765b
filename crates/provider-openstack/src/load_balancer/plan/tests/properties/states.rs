//! Generated Services.

use std::collections::BTreeSet;

use openstack_ccm_core::service::Protocol;
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use crate::load_balancer::objects::{FloatingIpGoal, ListenerKey};
use crate::load_balancer::plan::tests::shape::{Kind, Port, Shape};

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
        1 => any::<bool>().prop_map(|keep| FloatingIpGoal::Internal { keep, takes_off_others: true }),
        1 => Just(FloatingIpGoal::NotNeeded),
    ]
}

pub(crate) fn shape(nodes: impl Strategy<Value = BTreeSet<u8>>) -> impl Strategy<Value = Shape> {
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

pub(crate) fn any_nodes() -> impl Strategy<Value = BTreeSet<u8>> {
    btree_set(1..=4_u8, 0..=4)
}
