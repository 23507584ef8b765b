//! What several hops need of the facts.

use k8s_openapi::api::core::v1::{LoadBalancerIngress, Service, ServicePort};

use crate::backend::{Judgement, judge};
use crate::facts::{CloudFacts, ClusterFacts, Looked, PathFact, ServiceFacts};
use crate::finding::Fix;

/// The label with which kube-proxy leaves a Service to another service proxy.
const SERVICE_PROXY_NAME: &str = "service.kubernetes.io/service-proxy-name";

/// The facts, and what follows from them at once.
pub(super) struct Look<'a> {
    pub(super) cluster: &'a ClusterFacts,
    pub(super) facts: &'a ServiceFacts,
    /// What is published.
    pub(super) entries: Vec<LoadBalancerIngress>,
    /// The application, as far as it is known.
    pub(super) backend: Looked<Judgement>,
}

impl<'a> Look<'a> {
    pub(super) fn new(cluster: &'a ClusterFacts, facts: &'a ServiceFacts) -> Self {
        let backend = facts.backend.as_ref().map(judge).map_err(Clone::clone);
        Self { cluster, facts, entries: entries(&facts.service), backend }
    }

    pub(super) fn key(&self) -> String {
        key(&self.facts.service)
    }

    /// `Service shop/web`
    pub(super) fn object(&self) -> String {
        format!("Service {}", self.key())
    }

    /// A command that changes an annotation of the Service.
    pub(super) fn annotate(&self, change: &str) -> Fix {
        Fix::kubectl(self.namespace(), ["annotate", "service", self.name(), change])
    }

    /// The command that shows what the controller would change.
    pub(super) fn plan(&self) -> Fix {
        Fix::command(["openstack-ccm", "plan", &self.key()])
    }

    pub(super) fn namespace(&self) -> &str {
        self.facts.service.metadata.namespace.as_deref().unwrap_or_default()
    }

    pub(super) fn name(&self) -> &str {
        self.facts.service.metadata.name.as_deref().unwrap_or_default()
    }

    pub(super) fn ports(&self) -> &[ServicePort] {
        let spec = self.facts.service.spec.as_ref();
        spec.and_then(|spec| spec.ports.as_deref()).unwrap_or_default()
    }

    /// Ports to which no load balancer can send, because they have no node port and are to have none.
    pub(super) fn without_node_port(&self) -> Vec<String> {
        let without = self.ports().iter().filter(|port| port.node_port.is_none_or(|port| port == 0));
        // Clouds that send to pods do without.
        let by_cloud = !self.warnings("LoadBalancerWithoutNodePorts").is_empty();
        let asked = self.facts.service.spec.as_ref().and_then(|spec| spec.allocate_load_balancer_node_ports);
        let missed = by_cloud || asked == Some(false);
        without.filter(|_| missed).map(|port| port.port.to_string()).collect()
    }

    pub(super) fn is_local(&self) -> bool {
        let spec = self.facts.service.spec.as_ref();
        spec.and_then(|spec| spec.external_traffic_policy.as_deref()) == Some("Local")
    }

    /// The addresses and hostnames that are published.
    pub(super) fn destinations(&self) -> Vec<String> {
        self.entries.iter().filter_map(|entry| entry.ip.clone().or_else(|| entry.hostname.clone())).collect()
    }

    /// Entries whose address nodes may send to a pod at once.
    pub(super) fn short_circuited(&self) -> impl Iterator<Item = &LoadBalancerIngress> {
        let skipped = self.facts.service.metadata.labels.iter().flatten();
        let is_skipped = skipped.into_iter().any(|(key, _)| key == SERVICE_PROXY_NAME);
        self.entries.iter().filter(move |entry| !is_skipped && is_short_circuited(entry))
    }

    pub(super) fn short_circuit(&self) -> bool {
        self.short_circuited().next().is_some()
    }

    /// Entries with an address that nodes have to leave alone.
    pub(super) fn by_proxy(&self) -> bool {
        self.entries.iter().any(|entry| entry.ip.is_some() && !is_short_circuited(entry))
    }

    pub(super) fn path(&self) -> Looked<&PathFact> {
        self.facts.path.as_ref().map_err(Clone::clone)
    }

    pub(super) fn cloud(&self) -> Looked<&CloudFacts> {
        self.facts.cloud.as_ref().map_err(|cause| format!("the cloud was not looked at: {cause}"))
    }

    /// The messages of a warning that the controller would write.
    pub(super) fn warnings(&self, reason: &str) -> Vec<&str> {
        let cloud = self.facts.cloud.iter();
        let warnings = cloud.flat_map(|cloud| &cloud.warnings).filter(|(one, _)| one == reason);
        warnings.map(|(_, message)| message.as_str()).collect()
    }
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

/// Whether nodes may send packets to the address of an entry to a pod at once: an absent mode means that too.
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
