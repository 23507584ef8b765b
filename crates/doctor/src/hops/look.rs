//! Facts that several hops need: of the Service, what is published, and the cloud.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{LoadBalancerIngress, ServicePort};
use openstack_ccm_core::service::Protocol;
use openstack_ccm_core::text::some_of;
use openstack_ccm_manager::dial::DialResult;
use openstack_ccm_openstack_api::octavia::{ListenerProtocol, PoolProtocol};

use crate::backend::Judgement;
use crate::code::Stops;
use crate::facts::{
    CloudFacts, ClusterFacts, Forecast, ForeignPolicy, Host, Looked, NodeFact, PathFact, PoolFact, ServedBy,
    ServiceFacts, entries, is_proxy_protocol, name_of,
};
use crate::finding::{Check, Fix, Gap, gap, skipped};
use crate::hop::{Flow, Port};
use crate::leftovers::{SERVICE_PROXY_NAME, dns};
use crate::question::{Answer, read};

/// The facts, with what follows from them directly.
pub(super) struct Look<'a> {
    pub(super) cluster: &'a ClusterFacts,
    pub(super) facts: &'a ServiceFacts,
    /// The published entries.
    pub(super) entries: &'a [LoadBalancerIngress],
    /// The requirements of the path, or, where a setting is invalid, those that the load balancer keeps.
    pub(super) path: Looked<PathFact>,
    /// What the application makes of connections.
    pub(super) applications: Vec<Application>,
    /// Ports at which the application also serves packets that bypass the load balancer, each with whether all its pods do.
    pub(super) bypassed: BTreeMap<Port, bool>,
    /// Destinations to which nodes send packets around the load balancer, each with whether certainly all nodes do.
    pub(super) around: BTreeMap<String, bool>,
}

/// What the application makes of connections to some ports.
pub(super) struct Application {
    pub(super) ports: BTreeSet<Port>,
    /// Whether the load balancer sends the header.
    pub(super) header: bool,
    pub(super) judgement: Judgement,
    /// Whether this is true of all its pods.
    pub(super) of_all: bool,
}

impl<'a> Look<'a> {
    pub(super) fn new(cluster: &'a ClusterFacts, facts: &'a ServiceFacts) -> Self {
        let mut look = Self {
            cluster,
            facts,
            entries: entries(&facts.service),
            path: facts.path.clone(),
            applications: Vec::new(),
            bypassed: BTreeMap::new(),
            around: BTreeMap::new(),
        };
        if let Some(kept) = look.kept_path() {
            look.path = Ok(kept);
        }
        look.applications = look.judge_applications();
        look.bypassed = look.judge_bypassed();
        look.around = look.judge_around();
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
            let Some(listener) = cloud.listener(port) else { continue };
            let protocol = cloud.pool(port).map(|pool| pool.pool.protocol.clone());
            if protocol.as_ref().is_some_and(is_proxy_protocol) {
                path.header = true;
                path.needs = Some("the load balancer adds the PROXY protocol header".into());
            } else if listener.protocol != ListenerProtocol::Tcp && path.needs.is_none() {
                path.needs = Some(format!("the load balancer reads {}", listener.protocol));
            }
            path.pools.insert(port.number, protocol.unwrap_or(PoolProtocol::Tcp));
        }
        (!path.pools.is_empty()).then_some(path)
    }

    /// Returns, in words, the policies that doctor does not evaluate, as far as they concern it; empty where none does.
    pub(super) fn foreign_policies(
        &self,
        matters: Stops,
        concerns: impl Fn(&ForeignPolicy) -> bool,
    ) -> Result<String, Answer> {
        let missing = "policies of the network plugin cannot be read";
        let policies = read(&self.cluster.foreign_policies, missing, matters)?;
        let title = |policy: &ForeignPolicy| match &policy.namespace {
            Some(namespace) => format!("{} {namespace}/{}", policy.kind, policy.name),
            None => format!("{} {}", policy.kind, policy.name),
        };
        let names: Vec<String> = policies.iter().filter(|policy| concerns(policy)).map(title).collect();
        Ok(some_of(&names, 3))
    }

    pub(super) fn key(&self) -> String {
        name_of(&self.facts.service.metadata)
    }

    /// `Service shop/web`
    pub(super) fn object(&self) -> String {
        format!("Service {}", self.key())
    }

    /// Returns the command that changes an annotation of the Service.
    pub(super) fn annotate(&self, change: &str) -> Fix {
        Fix::service(&self.facts.service, "annotate", &[change])
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

    /// Returns the facts about the cloud, or the gap where they were not gathered.
    pub(super) fn cloud(&self) -> Result<&'a CloudFacts, Box<Check>> {
        let why = if self.facts.cloud_asked { Gap::NotKnown } else { Gap::NotSeen };
        let missing = |cause: &String| Box::new(gap(why, format!("the cloud ({cause})")));
        self.facts.cloud.as_ref().map_err(missing)
    }

    /// Returns the facts about the cloud where it has the load balancer.
    pub(super) fn served(&self) -> Result<&'a CloudFacts, Box<Check>> {
        self.cloud().and_then(|cloud| match cloud.load_balancer {
            Some(_) => Ok(cloud),
            None => Err(Box::new(skipped("there is no load balancer"))),
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

    /// Lists the pools of the Service, each with the ports that lead to it.
    pub(super) fn pools(&self, cloud: &'a CloudFacts) -> Vec<(&'a PoolFact, Vec<Port>)> {
        let mut pools: BTreeMap<&str, (&PoolFact, Vec<Port>)> = BTreeMap::new();
        for (port, _) in self.ports() {
            if let Some(pool) = cloud.pool(port) {
                pools.entry(&pool.pool.id).or_insert((pool, Vec::new())).1.push(port);
            }
        }
        pools.into_values().collect()
    }

    /// Returns whether the Service is for clients outside.
    pub(super) fn is_external(&self) -> bool {
        self.facts.path.as_ref().is_ok_and(|path| path.external)
    }

    /// Returns the addresses of a published address or hostname, as far as they are known.
    pub(super) fn addresses_of(&self, to: &str) -> Vec<IpAddr> {
        if let Ok(address) = to.parse() {
            return vec![address];
        }
        match self.facts.hosts.get(to) {
            Some(Host::Is(addresses)) => addresses.clone(),
            Some(Host::IsNot(_)) => Vec::new(),
            Some(Host::Unknown(_)) | None => self.address_in(to).into_iter().collect(),
        }
    }

    /// Returns the address in a hostname: of a DNS service that answers with it, or the load balancer's, from which the controller
    /// made the name.
    pub(super) fn address_in(&self, name: &str) -> Option<IpAddr> {
        let made_of = |address: &IpAddr| {
            name.strip_prefix(&address.to_string()).is_some_and(|rest| rest.starts_with('.'))
        };
        let own = self.facts.cloud.as_ref().ok().and_then(|cloud| cloud.addresses().ok());
        dns::address_in(name).or_else(|| own.into_iter().flatten().find(made_of))
    }

    /// Lists the flows in which the application answered the dials of the pods on all nodes, with these nodes.
    pub(super) fn answered(&self) -> Vec<(Flow, BTreeSet<String>)> {
        let dials = self.facts.dials.as_deref().unwrap_or_default();
        let answered = |flow: Flow| {
            let to = dialled(&flow);
            let of_flow = || dials.iter().filter(|dial| dial.to == to || dial.to.is_empty());
            let all = of_flow().all(|dial| matches!(dial.result, DialResult::Answered(_)));
            let nodes: BTreeSet<String> = of_flow().map(|dial| dial.node.clone()).collect();
            (all && !nodes.is_empty() && flow.port.protocol == Protocol::Tcp).then_some((flow, nodes))
        };
        self.flows().into_iter().filter_map(answered).collect()
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

/// Returns whether an address is a VIP that clients outside reach by a floating IP of the same family.
pub(super) fn is_behind(cloud: &CloudFacts, address: IpAddr) -> bool {
    let floating = cloud.floating();
    !floating.contains(&address) && floating.iter().any(|one| one.is_ipv6() == address.is_ipv6())
}

/// Lists addresses as text.
pub(super) fn listed(addresses: &[IpAddr]) -> String {
    some_of(&addresses.iter().map(ToString::to_string).collect::<Vec<_>>(), 5)
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
