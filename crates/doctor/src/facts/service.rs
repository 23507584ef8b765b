//! One Service, and the application behind it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{LoadBalancerIngress, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use openstack_ccm_core::provider::is_reason_of_wait;
use openstack_ccm_manager::dial::Dial;
use openstack_ccm_openstack_api::octavia::PoolProtocol;

use super::{CloudFacts, Looked};
use crate::hop::Port;

/// `shop/web`
pub fn name_of(metadata: &ObjectMeta) -> String {
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    format!("{}/{}", part(&metadata.namespace), part(&metadata.name))
}

/// Returns the published entries of a Service.
pub fn entries(service: &Service) -> &[LoadBalancerIngress] {
    let status = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    status.and_then(|status| status.ingress.as_deref()).unwrap_or_default()
}

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

impl ServedBy {
    /// Returns, in words, which other controller serves it; absent for ours.
    pub fn others(&self) -> Option<String> {
        match self {
            Self::Ours => None,
            Self::Class(class) if class.is_empty() => {
                Some("served without a class: remove --load-balancer-class".to_owned())
            }
            Self::Class(class) => Some(format!("served by class {class}: add --load-balancer-class={class}")),
            Self::AnotherCloud(cloud, _) => Some(format!("served by the controller of {cloud}")),
        }
    }
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
    pub pools: BTreeMap<u16, PoolProtocol>,
    /// The source of the requirements: the annotation, or `cloud.conf`.
    pub source: String,
    /// Whether clients outside the network of the load balancer shall reach it.
    pub external: bool,
}

impl PathFact {
    /// Returns whether connections to a port get the PROXY protocol header.
    pub fn sends_header(&self, port: Port) -> bool {
        self.pools.get(&port.number).map_or(self.header, is_proxy_protocol)
    }
}

/// Returns whether a pool of this protocol sends the PROXY protocol header.
pub(crate) fn is_proxy_protocol(protocol: &PoolProtocol) -> bool {
    matches!(protocol, PoolProtocol::Proxy | PoolProtocol::ProxyV2)
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
    /// The pods that the Service selects.
    pub pods: Vec<Pod>,
    /// ConfigMaps that may configure it: `namespace/name`, and the data where the ConfigMap exists.
    pub config_maps: BTreeMap<String, Looked<Option<BTreeMap<String, String>>>>,
    /// Custom resources that may configure it, by kind.
    pub resources: BTreeMap<&'static str, Looked<Vec<CustomResource>>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct CustomResource {
    pub namespace: String,
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub spec: serde_json::Value,
}
