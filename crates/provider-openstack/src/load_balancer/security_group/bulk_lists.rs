//! All generated security groups and the ports that carry them, listed once for all Services that ask at about the same
//! time: after a start, and when their checks for drift fall together.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use openstack_ccm_openstack_api::error::ApiError;
use openstack_ccm_openstack_api::neutron::{Neutron, SecurityGroup, SecurityGroupFilter};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::load_balancer::names::is_generated_security_group;
use crate::load_balancer::ownership::Claim;
use crate::load_balancer::security_group::model::{ObservedGroup, ObservedPort};
use crate::load_balancer::security_group::observe::observed;

/// For how long the lists stand for the present. What changed in between is found by the next check.
const GOOD_FOR: Duration = Duration::from_secs(60);

/// The lists.
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
    ///
    /// # Errors
    /// Any failed call.
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
