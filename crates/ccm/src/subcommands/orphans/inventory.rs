//! What may be orphaned: everything in the project that could have been made for a Service; and the Services that may
//! own it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Service;
use kube::{Api, Client};
use openstack_ccm_controllers::PAGE;
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_api::neutron::{
    FloatingIp, Port, PortFilter, SecurityGroup, SecurityGroupFilter,
};
use openstack_ccm_openstack_api::octavia::LoadBalancer;
use openstack_ccm_runtime::listed::{self, Interest};
use openstack_ccm_runtime::watch::{Reading, list_all};

/// The owners of ports that Octavia makes for VIPs: its own, and that of its provider ovn.
const VIP_OWNERS: [&str; 2] = ["Octavia", "ovn-lb:vip"];

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
    pub async fn read(openstack: &OpenStack) -> anyhow::Result<Self> {
        let OpenStack { octavia, neutron, project_id, .. } = openstack;
        let project = || project_id.clone();
        let security_groups = SecurityGroupFilter { project_id: project(), ..Default::default() };
        // Ports first: one whose load balancer is not listed afterwards has none.
        let mut vip_ports = Vec::new();
        for owner in VIP_OWNERS {
            let device_owner = Some(owner.to_owned());
            let filter = PortFilter { device_owner, project_id: project(), ..Default::default() };
            vip_ports.extend(neutron.list_ports(&filter).await?);
        }
        Ok(Self {
            vip_ports,
            load_balancers: octavia.list_load_balancers_of_project(project_id.as_deref()).await?,
            floating_ips: neutron.list_floating_ips_of_project(project_id.as_deref()).await?,
            security_groups: neutron.list_security_groups(&security_groups).await?,
            has_tags: octavia.api_versions().await?.tags(),
        })
    }
}

/// Who may own something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owners {
    /// The Services of a cluster that is there, by name, with their uids.
    Cluster(BTreeMap<ServiceKey, String>),
    /// Nobody: the cluster is gone.
    Gone,
}

impl Owners {
    /// All Services of the cluster, of whatever type: one that was of type LoadBalancer a moment ago may still own something.
    ///
    /// # Errors
    /// Any page of the list that cannot be read, and a list without a single Service: every cluster has one, so that the
    /// list is wrong, and everything in the cloud would look orphaned.
    pub async fn of(client: Client) -> anyhow::Result<Self> {
        let reading = Reading { page: PAGE, interest: Interest::in_none() };
        let services = list_all::<listed::Service, Service>(Api::all(client), reading).await;
        let services = services.context("the Services of the cluster cannot be listed")?;
        let all: BTreeMap<ServiceKey, String> = services
            .into_iter()
            .map(|Service { metadata, .. }| {
                let key = ServiceKey::new(
                    metadata.namespace.unwrap_or_default(),
                    metadata.name.unwrap_or_default(),
                );
                (key, metadata.uid.unwrap_or_default())
            })
            .collect();
        anyhow::ensure!(
            !all.is_empty(),
            "the API server lists no Service at all, not even its own: everything would look orphaned. If the cluster is gone, \
             name it with --cluster-uid"
        );
        Ok(Self::Cluster(all))
    }

    /// Whether one of these is the uid of a Service that is there.
    pub(super) fn has_one_of(&self, uids: &BTreeSet<&str>) -> bool {
        match self {
            Self::Cluster(all) => all.values().any(|uid| uids.contains(uid.as_str())),
            Self::Gone => false,
        }
    }

    pub(super) fn has_named(&self, key: &ServiceKey) -> bool {
        match self {
            Self::Cluster(all) => all.contains_key(key),
            Self::Gone => false,
        }
    }
}
