//! What is believed of one load balancer, and what becomes of that when something happens. Pure.

use openstack_ccm_openstack_api::octavia::{LoadBalancer, ProvisioningStatus};
use tokio::time::Instant;

use super::cached::Cached;
use super::event::Event;
use crate::load_balancer::apply::Applied;
use crate::load_balancer::poller::Afterwards;
use crate::load_balancer::step::Touched;

/// What is believed of the load balancer of one Service without asking the cloud.
#[derive(Clone, Debug, Default)]
pub(crate) enum Belief {
    /// Nothing: it is read.
    #[default]
    Unknown,
    /// Nothing by this process. Bulk lists may show that the digest on the Service still holds.
    DigestOnly,
    /// What was read when the chain of changes began that is under way: good for every plan.
    Changing(Box<Cached>),
    /// What agreed with the Service when it was read last: good to see which members pools lack, and nothing else. A batch
    /// names all members, so it is right whatever is there.
    Converged(Box<Cached>),
    /// The same, but somebody changed the Service since: good for every plan if the load balancer has not changed, which its
    /// `updated_at` tells.
    Recheck(Box<Cached>),
    /// As [`Belief::Converged`], but drift is to be looked for. Bulk lists may show that the digest on the Service still holds.
    DriftDue(Box<Cached>),
}

impl Belief {
    /// What is believed after an event. Every end of a belief is an arm of this function; the decision record 0034 has it
    /// as a table.
    #[must_use]
    pub(crate) fn after(self, event: &Event<'_>, now: Instant) -> Self {
        match event {
            Event::FirstSeen => Self::DigestOnly,
            Event::ServiceChanged => match self {
                // What was only sent is read.
                Self::Converged(cached) | Self::DriftDue(cached) if cached.has_unconfirmed() => Self::Unknown,
                Self::Converged(cached) | Self::DriftDue(cached) | Self::Recheck(cached) => {
                    Self::Recheck(cached)
                }
                Self::Unknown | Self::DigestOnly | Self::Changing(_) => Self::Unknown,
            },
            Event::Failed | Event::Held | Event::ChangedByOthers | Event::Moved | Event::Replaced(_) => {
                Self::Unknown
            }
            Event::DriftDue => match self {
                // What was only sent is read.
                Self::Converged(cached) | Self::DriftDue(cached) if cached.has_unconfirmed() => Self::Unknown,
                Self::Converged(cached) | Self::DriftDue(cached) => Self::DriftDue(cached),
                Self::Recheck(cached) => Self::Recheck(cached),
                Self::Unknown | Self::DigestOnly | Self::Changing(_) => Self::DigestOnly,
            },
            Event::ListsAgree => match self {
                Self::DriftDue(cached) => Self::Converged(cached),
                // The lists do not show what hangs on the load balancer.
                Self::Unknown | Self::DigestOnly => Self::Unknown,
                believed @ (Self::Changing(_) | Self::Converged(_) | Self::Recheck(_)) => believed,
            },
            Event::LockEnded(end) => match end {
                Some(end)
                    if end.listed.provisioning_status == ProvisioningStatus::Active
                        && self.cached().is_none_or(|cached| cached.has_the_children_of(end.listed)) =>
                {
                    self.map(|cached| cached.lock_ended(end, now))
                }
                Some(_) | None => Self::Unknown,
            },
            Event::LockPresumedEnded => match self {
                Self::Changing(_) | Self::Converged(_) => self.map(Cached::presumed_unlocked),
                Self::Unknown | Self::DigestOnly | Self::Recheck(_) | Self::DriftDue(_) => Self::Unknown,
            },
            Event::Applied { applied, .. } if applied.is_refused_by_lock() && self.is_presumed_unlocked() => {
                self.map(Cached::still_locked)
            }
            Event::Applied { applied, served, .. } if applied.touched.contains(&Touched::Everything) => {
                match self {
                    Self::Changing(cached) => {
                        let goal = served.as_ref().map(|(_, goal)| goal);
                        cached.created(applied, goal).map_or(Self::Unknown, Self::Changing)
                    }
                    Self::Unknown
                    | Self::DigestOnly
                    | Self::Converged(_)
                    | Self::Recheck(_)
                    | Self::DriftDue(_) => Self::Unknown,
                }
            }
            Event::Applied { applied, served, .. } => {
                match (self.map(|cached| cached.applied(applied)), served) {
                    (Self::Converged(cached), Some((plan, goal))) if applied.changed => {
                        Self::Converged(cached.batch_sent(plan, goal.desired, now))
                    }
                    (Self::Changing(cached), _) => Self::Changing(cached.answered(applied)),
                    (believed, _) => believed,
                }
            }
            Event::Converged(goal) => match self {
                Self::Changing(cached) | Self::Converged(cached) => {
                    Self::Converged(cached.with_digests(goal))
                }
                believed @ (Self::Unknown | Self::DigestOnly | Self::Recheck(_) | Self::DriftDue(_)) => {
                    believed
                }
            },
            Event::Waits | Event::Stalled { .. } => self,
        }
    }

    fn map(self, change: impl FnOnce(Box<Cached>) -> Box<Cached>) -> Self {
        match self {
            Self::Unknown | Self::DigestOnly => self,
            Self::Changing(cached) => Self::Changing(change(cached)),
            Self::Converged(cached) => Self::Converged(change(cached)),
            Self::Recheck(cached) => Self::Recheck(change(cached)),
            Self::DriftDue(cached) => Self::DriftDue(change(cached)),
        }
    }

    /// What is known of the load balancer.
    pub(crate) fn cached(&self) -> Option<&Cached> {
        match self {
            Self::Unknown | Self::DigestOnly => None,
            Self::Changing(cached)
            | Self::Converged(cached)
            | Self::Recheck(cached)
            | Self::DriftDue(cached) => Some(cached),
        }
    }

    fn is_presumed_unlocked(&self) -> bool {
        self.cached().is_some_and(Cached::is_presumed_unlocked)
    }

    /// What follows the step that has locked the load balancer just now.
    pub(super) fn afterwards(&self, applied: &Applied) -> Afterwards {
        match self {
            Self::Changing(cached) | Self::Converged(cached) if applied.goes_on_below => {
                let needs_look = !cached.may_go_on_unseen(&applied.next_needs);
                if needs_look { Afterwards::Look } else { Afterwards::Write }
            }
            Self::Converged(_) => Afterwards::Nothing,
            Self::Changing(_) | Self::Unknown | Self::DigestOnly | Self::Recheck(_) | Self::DriftDue(_) => {
                Afterwards::Look
            }
        }
    }

    /// What is known of the load balancer, if a step of ours has locked it.
    pub(super) fn locked_by_own_step(&self) -> Option<&Cached> {
        match self {
            Self::Changing(cached) | Self::Converged(cached) => {
                let locks = |touched: &Touched| *touched != Touched::FloatingIps;
                cached.touched.iter().any(locks).then_some(&**cached)
            }
            Self::Unknown | Self::DigestOnly | Self::Recheck(_) | Self::DriftDue(_) => None,
        }
    }

    /// See [`Cached::namesakes`]. Told once.
    pub(super) fn take_namesakes(&mut self) -> Option<Vec<LoadBalancer>> {
        match self {
            Self::Unknown | Self::DigestOnly => None,
            Self::Changing(cached)
            | Self::Converged(cached)
            | Self::Recheck(cached)
            | Self::DriftDue(cached) => cached.namesakes.take(),
        }
    }
}
