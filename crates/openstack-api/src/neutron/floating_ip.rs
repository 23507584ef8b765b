//! Floating IPs.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Neutron, V2};
use crate::decode::null_as_default;
use crate::error::ApiError;
use crate::optional::{OptionalPart, unknown_names};

/// A floating IP as Neutron shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FloatingIp {
    pub id: String,
    pub floating_ip_address: String,
    /// The external network of the address.
    pub floating_network_id: Option<String>,
    /// The port to which it leads.
    pub port_id: Option<String>,
    /// The fixed address to which it leads.
    pub fixed_ip_address: Option<String>,
    #[serde(default, deserialize_with = "null_as_default")]
    pub description: String,
    #[serde(default, deserialize_with = "null_as_default")]
    pub tags: BTreeSet<String>,
    /// Time of creation, as Neutron writes it.
    pub created_at: Option<String>,
    /// The router through which it leads.
    pub router_id: Option<String>,
    /// Port forwardings; their contents are not needed.
    #[serde(default, deserialize_with = "null_as_default")]
    pub port_forwardings: Vec<serde_json::Value>,
    /// Details of the port to which it leads.
    #[serde(default)]
    pub port_details: Option<PortDetails>,
}

/// A floating IP's details of its port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PortDetails {
    #[serde(deserialize_with = "null_as_default")]
    pub device_owner: String,
    #[serde(deserialize_with = "null_as_default")]
    pub device_id: String,
}

impl FloatingIp {
    /// Returns the device of the port to which it leads, as far as Neutron shows it: `compute:nova SERVER-ID`.
    pub fn device(&self) -> Option<String> {
        let PortDetails { device_owner, device_id } = self.port_details.clone()?;
        let text = format!("{device_owner} {device_id}");
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// Returns whether it leads anywhere. A floating IP with port forwardings shows no port.
    pub fn is_in_use(&self) -> bool {
        let named = |id: &Option<String>| id.as_ref().is_some_and(|id| !id.is_empty());
        named(&self.port_id) || named(&self.router_id) || !self.port_forwardings.is_empty()
    }
}

/// The attributes that are read. Neutron shows about twice as many.
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
    /// The port to which it leads.
    pub port_id: Option<String>,
    pub floating_ip_address: Option<String>,
    /// The fixed address to which it leads.
    pub fixed_ip_address: Option<String>,
    /// Exact description.
    pub description: Option<String>,
    /// All of these tags.
    pub tags: Vec<String>,
}

impl FloatingIpFilter {
    /// Matches the floating IPs of one port.
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
    /// The external network from which to take the address.
    pub floating_network_id: String,
    /// Subnet of that network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet_id: Option<String>,
    /// The wanted address; only for administrators on most clouds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floating_ip_address: Option<String>,
    /// The port to which it shall lead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_id: Option<String>,
    /// The fixed address, where the port has several, or shows none.
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

    /// Lists all floating IPs of a project, page by page; without a project, all that the credentials may see. The collection gets
    /// each floating IP as soon as it is read.
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

    /// Creates a floating IP, without a description where Neutron knows none.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotFound`] also when no router leads from the external network to the port; any other [`ApiError`].
    pub async fn create_floating_ip(&self, new: &CreateFloatingIp) -> Result<FloatingIp, ApiError> {
        let made = self.send_new_floating_ip(new).await;
        match made {
            Err(error) if unknown_names(&error).contains(&"description") && new.description.is_some() => {
                self.send_new_floating_ip(&CreateFloatingIp { description: None, ..new.clone() }).await
            }
            made => made,
        }
    }

    async fn send_new_floating_ip(&self, new: &CreateFloatingIp) -> Result<FloatingIp, ApiError> {
        let call = V2.post("floating_ip_create", &["floatingips"]).body("floatingip", new);
        let made = self.client.fetch(&call, "floatingip");
        self.client.noting(OptionalPart::FloatingIpDescription, &call, made).await
    }

    /// Attaches a floating IP to a port; without one, detaches it.
    pub async fn update_floating_ip(&self, id: &str, port_id: Option<&str>) -> Result<FloatingIp, ApiError> {
        let changes = BTreeMap::from([("port_id", port_id)]);
        let call = V2.put("floating_ip_update", &["floatingips", id]).body("floatingip", &changes);
        self.client.fetch(&call, "floatingip").await
    }

    /// Attaches a floating IP to an address of a port.
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

    /// Changes the description of a floating IP. The port has to be named again, because Neutron otherwise detaches the floating IP.
    pub async fn describe_floating_ip(
        &self,
        id: &str,
        description: &str,
        port_id: Option<&str>,
    ) -> Result<(), ApiError> {
        let changes = BTreeMap::from([("description", Some(description)), ("port_id", port_id)]);
        let call = V2.put("floating_ip_update", &["floatingips", id]).body("floatingip", &changes);
        self.client.noting(OptionalPart::FloatingIpDescription, &call, self.client.execute(&call)).await
    }

    pub async fn delete_floating_ip(&self, id: &str) -> Result<(), ApiError> {
        self.client.execute(&V2.delete("floating_ip_delete", &["floatingips", id])).await
    }
}
