//! Networks.

use serde::Deserialize;

use super::{Neutron, V2};
use crate::decode::null_as_default;
use crate::error::ApiError;

/// A network as Neutron shows it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Network {
    /// Id.
    pub id: String,
    /// Name; not unique.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// Whether floating IPs come from it.
    #[serde(rename = "router:external", default, deserialize_with = "null_as_default")]
    pub external: bool,
    /// Whether it is the default external network.
    #[serde(default, deserialize_with = "null_as_default")]
    pub is_default: bool,
    /// Ids of its subnets.
    #[serde(default, deserialize_with = "null_as_default")]
    pub subnets: Vec<String>,
}

/// Which networks to list. Every part that is set must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkFilter {
    /// Exact name.
    pub name: Option<String>,
    /// Whether floating IPs come from it.
    pub external: Option<bool>,
}

impl Neutron {
    /// Lists networks.
    pub async fn list_networks(&self, filter: &NetworkFilter) -> Result<Vec<Network>, ApiError> {
        let external = filter.external.map(|external| external.to_string());
        let call = V2
            .get("network_list", &["networks"])
            .query_if("name", filter.name.as_deref())
            .query_if("router:external", external.as_deref());
        self.client.list(call, "networks").await
    }

    /// Reads one network.
    pub async fn get_network(&self, id: &str) -> Result<Network, ApiError> {
        self.client.fetch(&V2.get("network_get", &["networks", id]), "network").await
    }
}
