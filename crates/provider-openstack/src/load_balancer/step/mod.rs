//! The steps of a plan: one call to the cloud each, complete, so that applying one decides and looks up nothing.

mod changes;
mod display;
mod kinds;
mod touched;

pub(crate) use changes::Changes;
pub(crate) use kinds::{
    FloatingIpStep, FormerFloatingIp, Handle, ListenerStep, LoadBalancerStep, MemberStep, MonitorStep,
    PoolStep,
};
pub(crate) use touched::{Child, Touched};

use serde::{Deserialize, Serialize};

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

/// What of all that earlier steps built has to be there for sure before a step is taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Needs {
    /// Nothing: the step takes nothing away that may carry traffic, even where an earlier one turns out to have failed.
    Nothing,
    /// This pool, with its members and monitor: it takes the place of another one.
    Pool {
        id: String,
        /// Id of the listener that gets it.
        listener_id: String,
    },
    /// What was done about the monitor and the members of this pool: an HTTP check that meets members which were not made for it takes
    /// all of them down.
    Check { pool_id: String },
    /// All of it.
    #[default]
    Everything,
}

impl Step {
    /// What has to be there for sure before the step is taken.
    pub(crate) fn needs(&self) -> Needs {
        match self {
            Self::Listener(ListenerStep::SwapDefaultPool { listener_id, pool: Handle::Id(id), key: _ }) => {
                Needs::Pool { id: id.clone(), listener_id: listener_id.clone() }
            }
            Self::Member(
                MemberStep::ReplaceAll { pool: Handle::Id(pool_id), .. }
                | MemberStep::Create { pool: Handle::Id(pool_id), .. },
            )
            | Self::Monitor(
                MonitorStep::Create { pool: Handle::Id(pool_id), .. } | MonitorStep::Update { pool_id, .. },
            ) => Needs::Check { pool_id: pool_id.clone() },
            step if step.builds() => Needs::Nothing,
            _ => Needs::Everything,
        }
    }

    /// Whether the step changes nothing but what hangs on the load balancer for one Service.
    pub(crate) fn concerns_own_children(&self) -> bool {
        matches!(self, Self::Listener(_) | Self::Pool(_) | Self::Member(_) | Self::Monitor(_))
    }

    /// Whether the step locks the load balancer, and takes nothing away that may carry traffic, even where an earlier step
    /// turns out to have failed.
    fn builds(&self) -> bool {
        matches!(
            self,
            Self::LoadBalancer(LoadBalancerStep::Create { .. } | LoadBalancerStep::Update { .. })
                | Self::Listener(ListenerStep::Create { .. } | ListenerStep::Update { .. })
                | Self::Pool(PoolStep::Create { .. } | PoolStep::Update { .. })
                | Self::Member(MemberStep::ReplaceAll { .. } | MemberStep::Create { .. })
                | Self::Monitor(MonitorStep::Create { .. } | MonitorStep::Update { .. })
        )
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

    fn handle(&self) -> Option<&Handle> {
        match self {
            Self::Listener(
                ListenerStep::Create { default_pool: handle, .. }
                | ListenerStep::SwapDefaultPool { pool: handle, .. },
            )
            | Self::Member(
                MemberStep::ReplaceAll { pool: handle, .. } | MemberStep::Create { pool: handle, .. },
            )
            | Self::Monitor(MonitorStep::Create { pool: handle, .. })
            | Self::FloatingIp(
                FloatingIpStep::Create { port: handle, .. } | FloatingIpStep::Attach { port: handle, .. },
            ) => Some(handle),
            Self::Listener(ListenerStep::Update { .. } | ListenerStep::Delete { .. })
            | Self::Member(MemberStep::Delete { .. })
            | Self::Monitor(MonitorStep::Update { .. } | MonitorStep::Delete { .. })
            | Self::FloatingIp(
                FloatingIpStep::Detach { .. } | FloatingIpStep::Tag { .. } | FloatingIpStep::Delete { .. },
            )
            | Self::LoadBalancer(_)
            | Self::Pool(_) => None,
        }
    }
}
