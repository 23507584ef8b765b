//! Health monitors.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{LBAAS, Octavia, ProvisioningStatus};
use crate::decode::null_as_default;
use crate::error::ApiError;
use crate::open_enum::open_enum;

open_enum! {
    /// How members are checked. Cannot be changed.
    HealthMonitorType {
        /// A TCP connection.
        Tcp = "TCP",
        /// An HTTP request.
        Http = "HTTP",
        /// An HTTPS request.
        Https = "HTTPS",
        /// An ICMP echo.
        Ping = "PING",
        TlsHello = "TLS-HELLO",
        /// A datagram that is not answered with "port unreachable".
        UdpConnect = "UDP-CONNECT",
        /// An SCTP association.
        Sctp = "SCTP",
    }
}

/// A health monitor as Octavia shows it. Times are in seconds.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct HealthMonitor {
    pub id: String,
    /// Name; not unique.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// Whether the last change of this monitor succeeded.
    pub provisioning_status: ProvisioningStatus,
    /// How members are checked.
    #[serde(rename = "type")]
    pub kind: HealthMonitorType,
    /// The interval between checks.
    pub delay: u32,
    /// The timeout of one check.
    pub timeout: u32,
    /// Successful checks until a member is up.
    pub max_retries: u32,
    /// Failed checks until a member is down.
    #[serde(default = "default_max_retries_down")]
    pub max_retries_down: u32,
    /// Path of the HTTP request.
    pub url_path: Option<String>,
    /// Method of the HTTP request.
    pub http_method: Option<String>,
    /// The HTTP statuses of success: one, a list or a range.
    pub expected_codes: Option<String>,
    #[serde(default, deserialize_with = "null_as_default")]
    pub tags: BTreeSet<String>,
}

const fn default_max_retries_down() -> u32 {
    3
}

/// A new health monitor, on its own or within a whole tree. Only what is set is sent. Times are in seconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CreateHealthMonitor {
    pub name: String,
    /// How members are checked.
    #[serde(rename = "type")]
    pub kind: HealthMonitorType,
    /// The interval between checks.
    pub delay: u32,
    /// The timeout of one check; not above `delay`.
    pub timeout: u32,
    /// Successful checks until a member is up, 1 to 10.
    pub max_retries: u32,
    /// Failed checks until a member is down, 1 to 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries_down: Option<u32>,
    /// The pool; not set within a tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool_id: Option<String>,
    /// Path of the HTTP request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url_path: Option<String>,
    /// Method of the HTTP request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_method: Option<String>,
    /// The HTTP statuses of success: one, a list or a range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_codes: Option<String>,
    /// Tags; needs Octavia 2.5.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

/// Changes of a health monitor. Only what is set is sent. The type cannot be changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UpdateHealthMonitor {
    /// New name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The interval between checks, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<u32>,
    /// The timeout of one check, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u32>,
    /// Successful checks until a member is up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// Failed checks until a member is down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries_down: Option<u32>,
    /// Path of the HTTP request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url_path: Option<String>,
    /// Method of the HTTP request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_method: Option<String>,
    /// The HTTP statuses of success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_codes: Option<String>,
    /// All tags after the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeSet<String>>,
}

impl Octavia {
    pub async fn get_health_monitor(&self, id: &str) -> Result<HealthMonitor, ApiError> {
        let call = LBAAS.get("loadbalancer_healthmonitor_get", &["healthmonitors", id]);
        self.client.fetch(&call, "healthmonitor").await
    }

    /// Starts to create a health monitor.
    pub async fn create_health_monitor(&self, new: &CreateHealthMonitor) -> Result<HealthMonitor, ApiError> {
        let call =
            LBAAS.post("loadbalancer_healthmonitor_create", &["healthmonitors"]).body("healthmonitor", new);
        self.client.fetch(&call, "healthmonitor").await
    }

    /// Starts to change a health monitor.
    pub async fn update_health_monitor(
        &self,
        id: &str,
        changes: &UpdateHealthMonitor,
    ) -> Result<HealthMonitor, ApiError> {
        let call = LBAAS
            .put("loadbalancer_healthmonitor_update", &["healthmonitors", id])
            .body("healthmonitor", changes);
        self.client.fetch(&call, "healthmonitor").await
    }

    /// Starts to delete a health monitor.
    pub async fn delete_health_monitor(&self, id: &str) -> Result<(), ApiError> {
        self.client.execute(&LBAAS.delete("loadbalancer_healthmonitor_delete", &["healthmonitors", id])).await
    }
}
