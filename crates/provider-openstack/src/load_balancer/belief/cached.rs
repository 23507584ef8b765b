//! What is known of a Service's load balancer without asking: the last look at it, kept up with every change since.
//!
//! It is worth what it says about itself. While a chain of changes goes on, only what each change touched is read
//! again. Once everything agreed, it is good for one thing: to see which pools lack which members. What is sent then
//! counts as what is there until it is read (`unconfirmed`). Whatever else a plan made from it wants to do is planned
//! again from a look at the cloud, and so is everything after a refusal, a failure, a change of the Service, or the look
//! for drift. Losing it costs that look and nothing more.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use openstack_ccm_openstack_api::octavia::{LbAlgorithm, ProvisioningStatus};
use tokio::time::Instant;

use crate::load_balancer::belief::unconfirmed::UnconfirmedBatches;
use crate::load_balancer::model::member::Member;
use crate::load_balancer::model::observed::{
    Observed, ObservedLoadBalancer, ObservedMember, ObservedPool, Ownership,
};
use crate::load_balancer::model::tree::Desired;
use crate::load_balancer::observe::listed;
use crate::load_balancer::plan::{Plan, Then};
use crate::load_balancer::step::{Child, Handle, MemberStep, Step, Touched};

/// How much a plan may do that was made without a look at the cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Everything: the look was made for this chain of changes.
    Chain,
    /// Only change the members of pools: a batch names all of them, whatever was there before.
    Members,
}

/// What is known.
#[derive(Clone, Debug)]
pub(crate) struct Cached {
    /// Owner of the load balancer, to list no others.
    pub(crate) project_id: Option<String>,
    /// As last seen. The members of sealed pools are left out.
    pub(crate) observed: Observed,
    /// How far it goes.
    pub(crate) trust: Trust,
    /// What was changed since, and not read again.
    pub(crate) touched: Vec<Touched>,
    /// `updated_at` of the load balancer after the last change.
    pub(crate) updated_at: Option<String>,
    /// When the look was.
    pub(crate) looked_at: Instant,
    /// Whether the cloud is to be asked before it is trusted again.
    pub(crate) doubted: bool,
    /// What was sent and is taken for what is there.
    unconfirmed: Option<UnconfirmedBatches>,
    seals: BTreeMap<String, Seal>,
}

/// The members of a pool that were exactly the wanted ones, with no attribute of an administrator: thousands of nodes
/// under thousands of Services are too many to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seal(u64);

impl Seal {
    fn of(members: &[Member]) -> Self {
        let mut hasher = DefaultHasher::new();
        members.hash(&mut hasher);
        Self(hasher.finish())
    }
}

impl Cached {
    /// What a look showed, at the begin of a chain of changes.
    pub(crate) fn looked(observed: Observed, project_id: Option<String>, updated_at: Option<String>) -> Self {
        Self {
            project_id,
            observed,
            trust: Trust::Chain,
            touched: Vec::new(),
            updated_at,
            looked_at: Instant::now(),
            doubted: false,
            unconfirmed: None,
            seals: BTreeMap::new(),
        }
    }

    /// The load balancer; nothing is known of Services without one.
    pub(crate) fn load_balancer(&self) -> Option<&ObservedLoadBalancer> {
        self.observed.load_balancer.as_ref()
    }

    /// Everything agrees with what is wanted: from here on it is good for changes of members only, and keeps no list
    /// of them where a fingerprint does; with `seals` alone, for what is there may be asked for.
    pub(crate) fn settle(&mut self, desired: &Desired, seals: bool) {
        self.trust = Trust::Members;
        if !seals {
            return;
        }
        let Self { observed, seals, .. } = self;
        for (pool, wanted) in own_pools(observed, desired) {
            let plain = pool.members.len() == wanted.len()
                && pool.members.iter().all(|one| {
                    let place = wanted.binary_search_by_key(&one.key(), Member::key).ok();
                    one.status != ProvisioningStatus::Error
                        && place.and_then(|place| wanted.get(place)) == Some(&one.member)
                });
            if plain {
                seals.insert(pool.id.clone(), Seal::of(wanted));
                pool.members = Vec::new();
            }
        }
    }

    /// The fingerprint for the case that everything agrees. Absent after changes of members that nothing was read for:
    /// it is written again with the next look, because every write of a Service goes to all nodes.
    pub(crate) fn fingerprint(&self, desired: &Desired) -> Option<String> {
        let known = self.load_balancer().filter(|_| self.trust == Trust::Chain)?;
        Some(listed::fingerprint(&known.id, self.updated_at.as_deref()?, desired))
    }

    /// What is there, as far as the wanted state makes a difference: a sealed pool shows the wanted members, or, where
    /// those are not the ones that it was sealed with, others. Those had no attribute that a batch would have to keep.
    pub(crate) fn unsealed(&self, desired: &Desired) -> Observed {
        let mut observed = self.observed.clone();
        for (pool, wanted) in own_pools(&mut observed, desired) {
            match self.seals.get(&pool.id) {
                Some(seal) if *seal == Seal::of(wanted) => {
                    pool.members = wanted.iter().map(as_wanted).collect();
                }
                Some(_) => pool.members = vec![others()],
                None => {}
            }
        }
        observed
    }

    /// The same, where pools that Octavia refused an algorithm for pass for having it: it would be refused again.
    pub(crate) fn unsealed_beside(&self, desired: &Desired, refused: &[(String, LbAlgorithm)]) -> Observed {
        let mut observed = self.unsealed(desired);
        let children =
            observed.load_balancer.as_mut().and_then(|load_balancer| load_balancer.children.as_mut());
        for pool in children.into_iter().flat_map(|children| &mut children.pools) {
            if let Some((_, algorithm)) = refused.iter().find(|(id, _)| *id == pool.id) {
                pool.attributes.lb_algorithm = algorithm.clone();
            }
        }
        observed
    }

    /// The first step of a plan is about to be made. Where it is a batch that was planned without a look, its members are
    /// taken for those that are there from now on, until they are read: see [`UnconfirmedBatches`].
    pub(crate) fn presume(&mut self, plan: &Plan, desired: &Desired) {
        let Some(Step::Member(MemberStep::ReplaceAll { pool: Handle::Id(id), members })) = plan.steps.first()
        else {
            return;
        };
        let Self { observed, seals, trust: Trust::Members, .. } = self else { return };
        let Some((pool, wanted)) = own_pools(observed, desired).find(|(pool, _)| pool.id == *id) else {
            return;
        };
        if members == wanted {
            seals.insert(id.clone(), Seal::of(wanted));
            pool.members = Vec::new();
        } else {
            seals.remove(id);
            pool.members = members.iter().map(as_wanted).collect();
        }
        self.unconfirmed = Some(UnconfirmedBatches::sent(id.clone(), self.unconfirmed.take()));
    }

    /// Octavia is done with what was sent.
    pub(crate) fn ended(&mut self, updated_at: Option<&String>) {
        self.updated_at = updated_at.cloned();
        if let Some(unconfirmed) = &mut self.unconfirmed {
            unconfirmed.ended();
        }
    }

    /// Whether a child that was touched is taken for what was sent.
    pub(crate) fn presumes(&self, child: &Child) -> bool {
        let Child::Members(pool_id) = child else { return false };
        self.unconfirmed.as_ref().is_some_and(|unconfirmed| unconfirmed.concerns(pool_id))
    }

    /// The time until members are to be read that were only sent; absent where all were seen.
    pub(crate) fn verified_in(&self) -> Option<Duration> {
        self.unconfirmed.as_ref().map(UnconfirmedBatches::due_in)
    }

    /// The pools whose members are to be read now, because they were only sent.
    pub(crate) fn take_due(&mut self) -> BTreeSet<String> {
        let due = self.unconfirmed.take_if(|unconfirmed| unconfirmed.due_in().is_zero());
        due.map(UnconfirmedBatches::into_pools).unwrap_or_default()
    }

    /// Whether the members of some pool are not kept.
    pub(crate) fn is_sealed(&self) -> bool {
        !self.seals.is_empty()
    }

    /// The members of a pool were read.
    pub(crate) fn unseal(&mut self, pool_id: &str) {
        self.seals.remove(pool_id);
    }

    /// Whether a plan may be carried out that was made without looking.
    ///
    /// On a load balancer that others use too, a chain of changes goes on with what hangs on the Service's own listeners:
    /// others have no part in that, and a port that they have taken meanwhile is refused by Octavia, which leads to a look.
    pub(crate) fn suffices_for(&self, plan: &Plan) -> bool {
        let sole = self.load_balancer().is_some_and(|known| known.ownership == Ownership::Sole);
        let members_only =
            plan.steps.iter().all(|step| matches!(step, Step::Member(MemberStep::ReplaceAll { .. })));
        let may = match self.trust {
            Trust::Chain => sole || plan.steps.iter().all(Step::concerns_own_children),
            Trust::Members => members_only && !plan.heals,
        };
        may && plan.then == Then::Done
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

fn is_user(listener: &crate::load_balancer::model::observed::ObservedListener, pool: &ObservedPool) -> bool {
    listener.ours && listener.default_pool_id.as_ref() == Some(&pool.id)
}

/// Stands for members that are not kept, and are not the wanted ones.
fn others() -> ObservedMember {
    as_wanted(&Member {
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

fn as_wanted(member: &Member) -> ObservedMember {
    ObservedMember { id: String::new(), status: ProvisioningStatus::Active, member: member.clone() }
}
