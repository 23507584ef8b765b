//! Provider drivers of Octavia.

use serde::Deserialize;

use super::{LBAAS, Octavia};
use crate::error::ApiError;

/// A provider driver that the operator has switched on.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Provider {
    /// Name to use in `provider`.
    pub name: String,
    /// Free text.
    #[serde(default)]
    pub description: String,
}

/// Something that flavors of a provider can set.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Capability {
    /// Name of the setting.
    pub name: String,
    /// Free text.
    #[serde(default)]
    pub description: String,
}

impl Octavia {
    /// Lists provider drivers.
    pub async fn list_providers(&self) -> Result<Vec<Provider>, ApiError> {
        self.client.list(LBAAS.get("loadbalancer_provider_list", &["providers"]), "providers").await
    }

    /// Lists what flavors of a provider can set. For administrators on most clouds.
    pub async fn list_flavor_capabilities(&self, provider: &str) -> Result<Vec<Capability>, ApiError> {
        let call = LBAAS
            .get("loadbalancer_provider_capability_list", &["providers", provider, "flavor_capabilities"]);
        self.client.list(call, "flavor_capabilities").await
    }
}
