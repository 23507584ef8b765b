//! The observed state of the cloud.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use openstack_ccm_openstack_api::octavia::{
    HealthMonitorType, ListenerAttributes, ListenerProtocol, LoadBalancer, MonitorAttributes,
    OperatingStatus, PoolAttributes, PoolProtocol, ProvisioningStatus,
};

use super::Tags;
use super::listener::ListenerKey;
use super::member::{Member, MemberKey};
use crate::load_balancer::names;

/// What exists for one Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Observed {
    /// The Service's load balancer. One in PENDING_DELETE counts as existing, one in DELETED as gone.
    pub(crate) load_balancer: Option<ObservedLoadBalancer>,
    /// The floating IPs that matter: on the VIP port, with the wanted address, and this Service's own; each once.
    pub(crate) floating_ips: Vec<ObservedFloatingIp>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObservedLoadBalancer {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) description: String,
    /// Whether Octavia is working on the load balancer.
    pub(crate) status: ProvisioningStatus,
    /// Whether the load balancer forwards traffic, as far as Octavia knows.
    pub(crate) operating: OperatingStatus,
    pub(crate) vip_address: Option<IpAddr>,
    /// Addresses of the additional VIPs, each with its subnet.
    pub(crate) additional_vips: Vec<(String, IpAddr)>,
    pub(crate) vip_port_id: Option<String>,
    pub(crate) vip_subnet_id: Option<String>,
    pub(crate) made_with: MadeWith,
    pub(crate) tags: Tags,
    pub(crate) ownership: Ownership,
    /// The Service's generated name from before the cluster was renamed, if the load balancer still shows it: in its name, or, if
    /// it belongs to another Service, in a tag.
    pub(crate) previous_name: Option<String>,
    /// The children. `None` if they were not read, which is allowed only while the load balancer is PENDING.
    pub(crate) children: Option<Children>,
}

/// Attributes of a load balancer that cannot be changed after its creation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MadeWith {
    pub(crate) provider: Option<String>,
    pub(crate) flavor_id: Option<String>,
    pub(crate) availability_zone: Option<String>,
    pub(crate) vip_network_id: Option<String>,
}

/// Writes name and id, for messages.
impl fmt::Display for ObservedLoadBalancer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "load balancer {} ({})", self.name, self.id)
    }
}

impl ObservedLoadBalancer {
    /// Returns whether the load balancer has outlived its Service, and no other Service has taken it over.
    pub(crate) fn is_retained(&self) -> bool {
        names::is_retained(&self.description)
    }

    /// Returns whether Octavia shows the known name, description and tags, which identify the owner.
    pub(crate) fn belongs_as_shown(&self, shown: &LoadBalancer) -> bool {
        self.name == shown.name && self.description == shown.description && self.tags == shown.tags
    }

    /// Returns a copy without children.
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

    /// Returns all VIP addresses, the primary one first.
    pub(crate) fn vip_addresses(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.vip_address.into_iter().chain(self.additional_vips.iter().map(|(_, address)| *address))
    }
}

/// The relation between a load balancer and the Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// Made for this Service, or adopted, and used by no other Service: it is deleted with the Service.
    Sole,
    /// Made for this Service, or adopted; other Services use it too, so it outlives this one.
    Shared,
    /// Made for another owner; this Service only has listeners on it.
    Guest,
}

/// All children of a load balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Children {
    pub(crate) listeners: Vec<ObservedListener>,
    /// Pools, with or without a listener.
    pub(crate) pools: Vec<ObservedPool>,
}

impl Children {
    pub(crate) fn default_pool(&self, listener: &ObservedListener) -> Option<&ObservedPool> {
        let id = listener.default_pool_id.as_ref()?;
        self.pools.iter().find(|pool| pool.id == *id)
    }

    /// Returns whether Octavia has built no child: each still waits for its first build or, with `failed`, is in ERROR.
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
    /// Whether the listener was made for this Service.
    pub(crate) ours: bool,
    /// Whether the last change succeeded.
    pub(crate) status: ProvisioningStatus,
    pub(crate) protocol: ListenerProtocol,
    pub(crate) port: u16,
    pub(crate) default_pool_id: Option<String>,
    /// Whether the listener has L7 policies, which this controller never creates.
    pub(crate) has_policies: bool,
    pub(crate) attributes: ListenerAttributes,
    pub(crate) tags: Tags,
}

impl ObservedListener {
    pub(crate) fn key(&self) -> ListenerKey {
        ListenerKey::of(&self.protocol, self.port)
    }

    /// Returns whether the listener serves the load balancer's metrics instead of a Service port.
    pub(crate) fn is_of_metrics(&self) -> bool {
        self.protocol == ListenerProtocol::Prometheus
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObservedPool {
    pub(crate) id: String,
    pub(crate) name: String,
    /// Whether the pool was made for this Service.
    pub(crate) ours: bool,
    /// Whether the last change succeeded. Members have their own status.
    pub(crate) status: ProvisioningStatus,
    /// Whether the pool is used at all. An administrator may have disabled it.
    pub(crate) admin_state_up: bool,
    pub(crate) protocol: PoolProtocol,
    pub(crate) attributes: PoolAttributes,
    pub(crate) tags: Tags,
    /// Ids of the listeners that use the pool, as default pool or in a policy.
    pub(crate) used_by: BTreeSet<String>,
    /// Members; not read, and empty, unless the pool is this Service's.
    pub(crate) members: Vec<ObservedMember>,
    /// Whether the members come from the status tree: only their id, name, address, port and status are
    /// known.
    pub(crate) members_from_status: bool,
    /// Health monitor; not read, and absent, unless the pool is this Service's.
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
    /// Returns whether the floating IP is the Service's and is attached to something other than a load balancer.
    pub(crate) fn is_astray(&self) -> bool {
        self.ours && self.port_id.is_some() && !self.is_on_load_balancer()
    }

    /// Returns whether the floating IP is attached to the VIP of a load balancer: Octavia sets this device id on the ports of its VIPs.
    pub(crate) fn is_on_load_balancer(&self) -> bool {
        let is_vip = |device: &String| device.rsplit(' ').next().is_some_and(|id| id.starts_with("lb-"));
        self.device.as_ref().is_some_and(is_vip)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ObservedFloatingIp {
    pub(crate) id: String,
    pub(crate) address: IpAddr,
    /// The external network of the address.
    pub(crate) network_id: Option<String>,
    /// The port that the floating IP is attached to.
    pub(crate) port_id: Option<String>,
    /// The address of that port to which the floating IP leads.
    pub(crate) fixed_address: Option<IpAddr>,
    /// The owner of that port.
    pub(crate) device: Option<String>,
    /// Whether the floating IP is used without being attached to a port: by port forwardings or a router.
    pub(crate) in_use: bool,
    /// Whether the floating IP was made for this Service: its description is exactly the Service's, and no tag contradicts this.
    pub(crate) ours: bool,
    /// The tag or description that says that the floating IP was made for another Service or cluster.
    pub(crate) claimed_by: Option<String>,
    /// The other Service that uses the floating IP, with its load balancer, if known.
    pub(crate) user: Option<String>,
    /// The description, without the uids that it contains where floating IPs have no tags.
    pub(crate) description: String,
    /// The tags, or the uids in the description instead.
    pub(crate) tags: Tags,
}
