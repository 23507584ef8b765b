//! Whether anybody else has changed a load balancer before members are sent to it without a reading.
//!
//! Afterwards its `updated_at` tells of the batch, and would cover up what others changed before.

use std::sync::Arc;

use openstack_ccm_openstack_api::error::ApiError;
use openstack_ccm_openstack_api::octavia::LoadBalancerFilter;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::{Observation, Observer, Observing};
use crate::load_balancer::list_length::{Askers, ListLength};
use crate::load_balancer::poller::LastChanges;

/// Lists once for those that ask at about the same time, unless the list is too long for them.
#[derive(Debug)]
pub(super) struct OtherChanges {
    askers: Askers,
    lock: Mutex<()>,
}

impl OtherChanges {
    /// In a project with so many load balancers.
    pub(super) fn new(load_balancers: Arc<ListLength>) -> Self {
        Self { askers: Askers::of(load_balancers), lock: Mutex::new(()) }
    }
}

impl Observing<'_> {
    /// Looks whether the load balancer is as it was when it agreed with the Service; where it is not, or where that cannot be told, no
    /// digest will stand for it before it is read. What is about to be sent is right either way, so a failed look holds nothing up.
    pub(crate) async fn look_for_other_changes(&self, observation: &mut Observation) {
        let Some(id) = observation.id_if_not_changed_by_others() else { return };
        let seen = self.observer.last_change(&id).await.unwrap_or_else(|error| {
            tracing::debug!(%error, "nobody knows whether somebody else has changed the load balancer");
            None
        });
        observation.was_changed_at(seen.as_deref());
    }
}

impl Observer {
    /// `updated_at` of a load balancer. `None` where there is none of this id in the project of the credentials, or it shows none.
    async fn last_change(&self, id: &str) -> Result<Option<String>, ApiError> {
        let asked = Instant::now();
        let askers = &self.other_changes.askers;
        let _asker = askers.join();
        if let Some(known) = self.watchlist.last_change(id, asked) {
            return Ok(known);
        }
        if askers.are_too_few_in_a_moment().await {
            let filter = LoadBalancerFilter {
                project_id: self.openstack.project_id.clone(),
                ..LoadBalancerFilter::id(id)
            };
            let listed = self.openstack.octavia.list_load_balancers(&filter).await?;
            return Ok(listed.into_iter().find_map(|one| one.updated_at));
        }
        let _held = self.other_changes.lock.lock().await;
        if let Some(known) = self.watchlist.last_change(id, asked) {
            return Ok(known);
        }
        let asked = Instant::now();
        let filter = LoadBalancerFilter::of_project(self.openstack.project_id.clone());
        let listed = self.openstack.octavia.list_load_balancers_into(&filter, LastChanges::default()).await?;
        self.watchlist.note_last_changes(listed, asked);
        Ok(self.watchlist.last_change(id, asked).flatten())
    }
}
