//! Subnets.

use serde::Deserialize;

use super::{Neutron, V2};
use crate::decode::null_as_default;
use crate::error::ApiError;

/// A subnet as Neutron shows it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Subnet {
    /// Id.
    pub id: String,
    /// Name; not unique.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// Its network.
    pub network_id: String,
    /// Addresses, for example `198.18.0.0/24`.
    pub cidr: String,
    /// 4 or 6.
    pub ip_version: u8,
    /// Tags.
    #[serde(default, deserialize_with = "null_as_default")]
    pub tags: Vec<String>,
}

/// Which subnets to list. Every part that is set must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubnetFilter {
    /// Is one of these; empty, any. A query holds some hundred ids at most.
    pub ids: Vec<String>,
    /// Of this network.
    pub network_id: Option<String>,
}

impl SubnetFilter {
    /// Subnets with these ids.
    pub fn ids(ids: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { ids: ids.into_iter().map(Into::into).collect(), ..Self::default() }
    }
}

impl Neutron {
    /// Lists subnets.
    pub async fn list_subnets(&self, filter: &SubnetFilter) -> Result<Vec<Subnet>, ApiError> {
        let ids = filter.ids.iter();
        let call = ids
            .fold(V2.get("subnet_list", &["subnets"]), |call, id| call.query("id", id))
            .query_if("network_id", filter.network_id.as_deref());
        self.client.list(call, "subnets").await
    }
}
