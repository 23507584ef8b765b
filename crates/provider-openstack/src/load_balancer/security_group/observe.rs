//! Reads the security groups of a Service by name, including groups from the time when they were managed.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::lock::lock;
use openstack_ccm_openstack_api::cache::Cache;
use openstack_ccm_openstack_api::error::ApiError;
use openstack_ccm_openstack_api::neutron::{Neutron, PortFilter, SecurityGroup, SecurityGroupFilter};

use super::model::{ObservedGroup, ObservedPort, ObservedRule, Opening};
use crate::load_balancer::failure::{Answered as _, present};
use crate::load_balancer::identity::ownership::Claim;
use crate::load_balancer::names::is_generated_security_group;

/// The operation that failing calls report.
pub(super) const READING: &str = "reading the security group";

/// Reads all groups that were made for the Service, each with the ports that have it. There is more than one only after an
/// accident.
///
/// # Errors
/// Any failed call: an unreadable list is never treated as empty.
pub(super) async fn read(neutron: &Neutron, claim: &Claim<'_>) -> Result<Vec<ObservedGroup>, Failure> {
    let filter =
        SecurityGroupFilter { name: Some(claim.names.security_group()), ..SecurityGroupFilter::default() };
    // The cloud may have no security groups.
    let named = present(neutron.list_security_groups(&filter).await).while_doing(READING)?;
    let mut groups = Vec::new();
    for group in named.into_iter().flatten().filter(|group| claim.owns_security_group(group)) {
        groups.push(with_ports(neutron, group).await.while_doing(READING)?);
    }
    Ok(groups)
}

async fn with_ports(neutron: &Neutron, group: SecurityGroup) -> Result<ObservedGroup, ApiError> {
    let filter = PortFilter { security_group_id: Some(group.id.clone()), ..PortFilter::default() };
    let ports = neutron.list_ports(&filter).await?.into_iter();
    let ports = ports.map(|port| ObservedPort { id: port.id, server: port.device_id }).collect();
    Ok(observed(group, ports))
}

/// Converts a group with its ports.
fn observed(group: SecurityGroup, ports: Vec<ObservedPort>) -> ObservedGroup {
    let rules = group.security_group_rules.iter();
    ObservedGroup {
        rules: rules.map(|rule| ObservedRule { opening: Opening::of(rule), id: rule.id.clone() }).collect(),
        ports,
        id: group.id,
        name: group.name,
        tags: group.tags,
    }
}

/// Names of all generated security groups that existed at the first query. No new ones are created while groups are not managed.
#[derive(Debug)]
pub(super) struct LegacyGroups {
    names: Cache<(), Arc<Mutex<HashSet<String>>>>,
}

impl Default for LegacyGroups {
    fn default() -> Self {
        Self { names: Cache::new(Duration::MAX) }
    }
}

impl LegacyGroups {
    /// Returns whether a group of this name existed; the first call queries all names.
    pub(super) async fn may_be_there(&self, neutron: &Neutron, name: &str) -> Result<bool, Arc<ApiError>> {
        let names = self.names.get_or_fetch(&(), async {
            let names = present(neutron.list_security_group_names().await)?;
            let generated = names.into_iter().flatten().filter(|name| is_generated_security_group(name));
            Ok(Arc::new(Mutex::new(generated.collect())))
        });
        Ok(lock(&*names.await?).contains(name))
    }

    pub(super) fn forget(&self, name: &str) {
        if let Some(names) = self.names.last(&()) {
            lock(&names.value).remove(name);
        }
    }
}
