//! Availability zones of load balancers.

use serde::Deserialize;

use super::{LBAAS, Octavia};
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
        let call = LBAAS.get("loadbalancer_availability_zone_list", &["availabilityzones"]);
        self.client.list(call, "availability_zones").await
    }
}
