//! One Service, and the application behind it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{LoadBalancerIngress, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use openstack_ccm_core::provider::is_reason_of_wait;

use super::{CloudFacts, Container, Looked};
use crate::hop::Port;

/// Why the application of a Service cannot be looked at that selects no pod.
pub const NO_POD: &str = "the Service selects no pod";

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

impl EventFact {
    /// When it was seen last; one without a time counts as the oldest.
    pub(crate) fn when(&self) -> Timestamp {
        self.time.unwrap_or(Timestamp::MIN)
    }

    /// When something succeeded last.
    pub(crate) fn last_success(events: &[Self]) -> Option<Timestamp> {
        let is_success = |event: &&Self| {
            !event.warning && (event.reason.starts_with("Ensured") || event.reason.starts_with("Updated"))
        };
        events.iter().filter(is_success).map(Self::when).max()
    }

    /// The last Event that says what the Service waits for, where nothing succeeded after it.
    pub fn of_wait(events: &[Self]) -> Option<&Self> {
        let success = Self::last_success(events);
        let waits = events.iter().filter(|event| is_reason_of_wait(&event.reason));
        waits
            .filter(|event| success.is_none_or(|success| event.when() > success))
            .max_by_key(|event| event.when())
    }
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
    /// Whether clients outside the network of the load balancer are to reach it.
    pub external: bool,
}

impl PathFact {
    /// Whether connections to a port get the PROXY protocol header.
    pub fn sends_header(&self, port: Port) -> bool {
        self.pools.get(&port.number).map_or(self.header, |protocol| is_proxy_protocol(protocol))
    }
}

/// Whether a pool that speaks this sends the PROXY protocol header.
pub(crate) fn is_proxy_protocol(protocol: &str) -> bool {
    matches!(protocol, "PROXY" | "PROXYV2")
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
