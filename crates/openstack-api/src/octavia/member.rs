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
    /// Whether it is used at all.
    #[serde(default = "enabled")]
    pub admin_state_up: bool,
    /// Address. With the port it identifies the member within its pool.
    pub address: String,
    pub protocol_port: u16,
    /// Subnet through which the load balancer reaches it.
    pub subnet_id: Option<String>,
    /// Port to check, if not `protocol_port`.
    pub monitor_port: Option<u16>,
    /// Address to check, if not `address`.
    pub monitor_address: Option<String>,
    /// Share of the connections; 0 takes no new ones.
    #[serde(default = "default_weight")]
    pub weight: u16,
    /// Whether it is used only when all others fail.
    #[serde(default, deserialize_with = "null_as_default")]
    pub backup: bool,
}

const fn default_weight() -> u16 {
    1
}

/// A member to be, in a tree, a batch or on its own. Only what is set is sent.
///
/// In a batch, an attribute that is left out falls back to its default on a member that is there already: `weight`, `backup`,
/// `admin_state_up`, `monitor_port` and `monitor_address` do; `name`, `tags` and `subnet_id` stay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MemberSpec {
    /// Address. With the port it identifies the member within its pool.
    pub address: String,
    pub protocol_port: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Subnet through which the load balancer reaches it. Octavia accepts an unknown one and then fails: check it before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet_id: Option<String>,
    /// Port to check, if not `protocol_port`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monitor_port: Option<u16>,
    /// Address to check, if not `address`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monitor_address: Option<String>,
    /// Share of the connections, 0 to 256; 1 when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<u16>,
    /// Whether it is used only when all others fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<bool>,
    /// Whether it is used at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_state_up: Option<bool>,
}

/// A change of one member, which any good one heals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UpdateMember {
    /// Port to check; null, the port that it is sent to.
    pub monitor_port: Option<u16>,
}

/// What health checks say of a member.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct MemberHealth {
    pub id: String,
    /// Whether it answers.
    pub operating_status: OperatingStatus,
}

impl Octavia {
    /// Lists the members of a pool into a collection, which gets each of them as soon as it is read.
    pub async fn list_members<C: Extend<Member>>(&self, pool_id: &str, items: C) -> Result<C, ApiError> {
        let call = LBAAS.get("loadbalancer_member_list", &["pools", pool_id, "members"]);
        self.client.collect(call, "members", items).await
    }

    /// What health checks say of the members of a pool.
    ///
    /// # Errors
    /// Any [`ApiError`].
    pub async fn list_member_health(&self, pool_id: &str) -> Result<Vec<MemberHealth>, ApiError> {
        let call = LBAAS
            .get("loadbalancer_member_list", &["pools", pool_id, "members"])
            .fields(&["id", "operating_status"]);
        self.client.list(call, "members").await
    }

    /// Starts to make the members of a pool exactly these. Costs a full PENDING round even when nothing changes.
    pub async fn batch_members(&self, pool_id: &str, members: Vec<MemberSpec>) -> Result<(), ApiError> {
        let call = LBAAS
            .put("loadbalancer_members_update", &["pools", pool_id, "members"])
            .body("members", &members);
        // Thousands of them need not wait for the answer.
        drop(members);
        self.client.execute(&call).await
    }

    /// Starts to add members to a pool, and leaves the others as they are; needs Octavia 2.11. A member that is there already is put
    /// back to the defaults of what its entry leaves out.
    pub async fn add_members(&self, pool_id: &str, members: Vec<MemberSpec>) -> Result<(), ApiError> {
        let call = LBAAS
            .put("loadbalancer_members_update", &["pools", pool_id, "members"])
            .query_if("additive_only", Some("true"))
            .body("members", &members);
        drop(members);
        self.client.noting(OptionalPart::AdditiveBatches, self.client.execute(&call)).await
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

    /// Starts to take one member away.
    pub async fn delete_member(&self, pool_id: &str, member_id: &str) -> Result<(), ApiError> {
        let call = LBAAS.delete("loadbalancer_member_delete", &["pools", pool_id, "members", member_id]);
        self.client.execute(&call).await
    }
}
