//! Security groups and their rules.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Neutron, V2};
use crate::decode::null_as_default;
use crate::error::ApiError;
use crate::open_enum::open_enum;
use crate::optional::OptionalPart;

open_enum! {
    /// The direction of a rule.
    Direction {
        /// Towards the port.
        Ingress = "ingress",
        /// From the port.
        Egress = "egress",
    }
}

open_enum! {
    /// Address family of a rule.
    EtherType {
        Ipv4 = "IPv4",
        Ipv6 = "IPv6",
    }
}

/// A security group as Neutron shows it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SecurityGroup {
    pub id: String,
    /// Name; not unique.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    #[serde(default, deserialize_with = "null_as_default")]
    pub description: String,
    /// The rules; new groups have two rules that allow all egress.
    #[serde(default, deserialize_with = "null_as_default")]
    pub security_group_rules: Vec<SecurityGroupRule>,
    #[serde(default, deserialize_with = "null_as_default")]
    pub tags: BTreeSet<String>,
    pub project_id: Option<String>,
    /// Time of creation, as Neutron writes it.
    pub created_at: Option<String>,
}

/// A rule as Neutron shows it. A null attribute matches everything.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SecurityGroupRule {
    pub id: String,
    /// The direction.
    pub direction: Direction,
    /// Address family.
    pub ethertype: EtherType,
    /// `tcp`, `udp`, `sctp`, a number, …
    pub protocol: Option<String>,
    /// First port, or ICMP type.
    pub port_range_min: Option<u16>,
    /// Last port, or ICMP code.
    pub port_range_max: Option<u16>,
    /// The network of the other side.
    pub remote_ip_prefix: Option<String>,
    /// The security group of the other side.
    pub remote_group_id: Option<String>,
    #[serde(default, deserialize_with = "null_as_default")]
    pub description: String,
}

/// Which security groups to list. Every part that is set must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecurityGroupFilter {
    /// Exact name.
    pub name: Option<String>,
    pub project_id: Option<String>,
}

/// A new security group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CreateSecurityGroup {
    pub name: String,
    pub description: String,
}

/// A new rule. Only attributes that are set are sent; a missing attribute matches everything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CreateSecurityGroupRule {
    pub security_group_id: String,
    /// The direction.
    pub direction: Direction,
    /// Address family.
    pub ethertype: EtherType,
    /// `tcp`, `udp`, `sctp`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// First port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_range_min: Option<u16>,
    /// Last port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_range_max: Option<u16>,
    /// The network of the other side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_ip_prefix: Option<String>,
}

/// An object of which only the name was requested.
#[derive(Deserialize)]
struct Named {
    #[serde(default, deserialize_with = "null_as_default")]
    name: String,
}

impl Neutron {
    pub async fn list_security_groups(
        &self,
        filter: &SecurityGroupFilter,
    ) -> Result<Vec<SecurityGroup>, ApiError> {
        let call = V2
            .get("security_group_list", &["security-groups"])
            .query_if("name", filter.name.as_deref())
            .query_if("project_id", filter.project_id.as_deref());
        let listed = self.client.list(call.clone(), "security_groups");
        self.client.noting(OptionalPart::SecurityGroups, &call, listed).await
    }

    /// Lists the names of all security groups of the project, and of those that are shared with it.
    pub async fn list_security_group_names(&self) -> Result<Vec<String>, ApiError> {
        let call = V2.get("security_group_name_list", &["security-groups"]).fields(&["name"]);
        let listed = self.client.list(call.clone(), "security_groups");
        let named: Vec<Named> = self.client.noting(OptionalPart::SecurityGroups, &call, listed).await?;
        Ok(named.into_iter().map(|group| group.name).collect())
    }

    pub async fn create_security_group(&self, new: &CreateSecurityGroup) -> Result<SecurityGroup, ApiError> {
        let call = V2.post("security_group_create", &["security-groups"]).body("security_group", new);
        self.client.fetch(&call, "security_group").await
    }

    /// Deletes a security group.
    ///
    /// # Errors
    /// [`crate::ConflictCause::Other`] while a port uses it; any other [`ApiError`].
    pub async fn delete_security_group(&self, id: &str) -> Result<(), ApiError> {
        self.client.execute(&V2.delete("security_group_delete", &["security-groups", id])).await
    }

    /// Creates a rule.
    ///
    /// # Errors
    /// A conflict whose [`crate::Fault::name`] is `SecurityGroupRuleExists` if the group already has the rule; any other [`ApiError`].
    pub async fn create_security_group_rule(
        &self,
        new: &CreateSecurityGroupRule,
    ) -> Result<SecurityGroupRule, ApiError> {
        let call =
            V2.post("security_group_rule_create", &["security-group-rules"]).body("security_group_rule", new);
        self.client.fetch(&call, "security_group_rule").await
    }

    pub async fn delete_security_group_rule(&self, id: &str) -> Result<(), ApiError> {
        self.client.execute(&V2.delete("security_group_rule_delete", &["security-group-rules", id])).await
    }
}
