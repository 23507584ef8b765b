//! Flavors of servers.

use serde::Deserialize;

use super::Nova;
use crate::error::ApiError;

/// A flavor as Nova shows it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ComputeFlavor {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
}

impl Nova {
    /// Reads one flavor.
    pub async fn get_flavor(&self, id: &str) -> Result<ComputeFlavor, ApiError> {
        self.client.fetch(&self.get("flavor_get", &["flavors", id]), "flavor").await
    }

    /// Lists the flavors that the project may use.
    pub async fn list_flavors(&self) -> Result<Vec<ComputeFlavor>, ApiError> {
        self.client.list(self.get("flavor_list", &["flavors"]), "flavors").await
    }
}
