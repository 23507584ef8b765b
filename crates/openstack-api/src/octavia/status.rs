//! The two statuses of every Octavia object, and the status tree of a load balancer with its children.

use serde::Deserialize;

use super::{LBAAS, Octavia};
use crate::decode::null_as_default;
use crate::error::ApiError;
use crate::open_enum::open_enum;
use crate::optional::OptionalPart;

open_enum! {
    /// Octavia's progress with changes of an object.
    ProvisioningStatus {
        /// The last change succeeded.
        Active = "ACTIVE",
        /// The last change failed.
        Error = "ERROR",
        /// Being created.
        PendingCreate = "PENDING_CREATE",
        /// Being changed, or one of its siblings is.
        PendingUpdate = "PENDING_UPDATE",
        /// Being deleted.
        PendingDelete = "PENDING_DELETE",
        /// Deleted; seen for a moment only.
        Deleted = "DELETED",
    }
}

impl ProvisioningStatus {
    /// Returns whether Octavia is working on the object, so that it refuses every write.
    pub fn is_pending(&self) -> bool {
        match self {
            Self::PendingCreate | Self::PendingUpdate | Self::PendingDelete => true,
            Self::Active | Self::Error | Self::Deleted => false,
            Self::Other(text) => text.starts_with("PENDING"),
        }
    }
}

open_enum! {
    /// The health of an object.
    OperatingStatus {
        /// The object works.
        Online = "ONLINE",
        /// The object does not work, or not yet.
        Offline = "OFFLINE",
        /// Some members fail.
        Degraded = "DEGRADED",
        /// All members fail.
        Error = "ERROR",
        /// The member gets no new connections, because its weight is 0.
        Draining = "DRAINING",
        /// There is no health monitor.
        NoMonitor = "NO_MONITOR",
    }
}

/// A load balancer in the status tree. The tree omits pools that no listener uses.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct StatusTree {
    /// Whether Octavia is working on the load balancer.
    pub provisioning_status: ProvisioningStatus,
    /// Listeners, in no fixed order.
    #[serde(default, deserialize_with = "null_as_default")]
    pub listeners: Vec<ListenerStatus>,
}

/// A listener in the status tree.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ListenerStatus {
    pub id: String,
    /// Whether the last change succeeded.
    pub provisioning_status: ProvisioningStatus,
    /// The pools that it uses, as default or in a policy, in no fixed order.
    #[serde(default, deserialize_with = "null_as_default")]
    pub pools: Vec<PoolStatus>,
}

/// A pool in the status tree.
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

/// A health monitor in the status tree.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct MonitorStatus {
    pub id: String,
    /// Whether the last change succeeded.
    pub provisioning_status: ProvisioningStatus,
}

/// A member in the status tree.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct MemberStatus {
    pub id: String,
    /// Whether the last change succeeded.
    pub provisioning_status: ProvisioningStatus,
    /// The address. With the port it identifies the member within its pool.
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
    /// [`crate::ErrorKind::NotFound`] if it does not exist; any other [`ApiError`].
    pub async fn load_balancer_statuses(&self, id: &str) -> Result<StatusTree, ApiError> {
        let call = LBAAS.get("loadbalancer_status", &["loadbalancers", id, "status"]);
        let answer =
            self.client.noting(OptionalPart::StatusTree, &call, self.client.fetch(&call, "statuses"));
        answer.await.map(|Statuses { loadbalancer }| loadbalancer)
    }
}
