//! Ports.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::{Neutron, V2, only_if_revision};
use crate::decode::{enabled, null_as_default};
use crate::error::ApiError;
use crate::open_enum::open_enum;

open_enum! {
    /// The status of a port; only values that matter here have a variant.
    PortStatus {
        /// Wired.
        Active = "ACTIVE",
        /// Not wired. Octavia's VIP ports stay in this status for ever.
        Down = "DOWN",
    }
}

/// A port as Neutron shows it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Port {
    pub id: String,
    /// Name; not unique. Octavia's VIP ports are named `octavia-lb-<load balancer id>`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    pub network_id: String,
    /// State.
    pub status: PortStatus,
    /// The id of its device: a server or router, or `lb-<load balancer id>`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub device_id: String,
    /// The kind of its device, for example `Octavia` or `compute:nova`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub device_owner: String,
    #[serde(default, deserialize_with = "null_as_default")]
    pub mac_address: String,
    /// Addresses.
    #[serde(default, deserialize_with = "null_as_default")]
    pub fixed_ips: Vec<FixedIp>,
    /// Further addresses and networks from which it may send.
    #[serde(default, deserialize_with = "null_as_default")]
    pub allowed_address_pairs: Vec<AllowedAddressPair>,
    /// Ids of its security groups.
    #[serde(default, deserialize_with = "null_as_default")]
    pub security_groups: Vec<String>,
    /// Whether anti-spoofing and security groups apply. Without the extension Neutron leaves it out and always filters.
    #[serde(default = "enabled")]
    pub port_security_enabled: bool,
    /// Sub-ports, if it is the parent of a trunk.
    pub trunk_details: Option<TrunkDetails>,
    #[serde(default, deserialize_with = "null_as_default")]
    pub tags: Vec<String>,
    /// Increases with each change; see [`Neutron::update_port`].
    pub revision_number: Option<u64>,
    /// Time of creation, as Neutron writes it.
    pub created_at: Option<String>,
}

/// An address of a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FixedIp {
    /// Subnet of the address.
    pub subnet_id: String,
    pub ip_address: String,
}

/// A further address or network from which a port may send.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllowedAddressPair {
    /// An address or a CIDR.
    pub ip_address: String,
    /// The MAC address; the port's own if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac_address: Option<String>,
}

/// The trunk of which a port is the parent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct TrunkDetails {
    #[serde(default, deserialize_with = "null_as_default")]
    pub sub_ports: Vec<SubPort>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SubPort {
    pub port_id: String,
}

/// Which ports to list. Every part that is set must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortFilter {
    /// The ids of devices; empty for any.
    pub device_ids: Vec<String>,
    /// The kind of device.
    pub device_owner: Option<String>,
    pub network_id: Option<String>,
    pub security_group_id: Option<String>,
    /// Exact name.
    pub name: Option<String>,
    /// The project that owns the port.
    pub project_id: Option<String>,
    pub ip_address: Option<IpAddr>,
}

impl PortFilter {
    /// Matches the ports of a server or router.
    pub fn device(id: impl Into<String>) -> Self {
        Self { device_ids: vec![id.into()], ..Self::default() }
    }

    /// Matches the ports with this address, in any subnet.
    pub fn address(address: IpAddr) -> Self {
        Self { ip_address: Some(address), ..Self::default() }
    }

    /// Matches the ports of any of these servers. A query has room for some hundred ids at most.
    pub fn devices(ids: Vec<String>) -> Self {
        Self { device_ids: ids, ..Self::default() }
    }
}

/// Changes of a port. Only attributes that are set are sent; each replaces the whole list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UpdatePort {
    /// The ids of all security groups after the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_groups: Option<Vec<String>>,
    /// All allowed address pairs after the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_address_pairs: Option<Vec<AllowedAddressPair>>,
}

impl Neutron {
    pub async fn list_ports(&self, filter: &PortFilter) -> Result<Vec<Port>, ApiError> {
        let devices = filter.device_ids.iter();
        let fixed_ips = filter.ip_address.map(|address| format!("ip_address={address}"));
        let call = devices
            .fold(V2.get("port_list", &["ports"]), |call, id| call.query("device_id", id))
            .query_if("device_owner", filter.device_owner.as_deref())
            .query_if("network_id", filter.network_id.as_deref())
            .query_if("security_groups", filter.security_group_id.as_deref())
            .query_if("name", filter.name.as_deref())
            .query_if("project_id", filter.project_id.as_deref())
            .query_if("fixed_ips", fixed_ips.as_deref());
        self.client.list(call, "ports").await
    }

    pub async fn get_port(&self, id: &str) -> Result<Port, ApiError> {
        self.client.fetch(&V2.get("port_get", &["ports", id]), "port").await
    }

    /// Changes a port. With `revision` the change is made only if the port still has that revision, which prevents two writers of
    /// one list from overwriting each other.
    ///
    /// # Errors
    /// [`crate::ConflictCause::Stale`] if the port has another revision; any other [`ApiError`].
    pub async fn update_port(
        &self,
        id: &str,
        changes: &UpdatePort,
        revision: Option<u64>,
    ) -> Result<Port, ApiError> {
        let call = V2.put("port_update", &["ports", id]).body("port", changes);
        self.client.fetch(&only_if_revision(call, revision), "port").await
    }

    /// Deletes a port. Neutron deletes even the VIP port of a load balancer in use.
    pub async fn delete_port(&self, id: &str) -> Result<(), ApiError> {
        self.client.execute(&V2.delete("port_delete", &["ports", id])).await
    }
}
