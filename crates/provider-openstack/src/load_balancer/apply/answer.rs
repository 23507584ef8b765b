//! What Octavia's answer to a step shows of the child that the step is about.

use std::sync::Arc;

use openstack_ccm_openstack_api::octavia::{CreatedLoadBalancer, HealthMonitor, Listener, Pool};

use crate::load_balancer::model::Member;
use crate::load_balancer::step::Child;

/// What is there once Octavia has done the step, if it does it.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    LoadBalancer(Box<CreatedLoadBalancer>),
    Listener(Box<Listener>),
    Pool(Box<Pool>),
    Monitor {
        monitor: Box<HealthMonitor>,
        pool_id: String,
    },
    /// A pool has got these members and no others.
    Members {
        pool_id: String,
        members: Vec<Arc<Member>>,
    },
    /// A child is gone.
    Gone(Child),
    Nothing,
}

impl Answer {
    /// The id of the child that was made or changed.
    pub(super) fn child_id(&self) -> Option<String> {
        match self {
            Self::Listener(listener) => Some(listener.id.clone()),
            Self::Pool(pool) => Some(pool.id.clone()),
            Self::Monitor { monitor, .. } => Some(monitor.id.clone()),
            Self::LoadBalancer(_) | Self::Members { .. } | Self::Gone(_) | Self::Nothing => None,
        }
    }
}
