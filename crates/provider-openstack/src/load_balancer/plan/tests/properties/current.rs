//! A wish that cannot be read changes nothing of what is there, and stands in the way of nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use openstack_ccm_core::advertise::ClusterAccess;
use openstack_ccm_core::cloud::ClusterIdentity;
use openstack_ccm_core::node::{AddressKind, Node, NodeAddress};
use openstack_ccm_core::service::{Intent, IpFamily, Protocol, Service, ServiceKey, ServicePort};
use openstack_ccm_openstack_api::octavia::OctaviaFeatures;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::subsequence;

use crate::config::Config;
use crate::load_balancer::desired::{self, Sources};
use crate::load_balancer::names::Names;
use crate::load_balancer::objects::step::Step;
use crate::load_balancer::objects::{Children, Desired, Facts, Features, SubnetChoice};
use crate::load_balancer::plan::serve;
use crate::load_balancer::plan::tests::cloud::Cloud;
use crate::load_balancer::settings::Reading;
use crate::load_balancer::settings::node_address::AddressChoice;

const CERTIFICATE: &str = "https://barbican.example.org/v1/secrets/s1";
const RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";

/// Annotations, each with a right value that is not the default, and a wrong one.
const VALUES: [(&str, &str, &str); 18] = [
    ("proxy-protocol", "v2", "V2"),
    ("default-tls-container-ref", CERTIFICATE, "c1"),
    ("tls-versions", "TLSv1.3", "1.3"),
    ("tls-ciphers", "ECDHE-RSA-AES128-GCM-SHA256", "A B"),
    ("alpn-protocols", "h2", "h3"),
    ("tls-revision", "7", "a b"),
    ("sni-container-refs", CERTIFICATE, "c1"),
    ("connection-limit", "100", "none"),
    ("timeout-client-data", "60000", "60s"),
    ("timeout-tcp-inspect", "7", "soon"),
    ("lb-method", "LEAST_CONNECTIONS", "FOO"),
    ("enable-health-monitor", "true", "yes"),
    ("health-monitor-delay", "9", "9s"),
    ("health-monitor-max-retries", "4", "0"),
    ("health-monitor-type", "HTTP", "http"),
    ("health-monitor-path", "/ready", "ready"),
    ("class", "", "gold"),
    (RANGES, "10.0.0.0/8", "everybody"),
];

/// What a Service says about one annotation: nothing or the right value, and later possibly the wrong one.
#[derive(Clone, Copy, Debug)]
struct Said {
    right: bool,
    becomes_wrong: bool,
}

fn node(number: u8) -> Node {
    let address = IpAddr::V4(Ipv4Addr::new(10, 0, 0, number)).to_string();
    Node {
        name: format!("n{number}"),
        provider_id: None,
        addresses: vec![NodeAddress { kind: AddressKind::InternalIp, address }],
        labels: BTreeMap::new(),
        backend: true,
    }
}

fn service(
    ports: &[(Protocol, u16)],
    annotations: impl Iterator<Item = (&'static str, &'static str)>,
) -> Service {
    let port = |(protocol, port): &(Protocol, u16)| ServicePort {
        name: None,
        protocol: *protocol,
        port: *port,
        node_port: Some(30_000 + port),
        app_protocol: None,
    };
    let full = |key: &str| match key.contains('/') {
        true => key.to_owned(),
        false => format!("loadbalancer.openstack.org/{key}"),
    };
    Service {
        ports: ports.iter().map(port).collect(),
        ip_families: vec![IpFamily::V4],
        annotations: annotations.map(|(key, value)| (full(key), value.to_owned())).collect(),
        ..Service::new(ServiceKey::new("default", "web"), "s1")
    }
}

/// What is wanted, beside what is there.
fn wanted(service: &Service, nodes: &BTreeSet<u8>, cloud: &Cloud) -> Desired {
    let cluster = ClusterIdentity { name: "c1".to_owned(), uid: "c1".to_owned() };
    let names = Names::new(&cluster, service);
    let nodes = nodes.iter().map(|number| Arc::new(node(*number))).collect();
    let intent = Intent { service: service.clone(), nodes, left_out: Arc::default() };
    let settings = Reading::of(service, &Config::default()).settings.keeping(service, &cloud.observed);
    let facts = Facts {
        features: Features::of(OctaviaFeatures::of(2, 26), Some("amphora")),
        vip_subnet_id: Some("SUB1".to_owned()),
        vip_network_id: None,
        vip_family: IpFamily::V4,
        additional_vips: Vec::new(),
        previous_vip_address: None,
        member_subnet_id: Some("SUB1".to_owned()),
        node_addresses: AddressChoice { family: Some(IpFamily::V4), ..AddressChoice::default() },
        cluster_sources: BTreeSet::new(),
        cluster_access: ClusterAccess::Open,
        floating_network_id: Some("EXT1".to_owned()),
        floating_subnet: SubnetChoice::Any,
    };
    let sources = Sources { intent: &intent, settings: &settings, names: &names, facts: &facts };
    match &cloud.observed.load_balancer {
        None => desired::desired(sources).expect("a tree"),
        Some(existing) => desired::of_existing(sources, existing).expect("a tree beside what is there"),
    }
}

fn listeners_and_pools(children: &Children) -> Children {
    let mut children = children.clone();
    children.pools.iter_mut().for_each(|pool| pool.members.clear());
    children
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever becomes unreadable, there is nothing to do for it; and when nodes come and go beside it, members follow and
    /// nothing else changes.
    #[test]
    fn what_cannot_be_read_stays_and_nodes_are_followed(
        ports in subsequence(vec![(Protocol::Tcp, 80), (Protocol::Tcp, 443), (Protocol::Udp, 53)], 1..=3),
        said in vec((any::<bool>(), any::<bool>()), VALUES.len()),
        before in proptest::collection::btree_set(1..=4_u8, 1..=4),
        after in proptest::collection::btree_set(1..=4_u8, 1..=4),
    ) {
        let said: Vec<Said> =
            said.into_iter().map(|(right, becomes_wrong)| Said { right, becomes_wrong }).collect();
        let right = VALUES.iter().zip(&said).filter(|(_, said)| said.right);
        let right = service(&ports, right.map(|((key, right, _), _)| (*key, *right)));
        let later = VALUES.iter().zip(&said).filter(|(_, said)| said.right || said.becomes_wrong);
        let later = later.map(|((key, right, wrong), said)| (*key, if said.becomes_wrong { *wrong } else { *right }));
        let later = service(&ports, later);
        let mut cloud = Cloud::serving(&wanted(&right, &before, &Cloud::default()));

        let plan = serve(&wanted(&later, &before, &cloud), &cloud.observed);
        prop_assert!(plan.is_converged(), "{}", plan);

        let there = listeners_and_pools(cloud.children());
        let desired = wanted(&later, &after, &cloud);
        let plan = serve(&desired, &cloud.observed);
        let members_only = plan.steps.iter().all(|step| matches!(step, Step::Member(_)));
        prop_assert!(members_only, "{}", plan);
        cloud.converge(&desired, |_| {});
        prop_assert_eq!(listeners_and_pools(cloud.children()), there);
        for pool in &cloud.children().pools {
            let members: BTreeSet<String> = pool.members.iter().map(|one| one.member.name.clone()).collect();
            prop_assert_eq!(members, after.iter().map(|number| format!("n{number}")).collect::<BTreeSet<_>>());
        }
    }
}
