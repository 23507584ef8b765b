//! The cluster: what all Services share.

use std::collections::BTreeMap;
use std::net::IpAddr;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::NetworkPolicy;

use super::Looked;

/// What is known of the cluster.
#[derive(Clone, Debug)]
pub struct ClusterFacts {
    /// When it was looked at.
    pub time: Timestamp,
    /// Whether the API server keeps `ipMode`.
    pub keeps_mode: Looked<bool>,
    pub nodes: Looked<Vec<NodeFact>>,
    pub services: Looked<Vec<Service>>,
    pub policies: Looked<Vec<NetworkPolicy>>,
    /// What CoreDNS and node-local-dns are configured to answer.
    pub dns: Looked<Vec<DnsText>>,
    /// Names that Ingresses serve, with the addresses in their status.
    pub names: Looked<Vec<ServedName>>,
    /// Who leads the controllers.
    pub controller: Looked<ControllerFact>,
    /// Policies of kinds that network plugins define: what they let in or out is not judged.
    pub foreign_policies: Looked<Vec<ForeignPolicy>>,
    /// A client of which somebody wants to know whether it gets in.
    pub client: Option<IpAddr>,
    /// Pod templates.
    pub workloads: Looked<Vec<Workload>>,
}

/// What the Lease of the controllers says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControllerFact {
    /// `namespace/name` of the Lease.
    pub lease: String,
    /// Its holder; absent where the Lease was given back, or does not exist.
    pub holder: Option<String>,
    /// Whether the holder has renewed it in time.
    pub works: bool,
    /// Since when it leads.
    pub since: Option<Timestamp>,
    /// In words: who leads, since when, when it renewed the Lease.
    pub text: String,
    /// The name of the program and its version, where the holder says it.
    pub program: Option<String>,
    /// The name of the field manager by which it writes statuses, where that is known.
    pub manager: Option<String>,
    /// Its `--cluster-name`, where the holder says it.
    pub cluster: Option<String>,
    /// The `--cluster-name` that whoever asks has given.
    pub given_cluster: String,
}

/// A policy of a kind that is not read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForeignPolicy {
    /// `CiliumNetworkPolicy`
    pub kind: String,
    /// Absent of those for the whole cluster.
    pub namespace: Option<String>,
    pub name: String,
    /// Labels that a pod must have to be selected; empty where all are, or where that cannot be read.
    pub labels: BTreeMap<String, String>,
    /// Whether it says something about what pods may be sent.
    pub ingress: bool,
    /// Whether it says something about what pods may send.
    pub egress: bool,
}

/// A node, with what is held of its service proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFact {
    pub name: String,
    /// Its addresses in the cluster.
    pub addresses: Vec<IpAddr>,
    /// Whether Kubernetes hears from it that it is well; absent where no condition says anything.
    pub ready: Option<bool>,
    /// Whether it has been unreachable for so long that no client runs there.
    pub dead: bool,
    /// Whether the service proxy honours `ipMode: Proxy`.
    pub honours: bool,
    /// Who says so: `canary`, `version`.
    pub source: String,
    /// Whether that was measured; otherwise it is a guess.
    pub measured: bool,
    /// Why.
    pub cause: String,
}

/// A key of a ConfigMap that a name server reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsText {
    /// `kube-system/coredns`
    pub config_map: String,
    /// `Corefile`
    pub key: String,
    pub text: String,
}

/// A name that leads to a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedName {
    /// `shop.example.org`
    pub host: String,
    /// `Ingress shop/web`
    pub owner: String,
    /// Where its status says that it is served: addresses and hostnames.
    pub at: Vec<String>,
}

/// A pod template, and who has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workload {
    /// `Deployment`, `DaemonSet`, `StatefulSet`, `CronJob`.
    pub kind: String,
    pub namespace: String,
    pub name: String,
    /// `spec.hostAliases`: address and names.
    pub host_aliases: Vec<(String, Vec<String>)>,
    pub containers: Vec<Container>,
}

impl Workload {
    /// `Deployment shop/web`
    pub fn title(&self) -> String {
        format!("{} {}/{}", self.kind, self.namespace, self.name)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Container {
    pub image: String,
    /// `command` and `args`, one after the other.
    pub words: Vec<String>,
    /// Ports that it declares.
    pub ports: Vec<ContainerPort>,
}

/// A port that a container declares: for information, other ports may be open too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerPort {
    pub name: String,
    pub number: u16,
    /// `TCP`
    pub protocol: String,
}
