//! The transition, as a table. The decision record 0034 explains it.

use openstack_ccm_openstack_api::octavia::{CreatedLoadBalancer, LoadBalancer};
use rstest::rstest;
use serde_json::json;
use tokio::time::Instant;

use super::cached::Cached;
use super::event::{Event, Goal, LockEnd, PreviousVips};
use super::state::Belief;
use crate::load_balancer::apply::{Answer, Applied, Locked};
use crate::load_balancer::model::observed::{Children, Observed, Ownership};
use crate::load_balancer::model::tree::Desired;
use crate::load_balancer::plan::tests::cloud::Cloud;
use crate::load_balancer::plan::tests::shape::Shape;
use crate::load_balancer::plan::{self, Plan};
use crate::load_balancer::poller::Afterwards;
use crate::load_balancer::step::{Child, Needs, Touched};

/// The columns: `Sent` is `Converged` with a batch of members that nobody has read.
const BELIEFS: [&str; 7] = ["Unknown", "DigestOnly", "Changing", "Converged", "Sent", "DriftDue", "Recheck"];

/// What is believed after each event, by what was believed before.
const TABLE: [(&str, [&str; 7]); 22] = [
    ("first seen", ["DigestOnly"; 7]),
    ("service changed", ["Unknown", "Unknown", "Unknown", "Recheck", "Unknown", "Recheck", "Recheck"]),
    ("drift due", ["DigestOnly", "DigestOnly", "DigestOnly", "DriftDue", "Unknown", "DriftDue", "Recheck"]),
    ("lists agree", ["Unknown", "Unknown", "Changing", "Converged", "Sent", "Converged", "Recheck"]),
    ("lock ended, ACTIVE", BELIEFS),
    (
        "lock ended, a child is missing",
        ["Unknown", "DigestOnly", "Unknown", "Unknown", "Unknown", "Unknown", "Unknown"],
    ),
    ("lock ended, ERROR", ["Unknown"; 7]),
    ("lock ended, unseen", ["Unknown"; 7]),
    ("lock presumed ended", ["Unknown", "Unknown", "Changing", "Converged", "Sent", "Unknown", "Unknown"]),
    ("applied: nothing", BELIEFS),
    ("applied: members", ["Unknown", "DigestOnly", "Changing", "Sent", "Sent", "DriftDue", "Recheck"]),
    ("applied: everything", ["Unknown"; 7]),
    ("applied: created", ["Unknown", "Unknown", "Changing", "Unknown", "Unknown", "Unknown", "Unknown"]),
    ("waits", BELIEFS),
    ("stalled", BELIEFS),
    ("converged", ["Unknown", "DigestOnly", "Converged", "Converged", "Sent", "DriftDue", "Recheck"]),
    (
        "converged, no digests",
        ["Unknown", "DigestOnly", "Converged", "Converged", "Sent", "DriftDue", "Recheck"],
    ),
    ("failed", ["Unknown"; 7]),
    ("held", ["Unknown"; 7]),
    ("changed by others", ["Unknown"; 7]),
    ("moved", ["Unknown"; 7]),
    ("replaced", ["Unknown"; 7]),
];

/// A Service that has got a third node since its load balancer agreed with it, and the plan for that.
struct Grown {
    before: Desired,
    after: Desired,
    plan: Plan,
}

impl Grown {
    fn new() -> Self {
        let before = Shape::web().desired();
        let after = Shape::web().with(|shape| shape.nodes = [1, 2, 3].into()).desired();
        let plan = plan::serve(&after, &Cloud::serving(&before).observed);
        Self { before, after, plan }
    }

    fn read(&self) -> Box<Cached> {
        let observed = Cloud::serving(&self.before).observed;
        Box::new(Cached::new(observed, None, Some("2026-01-01T00:00:00".to_owned())))
    }

    fn belief(&self, name: &str) -> Belief {
        match name {
            "Unknown" => Belief::Unknown,
            "DigestOnly" => Belief::DigestOnly,
            "Changing" => Belief::Changing(self.read()),
            "Converged" => Belief::Converged(self.read()),
            "Sent" => self.after("applied: members", Belief::Converged(self.read())),
            "DriftDue" => Belief::DriftDue(self.read()),
            "Recheck" => Belief::Recheck(self.read()),
            other => panic!("there is no belief {other}"),
        }
    }

    fn after(&self, event: &str, belief: Belief) -> Belief {
        let pool = belief.cached().and_then(Cached::load_balancer).and_then(|there| there.children.as_ref());
        let pool = pool.map(|children| children.pools[0].id.clone()).unwrap_or_default();
        let touched =
            |touched: Touched| Applied { changed: true, touched: vec![touched], ..Applied::default() };
        let nothing = Applied::default();
        let members = touched(Touched::Child(Child::Members(pool)));
        let everything = touched(Touched::Everything);
        let created = Applied { answer: Some(Answer::LoadBalancer(Box::new(made()))), ..everything.clone() };
        let goal = Goal { desired: &self.after, digests: true };
        let served = Some((&self.plan, goal));
        let read = self.read();
        let children = read.load_balancer().and_then(|there| there.children.as_ref());
        let (active, broken) = (listed("ACTIVE", children), listed("ERROR", children));
        let childless = listed("ACTIVE", None);
        let event = match event {
            "first seen" => Event::FirstSeen,
            "service changed" => Event::ServiceChanged,
            "drift due" => Event::DriftDue,
            "lists agree" => Event::ListsAgree,
            "lock ended, ACTIVE" => Event::LockEnded(Some(ended(&active))),
            "lock ended, a child is missing" => Event::LockEnded(Some(ended(&childless))),
            "lock ended, ERROR" => Event::LockEnded(Some(ended(&broken))),
            "lock ended, unseen" => Event::LockEnded(None),
            "lock presumed ended" => Event::LockPresumedEnded,
            "applied: nothing" => Event::Applied { applied: &nothing, served, repairs: false },
            "applied: members" => Event::Applied { applied: &members, served, repairs: false },
            "applied: everything" => Event::Applied { applied: &everything, served, repairs: false },
            "applied: created" => Event::Applied { applied: &created, served, repairs: false },
            "waits" => Event::Waits,
            "stalled" => Event::Stalled { gives_up: false },
            "converged" => Event::Converged(goal),
            "converged, no digests" => Event::Converged(Goal { digests: false, ..goal }),
            "failed" => Event::Failed,
            "held" => Event::Held,
            "changed by others" => Event::ChangedByOthers,
            "moved" => Event::Moved,
            "replaced" => Event::Replaced(PreviousVips::Lost),
            other => panic!("there is no event {other}"),
        };
        belief.after(&event, Instant::now())
    }
}

fn listed(status: &str, children: Option<&Children>) -> LoadBalancer {
    let ids = |ids: Vec<&String>| ids.into_iter().map(|id| json!({"id": id})).collect::<Vec<_>>();
    let listeners = children.iter().flat_map(|below| &below.listeners).map(|one| &one.id).collect();
    let pools = children.iter().flat_map(|below| &below.pools).map(|one| &one.id).collect();
    let listed = json!({"id": "lb-1", "name": "web", "provisioning_status": status, "operating_status": "ONLINE",
        "listeners": ids(listeners), "pools": ids(pools)});
    serde_json::from_value(listed).expect("a load balancer")
}

/// The answer to the creation of a load balancer with nothing on it.
fn made() -> CreatedLoadBalancer {
    let made = json!({"id": "lb-1", "name": "web", "provisioning_status": "PENDING_CREATE", "operating_status": "OFFLINE",
        "vip_address": "10.0.0.1", "vip_port_id": "port", "listeners": [], "pools": []});
    serde_json::from_value(made).expect("a load balancer")
}

fn ended(listed: &LoadBalancer) -> LockEnd<'_> {
    LockEnd { listed, previous_name: None, namesakes: None }
}

fn name(belief: &Belief) -> &'static str {
    match belief {
        Belief::Unknown => "Unknown",
        Belief::DigestOnly => "DigestOnly",
        Belief::Changing(_) => "Changing",
        Belief::Converged(cached) if cached.has_unconfirmed() => "Sent",
        Belief::Converged(_) => "Converged",
        Belief::DriftDue(_) => "DriftDue",
        Belief::Recheck(_) => "Recheck",
    }
}

#[test]
fn each_event_ends_exactly_the_beliefs_of_the_table() {
    let service = Grown::new();
    for (event, expected) in TABLE {
        let after = BELIEFS.map(|before| name(&service.after(event, service.belief(before))));
        assert_eq!(after, expected, "after {event:?}");
    }
}

#[test]
fn a_step_that_came_too_early_ends_no_belief() {
    let service = Grown::new();
    let locked = Locked { made: None, operation: None, on: "it is immutable".to_owned() };
    let refused = Applied { touched: vec![Touched::Everything], locked: Some(locked), ..Applied::default() };
    let event = Event::Applied { applied: &refused, served: None, repairs: false };
    for before in ["Changing", "Sent"] {
        let presumed = service.after("lock presumed ended", service.belief(before));
        let after = presumed.after(&event, Instant::now());
        assert_eq!(name(&after), before);
        assert!(after.locked_by_own_step().is_some(), "the end of the step before it is still to come");
        assert_eq!(name(&after.after(&event, Instant::now())), "Unknown", "this lock is somebody else's");
    }
}

/// Which step may follow before anybody has seen that Octavia has finished.
#[rstest]
#[case::a_step_that_builds(|_: &mut Cached, pool: String| Child::Pool(pool), Needs::Nothing, Afterwards::Write)]
#[case::a_step_that_relies_on_the_last_one(
    |_: &mut Cached, pool: String| Child::Pool(pool), Needs::Everything, Afterwards::Look
)]
#[case::a_deletion_after_another(
    |_: &mut Cached, _| Child::Pool("gone".to_owned()), Needs::Everything, Afterwards::Write
)]
#[case::a_deletion_on_a_shared_load_balancer(
    |cached: &mut Cached, _| {
        cached.observed.load_balancer.as_mut().expect("it is there").ownership = Ownership::Shared;
        Child::Pool("gone".to_owned())
    },
    Needs::Everything,
    Afterwards::Look
)]
#[case::a_step_after_one_that_no_answer_shows(
    |cached: &mut Cached, pool: String| {
        cached.touched.push(Touched::Child(Child::Members(pool.clone())));
        Child::Pool(pool)
    },
    Needs::Nothing,
    Afterwards::Look
)]
#[case::a_step_after_a_change_of_the_load_balancer(
    |cached: &mut Cached, pool| {
        cached.touched.push(Touched::LoadBalancer);
        Child::Pool(pool)
    },
    Needs::Nothing,
    Afterwards::Look
)]
fn what_follows_a_step(
    #[case] edit: impl Fn(&mut Cached, String) -> Child,
    #[case] next_needs: Needs,
    #[case] expected: Afterwards,
) {
    let mut cached = Grown::new().read();
    let children = cached.load_balancer().and_then(|there| there.children.as_ref()).expect("children");
    let pool = children.pools[0].id.clone();
    let answered = edit(&mut cached, pool);
    cached.touched.push(Touched::Child(answered.clone()));
    cached.answered.insert(answered);
    let belief = Belief::Changing(cached);
    let applied =
        |goes_on_below| Applied { next_needs: next_needs.clone(), goes_on_below, ..Applied::default() };
    assert_eq!(belief.afterwards(&applied(true)), expected);
    assert_eq!(belief.afterwards(&applied(false)), Afterwards::Look, "the Service waits for the end");
}

#[test]
fn nobody_waits_for_the_end_of_the_last_batch_of_members() {
    let service = Grown::new();
    let sent = service.belief("Sent");
    let applied = |goes_on_below| Applied { next_needs: Needs::Nothing, goes_on_below, ..Applied::default() };
    assert_eq!(sent.afterwards(&applied(false)), Afterwards::Nothing);
    assert_eq!(sent.afterwards(&applied(true)), Afterwards::Write, "another pool comes next");
    assert_eq!(service.belief("Recheck").afterwards(&applied(true)), Afterwards::Look);
}

#[test]
fn members_of_a_load_balancer_that_is_being_made_are_not_kept() {
    let wanted = Shape::web().desired();
    let (key, port) = wanted.listeners.first_key_value().expect("a port");
    let members = port.pool.members.iter().map(|member| {
        json!({"id": member.name, "name": member.name, "address": member.address, "protocol_port": member.port,
            "subnet_id": member.subnet_id.as_deref(), "monitor_port": member.monitor_port,
            "provisioning_status": "PENDING_CREATE", "operating_status": "OFFLINE"})
    });
    let status = |id: &str| {
        json!({"id": id, "provisioning_status": "PENDING_CREATE", "operating_status": "OFFLINE",
            "protocol": "TCP", "listeners": [{"id": "listener"}]})
    };
    let (mut listener, mut pool) = (status("listener"), status("pool"));
    (listener["protocol_port"], listener["default_pool_id"]) = (json!(key.port), json!("pool"));
    (pool["lb_algorithm"], pool["members"]) = (json!("ROUND_ROBIN"), members.collect());
    let mut answer = json!({"id": "lb-1", "provisioning_status": "PENDING_CREATE", "operating_status": "OFFLINE",
        "vip_address": "10.0.0.1", "vip_port_id": "port"});
    (answer["listeners"], answer["pools"]) = (json!([listener]), json!([pool]));
    let made: CreatedLoadBalancer = serde_json::from_value(answer).expect("a load balancer");
    let applied = Applied {
        changed: true,
        touched: vec![Touched::Everything],
        answer: Some(Answer::LoadBalancer(Box::new(made))),
        ..Applied::default()
    };
    let plan = plan::serve(&wanted, &Observed::default());
    let goal = Goal { desired: &wanted, digests: true };
    let event = Event::Applied { applied: &applied, served: Some((&plan, goal)), repairs: false };
    let nothing = Box::new(Cached::new(Observed::default(), None, None));
    let belief = Belief::Changing(nothing).after(&event, Instant::now());
    let cached = belief.cached().expect("the answer shows it whole");
    let pools = &cached.own_children().expect("children").pools;
    assert!(pools[0].members.is_empty() && cached.has_digests());
    let seen = cached.seen_beside(&wanted, &[]);
    let seen = seen.load_balancer.and_then(|there| there.children).expect("children");
    assert_eq!(seen.pools[0].members.len(), port.pool.members.len());
}

#[test]
fn members_that_agree_are_not_kept_and_a_digest_tells_when_others_are_wanted() {
    let service = Grown::new();
    let event = Event::Converged(Goal { desired: &service.before, digests: true });
    let belief = Belief::Changing(service.read()).after(&event, Instant::now());
    let cached = belief.cached().expect("it is believed");
    assert!(cached.has_digests());
    assert!(plan::serve(&service.before, &cached.seen_beside(&service.before, &[])).is_converged());
    let plan = plan::serve(&service.after, &cached.seen_beside(&service.after, &[]));
    assert_eq!(plan.steps, service.plan.steps, "the batch is the one that a reading would lead to");
}
