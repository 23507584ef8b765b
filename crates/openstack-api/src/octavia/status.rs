//! The two statuses of every Octavia object, and those of a load balancer and of its children in one answer.

use serde::Deserialize;

use super::{LBAAS, Octavia};
use crate::decode::null_as_default;
use crate::error::ApiError;
use crate::open_enum::open_enum;
use crate::optional::OptionalPart;

open_enum! {
    /// Whether Octavia's own work on the object is done.
    ProvisioningStatus {
        /// The last change succeeded.
        Active = "ACTIVE",
        /// The last change failed.
        Error = "ERROR",
        /// Being made.
        PendingCreate = "PENDING_CREATE",
        /// Being changed, or a sibling is.
        PendingUpdate = "PENDING_UPDATE",
        /// Being deleted.
        PendingDelete = "PENDING_DELETE",
        /// Gone; seen for a moment only.
        Deleted = "DELETED",
    }
}

impl ProvisioningStatus {
    /// Whether Octavia is at work, so that every write is refused.
    pub fn is_pending(&self) -> bool {
        match self {
            Self::PendingCreate | Self::PendingUpdate | Self::PendingDelete => true,
            Self::Active | Self::Error | Self::Deleted => false,
            Self::Other(text) => text.starts_with("PENDING"),
        }
    }
}

open_enum! {
    /// What health checks say.
    OperatingStatus {
        /// Works.
        Online = "ONLINE",
        /// Does not work, or not yet.
        Offline = "OFFLINE",
        /// Some members fail.
        Degraded = "DEGRADED",
        /// All members fail.
        Error = "ERROR",
        /// Takes no new connections, because its weight is 0.
        Draining = "DRAINING",
        /// No health monitor looks.
        NoMonitor = "NO_MONITOR",
    }
}

/// What the status tree shows of a load balancer. Pools that no listener uses are not in it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct StatusTree {
    /// Whether Octavia is at work on the load balancer.
    pub provisioning_status: ProvisioningStatus,
    /// Listeners, in no fixed order.
    #[serde(default, deserialize_with = "null_as_default")]
    pub listeners: Vec<ListenerStatus>,
}

/// What the status tree shows of a listener.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ListenerStatus {
    pub id: String,
    /// Whether the last change succeeded.
    pub provisioning_status: ProvisioningStatus,
    /// Pools that it uses, as default or in a policy, in no fixed order.
    #[serde(default, deserialize_with = "null_as_default")]
    pub pools: Vec<PoolStatus>,
}

/// What the status tree shows of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PoolStatus {
    pub id: String,
    /// Whether the last change succeeded.
    pub provisioning_status: ProvisioningStatus,
    pub health_monitor: Option<MonitorStatus>,
    /// Members, in no fixed order.
    #[serde(default, deserialize_with = "null_as_default")]
    pub members: Vec<MemberStatus>,
}

/// What the status tree shows of a health monitor.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct MonitorStatus {
    pub id: String,
    /// Whether the last change succeeded.
    pub provisioning_status: ProvisioningStatus,
}

/// What the status tree shows of a member.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct MemberStatus {
    pub id: String,
    /// Whether the last change succeeded.
    pub provisioning_status: ProvisioningStatus,
    /// Address. With the port it identifies the member within its pool.
    pub address: String,
    pub protocol_port: u16,
}

#[derive(Deserialize)]
struct Statuses {
    loadbalancer: StatusTree,
}

impl Octavia {
    /// Reads the statuses of a load balancer and of all its children.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotFound`] when it is gone; any other [`ApiError`].
    pub async fn load_balancer_statuses(&self, id: &str) -> Result<StatusTree, ApiError> {
        let call = LBAAS.get("loadbalancer_status", &["loadbalancers", id, "status"]);
        let answer = self.client.noting(OptionalPart::StatusTree, self.client.fetch(&call, "statuses"));
        answer.await.map(|Statuses { loadbalancer }| loadbalancer)
    }
}
