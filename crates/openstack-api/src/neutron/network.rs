//! Networks and their subnets, and the extensions of this Neutron.

use serde::Deserialize;

use super::{Neutron, V2};
use crate::decode::null_as_default;
use crate::error::ApiError;
use crate::optional::OptionalPart;

/// A network as Neutron shows it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Network {
    pub id: String,
    /// Name; not unique.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// Whether it is external, so that floating IPs can come from it; absent if the cloud does not show it.
    #[serde(rename = "router:external", default)]
    pub external: Option<bool>,
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
    pub id: Option<String>,
    /// Exact name.
    pub name: Option<String>,
    /// Whether it is external.
    pub external: Option<bool>,
}

/// A subnet as Neutron shows it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Subnet {
    pub id: String,
    /// Name; not unique.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    pub network_id: String,
    /// The addresses, for example `198.18.0.0/24`.
    pub cidr: String,
    /// 4 or 6.
    pub ip_version: u8,
    #[serde(default, deserialize_with = "null_as_default")]
    pub tags: Vec<String>,
}

/// Which subnets to list. Every part that is set must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubnetFilter {
    /// The ids; empty for any. A query has room for some hundred ids at most.
    pub ids: Vec<String>,
    pub network_id: Option<String>,
}

impl SubnetFilter {
    /// Matches the subnets with these ids.
    pub fn ids(ids: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { ids: ids.into_iter().map(Into::into).collect(), ..Self::default() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Extension {
    /// The stable short name, for example `extraroute-atomic` or `allowed-address-pairs`.
    pub alias: String,
}

impl Neutron {
    pub async fn list_networks(&self, filter: &NetworkFilter) -> Result<Vec<Network>, ApiError> {
        let external = filter.external.map(|external| external.to_string());
        let call = V2
            .get("network_list", &["networks"])
            .query_if("id", filter.id.as_deref())
            .query_if("name", filter.name.as_deref())
            .query_if("router:external", external.as_deref());
        self.client.list(call, "networks").await
    }

    /// Reads one network; from the list, where the cloud shows it only there.
    ///
    /// # Errors
    /// Any [`ApiError`]: [`crate::ErrorKind::NotFound`] if it does not exist, or if a policy hides it; then the client lacks
    /// [`OptionalPart::NetworkById`].
    pub async fn get_network(&self, id: &str) -> Result<Network, ApiError> {
        let call = V2.get("network_get", &["networks", id]);
        let found =
            self.client.noting(OptionalPart::NetworkById, &call, self.client.fetch(&call, "network")).await;
        match found {
            Err(error) if error.is_not_found() => {
                let filter = NetworkFilter { id: Some(id.to_owned()), ..NetworkFilter::default() };
                let listed = self.list_networks(&filter).await;
                listed.ok().and_then(|mut listed| listed.pop()).ok_or(error)
            }
            found => found,
        }
    }

    pub async fn list_subnets(&self, filter: &SubnetFilter) -> Result<Vec<Subnet>, ApiError> {
        let ids = filter.ids.iter();
        let call = ids
            .fold(V2.get("subnet_list", &["subnets"]), |call, id| call.query("id", id))
            .query_if("network_id", filter.network_id.as_deref());
        self.client.list(call, "subnets").await
    }

    pub async fn list_extensions(&self) -> Result<Vec<Extension>, ApiError> {
        self.client.list(V2.get("network_extension_list", &["extensions"]), "extensions").await
    }
}
