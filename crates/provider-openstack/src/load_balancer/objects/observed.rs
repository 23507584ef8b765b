//! What is there.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use openstack_ccm_openstack_api::octavia::{
    HealthMonitorType, ListenerProtocol, LoadBalancer, OperatingStatus, PoolProtocol, ProvisioningStatus,
};

use super::Tags;
use super::listener::{ListenerAttributes, ListenerKey};
use super::member::{Member, MemberKey};
use super::monitor::MonitorAttributes;
use super::pool::PoolAttributes;
use crate::load_balancer::names;

/// What is there for one Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Observed {
    /// The Service's load balancer. One in PENDING_DELETE counts as there, one in DELETED as gone.
    pub(crate) load_balancer: Option<ObservedLoadBalancer>,
    /// The floating IPs that matter: on the VIP port, of the wanted address, and this Service's own. Each once.
    pub(crate) floating_ips: Vec<ObservedFloatingIp>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObservedLoadBalancer {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) description: String,
    /// Whether Octavia is at work on it.
    pub(crate) status: ProvisioningStatus,
    /// Whether it forwards, as far as Octavia hears from it.
    pub(crate) operating: OperatingStatus,
    pub(crate) vip_address: Option<IpAddr>,
    /// Addresses of the VIPs other than the primary one, each with its subnet.
    pub(crate) additional_vips: Vec<(String, IpAddr)>,
    pub(crate) vip_port_id: Option<String>,
    pub(crate) vip_subnet_id: Option<String>,
    pub(crate) made_with: MadeWith,
    pub(crate) tags: Tags,
    pub(crate) ownership: Ownership,
    /// The Service's generated name before the cluster was renamed, where the load balancer still shows it: in its
    /// name, or in a tag where it is somebody else's.
    pub(crate) previous_name: Option<String>,
    /// Its children. Absent where it was not read, which is right only while the load balancer is PENDING.
    pub(crate) children: Option<Children>,
}

/// What a load balancer was made with and cannot be changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MadeWith {
    pub(crate) provider: Option<String>,
    pub(crate) flavor_id: Option<String>,
    pub(crate) availability_zone: Option<String>,
    pub(crate) vip_network_id: Option<String>,
}

/// As messages name it.
impl fmt::Display for ObservedLoadBalancer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "load balancer {} ({})", self.name, self.id)
    }
}

impl ObservedLoadBalancer {
    /// Whether it has outlived its Service, and nobody has taken it over yet.
    pub(crate) fn is_retained(&self) -> bool {
        names::is_retained(&self.description)
    }

    /// Whether Octavia shows what says whose it is as it is known.
    pub(crate) fn belongs_as_shown(&self, shown: &LoadBalancer) -> bool {
        self.name == shown.name && self.description == shown.description && self.tags == shown.tags
    }

    /// The same without its children.
    pub(crate) fn without_children(&self) -> Self {
        Self {
            id: self.id.clone(),
            name: self.name.clone(),
            description: self.description.clone(),
            status: self.status.clone(),
            operating: self.operating.clone(),
            vip_address: self.vip_address,
            additional_vips: self.additional_vips.clone(),
            vip_port_id: self.vip_port_id.clone(),
            vip_subnet_id: self.vip_subnet_id.clone(),
            made_with: self.made_with.clone(),
            tags: self.tags.clone(),
            ownership: self.ownership,
            previous_name: self.previous_name.clone(),
            children: None,
        }
    }

    /// All VIP addresses, the primary one first.
    pub(crate) fn vip_addresses(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.vip_address.into_iter().chain(self.additional_vips.iter().map(|(_, address)| *address))
    }
}

/// To whom a load balancer belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// Made for this Service, or adopted, and no other Service uses it: it goes with the Service.
    Sole,
    /// Made for this Service, or adopted; other Services use it too, so it stays when this one goes.
    Shared,
    /// Made for somebody else; this Service only has listeners on it.
    Guest,
}

/// The children of a load balancer, complete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Children {
    pub(crate) listeners: Vec<ObservedListener>,
    /// Pools, whether on a listener or not.
    pub(crate) pools: Vec<ObservedPool>,
}

impl Children {
    pub(crate) fn default_pool(&self, listener: &ObservedListener) -> Option<&ObservedPool> {
        let id = listener.default_pool_id.as_ref()?;
        self.pools.iter().find(|pool| pool.id == *id)
    }

    /// Whether Octavia has built none of them: each still waits for its first build, or, where `failed` counts too, is in
    /// ERROR.
    pub(crate) fn none_was_built(&self, failed: bool) -> bool {
        let waits = |status: &ProvisioningStatus| {
            *status == ProvisioningStatus::PendingCreate || failed && *status == ProvisioningStatus::Error
        };
        self.listeners.iter().all(|listener| waits(&listener.status))
            && self.pools.iter().all(|pool| {
                waits(&pool.status)
                    && pool.members.iter().all(|member| waits(&member.status))
                    && pool.monitor.iter().all(|monitor| waits(&monitor.status))
            })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObservedListener {
    pub(crate) id: String,
    pub(crate) name: String,
    /// Whether it was made for this Service.
    pub(crate) ours: bool,
    /// Whether the last change succeeded.
    pub(crate) status: ProvisioningStatus,
    pub(crate) protocol: ListenerProtocol,
    pub(crate) port: u16,
    pub(crate) default_pool_id: Option<String>,
    /// Whether it has L7 policies, which are never made here.
    pub(crate) has_policies: bool,
    pub(crate) attributes: ListenerAttributes,
    pub(crate) tags: Tags,
}

impl ObservedListener {
    pub(crate) fn key(&self) -> ListenerKey {
        ListenerKey::of(&self.protocol, self.port)
    }

    /// Whether it shows the load balancer's own metrics, and serves no port of a Service.
    pub(crate) fn is_of_metrics(&self) -> bool {
        self.protocol == ListenerProtocol::Prometheus
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObservedPool {
    pub(crate) id: String,
    pub(crate) name: String,
    /// Whether it was made for this Service.
    pub(crate) ours: bool,
    /// Whether the last change succeeded. That of the members shows on themselves.
    pub(crate) status: ProvisioningStatus,
    /// Whether it is used at all. An administrator may have switched it off.
    pub(crate) admin_state_up: bool,
    pub(crate) protocol: PoolProtocol,
    pub(crate) attributes: PoolAttributes,
    pub(crate) tags: Tags,
    /// Ids of the listeners that use it, as default pool or in a policy.
    pub(crate) used_by: BTreeSet<String>,
    /// Members. Not read, and empty, where the pool is not this Service's.
    pub(crate) members: Vec<ObservedMember>,
    /// Whether only the status tree shows the members: of each, id, address, port and status are known and nothing else.
    pub(crate) members_from_status: bool,
    /// Health monitor. Not read, and absent, where the pool is not this Service's.
    pub(crate) monitor: Option<ObservedMonitor>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObservedMember {
    pub(crate) id: String,
    /// Whether the last change succeeded.
    pub(crate) status: ProvisioningStatus,
    pub(crate) member: Arc<Member>,
}

impl ObservedMember {
    pub(crate) fn key(&self) -> MemberKey {
        self.member.key()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObservedMonitor {
    pub(crate) id: String,
    pub(crate) name: String,
    /// Whether the last change succeeded.
    pub(crate) status: ProvisioningStatus,
    pub(crate) kind: HealthMonitorType,
    pub(crate) attributes: MonitorAttributes,
    pub(crate) tags: Tags,
}

impl ObservedFloatingIp {
    /// Whether it is the Service's, and somebody has attached it to something that is no load balancer.
    pub(crate) fn is_astray(&self) -> bool {
        // Octavia writes this id on the ports of its VIPs.
        let is_vip = |device: &String| device.rsplit(' ').next().is_some_and(|id| id.starts_with("lb-"));
        self.ours && self.port_id.is_some() && !self.device.as_ref().is_some_and(is_vip)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ObservedFloatingIp {
    pub(crate) id: String,
    pub(crate) address: IpAddr,
    /// The external network that its address is on.
    pub(crate) network_id: Option<String>,
    /// Port that it leads to.
    pub(crate) port_id: Option<String>,
    /// Address of the port that it leads to.
    pub(crate) fixed_address: Option<IpAddr>,
    /// What has the port that it leads to.
    pub(crate) device: Option<String>,
    /// Whether it leads somewhere without being attached to a port: it has port forwardings, or a router uses it.
    pub(crate) in_use: bool,
    /// Whether it was made for this Service: its description is exactly the Service's, and no tag says otherwise.
    pub(crate) ours: bool,
    /// The tag or the description that says that it was made for another Service, or for another cluster.
    pub(crate) claimed_by: Option<String>,
    /// The other Service that has it, with its load balancer, where that is known.
    pub(crate) user: Option<String>,
    /// Without the uids that stand in it where floating IPs take no tags.
    pub(crate) description: String,
    /// Its tags, or what stands in the description in their place.
    pub(crate) tags: Tags,
}
