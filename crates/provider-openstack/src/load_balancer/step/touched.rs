//! What a step leaves different from how it was last seen.

use serde::{Deserialize, Serialize};

use super::{Handle, ListenerStep, LoadBalancerStep, MemberStep, MonitorStep, PoolStep, Step};

/// What has to be read again after a step, to see whether it was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Touched {
    Child(Child),
    LoadBalancer,
    FloatingIps,
    /// There is no load balancer any more, or another one.
    Everything,
}

impl Touched {
    /// The child, where it is one.
    pub(crate) fn child(&self) -> Option<&Child> {
        match self {
            Self::Child(child) => Some(child),
            Self::LoadBalancer | Self::FloatingIps | Self::Everything => None,
        }
    }
}

/// One child of a load balancer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Child {
    Listener(String),
    /// A pool, without what is in it.
    Pool(String),
    /// The members of a pool.
    Members(String),
    /// The health monitor of a pool.
    Monitor {
        id: String,
        pool_id: String,
    },
}

impl Child {
    /// Its id; that of the pool for its members.
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Listener(id) | Self::Pool(id) | Self::Members(id) | Self::Monitor { id, .. } => id,
        }
    }
}

impl Step {
    /// What the step touches. `made` is the id of the child that it made.
    pub(crate) fn touches(&self, made: Option<String>) -> Touched {
        let child = match self {
            Self::LoadBalancer(LoadBalancerStep::Update { .. }) => return Touched::LoadBalancer,
            Self::LoadBalancer(
                LoadBalancerStep::Create { .. }
                | LoadBalancerStep::Delete { .. }
                | LoadBalancerStep::Failover { .. },
            ) => None,
            Self::Listener(ListenerStep::Create { .. }) => made.map(Child::Listener),
            Self::Listener(
                ListenerStep::Update { id, .. }
                | ListenerStep::SwapDefaultPool { listener_id: id, .. }
                | ListenerStep::Delete { id, .. },
            ) => Some(Child::Listener(id.clone())),
            Self::Pool(PoolStep::Create { .. }) => made.map(Child::Pool),
            Self::Pool(PoolStep::Update { id, .. } | PoolStep::Delete { id, .. }) => {
                Some(Child::Pool(id.clone()))
            }
            Self::Member(MemberStep::ReplaceAll { pool, .. } | MemberStep::Create { pool, .. }) => {
                id_of(pool).map(Child::Members)
            }
            Self::Member(MemberStep::Delete { pool_id, .. }) => Some(Child::Members(pool_id.clone())),
            Self::Monitor(MonitorStep::Create { pool, .. }) => {
                made.zip(id_of(pool)).map(|(id, pool_id)| Child::Monitor { id, pool_id })
            }
            Self::Monitor(MonitorStep::Update { id, pool_id, .. } | MonitorStep::Delete { id, pool_id }) => {
                Some(Child::Monitor { id: id.clone(), pool_id: pool_id.clone() })
            }
            Self::FloatingIp(_) => return Touched::FloatingIps,
        };
        child.map_or(Touched::Everything, Touched::Child)
    }
}

fn id_of(handle: &Handle) -> Option<String> {
    handle.id().map(str::to_owned)
}
