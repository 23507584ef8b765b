//! The facts to judge, as Kubernetes and the cloud show them. They are gathered once; nothing here decides.

mod cloud;
mod cluster;
mod service;

pub(crate) use cloud::transport;
pub use cloud::{Children, CloudFacts, Forecast, MemberFact, Network, PoolFact};
pub use cluster::{
    Basis, ClusterFacts, ControllerFact, DnsText, ForeignPolicy, NodeFact, ServedName, Unread, Workload,
};
pub(crate) use service::is_proxy_protocol;
pub use service::{
    BackendFacts, CustomResource, EventFact, Host, PathFact, ServedBy, ServiceFacts, WantedStatus, entries,
    name_of,
};

/// A fact, or why it could not be gathered.
pub type Looked<T> = Result<T, String>;
