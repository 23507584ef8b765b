//! Whether the health monitor of a pool may meet other members than it was made for.
//!
//! An HTTP check of the health check node port takes down all members without `monitor_port`. A batch or a deletion that failed leaves the
//! load balancer ACTIVE, so that somebody has to look at the pool between the two.

use super::cached::Cached;
use crate::load_balancer::step::Child;

impl Cached {
    /// Whether nobody has confirmed what was done about the monitor or the members of a pool. While no listener uses it, no traffic
    /// depends on that, and it is confirmed before a listener gets it.
    pub(super) fn may_check_others(&self, pool_id: &str) -> bool {
        let is_about = |child: &Child| match child {
            Child::Members(id) | Child::Monitor { pool_id: id, .. } => id == pool_id,
            Child::Listener(_) | Child::Pool(_) => false,
        };
        let below = self.load_balancer().and_then(|there| there.children.as_ref());
        let pool = below.and_then(|below| below.pools.iter().find(|pool| pool.id == pool_id));
        pool.is_none_or(|pool| !pool.used_by.is_empty()) && self.answered.iter().any(is_about)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::load_balancer::apply::Answer;
    use crate::load_balancer::belief::answered;
    use crate::load_balancer::model::observed::Children;
    use crate::load_balancer::plan::tests::cloud::Cloud;
    use crate::load_balancer::plan::tests::shape::Shape;
    use crate::load_balancer::step::Needs;

    /// A pool with a monitor, of which Octavia answered that it deletes it; and the id of the pool.
    fn without_monitor() -> (Cached, String) {
        let checked = Shape::web().with(|shape| shape.monitor_delay = Some(5));
        let mut cached = Cached::new(Cloud::serving(&checked.desired()).observed, None, None);
        let pool = children(&mut cached).pools[0].clone();
        let id = pool.monitor.expect("the Service asks for one").id;
        let gone = Answer::Gone(Child::Monitor { id, pool_id: pool.id.clone() });
        let gone = answered::put(children(&mut cached), &gone).expect("an answer that makes sense");
        cached.answered.extend(gone);
        (cached, pool.id)
    }

    fn children(cached: &mut Cached) -> &mut Children {
        let there = cached.observed.load_balancer.as_mut().expect("it is served");
        there.children.as_mut().expect("it was read")
    }

    #[rstest]
    #[case::its_monitor_is_to_be_gone(|_: &mut Cached| {}, true)]
    #[case::its_members_were_sent(
        |cached: &mut Cached| {
            let pool = children(cached).pools[0].id.clone();
            cached.answered = [Child::Members(pool)].into();
        },
        true
    )]
    #[case::it_was_changed_otherwise(
        |cached: &mut Cached| {
            let below = children(cached);
            let (pool, listener) = (below.pools[0].id.clone(), below.listeners[0].id.clone());
            cached.answered = [Child::Pool(pool), Child::Listener(listener)].into();
        },
        false
    )]
    #[case::no_listener_has_it(|cached: &mut Cached| children(cached).pools[0].used_by.clear(), false)]
    fn a_pool_is_looked_at_between_its_monitor_and_its_members(
        #[case] edit: impl Fn(&mut Cached),
        #[case] looks: bool,
    ) {
        let (mut cached, pool_id) = without_monitor();
        edit(&mut cached);
        cached.next_needs = Needs::Check { pool_id };
        assert_eq!(cached.may_go_on_unseen(&cached.next_needs), !looks);
        assert_eq!(cached.is_to_be_confirmed(), looks);
    }

    #[test]
    fn no_list_shows_that_a_monitor_is_gone() {
        let (mut cached, _) = without_monitor();
        assert!(!cached.may_go_on_unseen(&Needs::Everything));
        assert!(cached.is_shown_by_status_tree());
        children(&mut cached).pools[0].used_by.clear();
        assert!(!cached.is_shown_by_status_tree());
        assert!(matches!(&cached.take_answered(false)[..], [Child::Monitor { .. }]), "it is read");
    }
}
