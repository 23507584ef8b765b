//! Extensions: what this Neutron can do.

use serde::Deserialize;

use super::{Neutron, V2};
use crate::error::ApiError;

/// An extension that this Neutron has.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Extension {
    /// Its stable short name, for example `extraroute-atomic` or `allowed-address-pairs`.
    pub alias: String,
}

impl Neutron {
    /// Lists extensions.
    pub async fn list_extensions(&self) -> Result<Vec<Extension>, ApiError> {
        self.client.list(V2.get("network_extension_list", &["extensions"]), "extensions").await
    }
}
