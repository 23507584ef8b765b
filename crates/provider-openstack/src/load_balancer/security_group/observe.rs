//! Reads the security groups of a Service: by name; and from the time when groups were managed, for where they are not any more.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use openstack_ccm_core::failure::Failure;
use openstack_ccm_openstack_api::cache::Cache;
use openstack_ccm_openstack_api::error::ApiError;
use openstack_ccm_openstack_api::neutron::{Neutron, PortFilter, SecurityGroup, SecurityGroupFilter};

use super::model::{ObservedGroup, ObservedPort, ObservedRule, Opening};
use crate::load_balancer::failure::{Answered as _, present};
use crate::load_balancer::identity::ownership::Claim;
use crate::load_balancer::names::is_generated_security_group;

/// What is being done where a call fails.
pub(super) const READING: &str = "reading the security group";

/// All groups that were made for the Service, each with the ports that carry it. There is more than one only after
/// an accident.
///
/// # Errors
/// Any failed call: a list that could not be read is never an empty one.
pub(super) async fn read(neutron: &Neutron, claim: &Claim<'_>) -> Result<Vec<ObservedGroup>, Failure> {
    let filter =
        SecurityGroupFilter { name: Some(claim.names.security_group()), ..SecurityGroupFilter::default() };
    // There may be a cloud without security groups.
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

/// A group with the ports that carry it.
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

/// Names of all generated security groups that were there when the process first asked. Nobody makes new ones.
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
    /// Whether there was a group of this name; asks once for all names.
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

fn lock(names: &Mutex<HashSet<String>>) -> MutexGuard<'_, HashSet<String>> {
    names.lock().unwrap_or_else(PoisonError::into_inner)
}
