//! One Service, and the application behind it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{LoadBalancerIngress, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use openstack_ccm_core::provider::is_reason_of_wait;

use super::{CloudFacts, Container, Looked};
use crate::hop::Port;

/// Why no application can be looked at behind a Service without a selector.
pub const NO_POD: &str = "the Service selects no pod";

/// An Event of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFact {
    pub warning: bool,
    pub reason: String,
    pub message: String,
    /// When the Event was seen last.
    pub time: Option<Timestamp>,
    /// The component that wrote the Event.
    pub source: String,
}

impl EventFact {
    /// Returns when the Event was seen last; an Event without a time counts as the oldest.
    pub(crate) fn when(&self) -> Timestamp {
        self.time.unwrap_or(Timestamp::MIN)
    }

    /// Returns the time of the last Event of success.
    pub(crate) fn last_success(events: &[Self]) -> Option<Timestamp> {
        let is_success = |event: &&Self| {
            !event.warning && (event.reason.starts_with("Ensured") || event.reason.starts_with("Updated"))
        };
        events.iter().filter(is_success).map(Self::when).max()
    }

    /// Returns the last Event about a wait, unless an Event of success followed.
    pub fn of_wait(events: &[Self]) -> Option<&Self> {
        let success = Self::last_success(events);
        let waits = events.iter().filter(|event| is_reason_of_wait(&event.reason));
        waits
            .filter(|event| success.is_none_or(|success| event.when() > success))
            .max_by_key(|event| event.when())
    }
}

/// Which controller serves the Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ServedBy {
    /// The controllers of openstack-ccm with the given flags.
    #[default]
    Ours,
    /// The controller of another `loadBalancerClass`; empty for a Service without a class, where openstack-ccm has one.
    Class(String),
    /// The controller of another cloud: its title, and the annotation by which a Service asks it for the PROXY protocol, if that
    /// is known.
    AnotherCloud(String, Option<String>),
}

/// The facts about one Service.
#[derive(Clone, Debug)]
pub struct ServiceFacts {
    pub service: Service,
    /// The requirements of the path to the application.
    pub path: Looked<PathFact>,
    /// What openstack-ccm would publish for the published addresses.
    pub wanted: Looked<WantedStatus>,
    pub slices: Looked<Vec<EndpointSlice>>,
    /// Events of the Service in the last hour.
    pub events: Looked<Vec<EventFact>>,
    pub served_by: ServedBy,
    /// The addresses of the published hostnames, as resolved on this machine.
    pub hosts: BTreeMap<String, Host>,
    /// Whether the user asked for facts about the cloud.
    pub cloud_asked: bool,
    /// The cloud objects of the Service.
    pub cloud: Looked<CloudFacts>,
    /// The application behind the Service.
    pub backend: Looked<BackendFacts>,
    /// The results of dials by pods on the nodes; absent where none dialled.
    pub dials: Option<Vec<Dial>>,
}

/// The result of resolving a hostname.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// The name has these addresses.
    Is(Vec<IpAddr>),
    /// A DNS server answered that the name does not exist.
    IsNot(String),
    /// No DNS server answered, for this reason.
    Unknown(String),
}

/// The requirements of the path to the application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathFact {
    /// Why clients have to come through the load balancer, in words; absent where they need not.
    pub needs: Option<String>,
    /// Whether `needs` is about the PROXY protocol.
    pub header: bool,
    /// The protocol that the pool of each TCP port shall have, by port; empty where only another cloud's annotation is known.
    pub pools: BTreeMap<u16, String>,
    /// The source of the requirements: the annotation, or `cloud.conf`.
    pub source: String,
    /// Whether clients outside the network of the load balancer shall reach it.
    pub external: bool,
}

impl PathFact {
    /// Returns whether connections to a port get the PROXY protocol header.
    pub fn sends_header(&self, port: Port) -> bool {
        self.pools.get(&port.number).map_or(self.header, |protocol| is_proxy_protocol(protocol))
    }
}

/// Returns whether a pool of this protocol sends the PROXY protocol header.
pub(crate) fn is_proxy_protocol(protocol: &str) -> bool {
    matches!(protocol, "PROXY" | "PROXYV2")
}

/// The status that openstack-ccm would publish.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WantedStatus {
    pub entries: Vec<LoadBalancerIngress>,
    /// The reason for the entries, in words.
    pub reason: String,
    /// The warnings that openstack-ccm would write.
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
    /// ConfigMaps that may configure it: `namespace/name` and the data, or why the ConfigMap cannot be read.
    pub config_maps: BTreeMap<String, Looked<BTreeMap<String, String>>>,
    /// Custom resources that may configure it.
    pub resources: Vec<CustomResource>,
    /// Kinds of custom resources that could not be read, each with the reason.
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

/// The result of a dial by a pod on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dial {
    pub node: String,
    /// The destination: `203.0.113.10:443`.
    pub to: String,
    /// The result.
    pub result: DialResult,
    /// The duration of the dial, in milliseconds.
    pub milliseconds: u64,
    /// The source of the dial: `a pod address`, `a node address`.
    pub source: String,
}

/// The result of a dial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DialResult {
    /// The application answered with this text.
    Answered(String),
    /// The connection was accepted, which a load balancer does by itself.
    Accepted,
    /// The connection was accepted and closed without a byte, as by an application that misses the header.
    ClosedSilently,
    /// No answer came in time.
    TimedOut,
    /// The connection was refused or reset.
    Refused(String),
    /// The hostname does not resolve in a pod.
    NoName(String),
    /// The pod did not run, for this reason.
    NotDialled(String),
}
