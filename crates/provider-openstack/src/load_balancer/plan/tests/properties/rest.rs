//! A plan says what will be done: planned anew after each of its steps, the rest of it comes out.

use proptest::prelude::*;
use tokio::time::Instant;

use super::cloud_after;
use super::states::{any_nodes, shape};
use crate::load_balancer::objects::Desired;
use crate::load_balancer::objects::step::{FloatingIpStep, ListenerStep, PoolStep, Step};
use crate::load_balancer::plan::serve_beside;
use crate::load_balancer::plan::tests::cloud::Cloud;
use crate::load_balancer::state::attempts::RefusalRecord;

/// More steps than any change of the test states takes.
const BOUND: usize = 200;

/// What is left of a plan after its first step, with the id that the answer gave.
fn rest(steps: &[Step], cloud: &mut Cloud) -> Vec<String> {
    let left = steps.iter().skip(1).map(ToString::to_string);
    let Some(Step::Pool(PoolStep::Create { pool, .. })) = steps.first() else { return left.collect() };
    let id = cloud.children().pools.last().expect("the pool was made").id.clone();
    let unbound = format!("(new) {}", pool.name);
    // Members of a pool that is there are added, so that nothing is put back.
    let batch = format!("set members of pool {unbound}:");
    left.map(|text| text.replace(&batch, &format!("add members to pool {id}:")).replace(&unbound, &id))
        .collect()
}

/// Whether a step brings about what only another plan knows.
fn is_news(step: &Step, rest: &[String], next: &[String]) -> bool {
    let lacks = |step: &String| !next.contains(step);
    match step {
        // Its tags name an id that nobody has yet.
        Step::FloatingIp(FloatingIpStep::Create { .. }) => {
            next.iter().filter(|step| !rest.contains(step)).count() == 1
        }
        // The note about the former listener goes when the new one serves.
        Step::Listener(ListenerStep::Create { .. }) => {
            let new: Vec<&String> = next.iter().filter(|step| !rest.contains(step)).collect();
            matches!(new[..], [note] if note.starts_with("update pool")) && !rest.iter().any(lacks)
        }
        // A pool that became free serves another port in place of one that would be made.
        Step::Listener(ListenerStep::Delete { .. } | ListenerStep::SwapDefaultPool { .. }) => {
            rest.iter().filter(|step| step.starts_with("delete pool")).any(lacks)
        }
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_rest_of_a_plan_is_the_next_plan(
        before in shape(any_nodes()),
        between in shape(any_nodes()),
        steps in 0..12_usize,
        after in shape(any_nodes()),
        serial in proptest::bool::ANY,
    ) {
        let desired = Desired { serial, ..after.desired() };
        let mut cloud = cloud_after(&before, &between, steps, &[]);
        let (mut record, now) = (RefusalRecord::default(), Instant::now());
        let mut last: Option<(Step, Vec<String>)> = None;
        for _ in 0..BOUND {
            let plan = serve_beside(&desired, &cloud.observed, &record.at(now, &cloud.observed));
            let next: Vec<String> = plan.steps.iter().map(ToString::to_string).collect();
            if let Some((step, rest)) = &last {
                prop_assert!(
                    next == *rest || is_news(step, rest, &next),
                    "after {}\n{}\nwas left, and is planned:\n{}", step, rest.join("\n"), next.join("\n")
                );
            }
            let Some(step) = plan.steps.first() else { return Ok(()) };
            record.accepted(&plan.steps, &[step], &cloud.observed);
            cloud.apply(step);
            cloud.finish_pending();
            last = Some((step.clone(), rest(&plan.steps, &mut cloud)));
        }
        prop_assert!(false, "no end after {BOUND} steps");
    }
}
