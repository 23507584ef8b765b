//! What one Service asks for, reduced to the fields that a load balancer depends on.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use crate::node::{LeftOut, Node};

/// Namespace and name of a Service. Clones share the text, since several maps have it as key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServiceKey {
    /// `metadata.namespace`
    pub namespace: Arc<str>,
    /// `metadata.name`
    pub name: Arc<str>,
}

impl ServiceKey {
    /// Creates a key from its two parts.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Transport protocol of a Service port (`spec.ports[].protocol`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// TCP, the default.
    Tcp,
    /// UDP
    Udp,
    /// SCTP
    Sctp,
}

impl Protocol {
    /// The spelling of the Kubernetes API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Sctp => "SCTP",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One entry of `spec.ports`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServicePort {
    /// `name`; absent only where the Service has a single port.
    pub name: Option<String>,
    /// `protocol`
    pub protocol: Protocol,
    /// `port`: where the load balancer listens.
    pub port: u16,
    /// `nodePort`: where the nodes answer; absent with `allocateLoadBalancerNodePorts: false`.
    pub node_port: Option<u16>,
    /// `appProtocol`
    pub app_protocol: Option<String>,
}

/// IP family of an address (`spec.ipFamilies[]`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IpFamily {
    /// IPv4
    V4,
    /// IPv6
    V6,
}

/// `spec.sessionAffinity` with its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SessionAffinity {
    /// `None`
    None,
    /// `ClientIP`
    ClientIp {
        /// `spec.sessionAffinityConfig.clientIP.timeoutSeconds`, in seconds.
        timeout_seconds: Option<u32>,
    },
}

/// `spec.externalTrafficPolicy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExternalTrafficPolicy {
    /// Every node takes traffic.
    Cluster,
    /// Only nodes with a ready endpoint take traffic; the health check node port shows which.
    Local,
}

/// The facts of one Service of type LoadBalancer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Service {
    /// Namespace and name.
    pub key: ServiceKey,
    /// `metadata.uid`
    pub uid: String,
    /// `metadata.annotations`, whole.
    pub annotations: BTreeMap<String, String>,
    /// `spec.ports`, in order; the order gives the index in generated names.
    pub ports: Vec<ServicePort>,
    /// `spec.ipFamilies`, the first is the primary one. Empty where the server did not set it.
    pub ip_families: Vec<IpFamily>,
    /// `spec.loadBalancerIP`, as written by the user.
    pub load_balancer_ip: Option<String>,
    /// `spec.loadBalancerSourceRanges`, as written by the user.
    pub source_ranges: Vec<String>,
    /// `spec.sessionAffinity`
    pub session_affinity: SessionAffinity,
    /// `spec.externalTrafficPolicy`
    pub external_traffic_policy: ExternalTrafficPolicy,
    /// `spec.healthCheckNodePort`; absent when 0.
    pub health_check_node_port: Option<u16>,
    /// Addresses in `status.loadBalancer.ingress`, as last published. They are no wish of the user; a load balancer that has to
    /// be recreated asks for them again.
    pub published: Vec<IpAddr>,
    /// Hostnames in `status.loadBalancer.ingress`.
    pub published_hostnames: Vec<String>,
    /// Whether `status.loadBalancer.ingress` has any entry, with an address or a hostname.
    pub is_published: bool,
}

impl Service {
    /// Creates a Service with nothing but its identity: no ports, and for the rest the API server's defaults.
    #[must_use]
    pub fn new(key: ServiceKey, uid: impl Into<String>) -> Self {
        Self {
            key,
            uid: uid.into(),
            annotations: BTreeMap::new(),
            ports: Vec::new(),
            ip_families: Vec::new(),
            load_balancer_ip: None,
            source_ranges: Vec::new(),
            session_affinity: SessionAffinity::None,
            external_traffic_policy: ExternalTrafficPolicy::Cluster,
            health_check_node_port: None,
            published: Vec::new(),
            published_hostnames: Vec::new(),
            is_published: false,
        }
    }
}

/// What a Service needs from its load balancer, with the nodes that can take its traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// The Service.
    pub service: Service,
    /// The eligible nodes (see [`crate::node::left_out`]), sorted by name. Shared between Services.
    pub nodes: Arc<[Arc<Node>]>,
    /// Why the other nodes are not eligible, by name: for information only. Shared between Services.
    pub left_out: Arc<BTreeMap<String, LeftOut>>,
}

impl Intent {
    /// Returns the addresses of the eligible nodes.
    pub fn addresses_of_nodes(&self) -> impl Iterator<Item = IpAddr> + '_ {
        let addresses = self.nodes.iter().flat_map(|node| &node.addresses);
        addresses.filter_map(|address| address.address.parse().ok())
    }
}

/// What a reconciliation is to reach. Create, update, node change and deletion all become one of these two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Goal {
    /// The load balancer exists and agrees with the intent.
    Serve(Intent),
    /// Nothing in the cloud belongs to the Service any more.
    Release(Service),
}

impl Goal {
    /// Returns the Service that the goal is about.
    pub fn service(&self) -> &Service {
        match self {
            Self::Serve(intent) => &intent.service,
            Self::Release(service) => service,
        }
    }
}
