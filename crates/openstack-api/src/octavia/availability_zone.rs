//! Availability zones of load balancers.

use serde::Deserialize;

use super::{Octavia, get, lbaas};
use crate::error::ApiError;

/// An availability zone as Octavia shows it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct AvailabilityZone {
    /// Unique name; there is no id.
    pub name: String,
    /// Whether new load balancers may use it.
    pub enabled: bool,
}

impl Octavia {
    /// Lists availability zones.
    pub async fn list_availability_zones(&self) -> Result<Vec<AvailabilityZone>, ApiError> {
        let call = get("loadbalancer_availability_zone_list", lbaas!("availabilityzones"));
        self.client.list(call, "availability_zones").await
    }
}
