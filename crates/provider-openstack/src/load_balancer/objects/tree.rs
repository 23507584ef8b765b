//! The whole desired state.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use openstack_ccm_core::notice::Notice;

use super::Tags;
use super::floating_ip::FloatingIpGoal;
use super::listener::{ListenerKey, ListenerSpec};
use super::member::Member;
use super::monitor::MonitorSpec;
use super::pool::PoolSpec;
use super::recovery::Recovery;

/// Everything that a Service wants in the cloud. Valid: Octavia has no reason to refuse it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Desired {
    pub(crate) load_balancer: LoadBalancerSpec,
    /// One listener for each port of the Service.
    pub(crate) listeners: BTreeMap<ListenerKey, DesiredListener>,
    /// The listener for the load balancer's metrics. It has no pool, and is created after the load balancer.
    pub(crate) metrics: Option<ListenerSpec>,
    pub(crate) floating_ip: FloatingIpGoal,
    /// Whether Octavia's provider accepts neither whole trees nor batches of members, so that objects are created one by one.
    pub(crate) serial: bool,
    /// Whether members can be added without naming the others.
    pub(crate) additive: bool,
    /// Whether existing members are kept in place of those from nodes: no node is selected, the selector is invalid, or a node has
    /// no address.
    pub(crate) keeps_members: bool,
    /// Addresses of nodes that have another server now: what an administrator set on the former one is not kept.
    pub(crate) replaced_servers: BTreeSet<IpAddr>,
    /// What decides if the load balancer is in ERROR.
    pub(crate) recovery: Recovery,
    /// Notices about how this state was determined.
    pub(crate) notices: Vec<Notice>,
}

/// A load balancer as it is created. Only the tags are compared later: the rest cannot be changed, or belongs to its creator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LoadBalancerSpec {
    pub(crate) name: String,
    pub(crate) description: String,
    /// Provider driver; absent, Octavia chooses.
    pub(crate) provider: Option<String>,
    pub(crate) vip: Vip,
    pub(crate) flavor_id: Option<String>,
    pub(crate) availability_zone: Option<String>,
    /// Minimum tags. Empty where Octavia has no tags.
    pub(crate) tags: Tags,
}

/// The VIP of a new load balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Vip {
    /// An existing port; excludes subnet and network.
    pub(crate) port_id: Option<String>,
    pub(crate) subnet_id: Option<String>,
    pub(crate) network_id: Option<String>,
    pub(crate) address: Option<IpAddr>,
    pub(crate) additional: Vec<AdditionalVip>,
}

/// A VIP in addition to the primary one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AdditionalVip {
    pub(crate) subnet_id: String,
    /// Address; absent, Neutron chooses.
    pub(crate) address: Option<IpAddr>,
}

impl fmt::Display for AdditionalVip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.subnet_id)?;
        self.address.map_or(Ok(()), |address| write!(f, " {address}"))
    }
}

/// A listener with its children.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DesiredListener {
    pub(crate) listener: ListenerSpec,
    pub(crate) pool: DesiredPool,
}

/// A pool with its children.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DesiredPool {
    pub(crate) pool: PoolSpec,
    /// Members, sorted by key, each key once.
    pub(crate) members: Vec<Arc<Member>>,
    pub(crate) monitor: Option<MonitorSpec>,
}

/// What happens to a load balancer that only this Service uses, when the Service is deleted (`reclaim-policy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reclaim {
    /// The load balancer is deleted too.
    Delete,
    /// The load balancer stays with its floating IP, for another Service.
    Retain,
}

/// What a deleted Service leaves behind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ReleaseTerms {
    /// Tags of this Service alone, which are removed from a load balancer that stays.
    pub(crate) tags: Tags,
    /// Tags that all Services of the cluster have in common: they are removed with the last user.
    pub(crate) common_tags: Tags,
    /// Tags of the Service's floating IP, which identify it after the load balancer is deleted.
    pub(crate) floating_ip_tags: Tags,
    /// What happens to the load balancer.
    pub(crate) reclaim: Reclaim,
    /// `keep-floatingip`: keep the floating IP.
    pub(crate) keep_floating_ip: bool,
    /// The user's own VIP port (`port-id`). It outlives the load balancer, with its floating IP.
    pub(crate) vip_port_id: Option<String>,
    /// VIP ports of load balancers that are kept: their floating IPs are kept too.
    pub(crate) retained_vip_ports: BTreeSet<String>,
    /// Whether the load balancer is deleted with its children in one call, or after its children one by one.
    pub(crate) cascade: bool,
}
