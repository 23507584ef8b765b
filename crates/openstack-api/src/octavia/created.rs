//! The answer to a request that creates a load balancer with all its children.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{CreateLoadBalancer, HealthMonitor, LBAAS, Listener, LoadBalancer, Member, Octavia, Pool};
use crate::decode::null_as_default;
use crate::error::ApiError;
use crate::optional::OptionalPart;

/// A load balancer that was just made, and what was made with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedLoadBalancer {
    pub load_balancer: LoadBalancer,
    /// Its children. Absent where the answer does not show it whole.
    pub tree: Option<CreatedTree>,
}

/// The children of a load balancer that was just made.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CreatedTree {
    /// Listeners, in no fixed order.
    pub listeners: Vec<Listener>,
    /// Pools, in no fixed order.
    pub pools: Vec<CreatedPool>,
}

/// A pool that was just made, with what is in it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CreatedPool {
    #[serde(flatten)]
    pub pool: Pool,
    /// Its members, in no fixed order.
    #[serde(default, deserialize_with = "null_as_default")]
    pub members: Vec<Member>,
    pub healthmonitor: Option<HealthMonitor>,
}

impl<'de> Deserialize<'de> for CreatedLoadBalancer {
    /// Children that are shown by id alone make no tree, and are no mistake.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The text is read twice: values of thousands of members would be many times larger in between.
        let shown = <Box<RawValue>>::deserialize(deserializer)?;
        let load_balancer = serde_json::from_str(shown.get()).map_err(serde::de::Error::custom)?;
        Ok(Self { load_balancer, tree: serde_json::from_str(shown.get()).ok() })
    }
}

impl Octavia {
    /// Makes a load balancer with everything below it in one request. Takes seconds: the VIP port is made before the answer.
    ///
    /// # Errors
    /// Any [`ApiError`]. After [`crate::ErrorKind::LostAnswer`] look for the name before trying again.
    pub async fn create_load_balancer(
        &self,
        new: CreateLoadBalancer,
    ) -> Result<CreatedLoadBalancer, ApiError> {
        let call = LBAAS.post("loadbalancer_create", &["loadbalancers"]).body("loadbalancer", &new);
        // Thousands of members need not wait for the answer.
        drop(new);
        self.client.noting(OptionalPart::LoadBalancerTags, self.client.fetch(&call, "loadbalancer")).await
    }
}
