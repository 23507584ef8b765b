//! The steps of a plan: one call to the cloud each, complete, so that applying one decides and looks up nothing.

mod display;
mod kinds;
mod outcome;

use openstack_ccm_openstack_api::octavia::{
    UpdateHealthMonitor, UpdateListener, UpdateLoadBalancer, UpdatePool,
};

use crate::load_balancer::objects::Tags;
pub(crate) use kinds::{
    FloatingIpStep, FormerFloatingIp, Handle, ListenerStep, LoadBalancerStep, MemberStep, MonitorStep,
    PoolStep,
};
pub(crate) use outcome::{Answer, Applied, Locked, Made, Operation};

/// One call to the cloud, by kind of object.
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
    /// Whether Octavia carries the step out, and locks the load balancer for it. Neutron carries out the others.
    pub(crate) fn locks(&self) -> bool {
        !matches!(self, Self::FloatingIp(_))
    }

    /// Whether Octavia gets a reference to a certificate that it did not have.
    pub(crate) fn sends_certificate(&self) -> bool {
        match self {
            Self::LoadBalancer(LoadBalancerStep::Create { listeners, .. }) => {
                listeners.iter().any(|desired| desired.listener.attributes.tls_container_ref.is_some())
            }
            Self::Listener(ListenerStep::Create { listener, .. }) => {
                listener.attributes.tls_container_ref.is_some()
            }
            Self::Listener(ListenerStep::Update { changes, .. }) => {
                !changes.default_tls_container_ref.is_keep() || changes.sni_container_refs.is_some()
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

    /// Whether every object that the step names exists already.
    pub(crate) fn is_applicable(&self) -> bool {
        self.handle().is_none_or(|handle| handle.id().is_some())
    }

    /// The object that may not exist yet, and has to before the step can be made.
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

/// Changes of an object with a name and tags. What is absent stays as it is.
pub(crate) trait Changes: Clone + Default + PartialEq {
    fn name(&mut self) -> &mut Option<String>;

    /// All tags from now on, those of others included.
    fn tags(&mut self) -> &mut Option<Tags>;

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The tags, where nothing else changes.
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

changes!(UpdateLoadBalancer, UpdateListener, UpdatePool, UpdateHealthMonitor);
