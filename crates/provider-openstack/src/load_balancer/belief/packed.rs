//! What is known of a load balancer while nothing happens to it, as one text.
//!
//! As structures it takes four times the memory, in some eighty pieces, and a cluster has thousands of load balancers at rest.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::cached::Cached;
use super::digest::MemberDigests;
use super::unconfirmed::UnconfirmedBatches;
use crate::load_balancer::model::observed::Observed;
use crate::load_balancer::step::Needs;

/// A [`Cached`] at rest.
#[derive(Debug)]
pub(super) struct Packed {
    text: Box<[u8]>,
    read_at: Instant,
    unconfirmed: Option<Box<UnconfirmedBatches>>,
}

/// The part that is kept as text.
#[derive(Serialize, Deserialize)]
struct Content<O> {
    project_id: Option<String>,
    observed: O,
    updated_at: Option<String>,
    changed_by_others: bool,
    members: BTreeMap<String, MemberDigests>,
}

impl Packed {
    /// `None` where the text would not hold everything: while something is under way, and where members are kept.
    pub(super) fn of(cached: &Cached) -> Option<Self> {
        let children = cached.load_balancer()?.children.as_ref()?;
        let keeps_members = children.pools.iter().any(|pool| !pool.members.is_empty());
        let is_under_way = !cached.touched.is_empty() || !cached.answered.is_empty();
        let has_namesakes = cached.namesakes.as_ref().is_some_and(|namesakes| !namesakes.is_empty());
        if keeps_members || is_under_way || has_namesakes {
            return None;
        }
        let content = Content {
            project_id: cached.project_id.clone(),
            observed: &cached.observed,
            updated_at: cached.updated_at.clone(),
            changed_by_others: cached.changed_by_others,
            members: cached.members.clone(),
        };
        Some(Self {
            text: serde_json::to_vec(&content).ok()?.into(),
            read_at: cached.read_at,
            unconfirmed: cached.unconfirmed.clone().map(Box::new),
        })
    }

    /// What was packed.
    pub(super) fn unpack(self) -> Option<Cached> {
        let Content { project_id, observed, updated_at, changed_by_others, members } =
            serde_json::from_slice::<Content<Observed>>(&self.text).ok()?;
        Some(Cached {
            project_id,
            observed,
            touched: Vec::new(),
            updated_at,
            changed_by_others,
            read_at: self.read_at,
            answered: BTreeSet::new(),
            // Only what counts as answered is looked up for it.
            next_needs: Needs::Everything,
            namesakes: None,
            unconfirmed: self.unconfirmed.map(|batches| *batches),
            members,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;
    use crate::load_balancer::belief::{Belief, Event, Goal};
    use crate::load_balancer::plan::tests::cloud::Cloud;
    use crate::load_balancer::plan::tests::properties::states::{any_nodes, shape};
    use crate::load_balancer::plan::tests::shape::Shape;
    use crate::load_balancer::step::Touched;

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

    proptest! {
        #[test]
        fn nothing_is_lost(shape in shape(any_nodes())) {
            let cached = at_rest(&shape);
            let unpacked = Packed::of(&cached).and_then(Packed::unpack);
            prop_assert_eq!(format!("{unpacked:?}"), format!("{:?}", Some(cached)));
        }
    }

    #[rstest]
    #[case::a_change_is_under_way(|cached: &mut Cached| cached.touched.push(Touched::LoadBalancer))]
    #[case::members_that_no_digest_stands_for(|cached: &mut Cached| {
        let mut serving = Cloud::serving(&Shape::web().desired());
        cached.observed.load_balancer = Some(serving.load_balancer().clone());
    })]
    #[case::no_load_balancer(|cached: &mut Cached| cached.observed.load_balancer = None)]
    fn what_the_text_does_not_hold_stays_as_it_is(#[case] edit: impl Fn(&mut Cached)) {
        let mut cached = at_rest(&Shape::web());
        assert!(Packed::of(&cached).is_some());
        edit(&mut cached);
        assert!(Packed::of(&cached).is_none());
    }

    #[test]
    fn a_text_takes_a_fraction_of_the_structures() {
        let packed = Packed::of(&at_rest(&Shape::web())).expect("it is at rest");
        assert!(packed.text.len() < 3_000, "{} bytes", packed.text.len());
    }
}
