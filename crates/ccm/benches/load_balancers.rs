//! What the whole program costs at scale: time, calls, processor and memory, between simulated servers in one process.
//!
//! The clock is paused, so that the time that Octavia and the network would take is counted and not spent. Each scenario
//! runs in a process of its own, so that its memory is its own. Both simulators live in that process too: the memory
//! before is what they hold already.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark prints, and what fails it ends it"
)]

use std::process::Command;
use std::time::{Duration, Instant as WallClock};

use openstack_ccm_kube_sim::ApiVersion;
use openstack_ccm_openstack_sim::{OperationKind, Sim as Cloud};
use serde_json::{Value, json};
use tokio::time::Instant;

#[path = "../tests/program/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the tests use more of it")]
mod support;

use support::{PROXY, Side, World, service};

/// Time of one call to OpenStack.
const LATENCY: Duration = Duration::from_millis(50);
/// Time until an amphora serves.
const CREATION: Duration = Duration::from_secs(30);
/// Time until a change of a load balancer is made.
const CHANGE: Duration = Duration::from_secs(2);

const SCENARIOS: [(&str, &str); 4] = [
    ("create", "create 100 Services"),
    ("nodes", "a node joins: 500 Services, 100 nodes"),
    ("restart", "restart with 1000 Services, nothing changed"),
    ("idle", "an idle hour with 1000 Services"),
];

fn main() {
    let wanted = std::env::args().skip_while(|argument| argument != "--scenario").nth(1);
    if let Some(scenario) = wanted {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        println!("{}", runtime.block_on(run(&scenario)));
        return;
    }
    println!(
        "call to OpenStack {} ms, new amphora {} s, change {} s; 10 Services at once (--concurrent-service-syncs)\n",
        LATENCY.as_millis(),
        CREATION.as_secs(),
        CHANGE.as_secs()
    );
    println!(
        "{:<44} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7} {:>7} {:>15}",
        "scenario",
        "simulated",
        "cloud's",
        "OpenStack",
        "of these",
        "Kuber-",
        "CPU",
        "wall",
        "RSS before/peak"
    );
    println!(
        "{:<44} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7} {:>7} {:>15}",
        "", "time", "own time", "calls", "writes", "netes", "", "", "MiB"
    );
    for (scenario, title) in SCENARIOS {
        let program = std::env::current_exe().unwrap();
        let output = Command::new(program).args(["--scenario", scenario]).output().unwrap();
        assert!(output.status.success(), "{title}: {}", String::from_utf8_lossy(&output.stderr));
        println!("{title:<44} {}", String::from_utf8_lossy(&output.stdout).trim_end());
    }
}

async fn run(scenario: &str) -> String {
    match scenario {
        "create" => create().await,
        "nodes" => node_joins().await,
        "restart" => restart().await,
        "idle" => idle().await,
        other => panic!("there is no scenario {other}"),
    }
}

async fn create() -> String {
    let mut world = world(3);
    world.start().await;
    for number in 0..100 {
        world.create(&proxy_service(number));
    }
    let row = measure(&mut world, CREATION, async |world| until_served(world, 100).await).await;
    assert_eq!(world.cloud.load_balancers().len(), 100);
    row
}

async fn node_joins() -> String {
    let mut world = serving(500, 100).await;
    measure(&mut world, CHANGE, async |world| {
        world.add_node("joining", "v1.36.0");
        let joined = |world: &World| {
            let members =
                world.cloud.pools().iter().map(|pool| pool["members"].as_array().map_or(0, Vec::len)).sum();
            let members: usize = members;
            members == 500 * 101 && world.cloud.load_balancers().iter().all(is_active)
        };
        until(world, "the node is a member everywhere", Duration::from_secs(1), joined).await;
    })
    .await
}

async fn restart() -> String {
    let mut world = serving(1000, 3).await;
    world.stop().await;
    let row = measure(&mut world, Duration::ZERO, async |world| {
        world.start().await;
        let listed = |world: &World| world.cloud.log().count(|call| call.path.ends_with("/floatingips")) > 0;
        until(world, "the cloud is asked", Duration::from_millis(100), listed).await;
        // Passes take no time but that of their calls.
        tokio::time::sleep(Duration::from_secs(1)).await;
    })
    .await;
    assert!(world.cloud.log().writes().is_empty(), "nothing had to be changed");
    row
}

async fn idle() -> String {
    let mut world = serving(1000, 3).await;
    let row = measure(&mut world, Duration::from_secs(3600), async |_| {
        tokio::time::sleep(Duration::from_secs(3600)).await;
    })
    .await;
    assert!(world.cloud.log().writes().is_empty(), "nothing had to be changed");
    row
}

/// A cloud with room for thousands of addresses, and a cluster of so many nodes in it.
fn world(nodes: usize) -> World {
    let cloud = Cloud::builder().nodes(nodes).token_lifetime(Duration::from_secs(1 << 30)).build();
    let seed = cloud.seed().clone();
    let admin = cloud.admin();
    let outside =
        post(&admin, "networks", "network", &json!({"name": "wide-public", "router:external": true}));
    let subnet =
        json!({"network_id": outside["id"], "ip_version": 4, "cidr": "100.64.0.0/16", "enable_dhcp": false});
    post(&admin, "subnets", "subnet", &subnet);
    let user = cloud.user();
    let inside = post(&user, "networks", "network", &json!({"name": "wide"}));
    let subnet = json!({"network_id": inside["id"], "ip_version": 4, "cidr": "10.64.0.0/16"});
    let subnet = post(&user, "subnets", "subnet", &subnet);
    let gateway = json!({"name": "wide", "external_gateway_info": {"network_id": outside["id"]}});
    let router = post(&user, "routers", "router", &gateway);
    let path = format!("/v2.0/routers/{}/add_router_interface", text(&router["id"]));
    let (status, answer) = user.put("network", &path, &json!({"subnet_id": subnet["id"]}));
    assert_eq!(status, 200, "{answer}");
    for resource in ["port", "floatingip"] {
        cloud.set_neutron_quota(resource, -1);
    }
    cloud.set_delays(CHANGE);
    cloud.set_delay(OperationKind::LoadBalancerCreate, CREATION);
    let mut world = World::in_cloud(ApiVersion::V1_36, cloud);
    world.settings.latency = LATENCY;
    world.settings.cloud_conf = format!(
        "network-id = {}\nsubnet-id = {}\nmember-subnet-id = {}\nfloating-network-id = {}\n",
        text(&inside["id"]),
        text(&subnet["id"]),
        seed.subnet_id,
        text(&outside["id"])
    );
    world
}

/// The same with Services that are served already.
async fn serving(services: usize, nodes: usize) -> World {
    let mut world = world(nodes);
    world.start().await;
    for number in 0..services {
        world.create(&proxy_service(number));
    }
    until_served(&world, services).await;
    world.quiet().await;
    world
}

fn proxy_service(number: usize) -> Value {
    service(&format!("web-{number}"), json!({"metadata": {"annotations": {PROXY: "v2"}}}))
}

async fn until_served(world: &World, services: usize) {
    let served = |world: &World| {
        let all = world.kube.list("services", "default").unwrap();
        let published =
            |service: &&Value| service["status"]["loadBalancer"]["ingress"][0]["ipMode"] == "Proxy";
        all.iter().filter(published).count() == services
    };
    until(world, "all Services are published", Duration::from_secs(1), served).await;
}

/// Waits on the paused clock; the measured time is rounded up to the step.
async fn until(world: &World, what: &str, step: Duration, condition: impl Fn(&World) -> bool) {
    let start = Instant::now();
    while !condition(world) {
        assert!(start.elapsed() < Duration::from_secs(36_000), "not reached: {what}");
        tokio::time::sleep(step).await;
    }
}

/// Runs an operation; answers its row of the table. `own` is the time that Octavia alone would need, which works on all
/// load balancers at once.
async fn measure(world: &mut World, own: Duration, operation: impl AsyncFnOnce(&mut World)) -> String {
    world.take_calls();
    world.cloud.log().clear();
    let (memory, processor) = (memory("VmRSS:"), processor_time());
    let (simulated, wall) = (Instant::now(), WallClock::now());
    operation(world).await;
    let (simulated, wall, processor) = (simulated.elapsed(), wall.elapsed(), processor_time() - processor);
    let calls = world.take_calls();
    let count =
        |side, write: bool| calls.iter().filter(|call| call.side == side && (!write || call.write)).count();
    format!(
        "{:>7.1} s {:>7.1} s {:>9} {:>9} {:>9} {:>5.1} s {:>5.1} s {:>8}/{:<6}",
        simulated.as_secs_f64(),
        own.as_secs_f64(),
        count(Side::OpenStack, false),
        count(Side::OpenStack, true),
        count(Side::Kubernetes, false),
        processor.as_secs_f64(),
        wall.as_secs_f64(),
        memory,
        self::memory("VmHWM:"),
    )
}

/// A line of the kernel's view of this process, in MiB.
fn memory(line: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let value = status.lines().find_map(|text| text.strip_prefix(line)).unwrap();
    value.trim().trim_end_matches(" kB").parse::<usize>().unwrap() / 1024
}

/// Time on a processor, of the one thread that there is.
fn processor_time() -> Duration {
    let statistics = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    Duration::from_nanos(statistics.split(' ').next().unwrap().parse().unwrap())
}

fn post(actor: &openstack_ccm_openstack_sim::Actor<'_>, path: &str, root: &str, body: &Value) -> Value {
    let (status, answer) = actor.post("network", &format!("/v2.0/{path}"), &json!({root: body}));
    assert_eq!(status, 201, "{answer}");
    answer[root].clone()
}

fn is_active(load_balancer: &Value) -> bool {
    load_balancer["provisioning_status"] == "ACTIVE"
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}
