//! What is wanted, whole.

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
    /// The listener with the load balancer's own metrics. It has no pool, and comes when the load balancer is there.
    pub(crate) metrics: Option<ListenerSpec>,
    pub(crate) floating_ip: FloatingIpGoal,
    /// Whether Octavia's provider takes neither whole trees nor batches of members: everything is made one by one.
    pub(crate) serial: bool,
    /// Whether members can be added without naming the others.
    pub(crate) additive: bool,
    /// Whether members that are there stand in for those that the nodes would give: there is no node to put in their place, it cannot
    /// be read which ones, or a node shows no address.
    pub(crate) keeps_members: bool,
    /// What is known for the case that the load balancer is in ERROR.
    pub(crate) recovery: Recovery,
    /// What the user should know about how this came out.
    pub(crate) notices: Vec<Notice>,
}

/// A load balancer as it is created. Of these only the tags are compared later: the others cannot be changed, or
/// belong to whoever made it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LoadBalancerSpec {
    pub(crate) name: String,
    pub(crate) description: String,
    /// Provider driver; absent, Octavia chooses.
    pub(crate) provider: Option<String>,
    pub(crate) vip: Vip,
    pub(crate) flavor_id: Option<String>,
    pub(crate) availability_zone: Option<String>,
    /// Tags that it carries at least. Empty where Octavia has no tags.
    pub(crate) tags: Tags,
}

/// Where the VIP of a new load balancer is.
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
    /// Its members, sorted by key, each key once.
    pub(crate) members: Vec<Arc<Member>>,
    pub(crate) monitor: Option<MonitorSpec>,
}

/// What becomes of a load balancer that is a Service's alone, when the Service goes (`reclaim-policy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reclaim {
    /// It goes too.
    Delete,
    /// It stays with its floating IP, for whoever takes it over.
    Retain,
}

/// What a Service leaves behind, and how, when it goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ReleaseTerms {
    /// The tags of this Service alone, to be taken off a load balancer that stays.
    pub(crate) tags: Tags,
    /// The tags that all Services of the cluster have in common: they go with the last user.
    pub(crate) common_tags: Tags,
    /// Tags of the Service's floating IP: by them it is found again when the load balancer is gone.
    pub(crate) floating_ip_tags: Tags,
    /// Whether the load balancer goes too.
    pub(crate) reclaim: Reclaim,
    /// `keep-floatingip`: leave the floating IP.
    pub(crate) keep_floating_ip: bool,
    /// The user's own VIP port (`port-id`). It outlives the load balancer, with the floating IP on it.
    pub(crate) vip_port_id: Option<String>,
    /// VIP ports of load balancers that stay as a whole: their floating IPs stay too.
    pub(crate) retained_vip_ports: BTreeSet<String>,
    /// Whether the load balancer is deleted with its children in one call, or child by child before.
    pub(crate) cascade: bool,
}
