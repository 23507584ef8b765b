//! Lists the objects that may be orphaned, which are all in the project that could have been made for a Service, and the Services
//! that may own them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::{Node, Service};
use kube::{Api, Client};
use openstack_ccm_controllers::PAGE_SIZE;
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_api::neutron::{
    FloatingIp, Port, PortFilter, SecurityGroup, SecurityGroupFilter,
};
use openstack_ccm_openstack_api::octavia::{ChildFilter, LoadBalancer, Member, Octavia};
use openstack_ccm_provider_openstack::load_balancer::names::{self, GeneratedName};
use openstack_ccm_runtime::listed::{self, Interest};
use openstack_ccm_runtime::watch::{Reading, list_all};

/// The owners of VIP ports that Octavia makes: Octavia itself, and its provider ovn.
const VIP_OWNERS: [&str; 2] = ["Octavia", "ovn-lb:vip"];

/// The objects of a project.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    pub(super) load_balancers: Vec<LoadBalancer>,
    pub(super) floating_ips: Vec<FloatingIp>,
    /// VIP ports that Octavia made.
    pub(super) vip_ports: Vec<Port>,
    pub(super) security_groups: Vec<SecurityGroup>,
    /// The member addresses of load balancers that only OCCM's name assigns to a cluster, by load balancer id.
    pub(super) members: BTreeMap<String, BTreeSet<IpAddr>>,
    /// Whether this Octavia has tags: without them the owner of a load balancer is not known.
    pub(super) has_tags: bool,
}

impl Inventory {
    /// Lists all objects. With `occm_names_of` load balancers without tags count too, if their name has this cluster name.
    ///
    /// # Errors
    /// A call failed: a list that could not be read never counts as empty.
    pub async fn read(openstack: &OpenStack, occm_names_of: Option<&str>) -> anyhow::Result<Self> {
        let OpenStack { octavia, neutron, project_id, .. } = openstack;
        let project = || project_id.clone();
        let security_groups = SecurityGroupFilter { project_id: project(), ..Default::default() };
        // Ports are listed first: a port whose load balancer is missing in the later list has none.
        let mut vip_ports = Vec::new();
        for owner in VIP_OWNERS {
            let device_owner = Some(owner.to_owned());
            let filter = PortFilter { device_owner, project_id: project(), ..Default::default() };
            vip_ports.extend(neutron.list_ports(&filter).await?);
        }
        let load_balancers: Vec<LoadBalancer> =
            octavia.list_load_balancers_of_project(project_id.as_deref()).await?;
        let mut members = BTreeMap::new();
        for one in
            load_balancers.iter().filter(|one| occm_names_of.is_some_and(|name| is_only_named(one, name)))
        {
            members.insert(one.id.clone(), members_of(octavia, &one.id).await?);
        }
        Ok(Self {
            vip_ports,
            members,
            load_balancers,
            floating_ips: neutron.list_floating_ips_of_project(project_id.as_deref()).await?,
            security_groups: neutron.list_security_groups(&security_groups).await?,
            has_tags: octavia.api_versions().await?.tags(),
        })
    }
}

/// Returns whether only its name assigns a load balancer to the cluster.
fn is_only_named(one: &LoadBalancer, cluster: &str) -> bool {
    names::cluster_uids(&one.tags).next().is_none()
        && GeneratedName::parse(&one.name).is_some_and(|name| name.cluster == cluster)
}

/// Lists the member addresses of a load balancer. A pool that is deleted meanwhile has none.
async fn members_of(octavia: &Octavia, load_balancer_id: &str) -> anyhow::Result<BTreeSet<IpAddr>> {
    let mut addresses = BTreeSet::new();
    for pool in octavia.list_pools(&ChildFilter::load_balancer(load_balancer_id)).await? {
        let listed: Vec<Member> = match octavia.list_members(&pool.id, Vec::new()).await {
            Err(error) if error.is_not_found() => continue,
            listed => listed?,
        };
        addresses.extend(listed.iter().filter_map(|member| member.address.parse::<IpAddr>().ok()));
    }
    Ok(addresses)
}

/// The possible owners of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owners {
    Cluster {
        /// The uids of the cluster's Services, by name.
        services: BTreeMap<ServiceKey, String>,
        /// The addresses of the cluster's nodes.
        nodes: BTreeSet<IpAddr>,
    },
    /// The cluster is gone, so there are no owners.
    Gone,
}

impl Owners {
    /// Lists all nodes, and all Services of any type: a Service that was of type LoadBalancer a moment ago may still own an object.
    ///
    /// # Errors
    /// A page of a list cannot be read, or the list has no Service at all: every cluster has one, so the list is wrong, and every
    /// object in the cloud would look orphaned.
    pub async fn of(client: Client) -> anyhow::Result<Self> {
        let reading = Reading { page: PAGE_SIZE, interest: Interest::in_none() };
        let nodes = list_all::<listed::Node, Node>(Api::all(client.clone()), reading.clone()).await;
        let nodes = nodes.context("the Nodes of the cluster cannot be listed")?;
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
            "the API server lists no Services, not even its own Service kubernetes, so everything would look orphaned. If the cluster no \
             longer exists, specify it with --cluster-uid"
        );
        let addresses = nodes.into_iter().filter_map(|node| node.status?.addresses).flatten();
        Ok(Self::Cluster {
            services: all,
            nodes: addresses.filter_map(|one| one.address.parse().ok()).collect(),
        })
    }

    /// Returns whether one of these is the uid of an existing Service.
    pub(super) fn has_one_of(&self, uids: &BTreeSet<&str>) -> bool {
        match self {
            Self::Cluster { services: all, .. } => all.values().any(|uid| uids.contains(uid.as_str())),
            Self::Gone => false,
        }
    }

    /// Returns whether none of these is the address of a node, as far as the nodes are known.
    pub(super) fn have_no_node_among(&self, addresses: &BTreeSet<IpAddr>) -> bool {
        match self {
            Self::Cluster { nodes, .. } => nodes.is_disjoint(addresses),
            Self::Gone => false,
        }
    }

    pub(super) fn has_named(&self, key: &ServiceKey) -> bool {
        match self {
            Self::Cluster { services: all, .. } => all.contains_key(key),
            Self::Gone => false,
        }
    }
}
