//! Facts that several hops need.

use std::collections::BTreeMap;
use std::net::IpAddr;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{LoadBalancerIngress, Service, ServicePort};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use openstack_ccm_core::service::Protocol;

use crate::backend::{Expectation, Judgement, judge};
use crate::facts::{
    CloudFacts, CloudObject, ClusterFacts, DialResult, Forecast, Looked, NodeFact, PathFact, ServedBy,
    ServiceFacts, is_proxy_protocol,
};
use crate::finding::{Check, Fix, Unknown};
use crate::hop::{Flow, Port, Scope};

/// The label with which kube-proxy leaves a Service to another service proxy.
pub(super) const SERVICE_PROXY_NAME: &str = "service.kubernetes.io/service-proxy-name";

/// The annotation with the id of the load balancer that the controller made.
const OWNED: &str = "loadbalancer.openstack.org/owned-load-balancer-id";
/// The usual limit until a new Service is served.
const MAKING: SignedDuration = SignedDuration::from_mins(5);

/// The facts, with what follows from them directly.
pub(super) struct Look<'a> {
    pub(super) cluster: &'a ClusterFacts,
    pub(super) facts: &'a ServiceFacts,
    /// The published entries.
    pub(super) entries: Vec<LoadBalancerIngress>,
    /// The judgement of the application, as far as it is known.
    pub(super) backend: Looked<Judgement>,
    path: Looked<PathFact>,
}

impl<'a> Look<'a> {
    pub(super) fn new(cluster: &'a ClusterFacts, facts: &'a ServiceFacts) -> Self {
        let backend = facts.backend.as_ref().map(judge).map_err(Clone::clone);
        let mut look =
            Self { cluster, facts, entries: entries(&facts.service), backend, path: facts.path.clone() };
        if let Some(kept) = look.kept_path() {
            look.path = Ok(kept);
        }
        look
    }

    /// Returns the requirements of the path where a setting is invalid: the load balancer keeps its present pools.
    fn kept_path(&self) -> Option<PathFact> {
        let cloud = self.facts.cloud.as_ref().ok()?;
        if self.facts.path.is_ok() || !matches!(cloud.forecast, Forecast::Keeps(_)) {
            return None;
        }
        let mut path =
            PathFact { source: "the present state of the load balancer".into(), ..PathFact::default() };
        for port in self.tcp() {
            let Some(listener) = listener_of(cloud, port) else { continue };
            let pool = pool_of(cloud, listener);
            let protocol = pool.and_then(|pool| pool.protocol.clone()).unwrap_or_default();
            if is_proxy_protocol(&protocol) {
                path.header = true;
                path.needs = Some("the load balancer adds the PROXY protocol header".into());
            } else if listener.protocol.as_deref() != Some("TCP") && path.needs.is_none() {
                let what = listener.protocol.clone().unwrap_or_default();
                path.needs = Some(format!("the load balancer reads {what}"));
            }
            path.pools.insert(port.number, protocol);
        }
        (!path.pools.is_empty()).then_some(path)
    }

    /// Returns whether the application also accepts packets that bypass the load balancer.
    pub(super) fn takes_both(&self, path: &PathFact) -> bool {
        let is_spare =
            |judgement: &Judgement| matches!(judgement.expects, Expectation::Either | Expectation::Off);
        path.header && self.backend.as_ref().is_ok_and(is_spare)
    }

    pub(super) fn key(&self) -> String {
        key(&self.facts.service)
    }

    /// `Service shop/web`
    pub(super) fn object(&self) -> String {
        format!("Service {}", self.key())
    }

    /// Returns the command that changes an annotation of the Service.
    pub(super) fn annotate(&self, change: &str) -> Fix {
        Fix::kubectl(self.namespace(), ["annotate", "service", self.name(), change])
    }

    pub(super) fn namespace(&self) -> &str {
        self.facts.service.metadata.namespace.as_deref().unwrap_or_default()
    }

    pub(super) fn name(&self) -> &str {
        self.facts.service.metadata.name.as_deref().unwrap_or_default()
    }

    pub(super) fn is_ours(&self) -> bool {
        self.facts.served_by == ServedBy::Ours
    }

    pub(super) fn service_ports(&self) -> &'a [ServicePort] {
        let spec = self.facts.service.spec.as_ref();
        spec.and_then(|spec| spec.ports.as_deref()).unwrap_or_default()
    }

    /// Lists the ports of the Service, each with its spec.
    pub(super) fn ports(&self) -> impl Iterator<Item = (Port, &'a ServicePort)> {
        self.service_ports().iter().filter_map(|port| Some((port_of(port)?, port)))
    }

    pub(super) fn tcp(&self) -> impl Iterator<Item = Port> {
        self.ports().map(|(port, _)| port).filter(|port| port.protocol == Protocol::Tcp)
    }

    /// Lists the flows to each destination at each port. Without a published entry there is one destination, with an empty name.
    pub(super) fn flows(&self) -> Vec<Flow> {
        let mut destinations = self.destinations();
        if destinations.is_empty() {
            destinations.push(String::new());
        }
        let flow = |to: &String| {
            let to = to.clone();
            self.ports().map(move |(port, _)| Flow { to: to.clone(), port }).collect::<Vec<_>>()
        };
        destinations.iter().flat_map(flow).collect()
    }

    /// Lists the ports to which no load balancer can send, because they have no node port and will get none.
    pub(super) fn without_node_port(&self) -> Vec<Port> {
        let without = self.ports().filter(|(_, port)| port.node_port.is_none_or(|port| port == 0));
        // Clouds that send to pods directly need no node ports.
        let by_cloud = !self.warnings("LoadBalancerWithoutNodePorts").is_empty();
        let asked = self.facts.service.spec.as_ref().and_then(|spec| spec.allocate_load_balancer_node_ports);
        let missed = by_cloud || asked == Some(false);
        without.filter(|_| missed).map(|(port, _)| port).collect()
    }

    pub(super) fn is_local(&self) -> bool {
        let spec = self.facts.service.spec.as_ref();
        spec.and_then(|spec| spec.external_traffic_policy.as_deref()) == Some("Local")
    }

    pub(super) fn is_being_deleted(&self) -> bool {
        self.facts.service.metadata.deletion_timestamp.is_some()
    }

    /// Returns the age of a Service that the controller has just begun to serve, or is about to serve.
    pub(super) fn age_while_made(&self) -> Option<SignedDuration> {
        let metadata = &self.facts.service.metadata;
        let age = self.cluster.time.duration_since(metadata.creation_timestamp.as_ref()?.0);
        let cloud = self.facts.cloud.as_ref().ok()?;
        let was_served = metadata.annotations.iter().flatten().any(|(key, _)| key == OWNED);
        let is_made = match cloud.forecast {
            Forecast::Waits(_) => true,
            Forecast::Settled => cloud.load_balancer.is_none() && !was_served,
            Forecast::Keeps(_) | Forecast::Refused(_) | Forecast::Unknown(_) => false,
        };
        let is_well = self.cluster.controller.as_ref().is_ok_and(|controller| controller.works)
            && super::controller::reports_nothing(self);
        (self.entries.is_empty() && is_made && is_well && age < MAKING).then_some(age)
    }

    /// Lists the published addresses.
    pub(super) fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.entries.iter().filter_map(|entry| entry.ip.as_ref()?.parse().ok())
    }

    /// Lists the published addresses and hostnames.
    pub(super) fn destinations(&self) -> Vec<String> {
        self.entries.iter().filter_map(destination).collect()
    }

    /// Lists the hostnames that clients have to resolve.
    pub(super) fn hostnames(&self) -> Vec<String> {
        let by_name = self.entries.iter().filter(|entry| entry.ip.is_none());
        by_name.filter_map(|entry| entry.hostname.clone()).collect()
    }

    /// Returns the service proxy to which kube-proxy leaves the Service.
    pub(super) fn left_to(&self) -> Option<&'a str> {
        let labels = self.facts.service.metadata.labels.as_ref()?;
        labels.get(SERVICE_PROXY_NAME).map(String::as_str)
    }

    /// Lists the entries whose address nodes may short-circuit to a pod.
    pub(super) fn short_circuited(&self) -> impl Iterator<Item = &LoadBalancerIngress> {
        let is_skipped = self.left_to().is_some();
        self.entries.iter().filter(move |entry| !is_skipped && is_short_circuited(entry))
    }

    pub(super) fn short_circuit(&self) -> bool {
        self.short_circuited().next().is_some()
    }

    /// Returns whether an entry has an address that nodes must not short-circuit.
    pub(super) fn by_proxy(&self) -> bool {
        self.entries.iter().any(|entry| entry.ip.is_some() && !is_short_circuited(entry))
    }

    pub(super) fn path(&self) -> Looked<&PathFact> {
        self.path.as_ref().map_err(Clone::clone)
    }

    /// Returns the facts about the cloud, or an unknown result where they were not gathered.
    pub(super) fn cloud(&self) -> Result<&'a CloudFacts, Box<Check>> {
        self.facts.cloud.as_ref().map_err(|cause| {
            Box::new(Check::Unknown(Unknown {
                text: format!("not checked: {cause}"),
                scope: Scope::default(),
                matters: crate::code::Stops::All,
                asked: self.facts.cloud_asked,
            }))
        })
    }

    /// Lists the messages of a warning that the controller would write.
    pub(super) fn warnings(&self, reason: &str) -> Vec<&'a str> {
        let cloud = self.facts.cloud.iter();
        let warnings = cloud.flat_map(|cloud| &cloud.warnings).filter(|(one, _)| one == reason);
        warnings.map(|(_, message)| message.as_str()).collect()
    }

    pub(super) fn node_at(&self, address: IpAddr) -> Option<&'a NodeFact> {
        self.cluster.nodes.iter().flatten().find(|node| node.addresses.contains(&address))
    }

    /// Returns `node-2 (198.18.0.51:30080)`, or the address alone where the node is not known.
    pub(super) fn member_name(&self, member: &str) -> String {
        let address = member.rsplit_once(':').and_then(|(address, _)| address.parse().ok());
        match address.and_then(|address| self.node_at(address)) {
            Some(node) => format!("{} ({member})", node.name),
            None => member.to_owned(),
        }
    }

    /// Lists the flows in which the application answered the dials of the pods on all nodes.
    pub(super) fn answered(&self) -> Vec<Flow> {
        let dials = self.facts.dials.as_deref().unwrap_or_default();
        let mut flows = self.flows();
        flows.retain(|flow| {
            let to = dialled(flow);
            let mut of_flow = dials.iter().filter(|dial| dial.to == to || dial.to.is_empty()).peekable();
            flow.port.protocol == Protocol::Tcp
                && of_flow.peek().is_some()
                && of_flow.all(|dial| matches!(dial.result, DialResult::Answered(_)))
        });
        flows
    }
}

/// `203.0.113.10:443`
fn dialled(flow: &Flow) -> String {
    let Flow { to, port } = flow;
    if to.contains(':') { format!("[{to}]:{}", port.number) } else { format!("{to}:{}", port.number) }
}

pub(super) fn port_of(port: &ServicePort) -> Option<Port> {
    let protocol = match port.protocol.as_deref() {
        None | Some("TCP" | "") => Protocol::Tcp,
        Some("UDP") => Protocol::Udp,
        Some("SCTP") => Protocol::Sctp,
        Some(_) => return None,
    };
    Some(Port { number: u16::try_from(port.port).ok()?, protocol })
}

/// Returns the transport protocol of a listener or a pool.
pub(super) fn transport(protocol: Option<&str>) -> Protocol {
    match protocol {
        Some("UDP") => Protocol::Udp,
        Some("SCTP") => Protocol::Sctp,
        _ => Protocol::Tcp,
    }
}

pub(super) fn listener_of(cloud: &CloudFacts, port: Port) -> Option<&CloudObject> {
    let listeners = cloud.children.objects.iter().filter(|object| object.kind == "listener");
    let mut of_port = listeners.filter(|listener| {
        listener.port == Some(port.number) && transport(listener.protocol.as_deref()) == port.protocol
    });
    of_port.next()
}

/// Returns the default pool of a listener.
pub(super) fn pool_of<'a>(cloud: &'a CloudFacts, listener: &CloudObject) -> Option<&'a CloudObject> {
    let pools = cloud.children.objects.iter().filter(|object| object.kind == "pool");
    pools.into_iter().find(|pool| Some(&pool.id) == listener.pool.as_ref())
}

/// Lists the pools of the Service, each with the ports that lead to it.
pub(super) fn pools<'a>(look: &Look<'_>, cloud: &'a CloudFacts) -> Vec<(&'a CloudObject, Vec<Port>)> {
    let mut pools: BTreeMap<&str, (&CloudObject, Vec<Port>)> = BTreeMap::new();
    for (port, _) in look.ports() {
        if let Some(pool) = listener_of(cloud, port).and_then(|listener| pool_of(cloud, listener)) {
            pools.entry(&pool.id).or_insert((pool, Vec::new())).1.push(port);
        }
    }
    pools.into_values().collect()
}

/// `shop/web`
pub(super) fn key(service: &Service) -> String {
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    format!("{}/{}", part(&service.metadata.namespace), part(&service.metadata.name))
}

pub(super) fn entries(service: &Service) -> Vec<LoadBalancerIngress> {
    let status = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    status.and_then(|status| status.ingress.clone()).unwrap_or_default()
}

/// Returns the address or hostname to which clients of an entry connect.
pub(super) fn destination(entry: &LoadBalancerIngress) -> Option<String> {
    entry.ip.clone().or_else(|| entry.hostname.clone())
}

/// Returns whether nodes may short-circuit the address of an entry to a pod: an absent `ipMode` means `VIP`.
pub(super) fn is_short_circuited(entry: &LoadBalancerIngress) -> bool {
    entry.ip.is_some() && entry.ip_mode.as_deref().is_none_or(|mode| mode == "VIP")
}

/// `203.0.113.10 with ipMode Proxy`
pub(super) fn shown(entry: &LoadBalancerIngress) -> String {
    let mode = entry.ip_mode.as_deref().map(|mode| format!(" with ipMode {mode}"));
    let ip = entry.ip.as_ref().map(|ip| format!("{ip}{}", mode.unwrap_or_default()));
    let hostname = entry.hostname.as_ref().map(|hostname| format!("hostname {hostname}"));
    ip.into_iter().chain(hostname).collect::<Vec<_>>().join(" and ")
}

pub(super) fn all_shown(entries: &[LoadBalancerIngress]) -> String {
    entries.iter().map(shown).collect::<Vec<_>>().join(", ")
}

/// Lists the endpoints of a slice, which may have null in place of a list.
pub(super) fn endpoints(slice: &EndpointSlice) -> impl Iterator<Item = &Endpoint> {
    slice.endpoints.iter().flatten()
}
