//! Load balancers.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{CreateListener, IdRef, LBAAS, Octavia, OperatingStatus, ProvisioningStatus};
use crate::client::Call;
use crate::decode::{enabled, null_as_default};
use crate::error::ApiError;
use crate::optional::OptionalPart;

/// A load balancer as Octavia shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadBalancer {
    pub id: String,
    /// Name; not unique.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    #[serde(default, deserialize_with = "null_as_default")]
    pub description: String,
    /// Whether Octavia is working on it.
    pub provisioning_status: ProvisioningStatus,
    /// The worst status of its children.
    pub operating_status: OperatingStatus,
    /// Whether it is enabled.
    #[serde(default = "enabled", skip_serializing_if = "Clone::clone")]
    pub admin_state_up: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// Primary VIP address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip_address: Option<String>,
    /// Neutron port of the VIP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip_port_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip_subnet_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip_network_id: Option<String>,
    /// Further VIP addresses on the same port. Cannot be changed.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub additional_vips: Vec<AdditionalVip>,
    /// Provider driver, for example `amphora` or `ovn`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flavor_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub availability_zone: Option<String>,
    /// Tags. Empty where Octavia is older than 2.5.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<String>,
    /// Listeners, in no fixed order.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub listeners: Vec<IdRef>,
    /// Pools, in no fixed order.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<IdRef>,
    /// The time of creation, as Octavia writes it: UTC without a zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// Time of the last change, like `created_at`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
}

/// Statistics of a load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct LoadBalancerStats {
    /// The number of connections since its creation.
    #[serde(default)]
    pub total_connections: u64,
}

/// A further VIP address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdditionalVip {
    /// Subnet of the address.
    pub subnet_id: String,
    /// The address; Octavia chooses one if it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_address: Option<String>,
}

/// Which load balancers to list. Every part that is set must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadBalancerFilter {
    /// Exact name.
    pub name: Option<String>,
    /// All of these tags.
    pub tags: Vec<String>,
    /// The id. Octavia does not accept a list of ids.
    pub id: Option<String>,
    pub vip_port_id: Option<String>,
    pub project_id: Option<String>,
}

impl LoadBalancerFilter {
    pub fn name(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..Self::default() }
    }

    pub fn id(id: impl Into<String>) -> Self {
        Self { id: Some(id.into()), ..Self::default() }
    }

    /// Matches all load balancers of a project; without one, all that the credentials may see.
    pub fn of_project(project_id: Option<String>) -> Self {
        Self { project_id, ..Self::default() }
    }
}

/// A new load balancer, with all its children. Only what is set is sent.
///
/// Octavia keeps the VIP port of a tree that it refuses, so check the tree before sending it, and do not repeat a refused one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CreateLoadBalancer {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Provider driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Tags; needs Octavia 2.5.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Flavor; needs Octavia 2.6.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flavor_id: Option<String>,
    /// Availability zone; needs Octavia 2.14.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub availability_zone: Option<String>,
    /// An existing port for the VIP; excludes subnet and network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip_port_id: Option<String>,
    /// The subnet from which to take the VIP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip_subnet_id: Option<String>,
    /// The network from which to take the VIP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip_network_id: Option<String>,
    /// The wanted address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip_address: Option<String>,
    /// Further addresses; needs Octavia 2.26.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub additional_vips: Vec<AdditionalVip>,
    /// The listeners, each with its default pool.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub listeners: Vec<CreateListener>,
}

/// Changes of a load balancer. Only what is set is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UpdateLoadBalancer {
    /// New name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// New description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// All tags after the change; an empty list removes all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeSet<String>>,
}

impl Octavia {
    /// Lists load balancers. With an empty filter, all that the project may see.
    pub async fn list_load_balancers(
        &self,
        filter: &LoadBalancerFilter,
    ) -> Result<Vec<LoadBalancer>, ApiError> {
        self.list_load_balancers_into(filter, Vec::new()).await
    }

    /// Lists load balancers into a collection, which gets each one as soon as it is read and may keep only a part of it.
    pub async fn list_load_balancers_into<C: Extend<LoadBalancer>>(
        &self,
        filter: &LoadBalancerFilter,
        items: C,
    ) -> Result<C, ApiError> {
        let tags = (!filter.tags.is_empty()).then(|| filter.tags.join(","));
        let call = LBAAS
            .get("loadbalancer_list", &["loadbalancers"])
            .query_if("id", filter.id.as_deref())
            .query_if("name", filter.name.as_deref())
            .query_if("vip_port_id", filter.vip_port_id.as_deref())
            .query_if("project_id", filter.project_id.as_deref())
            .query_if("tags", tags.as_deref());
        self.client.collect(call, "loadbalancers", items).await
    }

    /// Lists all load balancers of a project, page by page; without a project, all that the credentials may see. The collection
    /// gets each load balancer as soon as it is read.
    pub async fn list_load_balancers_of_project<C: Default + Extend<LoadBalancer>>(
        &self,
        project_id: Option<&str>,
    ) -> Result<C, ApiError> {
        self.list_load_balancers_of_project_into(project_id, C::default()).await
    }

    /// Lists the load balancers of a project into a collection that decides what it keeps.
    pub async fn list_load_balancers_of_project_into<C: Extend<LoadBalancer>>(
        &self,
        project_id: Option<&str>,
        items: C,
    ) -> Result<C, ApiError> {
        let call =
            LBAAS.get("loadbalancer_list", &["loadbalancers"]).query_if("project_id", project_id).in_pages();
        self.client.collect(call, "loadbalancers", items).await
    }

    /// Reads one load balancer.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotFound`] if it does not exist; any other [`ApiError`].
    pub async fn get_load_balancer(&self, id: &str) -> Result<LoadBalancer, ApiError> {
        self.client.fetch(&LBAAS.get("loadbalancer_get", &["loadbalancers", id]), "loadbalancer").await
    }

    pub async fn update_load_balancer(
        &self,
        id: &str,
        changes: &UpdateLoadBalancer,
    ) -> Result<LoadBalancer, ApiError> {
        let call = LBAAS.put("loadbalancer_update", &["loadbalancers", id]).body("loadbalancer", changes);
        let updated = self.client.fetch(&call, "loadbalancer");
        let updated = self.client.noting(OptionalPart::LoadBalancerTags, &call, updated).await?;
        self.note_tags(&call, changes.tags.as_ref().is_some_and(|tags| !tags.is_empty()), &updated);
        Ok(updated)
    }

    /// Notes whether tags that were written are in the answer.
    pub(super) fn note_tags(&self, call: &Call, were_sent: bool, shown: &LoadBalancer) {
        if were_sent && shown.tags.is_empty() {
            self.client.note_not_shown(OptionalPart::LoadBalancerTags, call);
        }
    }

    /// Starts to delete a load balancer; with `cascade` also all its children. Without `cascade` Octavia refuses a load balancer
    /// with children as a bad request.
    pub async fn delete_load_balancer(&self, id: &str, cascade: bool) -> Result<(), ApiError> {
        let call = LBAAS
            .delete("loadbalancer_delete", &["loadbalancers", id])
            .query_if("cascade", cascade.then_some("true"));
        self.client.execute(&call).await
    }

    /// Returns whether a time that Octavia wrote, such as `updated_at`, was at least so long ago by Octavia's own clock. `false`
    /// if the time cannot be parsed.
    pub fn has_passed(&self, time: &str, by: Duration) -> bool {
        let Ok(time) = format!("{time}Z").parse::<Timestamp>() else { return false };
        Duration::try_from(self.client.octavia_time().duration_since(time)).is_ok_and(|age| age >= by)
    }

    /// Returns the statistics of a load balancer since its creation.
    pub async fn load_balancer_stats(&self, id: &str) -> Result<LoadBalancerStats, ApiError> {
        self.client.fetch(&LBAAS.get("loadbalancer_stats", &["loadbalancers", id, "stats"]), "stats").await
    }

    /// Starts to rebuild a load balancer's amphorae, which repairs the status ERROR. Needs an administrator on most clouds.
    pub async fn failover_load_balancer(&self, id: &str) -> Result<(), ApiError> {
        self.client.execute(&LBAAS.put("loadbalancer_failover", &["loadbalancers", id, "failover"])).await
    }
}
