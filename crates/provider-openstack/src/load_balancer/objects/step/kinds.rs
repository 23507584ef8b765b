//! The steps by type of object. Steps in Octavia make the load balancer PENDING; steps on floating IPs, in Neutron, lock nothing.

use std::net::IpAddr;
use std::sync::Arc;

use openstack_ccm_openstack_api::octavia::{UpdateChild, UpdateLoadBalancer};

use crate::load_balancer::objects::{
    DesiredListener, ListenerKey, ListenerSpec, LoadBalancerSpec, Member, MonitorSpec, PoolSpec,
    SubnetChoice, Tags,
};

/// The object that a step refers to.
///
/// A plan contains all steps, even those that only become possible after an earlier one. Steps on an object that does not exist yet
/// are displayed and counted; they are applied in a later reconciliation, after Octavia's answer has given the object its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Handle {
    /// The object exists and has this id.
    Id(String),
    /// An earlier step of this plan creates the object, with this name.
    New(String),
}

impl Handle {
    /// Returns the id, if the object exists.
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
    /// Creates the load balancer with all its children.
    Create {
        load_balancer: Box<LoadBalancerSpec>,
        /// Listeners of the load balancer, each with its pool.
        listeners: Vec<DesiredListener>,
    },
    /// Changes the attributes that identify the owner.
    Update { id: String, changes: UpdateLoadBalancer },
    Delete {
        id: String,
        /// With all children. Without `cascade`, Octavia refuses if there are any.
        cascade: bool,
    },
    /// Has Octavia rebuild the load balancer's amphorae and keep the tree. Most clouds allow this to administrators only.
    Failover { id: String },
}

/// A step on a listener. Keys are for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListenerStep {
    /// Creates a listener. The metrics listener has no pool.
    Create {
        load_balancer_id: String,
        listener: Box<ListenerSpec>,
        default_pool: Option<Handle>,
    },
    Update {
        id: String,
        key: ListenerKey,
        changes: Box<UpdateChild>,
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
    /// Creates a pool that no listener uses yet, without members and monitor.
    Create {
        load_balancer_id: String,
        pool: Box<PoolSpec>,
    },
    Update {
        id: String,
        changes: UpdateChild,
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
    /// Replaces all members of a pool in one batch.
    ReplaceAll {
        pool: Handle,
        /// All members, sorted by key.
        members: Vec<Arc<Member>>,
    },
    /// Adds members to a pool in one batch that names no others (`additive_only`): a batch resets weight, backup, `admin_state_up`
    /// and monitor port of every member that it names.
    Add {
        pool: Handle,
        /// Sorted by key.
        members: Vec<Arc<Member>>,
    },
    /// Adds one member to a pool.
    Create { pool: Handle, member: Arc<Member> },
    /// Sets the monitor port of one member to that of `member`.
    Update { pool_id: String, id: String, member: Arc<Member> },
    /// Deletes one member of a pool.
    Delete { pool_id: String, id: String, name: String },
}

impl MemberStep {
    /// Returns the pool, which may not exist yet.
    pub(crate) fn pool(&self) -> Option<&Handle> {
        match self {
            Self::ReplaceAll { pool, .. } | Self::Add { pool, .. } | Self::Create { pool, .. } => Some(pool),
            Self::Update { .. } | Self::Delete { .. } => None,
        }
    }

    /// Returns the members that the step names as a whole.
    pub(crate) fn members(&self) -> &[Arc<Member>] {
        match self {
            Self::ReplaceAll { members, .. } | Self::Add { members, .. } => members,
            Self::Create { member, .. } => std::slice::from_ref(member),
            Self::Update { .. } | Self::Delete { .. } => &[],
        }
    }

    /// Returns the id of the pool, if it exists.
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
    /// Creates a health monitor.
    Create {
        pool: Handle,
        monitor: Box<MonitorSpec>,
    },
    Update {
        id: String,
        pool_id: String,
        changes: UpdateChild,
    },
    /// Deletes the health monitor of a pool.
    Delete {
        id: String,
        pool_id: String,
    },
}

/// The floating IP that a port has had so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FormerFloatingIp {
    pub(crate) id: String,
    pub(crate) address: IpAddr,
}

/// A step on a floating IP. Addresses of existing ones are for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FloatingIpStep {
    /// Creates a floating IP for a port.
    Create {
        network_id: String,
        /// Subnet of that network. [`SubnetChoice::FirstFree`] takes one call per subnet until one succeeds.
        subnet: SubnetChoice,
        address: Option<IpAddr>,
        description: String,
        /// Tags. Neutron accepts none in the creation, so a second call sets them; if that is never made, the next plan tags the
        /// floating IP on the VIP port.
        tags: Tags,
        port: Handle,
        /// Fixed address of the port, for clouds whose ports show none.
        vip: Option<IpAddr>,
    },
    /// Attaches a floating IP to a port. Neutron cannot exchange floating IPs: the former one is detached first, and attached again
    /// if this one is refused.
    Attach {
        id: String,
        address: IpAddr,
        port: Handle,
        /// Fixed address of the port, for clouds whose ports show none.
        vip: Option<IpAddr>,
        instead_of: Option<FormerFloatingIp>,
    },
    /// Detaches a floating IP from its port.
    Detach {
        id: String,
        address: IpAddr,
    },
    /// Replaces the tags of a floating IP.
    Tag {
        id: String,
        tags: Tags,
        /// Its description, to which the uids are added where the cloud has no tags.
        description: String,
        /// The port that it is attached to: an update of the description without the port would detach the floating IP.
        port_id: Option<String>,
    },
    Delete {
        id: String,
        address: IpAddr,
    },
}
