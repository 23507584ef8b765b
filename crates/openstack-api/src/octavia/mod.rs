//! Octavia v2: load balancers and everything below them.
//!
//! Every write puts the load balancer into a PENDING status and returns before the work is done; until then other writes fail with
//! [`crate::ConflictCause::Immutable`]. A load balancer that is ACTIVE again does not prove that a change was made: its children
//! have their own statuses.

mod attributes;
mod created;
mod features;
mod health_monitor;
mod listener;
mod load_balancer;
mod member;
mod offer;
mod pool;
mod status;

use std::sync::Arc;

pub use attributes::{Fields, UpdateChild, Values};
pub use created::{CreatedLoadBalancer, CreatedPool, CreatedTree};
pub use features::OctaviaFeatures;
use features::Versions;
pub use health_monitor::{
    CreateHealthMonitor, HealthMonitor, HealthMonitorType, HttpCheck, MonitorAttributes,
};
pub use listener::{
    CreateListener, Listener, ListenerAttributes, ListenerLimits, ListenerProtocol, TlsAttributes,
};
pub use load_balancer::{
    AdditionalVip, CreateLoadBalancer, LoadBalancer, LoadBalancerFilter, LoadBalancerStats,
    UpdateLoadBalancer,
};
pub use member::{Member, MemberHealth, MemberSpec, UpdateMember};
pub use offer::{AvailabilityZone, Capability, Flavor, Provider, Quota};
pub use pool::{
    ChildFilter, CreatePool, LbAlgorithm, Pool, PoolAttributes, PoolProtocol, SessionPersistence,
    SessionPersistenceType,
};
pub use status::{
    ListenerStatus, MemberStatus, MonitorStatus, OperatingStatus, PoolStatus, ProvisioningStatus, StatusTree,
};

pub use serde_json::Value;

use crate::client::{Client, Paths};
use crate::transport::Service;

const LBAAS: Paths = Paths::new(Service::LoadBalancer, &["v2.0", "lbaas"]);

/// A reference to another object, in Octavia's lists of children and parents.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct IdRef {
    /// Id of the object.
    pub id: String,
}

/// Calls to Octavia. Clones share the known API version.
#[derive(Clone, Debug)]
pub struct Octavia {
    client: Client,
    versions: Arc<Versions>,
}

impl Octavia {
    /// Creates an Octavia client over `client`.
    pub fn new(client: Client) -> Self {
        Self { client, versions: Arc::default() }
    }
}
