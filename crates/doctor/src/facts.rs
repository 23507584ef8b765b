//! What there is to judge, as Kubernetes and the cloud show it. It is gathered once; nothing here decides.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{LoadBalancerIngress, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::NetworkPolicy;

/// Why the application of a Service cannot be looked at that selects no pod.
pub const NO_POD: &str = "the Service selects no pod";

/// What was looked at, or why it could not be.
pub type Looked<T> = Result<T, String>;

/// What is known of the cluster.
#[derive(Clone, Debug)]
pub struct ClusterFacts {
    /// When it was looked at.
    pub time: Timestamp,
    /// Whether the API server keeps `ipMode`.
    pub keeps_mode: Looked<bool>,
    pub nodes: Looked<Vec<NodeFact>>,
    pub services: Looked<Vec<Service>>,
    /// All NetworkPolicies.
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

/// An Event of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFact {
    pub warning: bool,
    pub reason: String,
    pub message: String,
    /// When it was seen last.
    pub time: Option<Timestamp>,
    /// Who wrote it.
    pub source: String,
}

/// Whose the Service is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ServedBy {
    /// The controllers of openstack-ccm, with the flags that were given.
    #[default]
    Ours,
    /// The controller of another `loadBalancerClass`; empty for none, where openstack-ccm has one.
    Class(String),
    /// The controller of another cloud: its title, and the annotation by which a Service asks it for the PROXY protocol, if that
    /// is known.
    AnotherCloud(String, Option<String>),
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

/// What is known of one Service.
#[derive(Clone, Debug)]
pub struct ServiceFacts {
    pub service: Service,
    /// What the way to the application needs.
    pub path: Looked<PathFact>,
    /// What openstack-ccm would publish for the addresses that are published.
    pub wanted: Looked<WantedStatus>,
    pub slices: Looked<Vec<EndpointSlice>>,
    /// Its Events, of the last hour.
    pub events: Looked<Vec<EventFact>>,
    pub served_by: ServedBy,
    /// What the published hostnames resolve to from here.
    pub hosts: BTreeMap<String, Host>,
    /// Whether somebody wants to know about the cloud.
    pub cloud_asked: bool,
    /// Its objects in the cloud.
    pub cloud: Looked<CloudFacts>,
    /// Its application.
    pub backend: Looked<BackendFacts>,
    /// What pods on the nodes got when they dialled; absent where nobody dialled.
    pub dials: Option<Vec<Dial>>,
}

/// What a hostname resolves to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// These addresses.
    Is(Vec<IpAddr>),
    /// A name server says that there is no such name.
    IsNot(String),
    /// Nobody could be asked, and why.
    Unknown(String),
}

/// What the way to the application needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathFact {
    /// Why clients have to come through the load balancer, in words; absent where they need not.
    pub needs: Option<String>,
    /// Whether that is the PROXY protocol.
    pub header: bool,
    /// The protocol that the pool of each TCP port shall speak, by port; empty where only an annotation of another cloud is known.
    pub pools: BTreeMap<u16, String>,
    /// Where this was read: the annotation, or `cloud.conf`.
    pub source: String,
}

/// What openstack-ccm would publish.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WantedStatus {
    pub entries: Vec<LoadBalancerIngress>,
    /// Why, in words.
    pub reason: String,
    /// What it would warn of.
    pub warnings: Vec<String>,
    pub published: bool,
}

/// How far the controller would get with a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Outlook {
    /// All the way.
    #[default]
    Settled,
    /// The cloud is at work.
    Waits(String),
    /// Somebody has to change a setting, and until then the load balancer keeps the one that it has.
    Keeps(String),
    /// Somebody has to change something.
    Refused(String),
    /// Nobody knows.
    Unknown(String),
}

/// The objects of a Service in the cloud.
#[derive(Clone, Debug, Default)]
pub struct CloudFacts {
    /// The load balancer; absent where there is none.
    pub load_balancer: Option<CloudObject>,
    /// Its Octavia provider.
    pub provider: String,
    /// The listeners, pools, members and monitors below it.
    pub children: Objects<CloudObject>,
    /// How far the controller would get.
    pub outlook: Outlook,
    /// What the controller would change.
    pub changes: Vec<Change>,
    /// What the controller would warn of: reason and message.
    pub warnings: Vec<(String, String)>,
    /// Its addresses: those of its VIPs, and the floating IPs that lead to them; absent where nobody looked.
    pub addresses: Option<Looked<Vec<IpAddr>>>,
    /// Those of them that are floating IPs.
    pub floating: Vec<IpAddr>,
    /// The addresses with which nodes come to a floating IP, through a router or by a floating IP of their own; absent where nobody looked.
    pub translated: Option<Looked<Vec<IpAddr>>>,
    /// Published addresses that are floating IPs of the project and do not lead to it: where they lead.
    pub astray: BTreeMap<IpAddr, String>,
    /// What the controller would publish, where that differs from what is published.
    pub would_publish: Option<Vec<LoadBalancerIngress>>,
    /// The network of its VIP.
    pub subnet: Option<String>,
    /// What the security groups of the members let in; why that is not known.
    pub doors: Option<Looked<Vec<Door>>>,
}

/// Objects, or why they could not be looked at.
#[derive(Clone, Debug, Default)]
pub struct Objects<T> {
    pub objects: Vec<T>,
    /// Why some are missing.
    pub trouble: Option<String>,
}

/// A load balancer, or one of its children.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CloudObject {
    /// `load balancer`, `listener`, `pool`, `member`, `health monitor`.
    pub kind: &'static str,
    pub id: String,
    /// Its name, or of a member its address and port.
    pub name: String,
    /// `provisioning_status`
    pub provisioning: String,
    /// `operating_status`
    pub operating: String,
    /// `admin_state_up` is false.
    pub disabled: bool,
    /// Weight of a member.
    pub weight: Option<u16>,
    /// Networks from which a listener accepts connections; empty for all.
    pub allowed: Vec<String>,
    /// `updated_at`
    pub updated: Option<Timestamp>,
    /// Protocol of a listener or pool.
    pub protocol: Option<String>,
    /// Port of a listener or member.
    pub port: Option<u16>,
    /// The pool of a member, or the default pool of a listener.
    pub pool: Option<String>,
}

impl CloudObject {
    /// `pool 1234 (name)`
    pub fn title(&self) -> String {
        if self.name.is_empty() {
            format!("{} {}", self.kind, self.id)
        } else {
            format!("{} {} ({})", self.kind, self.id, self.name)
        }
    }
}

/// Something that the controller would change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// `+`, `~`, `-`, `-/+`
    pub mark: String,
    /// `listener`, `members`, `pool`
    pub kind: String,
    /// What distinguishes it from others.
    pub name: String,
    /// The pool of members.
    pub parent: Option<String>,
    /// What would be other.
    pub fields: Vec<ChangedField>,
}

/// An attribute that the controller would change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangedField {
    pub name: String,
    /// The change in words.
    pub text: String,
    /// What a list would lose.
    pub removed: Vec<String>,
    /// What a list would gain.
    pub added: Vec<String>,
}

impl Change {
    /// As `plan` writes it.
    pub fn line(&self) -> String {
        let fields: Vec<&str> = self.fields.iter().map(|field| field.text.as_str()).collect();
        format!("{} {} {} {}", self.mark, self.kind, self.name, fields.join("; ")).trim_end().to_owned()
    }
}

/// What the security groups of one member let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Door {
    /// Address of the member.
    pub address: IpAddr,
    /// The node port.
    pub port: u16,
    /// `tcp`, `udp` or `sctp`.
    pub protocol: String,
    /// The pool of the member.
    pub pool: String,
    /// A security group of its own, to which a rule can be added.
    pub group: Option<String>,
    /// Whether the port of the machine has port security at all.
    pub guarded: bool,
    /// Whether one of its groups cannot be seen by whoever asks: that of another project, for example.
    pub hidden: bool,
    /// The rules that let packets in.
    pub rules: Vec<DoorRule>,
    /// The network from which the load balancer sends, by an address that nobody knows; absent where the network is not known.
    pub from: Option<IpNet>,
}

/// Whether the load balancer is in the group whose members a rule lets in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupSource {
    /// It is.
    Holds,
    /// It is not.
    Lacks,
    /// That cannot be seen.
    Unknown,
}

/// A rule of a security group that lets packets in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoorRule {
    /// `tcp`; absent for any.
    pub protocol: Option<String>,
    /// Ports; absent for all.
    pub ports: Option<(u16, u16)>,
    /// Sources; absent for any.
    pub from: Option<IpNet>,
    /// The rule is for IPv6, not for IPv4.
    pub ipv6: bool,
    /// The sources are the members of a group.
    pub from_group: Option<GroupSource>,
}

/// The application behind a Service.
#[derive(Clone, Debug, Default)]
pub struct BackendFacts {
    /// Name of a pod of the Service, as a sample.
    pub pod: String,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub containers: Vec<Container>,
    /// ConfigMaps that may configure it: `namespace/name` and the data, or why it cannot be read.
    pub config_maps: BTreeMap<String, Looked<BTreeMap<String, String>>>,
    /// Custom resources that may configure it: kind, title, and `spec` as JSON.
    pub resources: Vec<CustomResource>,
    /// Custom resources that could not be read: kind and why.
    pub unread: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CustomResource {
    /// `ClientTrafficPolicy`
    pub kind: &'static str,
    /// `namespace/name`
    pub name: String,
    pub spec: serde_json::Value,
}

/// What a pod on a node got when it dialled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dial {
    pub node: String,
    /// What was dialled: `203.0.113.10:443`.
    pub to: String,
    /// What came of it.
    pub result: DialResult,
    /// How long it took, in milliseconds.
    pub milliseconds: u64,
    /// From where it was dialled: `a pod address`, `a node address`.
    pub source: String,
}

/// What came of a dial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DialResult {
    /// The application spoke: the text says what.
    Answered(String),
    /// The connection was made, which a load balancer does by itself.
    Accepted,
    /// The connection was made and closed without a byte, as a backend does that misses its header.
    ClosedSilently,
    /// Nobody answered in time.
    TimedOut,
    /// The connection was refused or reset.
    Refused(String),
    /// The hostname does not resolve in a pod.
    NoName(String),
    /// The pod did not run, and why.
    NotDialled(String),
}
