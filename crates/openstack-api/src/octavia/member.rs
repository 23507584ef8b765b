//! Members of pools.

use serde::{Deserialize, Serialize};

use super::{LBAAS, Octavia, OperatingStatus, ProvisioningStatus};
use crate::decode::{enabled, null_as_default};
use crate::error::ApiError;
use crate::optional::OptionalPart;

/// A member as Octavia shows it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Member {
    pub id: String,
    /// Name; not unique.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// Whether the last change of this member succeeded.
    pub provisioning_status: ProvisioningStatus,
    /// Whether it is enabled.
    #[serde(default = "enabled")]
    pub admin_state_up: bool,
    /// The address. With the port it identifies the member within its pool.
    pub address: String,
    pub protocol_port: u16,
    /// The subnet through which the load balancer reaches it.
    pub subnet_id: Option<String>,
    /// The port to check, if not `protocol_port`.
    pub monitor_port: Option<u16>,
    /// The address to check, if not `address`.
    pub monitor_address: Option<String>,
    /// The share of the connections; a member of weight 0 gets no new ones.
    #[serde(default = "default_weight")]
    pub weight: u16,
    /// Whether it is used only if all others fail.
    #[serde(default, deserialize_with = "null_as_default")]
    pub backup: bool,
}

const fn default_weight() -> u16 {
    1
}

/// A new member, in a tree, a batch or on its own. Only attributes that are set are sent.
///
/// For an existing member, a batch resets these attributes to their defaults if they are left out: `weight`, `backup`,
/// `admin_state_up`, `monitor_port` and `monitor_address`. It keeps `name`, `tags` and `subnet_id`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MemberSpec {
    /// The address. With the port it identifies the member within its pool.
    pub address: String,
    pub protocol_port: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The subnet through which the load balancer reaches it. Octavia accepts an unknown subnet and fails later, so check it before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet_id: Option<String>,
    /// The port to check, if not `protocol_port`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monitor_port: Option<u16>,
    /// The address to check, if not `address`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monitor_address: Option<String>,
    /// The share of the connections, 0 to 256; 1 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<u16>,
    /// Whether it is used only if all others fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<bool>,
    /// Whether it is enabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_state_up: Option<bool>,
}

/// A change of one member. Any successful change repairs a member in ERROR.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UpdateMember {
    /// The port to check; null for the member's own port.
    pub monitor_port: Option<u16>,
}

/// The health of a member.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct MemberHealth {
    pub id: String,
    /// Whether the member answers health checks.
    pub operating_status: OperatingStatus,
}

impl Octavia {
    /// Lists the members of a pool into a collection, which gets each member as soon as it is read.
    pub async fn list_members<C: Extend<Member>>(&self, pool_id: &str, items: C) -> Result<C, ApiError> {
        let call = LBAAS.get("loadbalancer_member_list", &["pools", pool_id, "members"]);
        self.client.collect(call, "members", items).await
    }

    /// Lists the health of the members of a pool.
    ///
    /// # Errors
    /// Any [`ApiError`].
    pub async fn list_member_health(&self, pool_id: &str) -> Result<Vec<MemberHealth>, ApiError> {
        let call = LBAAS
            .get("loadbalancer_member_list", &["pools", pool_id, "members"])
            .fields(&["id", "operating_status"]);
        self.client.list(call, "members").await
    }

    /// Starts to replace all members of a pool. Costs a full PENDING cycle even if nothing changes.
    pub async fn batch_members(&self, pool_id: &str, members: Vec<MemberSpec>) -> Result<(), ApiError> {
        let call = LBAAS
            .put("loadbalancer_members_update", &["pools", pool_id, "members"])
            .body("members", &members);
        // Frees the memory of thousands of members before the answer arrives.
        drop(members);
        self.client.execute(&call).await
    }

    /// Starts to add members to a pool and keeps the others; needs Octavia 2.11. For an existing member, attributes that its entry
    /// leaves out are reset to their defaults.
    pub async fn add_members(&self, pool_id: &str, members: Vec<MemberSpec>) -> Result<(), ApiError> {
        let call = LBAAS
            .put("loadbalancer_members_update", &["pools", pool_id, "members"])
            .query_if("additive_only", Some("true"))
            .body("members", &members);
        drop(members);
        self.client.noting(OptionalPart::AdditiveBatches, &call, self.client.execute(&call)).await
    }

    /// Starts to add one member.
    pub async fn create_member(&self, pool_id: &str, member: &MemberSpec) -> Result<Member, ApiError> {
        let call =
            LBAAS.post("loadbalancer_member_create", &["pools", pool_id, "members"]).body("member", member);
        self.client.fetch(&call, "member").await
    }

    /// Starts to change one member.
    pub async fn update_member(
        &self,
        pool_id: &str,
        member_id: &str,
        changes: &UpdateMember,
    ) -> Result<(), ApiError> {
        let call = LBAAS
            .put("loadbalancer_member_update", &["pools", pool_id, "members", member_id])
            .body("member", changes);
        self.client.execute(&call).await
    }

    /// Starts to remove one member.
    pub async fn delete_member(&self, pool_id: &str, member_id: &str) -> Result<(), ApiError> {
        let call = LBAAS.delete("loadbalancer_member_delete", &["pools", pool_id, "members", member_id]);
        self.client.execute(&call).await
    }
}
