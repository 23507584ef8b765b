//! What Octavia does for a step, its answer, and what became of the steps of a plan.

use std::net::IpAddr;
use std::time::Duration;

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::provider::Waiting;
use openstack_ccm_openstack_api::error::ErrorKind;
use openstack_ccm_openstack_api::octavia::{CreatedLoadBalancer, LbAlgorithm};

use super::{LoadBalancerStep, Step};
use crate::load_balancer::objects::{Failover, ObservedFloatingIp};

/// The work that Octavia is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    /// Creation or failover of a load balancer.
    Creation,
    /// Deletion of a load balancer.
    Deletion,
    /// A change of the load balancer itself.
    LoadBalancer,
    Listener,
    Pool,
    /// The members of a pool.
    Members,
    /// A health monitor.
    Monitor,
}

impl Operation {
    /// Returns what Octavia does for a step. A failover takes as long as a creation.
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

    /// Returns the time until the first look. An amphora boots for half a minute or more; most changes take a second or two.
    pub(crate) fn first_look(self) -> Duration {
        match self {
            Self::Creation => Duration::from_secs(4),
            Self::Deletion => Duration::from_secs(2),
            Self::LoadBalancer | Self::Listener | Self::Pool | Self::Members | Self::Monitor => {
                Duration::from_secs(1)
            }
        }
    }
}

/// What became of the steps that were sent, and what comes next.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    pub(crate) next: Next,
    /// Whether anything in the cloud was changed.
    pub(crate) changed: bool,
    /// Octavia's work, if a step locked the load balancer or found it locked.
    pub(crate) locked: Option<Locked>,
    /// Descriptions of the accepted steps that lock nothing.
    pub(crate) done: Vec<String>,
    /// Address of a floating IP that was created or attached.
    pub(crate) address: Option<IpAddr>,
    /// Notices about refused steps that the Service can do without.
    pub(crate) notices: Vec<Notice>,
    /// The accepted steps by position, each with what only its answer contains.
    pub(crate) accepted: Vec<(usize, Answer)>,
    /// Floating IPs that were created.
    pub(crate) floating_ips: Vec<ObservedFloatingIp>,
    /// Algorithms that Octavia refused, each with the id of its pool.
    pub(crate) refused_algorithms: Vec<(String, LbAlgorithm)>,
    /// The last failover request: id of the load balancer, and the result.
    pub(crate) failover: Option<(String, Failover)>,
    /// The step that failed, and was not refused.
    pub(crate) failed: Option<Step>,
    /// How the creation request for the load balancer failed.
    pub(crate) failed_creation: Option<ErrorKind>,
    /// Whether the cloud may have refused that request for the members.
    pub(crate) members_refused: bool,
    /// The cloud's message if it cannot create such a load balancer.
    pub(crate) not_implemented: Option<String>,
    /// Whether the only failure is that the cloud is overloaded: the observation stays valid.
    pub(crate) is_delayed: bool,
}

impl Applied {
    /// Returns whether Octavia accepted a step, and is working on it.
    pub(crate) fn is_accepted(&self) -> bool {
        self.locked.as_ref().is_some_and(|locked| locked.operation.is_some())
    }
}

/// What comes next.
#[derive(Debug)]
pub(crate) enum Next {
    /// Nothing: everything is as the Service asks for. What is held makes that unreliable.
    Done { held: Option<Failure> },
    /// The next reconciliation, which the watchlist or a timeout begins: Octavia is at work.
    Wait(Waiting),
    /// A plan without the step that the cloud refused.
    Without(Refused),
    /// An attempt after a pause: a step failed, something blocks the plan, or a repair has to pause.
    Retry(Failure),
}

impl Default for Next {
    fn default() -> Self {
        Self::Done { held: None }
    }
}

/// A step, or part of a step, that the cloud refused or that needs such a step, and the refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) step: Step,
    pub(crate) failure: Failure,
}

/// A load balancer that Octavia works on.
#[derive(Clone, Debug)]
pub(crate) struct Locked {
    /// The new load balancer, if the step created it.
    pub(crate) made: Option<Made>,
    /// Octavia's work; absent if it is for another client.
    pub(crate) operation: Option<Operation>,
    /// Description of the work, for logs.
    pub(crate) on: String,
}

/// A load balancer that was just created.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) id: String,
    pub(crate) project_id: Option<String>,
}

/// What exists after a step, as far as only the answer says.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// The created load balancer, with the ids of all its children.
    LoadBalancer(Box<CreatedLoadBalancer>),
    /// Id of the created listener, pool or health monitor.
    Child(String),
    /// Nothing beyond the step itself.
    Nothing,
}
