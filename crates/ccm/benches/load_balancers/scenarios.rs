//! The scenarios.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cloud::{CHANGE, CREATION, add_node, proxy_service, serving, until, until_served, world};
use crate::overlay;
use crate::pass::{self, Pass};
use crate::phases::{self, Phase};
use crate::planned::{self, Planned};
use crate::program::{self, Usage};
use crate::simulated::{Simulated, measure, measure_in_two, measure_until_quiet};
use crate::support::World;
use crate::wide;

/// So long after a change of nodes the members have been read, in real time.
const VERIFIED: Duration = Duration::from_secs(45);

/// One scenario.
#[derive(Debug)]
pub(crate) struct Scenario {
    /// By which it is chosen.
    pub(crate) name: &'static str,
    /// What happens.
    pub(crate) title: &'static str,
}

pub(crate) const SCENARIOS: [Scenario; 11] = [
    Scenario { name: "phases", title: "each change, and bursts, with an Octavia of bounded capacity" },
    Scenario { name: "create", title: "create 100 Services" },
    Scenario { name: "few", title: "create 5 Services" },
    Scenario { name: "nodes", title: "a node joins 100 nodes, 500 Services" },
    Scenario { name: "restart", title: "restart, 1,000 Services, nothing changed" },
    Scenario { name: "groups", title: "the same with managed security groups" },
    Scenario { name: "idle", title: "an idle hour, 1,000 Services" },
    Scenario { name: "plan", title: "plan -A, 500 Services that are served" },
    Scenario { name: "wide", title: "5,000 Services on 1,000 nodes" },
    Scenario { name: "overlay", title: "the overlay beside the owner of 1,000 Services" },
    Scenario { name: "pass", title: "one pass over a Service that did not change" },
];

/// What was measured.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) simulated: Option<Simulated>,
    /// What comes later, with its words.
    pub(crate) later: Option<(String, Simulated)>,
    /// The program as a process, each with what it had done.
    pub(crate) program: Vec<(String, Usage)>,
    pub(crate) passes: Vec<Pass>,
    pub(crate) planned: Option<Planned>,
    pub(crate) phases: Vec<Phase>,
}

/// Runs the scenario of this name. The clock is paused.
pub(crate) async fn run(name: &str) -> Row {
    match name {
        "phases" => Row { phases: phases::run().await, ..Row::default() },
        "create" => create().await,
        "few" => create_few().await,
        "nodes" => node_joins().await,
        "restart" => restart("").await,
        "groups" => restart("manage-security-groups = true\n").await,
        "idle" => idle().await,
        "plan" => Row { planned: Some(planned::run().await), ..Row::default() },
        "wide" => Row { program: wide::run().await, ..Row::default() },
        "overlay" => Row { program: overlay::run().await, ..Row::default() },
        "pass" => Row { passes: pass::run().await, ..Row::default() },
        other => panic!("there is no scenario {other}"),
    }
}

async fn create() -> Row {
    let mut world = world(3, "");
    world.start().await;
    world.quiet().await;
    let simulated = measure(&mut world, CREATION, 100, async |world| {
        create_services(world, 0..100);
        until_served(world, 100).await;
    })
    .await;
    assert_eq!(world.cloud.load_balancers().len(), 100);
    world.stop().await;
    let (stage, program) = program::start(&world, &[]).await;
    stage.calm().await;
    create_services(&world, 100..200);
    program::until("another 100 Services are published", || crate::cloud::served(&world) == 200).await;
    stage.calm().await;
    let usage = vec![("serves 100, and another 100 created".to_owned(), program.usage())];
    Row { simulated: Some(simulated), program: usage, ..Row::default() }
}

async fn create_few() -> Row {
    let mut world = world(3, "");
    world.start().await;
    world.quiet().await;
    let simulated = measure(&mut world, CREATION, 5, async |world| {
        create_services(world, 0..5);
        until_served(world, 5).await;
    })
    .await;
    Row { simulated: Some(simulated), ..Row::default() }
}

fn create_services(world: &World, numbers: std::ops::Range<usize>) {
    for number in numbers {
        world.create(&proxy_service(number));
    }
}

async fn node_joins() -> Row {
    let mut world = serving(500, 100, "").await;
    let change = async |world: &mut World| {
        add_node(world, "joining");
        let joined = |world: &World| members(world) == 500 * 101 && all_active(world);
        until(world, "the node is a member everywhere", Duration::from_millis(500), joined).await;
    };
    // Events are written, and no members are read yet.
    let rest = Duration::from_secs(15);
    let (simulated, verified) = measure_in_two(&mut world, CHANGE, 500, change, rest).await;
    world.stop().await;
    let (stage, program) = program::start(&world, &[]).await;
    stage.calm().await;
    for (number, expected) in [(1, 102), (2, 103)] {
        add_node(&world, &format!("joining-later-{number}"));
        program::until("the node is a member everywhere", || members(&world) == 500 * expected).await;
        stage.calm().await;
    }
    tokio::time::sleep(VERIFIED).await;
    let usage = vec![("serves 500 on 101 nodes, and two more join".to_owned(), program.usage())];
    let later = Some(("verified afterwards".to_owned(), verified));
    Row { simulated: Some(simulated), later, program: usage, ..Row::default() }
}

fn members(world: &World) -> usize {
    world.cloud.pools().iter().map(|pool| pool["members"].as_array().map_or(0, Vec::len)).sum()
}

fn all_active(world: &World) -> bool {
    let is_active = |load_balancer: &Value| load_balancer["provisioning_status"] == "ACTIVE";
    world.cloud.load_balancers().iter().all(is_active)
}

async fn restart(conf: &str) -> Row {
    let mut world = serving(1000, 3, conf).await;
    world.stop().await;
    let simulated = measure_until_quiet(&mut world, 1000, async |world| world.start().await).await;
    assert_eq!(simulated.openstack_writes, 0, "nothing had to be changed: {:?}", simulated.openstack);
    world.stop().await;
    // What it does at its first start with this cluster, such as to complete the nodes, is not that of a restart.
    let (stage, first) = program::start(&world, &[]).await;
    stage.calm().await;
    drop(first);
    let (stage, program) = stage.start_again(&[]).await;
    stage.calm().await;
    let usage = vec![("restarted, serves 1,000".to_owned(), program.usage())];
    Row { simulated: Some(simulated), program: usage, ..Row::default() }
}

async fn idle() -> Row {
    let mut world = serving(1000, 3, "").await;
    // What was just created is read whole at its first check for drift.
    let simulated = Some(idle_hour(&mut world).await);
    let later = Some(("the hour after it".to_owned(), idle_hour(&mut world).await));
    Row { simulated, later, ..Row::default() }
}

async fn idle_hour(world: &mut World) -> Simulated {
    let hour = Duration::from_secs(3600);
    let mut simulated = measure(world, Duration::ZERO, 1000, async |_| tokio::time::sleep(hour).await).await;
    simulated.time = hour.as_secs_f64();
    assert_eq!(simulated.openstack_writes, 0, "nothing had to be changed: {:?}", simulated.openstack);
    simulated
}
