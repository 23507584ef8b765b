//! The answer to a request that creates a load balancer with all its children.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{CreateLoadBalancer, HealthMonitor, LBAAS, Listener, LoadBalancer, Member, Octavia, Pool};
use crate::decode::null_as_default;
use crate::error::ApiError;
use crate::optional::OptionalPart;

/// A new load balancer, with the children created with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedLoadBalancer {
    pub load_balancer: LoadBalancer,
    /// The children; absent where the answer does not show all their attributes.
    pub tree: Option<CreatedTree>,
}

/// The children of a new load balancer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CreatedTree {
    /// Listeners, in no fixed order.
    pub listeners: Vec<Listener>,
    /// Pools, in no fixed order.
    pub pools: Vec<CreatedPool>,
}

/// A new pool, with its members and monitor.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CreatedPool {
    #[serde(flatten)]
    pub pool: Pool,
    /// The members, in no fixed order.
    #[serde(default, deserialize_with = "null_as_default")]
    pub members: Vec<Member>,
    pub healthmonitor: Option<HealthMonitor>,
}

impl<'de> Deserialize<'de> for CreatedLoadBalancer {
    /// An answer with only the ids of children gives no tree, but no error.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The text is read twice: JSON values of thousands of members would take many times the memory.
        let shown = <Box<RawValue>>::deserialize(deserializer)?;
        let load_balancer = serde_json::from_str(shown.get()).map_err(serde::de::Error::custom)?;
        Ok(Self { load_balancer, tree: serde_json::from_str(shown.get()).ok() })
    }
}

impl Octavia {
    /// Creates a load balancer with all its children in one request. Takes seconds: Octavia creates the VIP port before it answers.
    ///
    /// # Errors
    /// Any [`ApiError`]. After [`crate::ErrorKind::LostAnswer`] search by name before trying again.
    pub async fn create_load_balancer(
        &self,
        new: CreateLoadBalancer,
    ) -> Result<CreatedLoadBalancer, ApiError> {
        let call = LBAAS.post("loadbalancer_create", &["loadbalancers"]).body("loadbalancer", &new);
        let has_tags = !new.tags.is_empty();
        // Frees the memory of thousands of members before the answer arrives.
        drop(new);
        let made = self.client.fetch(&call, "loadbalancer");
        let made: CreatedLoadBalancer =
            self.client.noting(OptionalPart::LoadBalancerTags, &call, made).await?;
        self.note_tags(&call, has_tags, &made.load_balancer);
        Ok(made)
    }
}
