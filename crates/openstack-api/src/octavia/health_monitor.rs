//! Health monitors.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{LBAAS, Octavia, ProvisioningStatus, UpdateChild, Values};
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

/// The attributes of a health monitor. Times are in seconds.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MonitorAttributes {
    /// The interval between checks.
    pub delay: u32,
    /// The timeout of one check; not above `delay`.
    pub timeout: u32,
    /// Successful checks until a member is up, 1 to 10.
    pub max_retries: u32,
    /// Failed checks until a member is down, 1 to 10.
    #[serde(default = "default_max_retries_down")]
    pub max_retries_down: u32,
    /// The request, where the type has one.
    #[serde(flatten)]
    pub http: Option<HttpCheck>,
}

const fn default_max_retries_down() -> u32 {
    3
}

/// The request of a health monitor.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HttpCheck {
    #[serde(rename = "url_path")]
    pub path: String,
    #[serde(rename = "http_method")]
    pub method: String,
    /// The HTTP statuses of success: one, a list or a range.
    #[serde(rename = "expected_codes")]
    pub codes: String,
}

impl HttpCheck {
    /// Octavia's names.
    pub const NAMES: [&str; 3] = ["http_method", "url_path", "expected_codes"];

    /// Returns a GET that succeeds with status 200, as Octavia has it by default.
    pub fn get(path: &str) -> Self {
        Self { path: path.to_owned(), method: "GET".to_owned(), codes: "200".to_owned() }
    }
}

/// A health monitor as Octavia shows it.
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
    #[serde(flatten)]
    pub attributes: MonitorAttributes,
    #[serde(default, deserialize_with = "null_as_default")]
    pub tags: BTreeSet<String>,
}

/// A new health monitor, on its own or within a whole tree. Only what is set is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CreateHealthMonitor {
    pub name: String,
    /// How members are checked.
    #[serde(rename = "type")]
    pub kind: HealthMonitorType,
    #[serde(flatten)]
    pub attributes: Values,
    /// The pool; not set within a tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool_id: Option<String>,
    /// Tags; needs Octavia 2.5.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
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
        changes: &UpdateChild,
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
