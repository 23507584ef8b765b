//! The steps of a plan: one call to the cloud each, complete, so that applying one decides and looks up nothing.

mod changes;
mod display;
mod touched;

pub use changes::{ListenerChanges, LoadBalancerChanges, MonitorChanges, PoolChanges, TlsChanges};
pub use touched::{Child, Touched};

use std::net::IpAddr;

use super::model::Tags;
use super::model::floating_ip::SubnetChoice;
use super::model::listener::{ListenerKey, ListenerSpec};
use super::model::member::Member;
use super::model::monitor::MonitorSpec;
use super::model::pool::PoolSpec;
use super::model::tree::{DesiredListener, LoadBalancerSpec};

/// The id of an object that a step names.
///
/// A plan holds all that is to be done, also what only becomes possible after an earlier step. Steps on an object that
/// does not exist yet are there to be shown and counted; they are applied in a later pass, which finds the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handle {
    /// The object exists and has this id.
    Id(String),
    /// An earlier step of this plan makes the object, with this name.
    New(String),
}

impl Handle {
    /// The id, where the object exists.
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::Id(id) => Some(id),
            Self::New(_) => None,
        }
    }
}

/// One call to the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Makes the load balancer with everything below it.
    CreateLoadBalancer {
        /// The load balancer.
        load_balancer: Box<LoadBalancerSpec>,
        /// Its listeners, each with its pool.
        listeners: Vec<DesiredListener>,
    },
    /// Changes what says whose the load balancer is.
    UpdateLoadBalancer {
        /// Id.
        id: String,
        /// What changes.
        changes: LoadBalancerChanges,
    },
    /// Deletes the load balancer.
    DeleteLoadBalancer {
        /// Id.
        id: String,
        /// With everything below it. Without, Octavia refuses while there is anything.
        cascade: bool,
    },
    /// Makes a listener.
    CreateListener {
        /// Id of the load balancer.
        load_balancer_id: String,
        /// The listener.
        listener: Box<ListenerSpec>,
        /// Its default pool.
        default_pool: Handle,
    },
    /// Changes a listener.
    UpdateListener {
        /// Id.
        id: String,
        /// Port, for display.
        key: ListenerKey,
        /// What changes.
        changes: Box<ListenerChanges>,
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
    DeleteListener {
        /// Id.
        id: String,
        /// Port, for display.
        key: ListenerKey,
    },
    /// Makes a pool that hangs on no listener yet, without members and monitor.
    CreatePool {
        /// Id of the load balancer.
        load_balancer_id: String,
        /// The pool.
        pool: Box<PoolSpec>,
    },
    /// Changes a pool.
    UpdatePool {
        /// Id.
        id: String,
        /// What changes.
        changes: PoolChanges,
    },
    /// Deletes a pool with its members and monitor.
    DeletePool {
        /// Id.
        id: String,
        /// Name, for display.
        name: String,
    },
    /// Makes the members of a pool exactly these, in one batch.
    ReplaceMembers {
        /// The pool.
        pool: Handle,
        /// All members, sorted by key.
        members: Vec<Member>,
    },
    /// Adds one member to a pool.
    CreateMember {
        /// The pool.
        pool: Handle,
        /// The member.
        member: Box<Member>,
    },
    /// Takes one member out of a pool.
    DeleteMember {
        /// Id of the pool.
        pool_id: String,
        /// Id of the member.
        id: String,
        /// Its name, for display.
        name: String,
    },
    /// Makes a health monitor.
    CreateMonitor {
        /// The pool.
        pool: Handle,
        /// The monitor.
        monitor: Box<MonitorSpec>,
    },
    /// Changes a health monitor.
    UpdateMonitor {
        /// Id.
        id: String,
        /// What changes.
        changes: MonitorChanges,
    },
    /// Deletes a health monitor.
    DeleteMonitor {
        /// Id.
        id: String,
    },
    /// Makes a floating IP that leads to a port.
    CreateFloatingIp {
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
    AttachFloatingIp {
        /// Id.
        id: String,
        /// Its address, for display.
        address: IpAddr,
        /// The VIP port.
        port: Handle,
    },
    /// Takes a floating IP off its port.
    DetachFloatingIp {
        /// Id.
        id: String,
        /// Its address, for display.
        address: IpAddr,
    },
    /// Replaces the tags of a floating IP.
    TagFloatingIp {
        /// Id.
        id: String,
        /// All tags from now on.
        tags: Tags,
    },
    /// Deletes a floating IP.
    DeleteFloatingIp {
        /// Id.
        id: String,
        /// Its address, for display.
        address: IpAddr,
    },
}

impl Step {
    /// Whether the step makes the load balancer PENDING, so that Octavia refuses every further write for a while.
    pub fn locks(&self) -> bool {
        match self {
            Self::CreateLoadBalancer { .. }
            | Self::UpdateLoadBalancer { .. }
            | Self::DeleteLoadBalancer { .. }
            | Self::CreateListener { .. }
            | Self::UpdateListener { .. }
            | Self::SwapDefaultPool { .. }
            | Self::DeleteListener { .. }
            | Self::CreatePool { .. }
            | Self::UpdatePool { .. }
            | Self::DeletePool { .. }
            | Self::ReplaceMembers { .. }
            | Self::CreateMember { .. }
            | Self::DeleteMember { .. }
            | Self::CreateMonitor { .. }
            | Self::UpdateMonitor { .. }
            | Self::DeleteMonitor { .. } => true,
            Self::CreateFloatingIp { .. }
            | Self::AttachFloatingIp { .. }
            | Self::DetachFloatingIp { .. }
            | Self::TagFloatingIp { .. }
            | Self::DeleteFloatingIp { .. } => false,
        }
    }

    /// Whether Octavia gets a reference to a certificate that it did not have.
    pub fn sends_certificate(&self) -> bool {
        match self {
            Self::CreateLoadBalancer { listeners, .. } => {
                listeners.iter().any(|desired| desired.listener.attributes.tls_container_ref.is_some())
            }
            Self::CreateListener { listener, .. } => listener.attributes.tls_container_ref.is_some(),
            Self::UpdateListener { changes, .. } => {
                changes.tls_container_ref.is_some() || changes.tls.sni_container_refs.is_some()
            }
            Self::UpdateLoadBalancer { .. }
            | Self::DeleteLoadBalancer { .. }
            | Self::SwapDefaultPool { .. }
            | Self::DeleteListener { .. }
            | Self::CreatePool { .. }
            | Self::UpdatePool { .. }
            | Self::DeletePool { .. }
            | Self::ReplaceMembers { .. }
            | Self::CreateMember { .. }
            | Self::DeleteMember { .. }
            | Self::CreateMonitor { .. }
            | Self::UpdateMonitor { .. }
            | Self::DeleteMonitor { .. }
            | Self::CreateFloatingIp { .. }
            | Self::AttachFloatingIp { .. }
            | Self::DetachFloatingIp { .. }
            | Self::TagFloatingIp { .. }
            | Self::DeleteFloatingIp { .. } => false,
        }
    }

    /// Whether every object that the step names exists already.
    pub fn is_applicable(&self) -> bool {
        self.handle().is_none_or(|handle| handle.id().is_some())
    }

    fn handle(&self) -> Option<&Handle> {
        match self {
            Self::CreateListener { default_pool: handle, .. }
            | Self::SwapDefaultPool { pool: handle, .. }
            | Self::ReplaceMembers { pool: handle, .. }
            | Self::CreateMember { pool: handle, .. }
            | Self::CreateMonitor { pool: handle, .. }
            | Self::CreateFloatingIp { port: handle, .. }
            | Self::AttachFloatingIp { port: handle, .. } => Some(handle),
            Self::CreateLoadBalancer { .. }
            | Self::UpdateLoadBalancer { .. }
            | Self::DeleteLoadBalancer { .. }
            | Self::UpdateListener { .. }
            | Self::DeleteListener { .. }
            | Self::CreatePool { .. }
            | Self::UpdatePool { .. }
            | Self::DeletePool { .. }
            | Self::DeleteMember { .. }
            | Self::UpdateMonitor { .. }
            | Self::DeleteMonitor { .. }
            | Self::DetachFloatingIp { .. }
            | Self::TagFloatingIp { .. }
            | Self::DeleteFloatingIp { .. } => None,
        }
    }
}
