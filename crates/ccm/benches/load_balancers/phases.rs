//! One change after another, and bursts, with an Octavia that has as much to do with them as a real one on a small machine.

use std::time::Duration;

use openstack_ccm_openstack_sim::{Capacity, OperationKind};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::calls::{CREATE, DELETE, NODE_ADDED, PORT_ADDED, PROXY_OFF, RESTART, most};
use crate::cloud::{add_node, served, until, world};
use crate::simulated::{Simulated, measure, measure_in_two, measure_until_quiet};
use crate::support::{PROXY, World, service};

const INTERNAL: &str = "service.beta.kubernetes.io/openstack-internal-load-balancer";
/// Time between two looks.
const STEP: Duration = Duration::from_millis(100);
/// How long work takes that is not listed below.
const CHANGE: Duration = Duration::from_secs(1);
/// As measured of Octavia 2026.2 in the end-to-end scenarios, with nothing beside it.
const WORK: [(OperationKind, Duration); 8] = [
    (OperationKind::LoadBalancerCreate, Capacity::SMALL_CREATION),
    (OperationKind::LoadBalancerDelete, Duration::from_millis(2300)),
    (OperationKind::ListenerCreate, Duration::from_millis(800)),
    (OperationKind::ListenerUpdate, Duration::from_millis(1700)),
    (OperationKind::PoolCreate, Duration::from_millis(300)),
    (OperationKind::PoolDelete, Duration::from_millis(300)),
    (OperationKind::HealthMonitorCreate, Duration::from_millis(400)),
    (OperationKind::MemberBatch, Duration::from_millis(1300)),
];

/// One change.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Phase {
    pub(crate) change: String,
    /// The calls to Octavia that it may cost.
    pub(crate) most: Option<usize>,
    pub(crate) cost: Simulated,
    /// When Services were served, in seconds, where some were created.
    pub(crate) served: Vec<f64>,
}

impl Phase {
    fn new(change: &str, count: usize, cost: Simulated) -> Self {
        Self { change: format!("{change}: {count}"), most: most(change, count), cost, served: Vec::new() }
    }

    /// Calls to Octavia.
    pub(crate) fn octavia_calls(&self) -> usize {
        let neutron = |name: &str| {
            ["floatingips", "security-group", "subnets", "networks", "ports", "routers"]
                .iter()
                .any(|kind| name.split(' ').nth(1).is_some_and(|path| path.starts_with(kind)))
        };
        self.cost.openstack.iter().filter(|(name, _)| !neutron(name)).map(|(_, count)| count).sum()
    }
}

/// All of them.
pub(crate) async fn run() -> Vec<Phase> {
    let mut phases = changes().await;
    phases.extend(bursts().await);
    phases
}

/// A cloud with an Octavia of bounded capacity, and the program at rest.
async fn small_cloud() -> World {
    let mut world = world(3, "");
    world.cloud.set_delays(CHANGE);
    for (kind, delay) in WORK {
        world.cloud.set_delay(kind, delay);
    }
    world.cloud.set_capacity(Some(Capacity::small()));
    world.start().await;
    world.quiet().await;
    world
}

/// An internal Service with PROXY protocol and two ports.
fn two_ports(number: usize) -> Value {
    let ports = json!([
        {"name": "http", "port": 80, "protocol": "TCP"},
        {"name": "https", "port": 443, "protocol": "TCP"},
    ]);
    let change =
        json!({"metadata": {"annotations": {PROXY: "v2", INTERNAL: "true"}}, "spec": {"ports": ports}});
    service(&name(number), change)
}

fn name(number: usize) -> String {
    format!("web-{number}")
}

/// Creates Services at once and notes when each of them was served.
async fn create(world: &mut World, numbers: std::ops::Range<usize>) -> Phase {
    let (count, all, before) = (numbers.len(), numbers.end, numbers.start);
    let mut times = Vec::new();
    let cost = measure(world, Duration::ZERO, count, async |world| {
        let start = Instant::now();
        numbers.for_each(|number| world.create(&two_ports(number)));
        while served(world) < all {
            tokio::time::sleep(STEP).await;
            times.resize(served(world) - before, start.elapsed().as_secs_f64());
        }
    })
    .await;
    Phase { served: times, ..Phase::new(CREATE, count, cost) }
}

async fn delete(world: &mut World, numbers: std::ops::Range<usize>) -> Phase {
    phase(world, DELETE, numbers.len(), async |world| {
        numbers.clone().for_each(|number| world.delete(&name(number)));
        let gone = |world: &World| numbers.clone().all(|number| world.service(&name(number)).is_null());
        until(world, "they are gone", STEP, gone).await;
    })
    .await
}

async fn phase(world: &mut World, change: &str, count: usize, make: impl AsyncFnOnce(&mut World)) -> Phase {
    Phase::new(change, count, measure_until_quiet(world, count, make).await)
}

async fn changes() -> Vec<Phase> {
    let mut world = small_cloud().await;
    let mut phases = vec![create(&mut world, 0..1).await, create(&mut world, 1..6).await];
    let port_added = phase(&mut world, PORT_ADDED, 1, async |world| {
        let mut ports = world.service(&name(0))["spec"]["ports"].clone();
        let more = json!({"name": "more", "port": 8080, "protocol": "TCP"});
        ports.as_array_mut().unwrap().push(more);
        world.patch(&name(0), &json!({"spec": {"ports": ports}}));
    });
    phases.push(port_added.await);
    phases.push(node_added(&mut world, "joining").await);
    let proxy_off = phase(&mut world, PROXY_OFF, 1, async |world| {
        world.annotate(&name(0), PROXY, Some("false"));
    });
    phases.push(proxy_off.await);
    for _ in 0..2 {
        phases.push(phase(&mut world, RESTART, 6, World::restart).await);
    }
    phases.push(delete(&mut world, 0..6).await);
    world.stop().await;
    phases
}

/// A node joins; what is looked at afterwards is counted, and not part of the time.
async fn node_added(world: &mut World, node: &str) -> Phase {
    let pools = world.cloud.pools().len();
    let joins = async |world: &mut World| {
        add_node(world, node);
        let has_it = |world: &World| {
            world.cloud.pools().iter().all(|pool| pool["members"].as_array().map_or(0, Vec::len) == 4)
        };
        until(world, "the node is a member everywhere", STEP, has_it).await;
    };
    let (joined, confirmed) = measure_in_two(world, Duration::ZERO, pools, joins, Duration::ZERO).await;
    Phase::new(NODE_ADDED, pools, joined.and(&confirmed))
}

/// One after another, as in the end-to-end scenario.
async fn bursts() -> Vec<Phase> {
    let mut world = small_cloud().await;
    let mut phases = Vec::new();
    for count in [15, 30] {
        phases.push(create(&mut world, 0..count).await);
        let node = format!("joining-{count}");
        phases.push(node_added(&mut world, &node).await);
        phases.push(delete(&mut world, 0..count).await);
        world.kube.delete("nodes", "", &node).unwrap();
        world.quiet().await;
    }
    world.stop().await;
    phases
}
