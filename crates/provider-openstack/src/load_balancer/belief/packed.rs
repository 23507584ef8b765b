//! What is known of a load balancer between two reconciliations, in one piece.
//!
//! As structures it takes twelve times the memory, in some eighty pieces. A cluster has thousands of load balancers to which nothing
//! happens, and thousands may be created at the same time.

use std::collections::{BTreeMap, BTreeSet};

use openstack_ccm_openstack_api::octavia::LoadBalancer;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::cached::Cached;
use super::digest::MemberDigests;
use super::state::Belief;
use super::unconfirmed::UnconfirmedBatches;
use crate::compressed::Compressed;
use crate::load_balancer::model::observed::Observed;
use crate::load_balancer::step::{Child, Needs, Touched};

/// A [`Belief`] between two reconciliations.
#[derive(Debug)]
pub(super) struct Packed {
    belief: fn(Box<Cached>) -> Belief,
    content: Compressed<Content<Observed>>,
    read_at: Instant,
    unconfirmed: Option<Box<UnconfirmedBatches>>,
}

/// The part of a [`Cached`] that is compressed.
#[derive(Debug, Serialize, Deserialize)]
struct Content<O> {
    project_id: Option<String>,
    observed: O,
    touched: Vec<Touched>,
    updated_at: Option<String>,
    changed_by_others: bool,
    answered: BTreeSet<Child>,
    next_needs: Needs,
    presumed_unlocked: bool,
    namesakes: Option<Vec<LoadBalancer>>,
    members: BTreeMap<String, MemberDigests>,
}

impl Packed {
    /// `None` where nothing is known, and where members are kept, which several may share.
    pub(super) fn of(belief: &Belief) -> Option<Self> {
        let (cached, belief): (_, fn(_) -> _) = match belief {
            Belief::Changing(cached) => (cached, Belief::Changing),
            Belief::Converged(cached) => (cached, Belief::Converged),
            Belief::Unknown | Belief::DigestOnly | Belief::Recheck(_) | Belief::DriftDue(_) => return None,
        };
        let children = cached.load_balancer()?.children.as_ref()?;
        if children.pools.iter().any(|pool| !pool.members.is_empty()) {
            return None;
        }
        let content = Content {
            project_id: cached.project_id.clone(),
            observed: &cached.observed,
            touched: cached.touched.clone(),
            updated_at: cached.updated_at.clone(),
            changed_by_others: cached.changed_by_others,
            answered: cached.answered.clone(),
            next_needs: cached.next_needs.clone(),
            presumed_unlocked: cached.presumed_unlocked,
            namesakes: cached.namesakes.clone(),
            members: cached.members.clone(),
        };
        Some(Self {
            belief,
            content: Compressed::of(&content),
            read_at: cached.read_at,
            unconfirmed: cached.unconfirmed.clone().map(Box::new),
        })
    }

    /// What was packed; `None` where it cannot be read.
    pub(super) fn unpack(self) -> Option<Belief> {
        let content = self.content.get()?;
        Some((self.belief)(Box::new(Cached {
            project_id: content.project_id,
            observed: content.observed,
            touched: content.touched,
            updated_at: content.updated_at,
            changed_by_others: content.changed_by_others,
            read_at: self.read_at,
            answered: content.answered,
            next_needs: content.next_needs,
            presumed_unlocked: content.presumed_unlocked,
            namesakes: content.namesakes,
            unconfirmed: self.unconfirmed.map(|batches| *batches),
            members: content.members,
        })))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;
    use crate::load_balancer::belief::{Event, Goal};
    use crate::load_balancer::plan::tests::cloud::Cloud;
    use crate::load_balancer::plan::tests::properties::states::{any_nodes, shape};
    use crate::load_balancer::plan::tests::shape::Shape;

    /// A load balancer that is as its Service asks for.
    fn at_rest(shape: &Shape) -> Box<Cached> {
        let desired = shape.desired();
        let observed = Cloud::serving(&desired).observed;
        let cached =
            Cached::new(observed, Some("project".to_owned()), Some("2026-01-01T00:00:00".to_owned()));
        let goal = Goal { desired: &desired, digests: true };
        match Belief::Changing(Box::new(cached)).after(&Event::Converged(goal), Instant::now()) {
            Belief::Converged(cached) => cached,
            other => panic!("{other:?}"),
        }
    }

    /// The same while a chain of changes is under way.
    fn under_way(shape: &Shape) -> Box<Cached> {
        let mut cached = at_rest(shape);
        let pool = || "pool".to_owned();
        let monitor = Child::Monitor { id: "monitor".to_owned(), pool_id: pool() };
        cached.answered = [Child::Pool(pool()), Child::Members(pool()), monitor.clone()].into();
        cached.touched = vec![Touched::LoadBalancer, Touched::Child(monitor), Touched::Everything];
        cached.next_needs = Needs::Pool { id: pool(), listener_id: "listener".to_owned() };
        cached.namesakes = Some(Vec::new());
        cached
    }

    proptest! {
        #[test]
        fn nothing_is_lost(shape in shape(any_nodes())) {
            for belief in [Belief::Converged(at_rest(&shape)), Belief::Changing(under_way(&shape))] {
                let unpacked = Packed::of(&belief).and_then(Packed::unpack);
                prop_assert_eq!(format!("{unpacked:?}"), format!("{:?}", Some(belief)));
            }
        }
    }

    #[rstest]
    #[case::members_that_no_digest_stands_for(|cached: &mut Cached| {
        let mut serving = Cloud::serving(&Shape::web().desired());
        cached.observed.load_balancer = Some(serving.load_balancer().clone());
    })]
    #[case::no_load_balancer(|cached: &mut Cached| cached.observed.load_balancer = None)]
    fn what_is_no_smaller_in_one_piece_stays_as_it_is(#[case] edit: impl Fn(&mut Cached)) {
        let mut cached = at_rest(&Shape::web());
        edit(&mut cached);
        assert!(Packed::of(&Belief::Converged(cached)).is_none());
    }

    #[test]
    fn it_takes_a_fraction_of_the_structures() {
        let packed = Packed::of(&Belief::Converged(at_rest(&Shape::web()))).expect("it is at rest");
        assert!(packed.content.len() < 1_000, "{} bytes", packed.content.len());
    }
}
