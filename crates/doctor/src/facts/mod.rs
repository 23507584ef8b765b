//! The facts to judge, as Kubernetes and the cloud show them. They are gathered once; nothing here decides.

mod cloud;
mod cluster;
mod service;

pub use cloud::{
    Change, ChangedField, CloudFacts, CloudObject, Door, DoorRule, Forecast, GroupSource, Objects,
};
pub use cluster::{
    ClusterFacts, Container, ContainerPort, ControllerFact, DnsText, ForeignPolicy, NodeFact, ServedName,
    Workload,
};
pub(crate) use service::is_proxy_protocol;
pub use service::{
    BackendFacts, CustomResource, Dial, DialResult, EventFact, Host, NO_POD, PathFact, ServedBy,
    ServiceFacts, WantedStatus,
};

/// A fact, or why it could not be gathered.
pub type Looked<T> = Result<T, String>;
