//! What Octavia does for a step, what it answers, and what became of a plan.

use std::net::IpAddr;
use std::time::Duration;

use openstack_ccm_core::notice::Notice;
use openstack_ccm_openstack_api::error::ErrorKind;
use openstack_ccm_openstack_api::octavia::{CreatedLoadBalancer, LbAlgorithm};

use super::{LoadBalancerStep, Step};
use crate::load_balancer::objects::{Failover, ObservedFloatingIp};

/// What Octavia is at work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    /// A new load balancer, or one that is failed over.
    Creation,
    /// The end of one.
    Deletion,
    /// A change of the load balancer itself.
    LoadBalancer,
    /// A listener: of all changes this takes longest.
    Listener,
    Pool,
    /// The members of a pool.
    Members,
    /// A health monitor.
    Monitor,
}

impl Operation {
    /// What Octavia is at work on after a step. A failover takes as long as a creation.
    pub(crate) fn of(step: &Step) -> Option<Self> {
        match step {
            Step::LoadBalancer(LoadBalancerStep::Create { .. } | LoadBalancerStep::Failover { .. }) => {
                Some(Self::Creation)
            }
            Step::LoadBalancer(LoadBalancerStep::Update { .. }) => Some(Self::LoadBalancer),
            Step::LoadBalancer(LoadBalancerStep::Delete { .. }) => Some(Self::Deletion),
            Step::Listener(_) => Some(Self::Listener),
            Step::Pool(_) => Some(Self::Pool),
            Step::Member(_) => Some(Self::Members),
            Step::Monitor(_) => Some(Self::Monitor),
            Step::FloatingIp(_) => None,
        }
    }

    /// When to look first. An amphora takes half a minute and more to boot; a change is mostly done after a second or two.
    pub(crate) fn first_look(self) -> Duration {
        match self {
            Self::Creation => Duration::from_secs(4),
            Self::Deletion | Self::Listener => Duration::from_secs(2),
            Self::LoadBalancer | Self::Pool | Self::Members | Self::Monitor => Duration::from_secs(1),
        }
    }
}

/// What became of a plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct Applied {
    /// Whether anything in the cloud was changed.
    pub(crate) changed: bool,
    /// What Octavia is doing now, when a step locked the load balancer or found it locked.
    pub(crate) locked: Option<Locked>,
    /// What was done without a lock, in words.
    pub(crate) done: Vec<String>,
    /// Address of a floating IP that was made or attached.
    pub(crate) address: Option<IpAddr>,
    /// What the user should know about steps that the cloud refused and the Service can do without.
    pub(crate) notices: Vec<Notice>,
    /// The steps that were accepted, by their places, with what only the answers contain.
    pub(crate) accepted: Vec<(usize, Answer)>,
    /// Floating IPs that were made.
    pub(crate) floating_ips: Vec<ObservedFloatingIp>,
    /// Algorithms that Octavia does not take, each with the id of its pool.
    pub(crate) refused_algorithms: Vec<(String, LbAlgorithm)>,
    /// What became of the request to fail a load balancer over, with its id.
    pub(crate) failover: Option<(String, Failover)>,
    /// The step that the cloud refused, or the part of it.
    pub(crate) refused: Option<Step>,
    /// How the request to create the load balancer failed.
    pub(crate) failed_creation: Option<ErrorKind>,
    /// The cloud's own words where it cannot make such a load balancer.
    pub(crate) not_implemented: Option<String>,
    /// Whether the cloud has too much to do, and nothing else is wrong: what is known stays known.
    pub(crate) is_delayed: bool,
}

impl Applied {
    /// Whether Octavia accepted a step, and is at work now.
    pub(crate) fn is_accepted(&self) -> bool {
        self.locked.as_ref().is_some_and(|locked| locked.operation.is_some())
    }
}

/// A load balancer that Octavia works on.
#[derive(Clone, Debug)]
pub(crate) struct Locked {
    /// Its id, where the step made the load balancer.
    pub(crate) made: Option<Made>,
    /// What Octavia does there; absent where it is the work of somebody else.
    pub(crate) operation: Option<Operation>,
    /// What is going on, for logs.
    pub(crate) on: String,
}

/// A load balancer that was just made.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) id: String,
    pub(crate) project_id: Option<String>,
}

/// What is there from now on, as far as only the answer says.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// The load balancer that was made, with the ids of all its children.
    LoadBalancer(Box<CreatedLoadBalancer>),
    /// Id of the listener, pool or health monitor that was made.
    Child(String),
    /// Nothing that the step does not say.
    Nothing,
}
