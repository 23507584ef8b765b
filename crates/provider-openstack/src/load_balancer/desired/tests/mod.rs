//! From a Service's manifest to the whole tree.

mod listener;
mod pool;
mod refusal;
mod removed_members;
mod tree;

use std::collections::BTreeMap;
use std::sync::Arc;

use insta::assert_snapshot;
use openstack_ccm_core::advertise::ClusterAccess;
use openstack_ccm_core::cloud::ClusterIdentity;
use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::node::{AddressKind, LeftOut, Node, NodeAddress};
use openstack_ccm_core::service::{
    ExternalTrafficPolicy, Intent, IpFamily, Protocol, Service, ServiceKey, ServicePort, SessionAffinity,
};
use openstack_ccm_openstack_api::octavia::{
    ListenerProtocol, OctaviaFeatures, PoolProtocol, SessionPersistenceType,
};
use rstest::rstest;

use super::{Sources, desired, validate};
use crate::config::Config;
use crate::load_balancer::names::Names;
use crate::load_balancer::objects::{
    Desired, DesiredListener, Facts, Features, FloatingIpGoal, ListenerKey, Observed, SubnetChoice,
};
use crate::load_balancer::plan::serve;
use crate::load_balancer::settings::Settings;
use crate::load_balancer::settings::node_address::AddressChoice;

/// Everything that a tree follows from. The base is one TCP port on two nodes.
struct World {
    service: Service,
    nodes: Vec<Node>,
    left_out: BTreeMap<String, LeftOut>,
    config: Config,
    facts: Facts,
}

fn port(protocol: Protocol, port: u16) -> ServicePort {
    ServicePort { name: None, protocol, port, node_port: Some(30000 + port), app_protocol: None }
}

fn node(number: u8) -> Node {
    let address = |kind, address: String| NodeAddress { kind, address };
    Node {
        name: format!("n{number}"),
        provider_id: Some(format!("openstack:///id-{number}")),
        addresses: vec![
            address(AddressKind::Name, format!("n{number}.example.org")),
            address(AddressKind::InternalIp, format!("10.0.0.1{number}")),
            address(AddressKind::InternalIp, format!("2001:db8::1{number}")),
        ],
        labels: BTreeMap::new(),
        backend: true,
    }
}

impl World {
    fn new() -> Self {
        Self {
            service: Service {
                ports: vec![port(Protocol::Tcp, 80)],
                ip_families: vec![IpFamily::V4],
                ..Service::new(ServiceKey::new("default", "web"), "11111111-2222-3333-4444-555555555555")
            },
            nodes: vec![node(1), node(2)],
            left_out: BTreeMap::new(),
            config: Config::default(),
            facts: Facts {
                features: Features::of(OctaviaFeatures::of(2, 26), Some("amphora")),
                vip_subnet_id: Some("SUB1".to_owned()),
                vip_network_id: None,
                vip_family: IpFamily::V4,
                additional_vips: Vec::new(),
                previous_vip_address: None,
                member_subnet_id: Some("SUB1".to_owned()),
                node_addresses: AddressChoice::default(),
                cluster_sources: std::collections::BTreeSet::new(),
                cluster_access: ClusterAccess::Open,
                floating_network_id: Some("EXT1".to_owned()),
                floating_subnet: SubnetChoice::Any,
            },
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn annotated(mut self, key: &str, value: &str) -> Self {
        let key =
            if key.contains('/') { key.to_owned() } else { format!("loadbalancer.openstack.org/{key}") };
        self.service.annotations.insert(key, value.to_owned());
        self
    }

    fn octavia(self, minor: u32, provider: &str) -> Self {
        self.with(|world| {
            world.facts.features = Features::of(OctaviaFeatures::of(2, minor), Some(provider));
            world.config.load_balancer.lb_provider = Some(provider.to_owned());
        })
    }

    fn desired(&self) -> Result<Desired, Failure> {
        self.with_sources(desired)
    }

    fn with_sources<T>(&self, work: impl FnOnce(Sources<'_>) -> T) -> T {
        let cluster = ClusterIdentity { name: "c1".to_owned(), uid: "c1c1".to_owned() };
        let (settings, _) = Settings::read(&self.service, &self.config);
        let settings = settings.expect("the annotations are valid");
        let nodes = self.nodes.iter().cloned().map(Arc::new).collect();
        let intent =
            Intent { service: self.service.clone(), nodes, left_out: Arc::new(self.left_out.clone()) };
        let names = Names::new(&cluster, &self.service);
        let node_addresses = AddressChoice { family: settings.family, ..AddressChoice::default() };
        let facts = Facts { node_addresses, ..self.facts.clone() };
        work(Sources { intent: &intent, settings: &settings, names: &names, facts: &facts })
    }

    /// What would be created, without the tags, which are the same everywhere.
    fn tree(&self) -> String {
        let mut desired = self.desired().expect("a tree");
        desired.load_balancer.tags.clear();
        for DesiredListener { listener, pool } in desired.listeners.values_mut() {
            listener.tags.clear();
            pool.pool.tags.clear();
            pool.monitor.iter_mut().for_each(|monitor| monitor.tags.clear());
        }
        serve(&desired, &Observed::default()).steps[0].to_string()
    }

    fn listener(&self, protocol: Protocol, port: u16) -> DesiredListener {
        self.desired().expect("a tree").listeners[&ListenerKey::new(protocol, port)].clone()
    }

    fn refusal(&self) -> String {
        let failure = self.desired().expect_err("the tree is refused");
        assert_eq!(failure.class, FailureClass::UserInput);
        failure.message
    }

    fn notices(&self) -> String {
        let notices = self.desired().expect("a tree").notices;
        notices
            .iter()
            .map(|notice| format!("{}: {}", notice.reason, notice.message))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// A certificate.
const TLS: (&str, &str) = (
    "default-tls-container-ref",
    "https://barbican.example.org/v1/secrets/0a1b2c3d-0000-4000-8000-112233445566",
);
