//! Digests in the place of members: thousands of nodes under thousands of Services are too many to keep.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use openstack_ccm_openstack_api::octavia::{LbAlgorithm, ProvisioningStatus};
use tokio::time::Instant;

use super::cached::Cached;
use super::digest::{Digest, MemberDigests};
use super::event::Goal;
use super::unconfirmed::UnconfirmedBatches;
use crate::load_balancer::model::member::Member;
use crate::load_balancer::model::observed::{Observed, ObservedListener, ObservedMember, ObservedPool};
use crate::load_balancer::model::tree::Desired;
use crate::load_balancer::plan::Plan;
use crate::load_balancer::step::{Handle, MemberStep, Step};

impl Cached {
    /// What is there, as far as the wanted state makes a difference. A pool whose members a digest stands for shows the
    /// wanted members, or, where the digest is not theirs, one that nobody wants: the real ones had no attribute that a
    /// batch would have to keep.
    ///
    /// Pools that Octavia refused an algorithm for pass for having it: it would be refused again.
    pub(crate) fn seen_beside(&self, desired: &Desired, refused: &[(String, LbAlgorithm)]) -> Observed {
        let mut observed = self.observed.clone();
        for (pool, wanted) in own_pools(&mut observed, desired) {
            match self.members.get(&pool.id) {
                Some(digests) if digests.attributes == Digest::of_members(wanted) => {
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
            digests.insert(id.clone(), MemberDigests::of(wanted));
            pool.members = Vec::new();
        } else {
            digests.remove(id);
            pool.members = members.iter().map(ObservedMember::as_wanted).collect();
        }
        let sent = Digest::of_member_keys(members.iter().map(|member| member.key()));
        self.unconfirmed = Some(UnconfirmedBatches::sent(id.clone(), sent, self.unconfirmed.take(), now));
        self
    }

    /// Puts digests in place of members that are exactly the wanted ones, with no attribute of an administrator.
    pub(super) fn with_digests(mut self: Box<Self>, goal: &Goal<'_>) -> Box<Self> {
        if !goal.digests {
            return self;
        }
        let Self { observed, members: digests, .. } = &mut *self;
        for (pool, wanted) in own_pools(observed, goal.desired) {
            let plain = pool.members.len() == wanted.len()
                && pool.members.iter().all(|one| {
                    let place = wanted.binary_search_by_key(&one.key(), |member| member.key()).ok();
                    one.status != ProvisioningStatus::Error
                        && place.and_then(|place| wanted.get(place)) == Some(&one.member)
                });
            if plain {
                digests.insert(pool.id.clone(), MemberDigests::of(wanted));
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
) -> impl Iterator<Item = (&'a mut ObservedPool, &'a [Arc<Member>])> {
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
    ObservedMember::as_wanted(&Arc::new(Member {
        name: String::new(),
        address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        port: 0,
        subnet_id: None,
        monitor_port: None,
        monitor_address: None,
        weight: 1,
        backup: false,
        admin_state_up: true,
    }))
}
