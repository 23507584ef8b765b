//! What may happen to a belief.

use std::net::IpAddr;

use openstack_ccm_openstack_api::octavia::LoadBalancer;

use crate::load_balancer::apply::Applied;
use crate::load_balancer::model::tree::Desired;
use crate::load_balancer::plan::Plan;

/// What happened to a Service, to its load balancer, or to a reconciliation of the two. What each does to a belief is
/// the table in the transition ([`super::Belief::after`]).
#[derive(Clone, Debug)]
pub(crate) enum Event<'a> {
    /// This process sees the Service for the first time.
    FirstSeen,
    /// Somebody changed the Service.
    ServiceChanged,
    /// It is time to look for changes that somebody made in the cloud.
    DriftDue,
    /// The bulk lists were read, and show that the digest on the Service still holds.
    ListsAgree,
    /// Octavia has ended the work that a step of ours began. It lists the load balancer so; absent, nobody saw the end.
    LockEnded(Option<LockEnd<'a>>),
    /// Octavia has probably ended the work that a step of ours began, and the next step will tell.
    LockPresumedEnded,
    /// Steps were applied, or met with somebody else's lock.
    Applied {
        /// What became of them.
        applied: &'a Applied,
        /// The plan that they are of, and what it leads to; absent where a load balancer is given up.
        served: Option<(&'a Plan, Goal<'a>)>,
        /// Whether the steps send again what failed inside Octavia.
        repairs: bool,
    },
    /// The plan waits for work of Octavia that is under way.
    Waits,
    /// The load balancer is not PENDING, and nothing can be done with it: a child of it is PENDING, or Octavia refuses the step as if
    /// it were locked.
    Stalled {
        /// Whether it is being given up.
        gives_up: bool,
    },
    /// Everything is as the Service asks for.
    Converged(Goal<'a>),
    /// A call failed, the cloud refused a step, or the plan is blocked.
    Failed,
    /// The load balancer is in ERROR and left alone.
    Held,
    /// Somebody else changes the load balancer.
    ChangedByOthers,
    /// The Service uses, or names, another load balancer; or it is to be released.
    Moved,
    /// The load balancer was deleted to be recreated, or Neutron refused the addresses that it had.
    Replaced(PreviousVips),
}

/// What a Service asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Goal<'a> {
    /// Its load balancer and all that hangs on it.
    pub(crate) desired: &'a Desired,
    /// Whether digests may stand for members; not where what is wrong is judged by the members that are there.
    pub(crate) digests: bool,
}

/// A load balancer whose lock ended.
#[derive(Clone, Debug)]
pub(crate) struct LockEnd<'a> {
    /// As Octavia lists it.
    pub(crate) listed: &'a LoadBalancer,
    /// See [`ObservedLoadBalancer::previous_name`](crate::load_balancer::model::observed::ObservedLoadBalancer).
    pub(crate) previous_name: Option<String>,
    /// The others of its name in its project, where the list shows them.
    pub(crate) namesakes: Option<&'a [LoadBalancer]>,
}

/// The VIPs of a load balancer that broke and was deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum PreviousVips {
    /// Nothing is known.
    #[default]
    Unknown,
    /// They were these, the primary one first.
    Addresses(Vec<IpAddr>),
    /// They could not be had again.
    Lost,
}
