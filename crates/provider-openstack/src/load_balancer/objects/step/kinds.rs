//! The steps by kind of object. Those that Octavia carries out make the load balancer PENDING; those on floating IPs, which
//! Neutron carries out, lock nothing.

use std::net::IpAddr;
use std::sync::Arc;

use openstack_ccm_openstack_api::octavia::{
    UpdateHealthMonitor, UpdateListener, UpdateLoadBalancer, UpdatePool,
};

use crate::load_balancer::objects::{
    DesiredListener, ListenerKey, ListenerSpec, LoadBalancerSpec, Member, MonitorSpec, PoolSpec,
    SubnetChoice, Tags,
};

/// The id of an object that a step names.
///
/// A plan holds all that is to be done, also what only becomes possible after an earlier step. Steps on an object that
/// does not exist yet are there to be shown and counted; they are applied in a later reconciliation, after Octavia's answer has given the object its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Handle {
    /// The object exists and has this id.
    Id(String),
    /// An earlier step of this plan makes the object, with this name.
    New(String),
}

impl Handle {
    /// The id, where the object exists.
    pub(crate) fn id(&self) -> Option<&str> {
        match self {
            Self::Id(id) => Some(id),
            Self::New(_) => None,
        }
    }
}

/// A step on the load balancer itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LoadBalancerStep {
    /// Makes the load balancer with everything below it.
    Create {
        load_balancer: Box<LoadBalancerSpec>,
        /// Its listeners, each with its pool.
        listeners: Vec<DesiredListener>,
    },
    /// Changes what says whose the load balancer is.
    Update { id: String, changes: UpdateLoadBalancer },
    Delete {
        id: String,
        /// With everything below it. Without, Octavia refuses while there is anything.
        cascade: bool,
    },
    /// Has what carries the load balancer built again below the same tree. Most clouds allow this to administrators only.
    Failover { id: String },
}

/// A step on a listener. Keys are for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListenerStep {
    /// Makes a listener. That of the metrics has no pool.
    Create {
        load_balancer_id: String,
        listener: Box<ListenerSpec>,
        default_pool: Option<Handle>,
    },
    Update {
        id: String,
        key: ListenerKey,
        changes: Box<UpdateListener>,
    },
    /// Gives a listener another default pool.
    SwapDefaultPool {
        listener_id: String,
        key: ListenerKey,
        pool: Handle,
    },
    /// Deletes a listener. Its default pool stays.
    Delete {
        id: String,
        key: ListenerKey,
    },
}

/// A step on a pool. Names are for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PoolStep {
    /// Makes a pool that no listener uses yet, without members and monitor.
    Create {
        load_balancer_id: String,
        pool: Box<PoolSpec>,
    },
    Update {
        id: String,
        changes: UpdatePool,
    },
    /// Deletes a pool with its members and monitor.
    Delete {
        id: String,
        name: String,
    },
}

/// A step on the members of a pool. Names are for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MemberStep {
    /// Makes the members of a pool exactly these, in one batch.
    ReplaceAll {
        pool: Handle,
        /// All members, sorted by key.
        members: Vec<Arc<Member>>,
    },
    /// Adds members to a pool in one batch that names no others (`additive_only`): a batch puts weight, backup, `admin_state_up` and
    /// monitor port of every member that it names back to their defaults.
    Add {
        pool: Handle,
        /// Sorted by key.
        members: Vec<Arc<Member>>,
    },
    /// Adds one member to a pool.
    Create { pool: Handle, member: Arc<Member> },
    /// Has one member checked on the port of this one.
    Update { pool_id: String, id: String, member: Arc<Member> },
    /// Takes one member out of a pool.
    Delete { pool_id: String, id: String, name: String },
}

impl MemberStep {
    /// The pool, which may not exist yet.
    pub(crate) fn pool(&self) -> Option<&Handle> {
        match self {
            Self::ReplaceAll { pool, .. } | Self::Add { pool, .. } | Self::Create { pool, .. } => Some(pool),
            Self::Update { .. } | Self::Delete { .. } => None,
        }
    }

    /// Id of the pool, where it exists.
    pub(crate) fn pool_id(&self) -> Option<&str> {
        match self {
            Self::ReplaceAll { pool, .. } | Self::Add { pool, .. } | Self::Create { pool, .. } => pool.id(),
            Self::Update { pool_id, .. } | Self::Delete { pool_id, .. } => Some(pool_id),
        }
    }
}

/// A step on a health monitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MonitorStep {
    /// Makes a health monitor.
    Create {
        pool: Handle,
        monitor: Box<MonitorSpec>,
    },
    Update {
        id: String,
        pool_id: String,
        changes: UpdateHealthMonitor,
    },
    /// Deletes the health monitor of a pool.
    Delete {
        id: String,
        pool_id: String,
    },
}

/// The floating IP that a port had so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FormerFloatingIp {
    pub(crate) id: String,
    pub(crate) address: IpAddr,
}

/// A step on a floating IP. One that exists is named with its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FloatingIpStep {
    /// Makes a floating IP that leads to a port.
    Create {
        network_id: String,
        /// Subnet of that network. With [`SubnetChoice::FirstFree`] one call for each until one works.
        subnet: SubnetChoice,
        address: Option<IpAddr>,
        description: String,
        /// Tags. Neutron takes none in the creation: they follow in a second call, and if that is never made the
        /// next plan tags what hangs on the VIP port.
        tags: Tags,
        port: Handle,
        /// Address of the port, for a cloud whose ports show none.
        vip: Option<IpAddr>,
    },
    /// Lets a floating IP lead to a port. Neutron does not replace one by another: the former one is taken off the port before, and put back if
    /// this one is refused.
    Attach {
        id: String,
        address: IpAddr,
        port: Handle,
        /// Address of the port, for a cloud whose ports show none.
        vip: Option<IpAddr>,
        instead_of: Option<FormerFloatingIp>,
    },
    /// Takes a floating IP off its port.
    Detach {
        id: String,
        address: IpAddr,
    },
    /// Replaces the tags of a floating IP.
    Tag {
        id: String,
        tags: Tags,
        /// Its description, to which the uids are added where it takes no tags.
        description: String,
        /// The port that it leads to: a change of the description that does not name it takes the floating IP off.
        port_id: Option<String>,
    },
    Delete {
        id: String,
        address: IpAddr,
    },
}
