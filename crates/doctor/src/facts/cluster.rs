//! Facts about the cluster that all Services share.

use std::collections::BTreeMap;
use std::net::IpAddr;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PodSpec, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;

use super::Looked;
use crate::finding::Gap;

/// The facts about the cluster.
#[derive(Clone, Debug)]
pub struct ClusterFacts {
    /// When the facts were gathered.
    pub time: Timestamp,
    /// Whether the API server keeps `ipMode`.
    pub keeps_mode: Looked<bool>,
    pub nodes: Looked<Vec<NodeFact>>,
    pub services: Looked<Vec<Service>>,
    pub policies: Looked<Vec<NetworkPolicy>>,
    /// The configuration of CoreDNS and node-local-dns.
    pub dns: Looked<Vec<DnsText>>,
    /// Hostnames that Ingresses serve, with the addresses in their status.
    pub names: Looked<Vec<ServedName>>,
    /// The leader of the controllers.
    pub controller: Looked<ControllerFact>,
    /// Policies of kinds that network plugins define; what these policies allow is not judged.
    pub foreign_policies: Looked<Vec<ForeignPolicy>>,
    /// A client whose access shall be judged.
    pub client: Option<IpAddr>,
    /// Pod templates of the workloads.
    pub workloads: Looked<Vec<Workload>>,
}

impl ClusterFacts {
    /// Lists the nodes on which clients may run, as far as they are known.
    pub(crate) fn live_nodes(&self) -> impl Iterator<Item = &NodeFact> {
        self.nodes.iter().flatten().filter(|node| !node.dead)
    }

    /// Lists the addresses of all nodes.
    pub(crate) fn node_addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.nodes.iter().flatten().flat_map(|node| node.addresses.iter().copied())
    }
}

/// The facts in the Lease of the controllers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerFact {
    /// `namespace/name` of the Lease.
    pub lease: String,
    /// The holder; absent where the Lease was released, or does not exist.
    pub holder: Option<String>,
    /// Whether the holder has renewed it in time.
    pub works: bool,
    /// Since when the holder leads.
    pub since: Option<Timestamp>,
    /// A text about the holder, since when it leads, and when it renewed the Lease.
    pub text: String,
    /// The holder's program and version, where the holder reports it.
    pub program: Option<String>,
    /// The field manager with which the holder writes statuses, where it is known.
    pub manager: Option<String>,
    /// The holder's `--cluster-name`, where the holder reports it.
    pub cluster: Option<String>,
    /// The `--cluster-name` that the user gave.
    pub given_cluster: String,
    /// Other Leases that openstack-ccm holds and renews, in words.
    pub others: Looked<Vec<String>>,
}

/// A policy of a kind whose rules are not read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForeignPolicy {
    /// `CiliumNetworkPolicy`
    pub kind: String,
    /// Its namespace; absent for cluster-wide policies.
    pub namespace: Option<String>,
    pub name: String,
    /// Labels of the pods that the policy selects; empty where it selects all pods, or where the selector cannot be read.
    pub labels: BTreeMap<String, String>,
    /// Whether the policy has rules for ingress.
    pub ingress: bool,
    /// Whether the policy has rules for egress.
    pub egress: bool,
}

/// Why something of other software is not known.
pub type Unread = (Gap, String);

/// A node, with the verdict on its service proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFact {
    pub name: String,
    /// Its addresses in the cluster.
    pub addresses: Vec<IpAddr>,
    /// Whether Kubernetes reports the node ready; absent where no condition says either.
    pub ready: Option<bool>,
    /// Whether the node has been unreachable for so long that no client runs on it.
    pub dead: bool,
    /// Whether the service proxy honours `ipMode: Proxy`.
    pub honours: bool,
    /// The source of `honours`: `canary`, `version`.
    pub source: String,
    pub basis: Basis,
    /// The reason for `honours`.
    pub cause: String,
    /// Networks of the node's addresses at which kube-proxy opens node ports; empty for all.
    pub node_port_addresses: Result<Vec<String>, Unread>,
}

/// What a verdict on a service proxy stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Basis {
    /// The versions of other programs on the node.
    Guessed,
    /// What the service proxy runs with.
    Shown,
    /// What the service proxy does.
    Measured,
}

/// A key of a ConfigMap that a DNS server reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsText {
    /// `kube-system/coredns`
    pub config_map: String,
    /// `Corefile`
    pub key: String,
    pub text: String,
}

/// A hostname that leads to a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedName {
    /// `shop.example.org`
    pub host: String,
    /// `Ingress shop/web`
    pub owner: String,
    /// The addresses and hostnames in the status of its owner.
    pub at: Vec<String>,
}

/// A pod template, with the workload that has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// `Deployment`, `DaemonSet`, `StatefulSet`, `CronJob`.
    pub kind: String,
    pub namespace: String,
    pub name: String,
    /// What its pods run.
    pub pods: PodSpec,
}

impl Workload {
    /// `Deployment shop/web`
    pub fn title(&self) -> String {
        format!("{} {}/{}", self.kind, self.namespace, self.name)
    }
}
