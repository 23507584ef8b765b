//! The inputs for a desired tree.

use openstack_ccm_core::service::Intent;
use openstack_ccm_openstack_api::octavia::{LbAlgorithm, PoolAttributes};

use crate::load_balancer::names::Names;
use crate::load_balancer::objects::{Facts, Tags};
use crate::load_balancer::settings::Settings;

/// The inputs for a desired tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sources<'a> {
    pub(crate) intent: &'a Intent,
    pub(crate) settings: &'a Settings,
    pub(crate) names: &'a Names,
    pub(crate) facts: &'a Facts,
}

impl Sources<'_> {
    /// Returns the attributes of pools, with the provider's algorithm unless another one is configured.
    pub(super) fn pool(&self) -> PoolAttributes {
        let configured = self.settings.pool.clone();
        match self.settings.lb_algorithm_is_default && self.facts.features.keeps_client_addresses() {
            true => PoolAttributes { lb_algorithm: LbAlgorithm::SourceIpPort, ..configured },
            false => configured,
        }
    }

    /// Returns the tags of the load balancer or a child: this controller's, and the user's.
    pub(super) fn tags(&self, users: &Tags) -> Tags {
        if self.facts.features.tags { &self.names.tags() | users } else { Tags::new() }
    }
}
