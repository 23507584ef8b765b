//! A plan says what will be done: planned anew after each of its steps, the rest of it comes out, and carried to its end it leads where plans
//! made after each step lead.

use proptest::prelude::*;
use tokio::time::Instant;

use super::cloud_after;
use super::oracle::assert_served;
use super::states::{any_nodes, shape};
use crate::load_balancer::objects::Desired;
use crate::load_balancer::objects::step::{
    FloatingIpStep, Handle, ListenerStep, LoadBalancerStep, MemberStep, MonitorStep, PoolStep, Step,
};
use crate::load_balancer::plan::tests::cloud::Cloud;
use crate::load_balancer::plan::{Plan, Then, serve, serve_beside};
use crate::load_balancer::state::attempts::RefusalRecord;

/// More steps than any change of the test states takes.
const BOUND: usize = 200;

/// More plans than any change of the test states takes, each of them carried to its end.
const PLANS: usize = 4;

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

/// Gives what an earlier step made its id.
fn bind(step: &mut Step, name: &str, made: &str) {
    let handle = match step {
        Step::Listener(
            ListenerStep::Create { default_pool: Some(pool), .. }
            | ListenerStep::SwapDefaultPool { pool, .. },
        )
        | Step::Member(
            MemberStep::ReplaceAll { pool, .. }
            | MemberStep::Add { pool, .. }
            | MemberStep::Create { pool, .. },
        )
        | Step::Monitor(MonitorStep::Create { pool, .. }) => pool,
        Step::FloatingIp(FloatingIpStep::Create { port, .. } | FloatingIpStep::Attach { port, .. }) => port,
        _ => return,
    };
    if *handle == Handle::New(name.to_owned()) {
        *handle = Handle::Id(made.to_owned());
    }
}

/// Makes all steps of one plan, with the ids that answers gave, and plans nothing anew.
fn carry_out(plan: Plan, cloud: &mut Cloud) {
    let mut left = plan.steps;
    left.reverse();
    while let Some(step) = left.pop() {
        cloud.apply(&step);
        cloud.finish_pending();
        let (name, id) = match step {
            Step::Pool(PoolStep::Create { pool, .. }) => {
                (pool.name, cloud.children().pools.last().expect("it was made").id.clone())
            }
            Step::LoadBalancer(LoadBalancerStep::Create { load_balancer, .. }) => {
                let port = cloud.load_balancer().vip_port_id.clone();
                (format!("VIP of {}", load_balancer.name), port.expect("it has a VIP"))
            }
            _ => continue,
        };
        left.iter_mut().for_each(|step| bind(step, &name, &id));
    }
}

/// Whether a step comes only with another plan, after one of these steps.
fn is_left_for_another_plan(step: &Step, made: &[Step], serial: bool) -> bool {
    let was = |is_it: fn(&Step) -> bool| made.iter().any(is_it);
    match step {
        // Its tags name an id that nobody had.
        Step::FloatingIp(FloatingIpStep::Tag { .. }) => {
            was(|step| matches!(step, Step::FloatingIp(FloatingIpStep::Create { .. })))
        }
        // The note about a former listener goes when the new one serves; the former one may have been deleted by an earlier plan.
        Step::Pool(PoolStep::Update { .. }) => {
            was(|step| matches!(step, Step::Listener(ListenerStep::Create { .. })))
        }
        // Where Octavia takes no whole tree, the children follow the load balancer.
        _ => serial && was(|step| matches!(step, Step::LoadBalancer(LoadBalancerStep::Create { .. }))),
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

    /// One plan, carried to its end, leads to what is wanted. What is left for another plan is known.
    #[test]
    fn one_plan_carried_to_its_end_leads_where_plans_after_each_step_lead(
        before in shape(any_nodes()),
        between in shape(any_nodes()),
        steps in 0..12_usize,
        after in shape(any_nodes()),
        serial in proptest::bool::ANY,
    ) {
        let desired = Desired { serial, ..after.desired() };
        let mut cloud = cloud_after(&before, &between, steps, &[]);
        let end = cloud.clone().converge(&desired, |_| {}).then;
        for _ in 0..PLANS {
            let plan = serve(&desired, &cloud.observed);
            let (made, then) = (plan.steps.clone(), plan.then.clone());
            carry_out(plan, &mut cloud);
            let next = serve(&desired, &cloud.observed);
            if next.steps.is_empty() {
                prop_assert_eq!(&next.then, &end);
                if end == Then::Done {
                    assert_served(&desired, &cloud.observed);
                }
                return Ok(());
            }
            for step in &next.steps {
                prop_assert!(
                    then != Then::Done || is_left_for_another_plan(step, &made, serial),
                    "{made:#?}\nwas planned, and then:\n{next}"
                );
            }
        }
        prop_assert!(false, "no end after {PLANS} plans");
    }
}
