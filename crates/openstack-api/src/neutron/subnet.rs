//! Subnets.

use serde::Deserialize;

use super::{Neutron, get};
use crate::client::Call;
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
    /// Gateway, if it has one.
    pub gateway_ip: Option<String>,
    /// Tags.
    #[serde(default, deserialize_with = "null_as_default")]
    pub tags: Vec<String>,
    /// Owner.
    pub project_id: Option<String>,
}

/// Neutron's four ways to filter by tags; each is a list of tags.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TagFilter {
    /// Has all of these.
    pub all: Vec<String>,
    /// Has one of these.
    pub any: Vec<String>,
    /// Lacks at least one of these.
    pub not_all: Vec<String>,
    /// Has none of these.
    pub not_any: Vec<String>,
}

impl TagFilter {
    /// Objects with all of these tags.
    pub fn all(tags: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { all: tags.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    pub(super) fn apply(&self, mut call: Call) -> Call {
        let filters = [
            ("tags", &self.all),
            ("tags-any", &self.any),
            ("not-tags", &self.not_all),
            ("not-tags-any", &self.not_any),
        ];
        for (key, tags) in filters {
            if !tags.is_empty() {
                call = call.query(key, tags.join(","));
            }
        }
        call
    }
}

/// Which subnets to list. Every part that is set must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubnetFilter {
    /// Is one of these; empty, any. A query holds some hundred ids at most.
    pub ids: Vec<String>,
    /// Exact name.
    pub name: Option<String>,
    /// Of this network.
    pub network_id: Option<String>,
    /// 4 or 6.
    pub ip_version: Option<u8>,
    /// By tags.
    pub tags: TagFilter,
}

impl SubnetFilter {
    /// Subnets with these ids.
    pub fn ids(ids: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { ids: ids.into_iter().map(Into::into).collect(), ..Self::default() }
    }
}

impl Neutron {
    /// Lists subnets.
    ///
    /// # Errors
    /// Any [`ApiError`]; never a part of the list.
    pub async fn list_subnets(&self, filter: &SubnetFilter) -> Result<Vec<Subnet>, ApiError> {
        let ip_version = filter.ip_version.map(|version| version.to_string());
        let ids = filter.ids.iter();
        let call = ids
            .fold(get("subnet_list", &["subnets"]), |call, id| call.query("id", id))
            .query_if("name", filter.name.as_deref())
            .query_if("network_id", filter.network_id.as_deref())
            .query_if("ip_version", ip_version.as_deref());
        self.client.list(filter.tags.apply(call), "subnets").await
    }
}
