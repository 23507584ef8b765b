//! Services in few words, from which whole trees follow.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use openstack_ccm_core::service::Protocol;
use openstack_ccm_openstack_api::octavia::{
    HealthMonitorType, LbAlgorithm, ListenerAttributes, ListenerLimits, ListenerProtocol, MonitorAttributes,
    PoolAttributes, PoolProtocol, SessionPersistence, SessionPersistenceType, TlsAttributes,
};

use crate::config::ErrorRecovery;
use crate::load_balancer::objects::monitor::health_check_node_port;
use crate::load_balancer::objects::pool;
use crate::load_balancer::objects::{
    Desired, DesiredListener, DesiredPool, FloatingIpGoal, FloatingIpSpec, ListenerKey, ListenerSpec,
    LoadBalancerSpec, Member, MonitorSpec, PoolSpec, Reclaim, Recovery, ReleaseTerms, SubnetChoice, Tags,
    Vip,
};

/// What the Service's objects carry.
pub(crate) fn tags() -> Tags {
    [GENERATED_NAME, SERVICE_TAG, CLUSTER_TAG].map(str::to_owned).into()
}

pub(crate) const GENERATED_NAME: &str = "kube_service_c1_default_web";
pub(crate) const SERVICE_TAG: &str = "openstack-ccm-service=s1";
pub(crate) const CLUSTER_TAG: &str = "openstack-ccm-cluster=c1";

/// What listener and pool of a port speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    Proxy,
    ProxyV2,
    Http,
    Tls,
    TlsProxy,
}

/// A port of a Service.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    pub(crate) key: ListenerKey,
    pub(crate) kind: Kind,
    pub(crate) node_port: u16,
    /// Port of an HTTP check; a plain check without.
    pub(crate) health_check_port: Option<u16>,
}

/// A Service.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) ports: Vec<Port>,
    pub(crate) nodes: BTreeSet<u8>,
    pub(crate) monitor_delay: Option<u32>,
    pub(crate) least_connections: bool,
    pub(crate) sticky: bool,
    pub(crate) connection_limit: i64,
    pub(crate) client_timeout: i64,
    pub(crate) cidrs: Vec<&'static str>,
    pub(crate) floating_ip: FloatingIpGoal,
}

pub(crate) fn tcp(port: u16, node_port: u16) -> Port {
    Port { key: ListenerKey::new(Protocol::Tcp, port), kind: Kind::Plain, node_port, health_check_port: None }
}

impl Shape {
    /// One TCP port on two nodes, through a floating IP.
    pub(crate) fn web() -> Self {
        Self {
            ports: vec![tcp(80, 30080)],
            nodes: [1, 2].into(),
            monitor_delay: None,
            least_connections: false,
            sticky: false,
            connection_limit: -1,
            client_timeout: 50000,
            cidrs: vec!["0.0.0.0/0"],
            floating_ip: FloatingIpGoal::External(FloatingIpSpec {
                takes_tags: true,
                network_id: Some("EXT1".to_owned()),
                subnet: SubnetChoice::Any,
                address: None,
                asked_by: "spec.loadBalancerIP",
                exchanges: true,
                description: "Floating IP for Kubernetes external service default/web from cluster c1"
                    .to_owned(),
                tags: tags(),
                keep: false,
                unreadable: false,
            }),
        }
    }

    /// The same with a change.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub(crate) fn desired(&self) -> Desired {
        let listeners =
            self.ports.iter().enumerate().map(|(index, port)| (port.key, self.listener(index, port)));
        Desired {
            load_balancer: LoadBalancerSpec {
                name: "kube_service_c1_default_web".to_owned(),
                description: "Kubernetes external service default/web from cluster c1".to_owned(),
                provider: Some("amphora".to_owned()),
                vip: Vip { subnet_id: Some("SUB1".to_owned()), ..Vip::default() },
                flavor_id: None,
                availability_zone: None,
                tags: tags(),
            },
            listeners: listeners.collect(),
            metrics: None,
            floating_ip: self.floating_ip.clone(),
            serial: false,
            additive: true,
            keeps_members: false,
            replaced_servers: BTreeSet::new(),
            recovery: Recovery { choice: ErrorRecovery::Replace, ..Recovery::default() },
            notices: Vec::new(),
        }
    }

    pub(crate) fn release_terms() -> ReleaseTerms {
        ReleaseTerms {
            tags: [GENERATED_NAME, SERVICE_TAG].map(str::to_owned).into(),
            common_tags: [CLUSTER_TAG.to_owned()].into(),
            floating_ip_tags: tags(),
            reclaim: Reclaim::Delete,
            keep_floating_ip: false,
            vip_port_id: None,
            retained_vip_ports: BTreeSet::new(),
            cascade: true,
        }
    }

    fn limits(&self) -> ListenerLimits {
        ListenerLimits {
            connection_limit: Some(self.connection_limit),
            timeout_client_data: Some(self.client_timeout),
            timeout_member_connect: Some(5_000),
            timeout_member_data: Some(50_000),
            timeout_tcp_inspect: Some(0),
        }
    }

    fn listener(&self, index: usize, port: &Port) -> DesiredListener {
        let (listener, pool) = protocols(port);
        let headers =
            (listener == ListenerProtocol::Http).then(|| ("X-Forwarded-For".to_owned(), "true".to_owned()));
        let terminates_tls = listener == ListenerProtocol::TerminatedHttps;
        let tls = terminates_tls.then(|| "https://barbican/v1/secrets/1".to_owned());
        DesiredListener {
            listener: ListenerSpec {
                name: format!("listener_{index}_web"),
                protocol: listener,
                port: port.key.port,
                attributes: ListenerAttributes {
                    limits: self.limits(),
                    insert_headers: BTreeMap::from_iter(headers),
                    allowed_cidrs: Some(self.cidrs.iter().map(|cidr| cidr.parse().unwrap()).collect()),
                    tls_container_ref: tls,
                    tls: TlsAttributes::default(),
                },
                tags: tags(),
            },
            pool: DesiredPool {
                pool: self.pool(index, pool),
                members: self.nodes.iter().map(|node| member(*node, port)).collect(),
                monitor: self.monitor_delay.map(|delay| monitor(index, port, delay)),
            },
        }
    }

    fn pool(&self, index: usize, protocol: PoolProtocol) -> PoolSpec {
        let lb_algorithm =
            if self.least_connections { LbAlgorithm::LeastConnections } else { LbAlgorithm::RoundRobin };
        let timeout = matches!(protocol, PoolProtocol::Udp | PoolProtocol::Sctp).then_some(600);
        let kind = SessionPersistenceType::SourceIp;
        let session_persistence =
            self.sticky.then_some(SessionPersistence { kind, persistence_timeout: timeout });
        let attributes = PoolAttributes { lb_algorithm, session_persistence };
        let tags = &tags() | &pool::set_here(&attributes);
        PoolSpec { name: format!("pool_{index}_web"), protocol, attributes, tags }
    }
}

fn protocols(port: &Port) -> (ListenerProtocol, PoolProtocol) {
    match (port.key.transport, port.kind) {
        (Protocol::Udp, _) => (ListenerProtocol::Udp, PoolProtocol::Udp),
        (Protocol::Sctp, _) => (ListenerProtocol::Sctp, PoolProtocol::Sctp),
        (Protocol::Tcp, Kind::Plain) => (ListenerProtocol::Tcp, PoolProtocol::Tcp),
        (Protocol::Tcp, Kind::Proxy) => (ListenerProtocol::Tcp, PoolProtocol::Proxy),
        (Protocol::Tcp, Kind::ProxyV2) => (ListenerProtocol::Tcp, PoolProtocol::ProxyV2),
        (Protocol::Tcp, Kind::Http) => (ListenerProtocol::Http, PoolProtocol::Http),
        (Protocol::Tcp, Kind::Tls) => (ListenerProtocol::TerminatedHttps, PoolProtocol::Http),
        (Protocol::Tcp, Kind::TlsProxy) => (ListenerProtocol::TerminatedHttps, PoolProtocol::Proxy),
    }
}

fn member(node: u8, port: &Port) -> Arc<Member> {
    Arc::new(Member {
        name: format!("n{node}"),
        address: [10, 0, 0, 10 + node].into(),
        port: port.node_port,
        subnet_id: Some("SUB1".into()),
        monitor_port: port.health_check_port,
        monitor_address: None,
        weight: 1,
        backup: false,
        admin_state_up: true,
    })
}

fn monitor(index: usize, port: &Port, delay: u32) -> MonitorSpec {
    let kind = match (port.health_check_port, port.key.transport) {
        (Some(_), _) => HealthMonitorType::Http,
        (None, Protocol::Tcp) => HealthMonitorType::Tcp,
        (None, Protocol::Udp) => HealthMonitorType::UdpConnect,
        (None, Protocol::Sctp) => HealthMonitorType::Sctp,
    };
    let http = port.health_check_port.map(|_| health_check_node_port());
    MonitorSpec {
        name: format!("monitor_{index}_web"),
        kind,
        attributes: MonitorAttributes { delay, timeout: 3, max_retries: 1, max_retries_down: 3, http },
        tags: tags(),
    }
}
