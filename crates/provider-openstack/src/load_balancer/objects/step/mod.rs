//! The steps of a plan: each is one complete call to the cloud, so that applying it needs no decision or lookup.

mod display;
mod kinds;
mod outcome;

use std::net::IpAddr;

use openstack_ccm_openstack_api::octavia::{UpdateChild, UpdateLoadBalancer};

use crate::load_balancer::objects::{ListenerKey, Tags, tls};
pub(crate) use kinds::{
    FloatingIpStep, FormerFloatingIp, Handle, ListenerStep, LoadBalancerStep, MemberStep, MonitorStep,
    PoolStep,
};
pub(crate) use outcome::{Answer, Applied, Locked, Made, Next, Operation, Refused};

/// One call to the cloud, by type of object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    LoadBalancer(LoadBalancerStep),
    Listener(ListenerStep),
    Pool(PoolStep),
    Member(MemberStep),
    Monitor(MonitorStep),
    FloatingIp(FloatingIpStep),
}

impl Step {
    /// Returns whether Octavia carries out the step, and locks the load balancer. Neutron carries out the others.
    pub(crate) fn locks(&self) -> bool {
        !matches!(self, Self::FloatingIp(_))
    }

    /// Returns the address that leads to no load balancer after the step.
    pub(crate) fn gives_up(&self) -> Option<IpAddr> {
        match self {
            Self::FloatingIp(
                FloatingIpStep::Detach { address, .. } | FloatingIpStep::Delete { address, .. },
            ) => Some(*address),
            _ => None,
        }
    }

    /// Returns the key of the listener that the step creates. Those of a new load balancer come with its tree.
    pub(crate) fn created_listener(&self) -> Option<ListenerKey> {
        match self {
            Self::Listener(ListenerStep::Create { listener, .. }) => Some(listener.key()),
            _ => None,
        }
    }

    /// Returns whether the step gives Octavia a new certificate reference.
    pub(crate) fn sends_certificate(&self) -> bool {
        match self {
            Self::LoadBalancer(LoadBalancerStep::Create { listeners, .. }) => {
                listeners.iter().any(|desired| desired.listener.attributes.tls_container_ref.is_some())
            }
            Self::Listener(ListenerStep::Create { listener, .. }) => {
                listener.attributes.tls_container_ref.is_some()
            }
            Self::Listener(ListenerStep::Update { changes, .. }) => {
                [tls::CERTIFICATE, tls::SNI].iter().any(|name| changes.attributes.get(name).is_some())
            }
            Self::LoadBalancer(
                LoadBalancerStep::Update { .. }
                | LoadBalancerStep::Delete { .. }
                | LoadBalancerStep::Failover { .. },
            )
            | Self::Listener(ListenerStep::SwapDefaultPool { .. } | ListenerStep::Delete { .. })
            | Self::Pool(_)
            | Self::Member(_)
            | Self::Monitor(_)
            | Self::FloatingIp(_) => false,
        }
    }

    /// Returns whether every object that the step refers to exists already.
    pub(crate) fn is_applicable(&self) -> bool {
        self.handle().is_none_or(|handle| handle.id().is_some())
    }

    /// Returns the object that must exist before the step can be made, and may not exist yet.
    pub(crate) fn handle(&self) -> Option<&Handle> {
        match self {
            Self::Listener(ListenerStep::Create { default_pool, .. }) => default_pool.as_ref(),
            Self::Listener(ListenerStep::SwapDefaultPool { pool: handle, .. })
            | Self::Member(
                MemberStep::ReplaceAll { pool: handle, .. }
                | MemberStep::Add { pool: handle, .. }
                | MemberStep::Create { pool: handle, .. },
            )
            | Self::Monitor(MonitorStep::Create { pool: handle, .. })
            | Self::FloatingIp(
                FloatingIpStep::Create { port: handle, .. } | FloatingIpStep::Attach { port: handle, .. },
            ) => Some(handle),
            Self::Listener(ListenerStep::Update { .. } | ListenerStep::Delete { .. })
            | Self::Member(MemberStep::Update { .. } | MemberStep::Delete { .. })
            | Self::Monitor(MonitorStep::Update { .. } | MonitorStep::Delete { .. })
            | Self::FloatingIp(
                FloatingIpStep::Detach { .. } | FloatingIpStep::Tag { .. } | FloatingIpStep::Delete { .. },
            )
            | Self::LoadBalancer(_)
            | Self::Pool(_) => None,
        }
    }
}

/// Changes of an object with a name and tags. `None` leaves a value as it is.
pub(crate) trait Changes: Clone + Default + PartialEq {
    fn name(&mut self) -> &mut Option<String>;

    /// Returns the complete new tags, including those of other clients.
    fn tags(&mut self) -> &mut Option<Tags>;

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the tags, if nothing else changes.
    fn only_tags(&self) -> Option<Tags> {
        let mut others = self.clone();
        let tags = others.tags().take();
        tags.filter(|_| others.is_empty())
    }
}

macro_rules! changes {
    ($($request:ty),+) => {
        $(impl Changes for $request {
            fn name(&mut self) -> &mut Option<String> {
                &mut self.name
            }

            fn tags(&mut self) -> &mut Option<Tags> {
                &mut self.tags
            }
        })+
    };
}

changes!(UpdateLoadBalancer, UpdateChild);
