//! The load balancer of a Service as it was read, kept up with every change since.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use openstack_ccm_openstack_api::octavia::{LbAlgorithm, ProvisioningStatus};
use tokio::time::Instant;

use super::digest::Digest;
use super::event::LockEnd;
use super::unconfirmed::UnconfirmedBatches;
use crate::load_balancer::apply::Applied;
use crate::load_balancer::model::member::Member;
use crate::load_balancer::model::observed::{
    Observed, ObservedListener, ObservedLoadBalancer, ObservedMember, ObservedPool,
};
use crate::load_balancer::model::tree::Desired;
use crate::load_balancer::plan::Plan;
use crate::load_balancer::step::{Child, Handle, MemberStep, Step, Touched};

/// What is known of a load balancer and its floating IPs.
#[derive(Clone, Debug)]
pub(crate) struct Cached {
    /// Owner of the load balancer, to list no others.
    pub(crate) project_id: Option<String>,
    /// As read last. Members that a digest stands for are left out.
    pub(crate) observed: Observed,
    /// What was changed since, and not read again.
    pub(crate) touched: Vec<Touched>,
    /// `updated_at` of the load balancer after the last change.
    pub(crate) updated_at: Option<String>,
    /// When it was read as a whole.
    read_at: Instant,
    /// Batches of members that count as made, although nobody has read the result.
    unconfirmed: Option<UnconfirmedBatches>,
    /// By id of the pool.
    members: BTreeMap<String, Digest>,
}

impl Cached {
    /// What was read just now.
    pub(crate) fn new(observed: Observed, project_id: Option<String>, updated_at: Option<String>) -> Self {
        Self {
            project_id,
            observed,
            touched: Vec::new(),
            updated_at,
            read_at: Instant::now(),
            unconfirmed: None,
            members: BTreeMap::new(),
        }
    }

    /// The load balancer; absent where there is none.
    pub(crate) fn load_balancer(&self) -> Option<&ObservedLoadBalancer> {
        self.observed.load_balancer.as_ref()
    }

    /// How long ago it was read as a whole.
    pub(crate) fn age(&self) -> Duration {
        self.read_at.elapsed()
    }

    /// The digest of what is there, for the case that everything is as the Service asks for.
    pub(crate) fn digest(&self, desired: &Desired) -> Option<Digest> {
        Some(Digest::of_tree(&self.load_balancer()?.id, self.updated_at.as_deref()?, desired))
    }

    /// What is there, as far as the wanted state makes a difference. A pool whose members a digest stands for shows the
    /// wanted members, or, where the digest is not theirs, one that nobody wants: the real ones had no attribute that a
    /// batch would have to keep.
    ///
    /// Pools that Octavia refused an algorithm for pass for having it: it would be refused again.
    pub(crate) fn seen_beside(&self, desired: &Desired, refused: &[(String, LbAlgorithm)]) -> Observed {
        let mut observed = self.observed.clone();
        for (pool, wanted) in own_pools(&mut observed, desired) {
            match self.members.get(&pool.id) {
                Some(digest) if *digest == Digest::of_members(wanted) => {
                    pool.members = wanted.iter().map(ObservedMember::as_wanted).collect();
                }
                Some(_) => pool.members = vec![nobody()],
                None => {}
            }
        }
        let children = observed.load_balancer.as_mut().and_then(|there| there.children.as_mut());
        for pool in children.into_iter().flat_map(|children| &mut children.pools) {
            if let Some((_, algorithm)) = refused.iter().find(|(id, _)| *id == pool.id) {
                pool.attributes.lb_algorithm = algorithm.clone();
            }
        }
        observed
    }

    /// Whether a digest stands for the members of some pool.
    pub(crate) fn has_digests(&self) -> bool {
        !self.members.is_empty()
    }

    /// The members of a pool are about to be read.
    pub(crate) fn drop_digest(&mut self, pool_id: &str) {
        self.members.remove(pool_id);
    }

    /// Whether batches of members wait for being confirmed.
    pub(crate) fn has_unconfirmed(&self) -> bool {
        self.unconfirmed.is_some()
    }

    /// Whether a child that was touched counts as it was sent.
    pub(crate) fn counts_as_sent(&self, child: &Child) -> bool {
        let Child::Members(pool_id) = child else { return false };
        self.unconfirmed.as_ref().is_some_and(|batches| batches.concern(pool_id))
    }

    /// The time until unconfirmed batches are to be read; absent where all were seen.
    pub(crate) fn confirm_in(&self) -> Option<Duration> {
        self.unconfirmed.as_ref().map(UnconfirmedBatches::due_in)
    }

    /// The pools whose members are to be read now, because they were only sent.
    pub(crate) fn take_due(&mut self) -> BTreeSet<String> {
        let due = self.unconfirmed.take_if(|batches| batches.due_in().is_zero());
        due.map(UnconfirmedBatches::into_pools).unwrap_or_default()
    }

    /// Octavia has ended its work.
    pub(super) fn lock_ended(mut self: Box<Self>, end: &LockEnd<'_>, now: Instant) -> Box<Self> {
        let LockEnd { listed, previous_name } = end;
        self.updated_at.clone_from(&listed.updated_at);
        if let Some(batches) = &mut self.unconfirmed {
            batches.ended(now);
        }
        if let Some(there) = &mut self.observed.load_balancer {
            there.previous_name.clone_from(previous_name);
            there.name.clone_from(&listed.name);
            there.description.clone_from(&listed.description);
            there.tags = listed.tags.iter().cloned().collect();
        }
        self
    }

    /// Steps were applied.
    pub(super) fn applied(mut self: Box<Self>, applied: &Applied) -> Box<Self> {
        self.touched.extend_from_slice(&applied.touched);
        self.observed.floating_ips.extend_from_slice(&applied.floating_ips);
        self
    }

    /// A batch of members was sent, planned from members that were not read. They count as those that are there until
    /// they are read: see [`UnconfirmedBatches`].
    pub(super) fn batch_sent(mut self: Box<Self>, plan: &Plan, desired: &Desired, now: Instant) -> Box<Self> {
        let Some(Step::Member(MemberStep::ReplaceAll { pool: Handle::Id(id), members })) = plan.steps.first()
        else {
            return self;
        };
        let Self { observed, members: digests, .. } = &mut *self;
        let Some((pool, wanted)) = own_pools(observed, desired).find(|(pool, _)| pool.id == *id) else {
            return self;
        };
        if members == wanted {
            digests.insert(id.clone(), Digest::of_members(wanted));
            pool.members = Vec::new();
        } else {
            digests.remove(id);
            pool.members = members.iter().map(ObservedMember::as_wanted).collect();
        }
        self.unconfirmed = Some(UnconfirmedBatches::sent(id.clone(), self.unconfirmed.take(), now));
        self
    }

    /// Puts digests in place of members that are exactly the wanted ones, with no attribute of an administrator.
    pub(super) fn with_digests(mut self: Box<Self>, desired: &Desired) -> Box<Self> {
        let Self { observed, members: digests, .. } = &mut *self;
        for (pool, wanted) in own_pools(observed, desired) {
            let plain = pool.members.len() == wanted.len()
                && pool.members.iter().all(|one| {
                    let place = wanted.binary_search_by_key(&one.key(), Member::key).ok();
                    one.status != ProvisioningStatus::Error
                        && place.and_then(|place| wanted.get(place)) == Some(&one.member)
                });
            if plain {
                digests.insert(pool.id.clone(), Digest::of_members(wanted));
                pool.members = Vec::new();
            }
        }
        self
    }
}

/// The default pools of this Service's listeners, each with the members that it is to have.
fn own_pools<'a>(
    observed: &'a mut Observed,
    desired: &'a Desired,
) -> impl Iterator<Item = (&'a mut ObservedPool, &'a [Member])> {
    let children = observed.load_balancer.as_mut().and_then(|load_balancer| load_balancer.children.as_mut());
    let (listeners, pools) = children.map_or((&[][..], &mut [][..]), |children| {
        (children.listeners.as_slice(), children.pools.as_mut_slice())
    });
    pools.iter_mut().filter(|pool| pool.ours).filter_map(|pool| {
        let user = |listener: &&_| is_user(listener, pool);
        let listener = listeners.iter().find(user)?;
        let wanted = desired.listeners.get(&listener.key())?;
        Some((pool, wanted.pool.members.as_slice()))
    })
}

fn is_user(listener: &ObservedListener, pool: &ObservedPool) -> bool {
    listener.ours && listener.default_pool_id.as_ref() == Some(&pool.id)
}

/// Stands for members that are not kept, and are not the wanted ones.
fn nobody() -> ObservedMember {
    ObservedMember::as_wanted(&Member {
        name: String::new(),
        address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        port: 0,
        subnet_id: None,
        monitor_port: None,
        monitor_address: None,
        weight: 1,
        backup: false,
        admin_state_up: true,
    })
}
