//! The steps that Octavia carries out, by kind of object. Each makes the load balancer PENDING.

use std::sync::Arc;

use openstack_ccm_openstack_api::octavia::{
    UpdateHealthMonitor, UpdateListener, UpdateLoadBalancer, UpdatePool,
};

use super::handle::Handle;
use crate::load_balancer::model::listener::{ListenerKey, ListenerSpec};
use crate::load_balancer::model::member::Member;
use crate::load_balancer::model::monitor::MonitorSpec;
use crate::load_balancer::model::pool::PoolSpec;
use crate::load_balancer::model::tree::{DesiredListener, LoadBalancerSpec};

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
