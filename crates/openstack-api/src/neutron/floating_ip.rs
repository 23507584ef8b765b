//! Floating IPs.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Neutron, V2};
use crate::decode::null_as_default;
use crate::error::ApiError;
use crate::optional::OptionalPart;

/// A floating IP as Neutron shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FloatingIp {
    pub id: String,
    pub floating_ip_address: String,
    /// The external network that the address is on.
    pub floating_network_id: Option<String>,
    /// Port that it leads to.
    pub port_id: Option<String>,
    /// Address of the port that it leads to.
    pub fixed_ip_address: Option<String>,
    #[serde(default, deserialize_with = "null_as_default")]
    pub description: String,
    #[serde(default, deserialize_with = "null_as_default")]
    pub tags: BTreeSet<String>,
    /// Time of creation, as Neutron writes it.
    pub created_at: Option<String>,
    /// Router that it leads through.
    pub router_id: Option<String>,
    /// Single ports that it leads to; their form does not matter.
    #[serde(default, deserialize_with = "null_as_default")]
    pub port_forwardings: Vec<serde_json::Value>,
    /// The port that it leads to.
    #[serde(default)]
    pub port_details: Option<PortDetails>,
}

/// What a floating IP says of its port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PortDetails {
    #[serde(deserialize_with = "null_as_default")]
    pub device_owner: String,
    #[serde(deserialize_with = "null_as_default")]
    pub device_id: String,
}

impl FloatingIp {
    /// What has the port that it leads to, as far as Neutron says: `compute:nova SERVER-ID`.
    pub fn device(&self) -> Option<String> {
        let PortDetails { device_owner, device_id } = self.port_details.clone()?;
        let text = format!("{device_owner} {device_id}");
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// Whether it leads anywhere. One with port forwardings shows no port.
    pub fn is_in_use(&self) -> bool {
        let named = |id: &Option<String>| id.as_ref().is_some_and(|id| !id.is_empty());
        named(&self.port_id) || named(&self.router_id) || !self.port_forwardings.is_empty()
    }
}

/// What is read of a floating IP. Neutron shows about twice as much.
const FIELDS: [&str; 11] = [
    "id",
    "floating_ip_address",
    "floating_network_id",
    "port_id",
    "fixed_ip_address",
    "description",
    "tags",
    "created_at",
    "router_id",
    "port_forwardings",
    "port_details",
];

/// Which floating IPs to list. Every part that is set must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FloatingIpFilter {
    /// Leads to this port.
    pub port_id: Option<String>,
    pub floating_ip_address: Option<String>,
    /// Leads to this address.
    pub fixed_ip_address: Option<String>,
    /// Exact description.
    pub description: Option<String>,
    /// All of these tags.
    pub tags: Vec<String>,
}

impl FloatingIpFilter {
    /// Floating IPs of one port.
    pub fn port(id: impl Into<String>) -> Self {
        Self { port_id: Some(id.into()), ..Self::default() }
    }

    pub fn address(address: impl Into<String>) -> Self {
        Self { floating_ip_address: Some(address.into()), ..Self::default() }
    }
}

/// A new floating IP. Only what is set is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CreateFloatingIp {
    /// External network to take the address from.
    pub floating_network_id: String,
    /// Subnet of that network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet_id: Option<String>,
    /// Wanted address; for administrators on most clouds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floating_ip_address: Option<String>,
    /// Port that it shall lead to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_id: Option<String>,
    /// Address of the port, where it has several, or shows none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed_ip_address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl Neutron {
    pub async fn list_floating_ips(&self, filter: &FloatingIpFilter) -> Result<Vec<FloatingIp>, ApiError> {
        let tags = (!filter.tags.is_empty()).then(|| filter.tags.join(","));
        let call = V2
            .get("floating_ip_list", &["floatingips"])
            .query_if("port_id", filter.port_id.as_deref())
            .query_if("floating_ip_address", filter.floating_ip_address.as_deref())
            .query_if("fixed_ip_address", filter.fixed_ip_address.as_deref())
            .query_if("description", filter.description.as_deref());
        self.client.list(call.query_if("tags", tags.as_deref()), "floatingips").await
    }

    /// Lists all floating IPs of a project, page by page; without one, all that the credentials may see. The collection gets each one
    /// as soon as it is read.
    pub async fn list_floating_ips_of_project<C: Default + Extend<FloatingIp>>(
        &self,
        project_id: Option<&str>,
    ) -> Result<C, ApiError> {
        let call = V2
            .get("floating_ip_list", &["floatingips"])
            .fields(&FIELDS)
            .query_if("project_id", project_id)
            .in_pages();
        self.client.collect(call, "floatingips", C::default()).await
    }

    /// Makes a floating IP.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotFound`] also when no router leads from the external network to the port; any other [`ApiError`].
    pub async fn create_floating_ip(&self, new: &CreateFloatingIp) -> Result<FloatingIp, ApiError> {
        let call = V2.post("floating_ip_create", &["floatingips"]).body("floatingip", new);
        self.client.fetch(&call, "floatingip").await
    }

    /// Has a floating IP lead to a port; absent: to none.
    pub async fn update_floating_ip(&self, id: &str, port_id: Option<&str>) -> Result<FloatingIp, ApiError> {
        let changes = BTreeMap::from([("port_id", port_id)]);
        let call = V2.put("floating_ip_update", &["floatingips", id]).body("floatingip", &changes);
        self.client.fetch(&call, "floatingip").await
    }

    /// Has a floating IP lead to an address of a port.
    pub async fn attach_floating_ip(
        &self,
        id: &str,
        port_id: Option<&str>,
        fixed_ip_address: Option<&str>,
    ) -> Result<(), ApiError> {
        let changes = BTreeMap::from([("port_id", port_id), ("fixed_ip_address", fixed_ip_address)]);
        let call = V2.put("floating_ip_update", &["floatingips", id]).body("floatingip", &changes);
        self.client.execute(&call).await
    }

    /// Says something else about a floating IP. Neutron takes one off whose port is not named.
    pub async fn describe_floating_ip(
        &self,
        id: &str,
        description: &str,
        port_id: Option<&str>,
    ) -> Result<(), ApiError> {
        let changes = BTreeMap::from([("description", Some(description)), ("port_id", port_id)]);
        let call = V2.put("floating_ip_update", &["floatingips", id]).body("floatingip", &changes);
        self.client.noting(OptionalPart::FloatingIpDescription, self.client.execute(&call)).await
    }

    pub async fn delete_floating_ip(&self, id: &str) -> Result<(), ApiError> {
        self.client.execute(&V2.delete("floating_ip_delete", &["floatingips", id])).await
    }
}
