//! Reads the security groups of a Service: by name; from lists of all, for all Services that ask at about the same time (after a
//! start, and when their checks for drift fall together); and from the time when groups were managed, for where they are not
//! any more.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::PoisonError;
use std::time::Duration;

use openstack_ccm_core::failure::Failure;
use openstack_ccm_openstack_api::error::ApiError;
use openstack_ccm_openstack_api::neutron::{Neutron, PortFilter, SecurityGroup, SecurityGroupFilter};
use tokio::sync::{Mutex, OnceCell};
use tokio::time::Instant;

use super::model::{ObservedGroup, ObservedPort, ObservedRule, Opening};
use crate::load_balancer::failure::{Answered as _, present};
use crate::load_balancer::names::is_generated_security_group;
use crate::load_balancer::ownership::Claim;

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

/// For how long the lists stand for the present. What changed in between is found by the next check.
const GOOD_FOR: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct GroupLists {
    lists: Mutex<Option<GroupListing>>,
}

#[derive(Debug)]
struct GroupListing {
    asked: Instant,
    /// By name.
    groups: HashMap<String, Vec<SecurityGroup>>,
    /// By id of the group.
    ports: HashMap<String, Vec<ObservedPort>>,
}

impl GroupLists {
    /// The Service's groups, as listed. Each is handed out once, so that the lists shrink while they are used.
    pub(super) async fn take(
        &self,
        neutron: &Neutron,
        claim: &Claim<'_>,
    ) -> Result<Vec<ObservedGroup>, ApiError> {
        let mut lists = self.lists.lock().await;
        let good = lists.take().filter(|lists| lists.asked.elapsed() < GOOD_FOR);
        let known = match good {
            Some(good) => lists.insert(good),
            None => lists.insert(list(neutron).await?),
        };
        let named = known.groups.remove(&claim.names.security_group()).unwrap_or_default();
        let own = named.into_iter().filter(|group| claim.owns_security_group(group));
        Ok(own
            .map(|group| {
                let ports = known.ports.remove(&group.id).unwrap_or_default();
                observed(group, ports)
            })
            .collect())
    }
}

async fn list(neutron: &Neutron) -> Result<GroupListing, ApiError> {
    let asked = Instant::now();
    let mut groups: HashMap<String, Vec<SecurityGroup>> = HashMap::new();
    for group in neutron.list_security_groups(&SecurityGroupFilter::default()).await? {
        if is_generated_security_group(&group.name) {
            groups.entry(group.name.clone()).or_default().push(group);
        }
    }
    let generated = || groups.values().flatten();
    let ids: BTreeSet<&str> = generated().map(|group| group.id.as_str()).collect();
    // To an administrator Neutron shows the ports of everybody.
    let projects: BTreeSet<_> = generated().map(|group| group.project_id.as_deref()).collect();
    let project_id = projects.first().copied().flatten().filter(|_| projects.len() == 1);
    let mut ports: HashMap<String, Vec<ObservedPort>> = HashMap::new();
    if !ids.is_empty() {
        for port in neutron.list_security_groups_of_ports(project_id).await? {
            for group in port.security_groups.iter().filter(|group| ids.contains(group.as_str())) {
                let carrier = ObservedPort { id: port.id.clone(), server: port.device_id.clone() };
                ports.entry(group.clone()).or_default().push(carrier);
            }
        }
    }
    Ok(GroupListing { asked, groups, ports })
}

/// Names of all generated security groups that were there when the process first asked. Nobody makes new ones.
#[derive(Debug, Default)]
pub(super) struct LegacyGroups {
    names: OnceCell<std::sync::Mutex<HashSet<String>>>,
}

impl LegacyGroups {
    /// Whether there was a group of this name; asks once for all names.
    pub(super) async fn may_be_there(&self, neutron: &Neutron, name: &str) -> Result<bool, ApiError> {
        let names = self.names.get_or_try_init(|| async {
            let names = present(neutron.list_security_group_names().await)?;
            let generated = names.into_iter().flatten().filter(|name| is_generated_security_group(name));
            Ok::<_, ApiError>(std::sync::Mutex::new(generated.collect()))
        });
        Ok(names.await?.lock().unwrap_or_else(PoisonError::into_inner).contains(name))
    }

    pub(super) fn forget(&self, name: &str) {
        if let Some(names) = self.names.get() {
            names.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        }
    }
}
