//! The steps by kind of object. Those that Octavia carries out make the load balancer PENDING; those on floating IPs, which
//! Neutron carries out, lock nothing.

use std::net::IpAddr;
use std::sync::Arc;

use openstack_ccm_openstack_api::octavia::{
    UpdateHealthMonitor, UpdateListener, UpdateLoadBalancer, UpdatePool,
};

use crate::load_balancer::model::{
    DesiredListener, ListenerKey, ListenerSpec, LoadBalancerSpec, Member, MonitorSpec, PoolSpec,
    SubnetChoice, Tags,
};

/// The id of an object that a step names.
///
/// A plan holds all that is to be done, also what only becomes possible after an earlier step. Steps on an object that
/// does not exist yet are there to be shown and counted; they are applied in a later reconciliation, which finds the object.
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
        /// The load balancer.
        load_balancer: Box<LoadBalancerSpec>,
        /// Its listeners, each with its pool.
        listeners: Vec<DesiredListener>,
    },
    /// Changes what says whose the load balancer is.
    Update {
        /// Id.
        id: String,
        /// What changes.
        changes: UpdateLoadBalancer,
    },
    /// Deletes the load balancer.
    Delete {
        /// Id.
        id: String,
        /// With everything below it. Without, Octavia refuses while there is anything.
        cascade: bool,
    },
    /// Has what carries the load balancer built again below the same tree. Most clouds allow this to administrators only.
    Failover {
        /// Id.
        id: String,
    },
}

/// A step on a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListenerStep {
    /// Makes a listener.
    Create {
        /// Id of the load balancer.
        load_balancer_id: String,
        /// The listener.
        listener: Box<ListenerSpec>,
        /// Its default pool.
        default_pool: Handle,
    },
    /// Changes a listener.
    Update {
        /// Id.
        id: String,
        /// Port, for display.
        key: ListenerKey,
        /// What changes.
        changes: Box<UpdateListener>,
    },
    /// Gives a listener another default pool.
    SwapDefaultPool {
        /// Id of the listener.
        listener_id: String,
        /// Port, for display.
        key: ListenerKey,
        /// The new default pool.
        pool: Handle,
    },
    /// Deletes a listener. Its default pool stays.
    Delete {
        /// Id.
        id: String,
        /// Port, for display.
        key: ListenerKey,
    },
}

/// A step on a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PoolStep {
    /// Makes a pool that hangs on no listener yet, without members and monitor.
    Create {
        /// Id of the load balancer.
        load_balancer_id: String,
        /// The pool.
        pool: Box<PoolSpec>,
    },
    /// Changes a pool.
    Update {
        /// Id.
        id: String,
        /// What changes.
        changes: UpdatePool,
    },
    /// Deletes a pool with its members and monitor.
    Delete {
        /// Id.
        id: String,
        /// Name, for display.
        name: String,
    },
}

/// A step on the members of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MemberStep {
    /// Makes the members of a pool exactly these, in one batch.
    ReplaceAll {
        /// The pool.
        pool: Handle,
        /// All members, sorted by key.
        members: Vec<Arc<Member>>,
    },
    /// Adds one member to a pool.
    Create {
        /// The pool.
        pool: Handle,
        /// The member.
        member: Arc<Member>,
    },
    /// Takes one member out of a pool.
    Delete {
        /// Id of the pool.
        pool_id: String,
        /// Id of the member.
        id: String,
        /// Its name, for display.
        name: String,
    },
}

/// A step on a health monitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MonitorStep {
    /// Makes a health monitor.
    Create {
        /// The pool.
        pool: Handle,
        /// The monitor.
        monitor: Box<MonitorSpec>,
    },
    /// Changes a health monitor.
    Update {
        /// Id.
        id: String,
        /// What changes.
        changes: UpdateHealthMonitor,
    },
    /// Deletes a health monitor.
    Delete {
        /// Id.
        id: String,
    },
}

/// A step on a floating IP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FloatingIpStep {
    /// Makes a floating IP that leads to a port.
    Create {
        /// External network.
        network_id: String,
        /// Subnet of that network. With [`SubnetChoice::FirstFree`] one call for each until one works.
        subnet: SubnetChoice,
        /// The wanted address.
        address: Option<IpAddr>,
        /// Description.
        description: String,
        /// Tags. Neutron takes none in the creation: they follow in a second call, and if that is never made the
        /// next plan tags what hangs on the VIP port.
        tags: Tags,
        /// The VIP port.
        port: Handle,
    },
    /// Lets a floating IP lead to a port.
    Attach {
        /// Id.
        id: String,
        /// Its address, for display.
        address: IpAddr,
        /// The VIP port.
        port: Handle,
    },
    /// Takes a floating IP off its port.
    Detach {
        /// Id.
        id: String,
        /// Its address, for display.
        address: IpAddr,
    },
    /// Replaces the tags of a floating IP.
    Tag {
        /// Id.
        id: String,
        /// All tags from now on.
        tags: Tags,
    },
    /// Deletes a floating IP.
    Delete {
        /// Id.
        id: String,
        /// Its address, for display.
        address: IpAddr,
    },
}
