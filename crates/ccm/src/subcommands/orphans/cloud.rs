//! What may be orphaned: everything in the project that could have been made for a Service.

use openstack_ccm_openstack_api::neutron::{
    FloatingIp, Port, PortFilter, SecurityGroup, SecurityGroupFilter,
};
use openstack_ccm_openstack_api::octavia::LoadBalancer;
use openstack_ccm_openstack_api::{ApiError, OpenStack};

/// The owner of ports that Octavia makes for VIPs.
const VIP_OWNER: &str = "Octavia";

/// The lists of a project.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    pub(super) load_balancers: Vec<LoadBalancer>,
    pub(super) floating_ips: Vec<FloatingIp>,
    /// Ports that Octavia made for VIPs.
    pub(super) vip_ports: Vec<Port>,
    pub(super) security_groups: Vec<SecurityGroup>,
    /// Whether this Octavia has tags: without them nobody can see whose a load balancer is.
    pub(super) has_tags: bool,
}

impl Inventory {
    /// Reads them.
    ///
    /// # Errors
    /// Any failed call: a list that could not be read is never an empty one.
    pub async fn read(openstack: &OpenStack) -> Result<Self, ApiError> {
        let OpenStack { octavia, neutron, project_id, .. } = openstack;
        let project = || project_id.clone();
        let vip_ports = PortFilter {
            device_owner: Some(VIP_OWNER.to_owned()),
            project_id: project(),
            ..Default::default()
        };
        let security_groups = SecurityGroupFilter { project_id: project(), ..Default::default() };
        // Ports first: one whose load balancer is not listed afterwards has none.
        let vip_ports = neutron.list_ports(&vip_ports).await?;
        Ok(Self {
            vip_ports,
            load_balancers: octavia.list_load_balancers_of_project(project_id.as_deref()).await?,
            floating_ips: neutron.list_floating_ips_of_project(project_id.as_deref()).await?,
            security_groups: neutron.list_security_groups(&security_groups).await?,
            has_tags: octavia.api_versions().await?.tags(),
        })
    }
}
