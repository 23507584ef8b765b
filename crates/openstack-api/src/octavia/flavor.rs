//! Flavors of load balancers.

use serde::Deserialize;

use super::{LBAAS, Octavia};
use crate::error::ApiError;

/// A flavor as Octavia shows it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Flavor {
    /// Id.
    pub id: String,
    /// Unique name.
    pub name: String,
    /// Whether new load balancers may use it.
    pub enabled: bool,
}

impl Octavia {
    /// Lists flavors.
    pub async fn list_flavors(&self) -> Result<Vec<Flavor>, ApiError> {
        self.client.list(LBAAS.get("loadbalancer_flavor_list", &["flavors"]), "flavors").await
    }

    /// Reads one flavor.
    pub async fn get_flavor(&self, id: &str) -> Result<Flavor, ApiError> {
        self.client.fetch(&LBAAS.get("loadbalancer_flavor_get", &["flavors", id]), "flavor").await
    }
}
