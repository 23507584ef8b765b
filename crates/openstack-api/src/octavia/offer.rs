//! The operator's offer for load balancers: provider drivers, flavors, availability zones and quotas.

use serde::Deserialize;

use super::{LBAAS, Octavia};
use crate::error::ApiError;
use crate::optional::OptionalPart;

/// A provider driver that the operator has enabled.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Provider {
    /// The name, as a value of `provider`.
    pub name: String,
}

/// A setting that flavors of a provider can have.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Capability {
    /// Name of the setting.
    pub name: String,
}

/// A flavor as Octavia shows it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Flavor {
    pub id: String,
    /// Unique name.
    pub name: String,
}

/// The quota of a project; negative for no limit.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Quota {
    #[serde(default)]
    pub load_balancer: Option<i64>,
    #[serde(default)]
    pub listener: Option<i64>,
}

/// An availability zone as Octavia shows it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct AvailabilityZone {
    /// Unique name; there is no id.
    pub name: String,
}

impl Octavia {
    /// Lists provider drivers.
    pub async fn list_providers(&self) -> Result<Vec<Provider>, ApiError> {
        let call = LBAAS.get("loadbalancer_provider_list", &["providers"]);
        self.client.noting(OptionalPart::Providers, &call, self.client.list(call.clone(), "providers")).await
    }

    pub async fn quota(&self, project_id: &str) -> Result<Quota, ApiError> {
        let call = LBAAS.get("loadbalancer_quota_get", &["quotas", project_id]);
        self.client.noting(OptionalPart::Quotas, &call, self.client.fetch(&call, "quota")).await
    }

    /// Lists the settings that flavors of a provider can have. Only for administrators on most clouds.
    pub async fn list_flavor_capabilities(&self, provider: &str) -> Result<Vec<Capability>, ApiError> {
        let call = LBAAS
            .get("loadbalancer_provider_capability_list", &["providers", provider, "flavor_capabilities"]);
        self.client.list(call, "flavor_capabilities").await
    }

    pub async fn list_flavors(&self) -> Result<Vec<Flavor>, ApiError> {
        self.client.list(LBAAS.get("loadbalancer_flavor_list", &["flavors"]), "flavors").await
    }

    pub async fn get_flavor(&self, id: &str) -> Result<Flavor, ApiError> {
        self.client.fetch(&LBAAS.get("loadbalancer_flavor_get", &["flavors", id]), "flavor").await
    }

    pub async fn list_availability_zones(&self) -> Result<Vec<AvailabilityZone>, ApiError> {
        let call = LBAAS.get("loadbalancer_availability_zone_list", &["availabilityzones"]);
        self.client.list(call, "availability_zones").await
    }
}
