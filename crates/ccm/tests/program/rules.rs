//! What the rules of a reconciliation protect: a look before each step that relies on something, and no Service that waits for another one's trouble.

use std::time::Duration;

use http::{Method, StatusCode};
use openstack_ccm_kube_sim::{ApiVersion, Fault as KubeFault};
use openstack_ccm_openstack_sim::{Capacity, Fault, OperationKind, Sim as Cloud, WorkerFault};
use rstest::rstest;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::contract::setup::{as_occm_leaves_it, id, load_balancer, put};
use crate::support::{PROXY, World, lb_name, service};

const LIMIT: &str = "loadbalancer.openstack.org/connection-limit";
const LB_ID: &str = "loadbalancer.openstack.org/load-balancer-id";
/// A Service of another cluster, and its tag.
const STRANGER: &str = "kube_service_c2_default_other";
/// Drift was looked for by then: half an hour, random part included.
const DRIFT: Duration = Duration::from_secs(37 * 60);

fn octavia(method: Method, path: &str) -> Fault {
    Fault::new().service("load-balancer").method(method).path(path)
}

/// Another cluster joins the load balancer as soon as it is not locked.
async fn stranger_joins(world: &World) {
    let path = format!("/v2.0/lbaas/loadbalancers/{}", id(&load_balancer(world)));
    loop {
        let mut tags = load_balancer(world)["tags"].clone();
        tags.as_array_mut().unwrap().push(json!(STRANGER));
        let body = json!({"loadbalancer": {"tags": tags}});
        if world.cloud.user().put("load-balancer", &path, &body).0 == 200 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn is_tagged(world: &World, tag: &str) -> bool {
    load_balancer(world)["tags"].as_array().unwrap().contains(&json!(tag))
}

/// A world that serves `web`, and the Service `web2`, which asks to share its load balancer.
async fn world_and_guest() -> (World, Value) {
    let mut world = World::new(ApiVersion::V1_36);
    world.settings.cloud_conf = "max-shared-lb = 3\n".to_owned();
    world.settings.plans = false;
    world.start().await;
    world.serve(&service("web", json!({}))).await;
    let ports = json!([{"name": "http", "port": 8080, "protocol": "TCP"}]);
    let annotations = json!({LB_ID: id(&load_balancer(&world))});
    let guest = json!({"metadata": {"annotations": annotations}, "spec": {"ports": ports}});
    (world, service("web2", guest))
}

/// Octavia takes tags as a whole: who writes them has to know those that are there.
#[rstest]
#[tokio::test(start_paused = true)]
async fn a_tag_of_somebody_else_is_not_lost_when_a_service_joins(
    #[values(0, 500, 1500, 2500, 3500, 4500, 6500, 8500)] wait: u64,
) {
    let (world, guest) = world_and_guest().await;
    world.create(&guest);
    tokio::time::sleep(Duration::from_millis(wait)).await;
    stranger_joins(&world).await;
    world.until_served("web2").await;
    for tag in [STRANGER, &lb_name("web"), &lb_name("web2")] {
        assert!(is_tagged(&world, tag), "{tag}: {}", load_balancer(&world)["tags"]);
    }
}

#[rstest]
#[tokio::test(start_paused = true)]
async fn a_tag_of_somebody_else_is_not_lost_when_owners_are_tagged(#[values(5, 30, 59, 61, 90)] wait: u64) {
    let mut world = World::serving(&service("web", json!({}))).await;
    world.settings.plans = false;
    world.stop().await;
    as_occm_leaves_it(&world, "web");
    world.start().await;
    tokio::time::sleep(Duration::from_secs(wait)).await;
    stranger_joins(&world).await;
    tokio::time::sleep(DRIFT).await;
    let tags = load_balancer(&world)["tags"].clone();
    assert!(is_tagged(&world, STRANGER) && tags.to_string().contains("openstack-ccm-service="), "{tags}");
}

/// As with a provider that takes an attribute and does not keep it.
#[tokio::test(start_paused = true)]
async fn a_step_that_has_no_effect_is_reported_and_not_taken_again_and_again() {
    let mut world = World::serving(&service("web", json!({}))).await;
    world.settings.plans = false;
    let listener = world.cloud.listeners()[0].clone();
    world.cloud.faults().add(octavia(Method::PUT, "/listeners/").answer(200, json!({"listener": listener})));
    world.annotate("web", LIMIT, Some("100"));
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let writes = world.take_cloud_writes();
    assert!((2..30).contains(&writes.len()), "{} writes", writes.len());
    let warnings = world.warnings("web");
    assert!(warnings.iter().any(|warning| warning.contains("LoadBalancerChangeRepeated")), "{warnings:?}");
    // Nodes are followed all the same.
    world.add_node("node-3", "v1.36.0");
    let follows = |world: &World| world.cloud_state().contains("member node-3");
    world.until("the node is a member", follows).await;
}

fn first_member(cloud: &Cloud) -> (String, Value) {
    let pool = id(&cloud.pools()[0]);
    let member = cloud.members(&pool).into_iter().find(|one| one["name"] == "node-1").unwrap();
    (pool, member)
}

/// What an administrator set on a member to drain its node stays when other nodes join and leave, whether or not the change was seen before.
#[rstest]
#[case::at_once(Duration::ZERO, false)]
#[case::after_it_was_seen(DRIFT, false)]
#[case::after_a_restart(Duration::ZERO, true)]
#[tokio::test(start_paused = true)]
async fn a_drain_survives_changes_of_nodes(
    #[values(("weight", json!(0)), ("backup", json!(true)), ("admin_state_up", json!(false)))] set: (
        &str,
        Value,
    ),
    #[case] wait: Duration,
    #[case] restarts: bool,
) {
    let mut world = World::serving(&service("web", json!({}))).await;
    world.settings.plans = false;
    let (attribute, value) = set;
    let (pool, member) = first_member(&world.cloud);
    let path = format!("/v2.0/lbaas/pools/{pool}/members/{}", id(&member));
    put(&world, &path, &json!({"member": {attribute: value}}));
    tokio::time::sleep(wait).await;
    if restarts {
        world.restart_to_rest().await;
    }
    world.add_node("node-3", "v1.36.0");
    tokio::time::sleep(Duration::from_millis(2500)).await;
    world.add_node("node-4", "v1.36.0");
    world.quiet().await;
    world.kube.delete("nodes", "", "node-2").unwrap();
    world.quiet().await;
    assert_eq!(world.cloud.members(&pool).len(), 3, "{}", world.cloud_state());
    assert_eq!(first_member(&world.cloud).1[attribute], value);
}

/// A replica of Octavia's database that lags behind does not show a member that is there, once.
#[rstest]
#[case::in_the_status_tree("/status", false)]
#[case::in_the_list_of_members("/members", true)]
#[tokio::test(start_paused = true)]
async fn a_replica_that_lags_behind_ends_no_drain(#[case] path: &str, #[case] while_stopped: bool) {
    let mut world = World::serving(&service("web", json!({}))).await;
    world.settings.plans = false;
    let (pool, member) = first_member(&world.cloud);
    let member = format!("/v2.0/lbaas/pools/{pool}/members/{}", id(&member));
    put(&world, &member, &json!({"member": {"weight": 0}}));
    let now = world.cloud.snapshot();
    world.cloud.user().delete("load-balancer", &member);
    world.cloud.settle();
    let behind = world.cloud.snapshot();
    world.cloud.restore(now);
    if while_stopped {
        world.stop().await;
    }
    world.cloud.faults().add(octavia(Method::GET, &format!("{path}$")).as_of(behind).once());
    world.add_node("node-3", "v1.36.0");
    if while_stopped {
        world.start().await;
    }
    world.quiet().await;
    assert_eq!(world.cloud.members(&pool).len(), 3, "{}", world.cloud_state());
    assert_eq!(first_member(&world.cloud).1["weight"], 0);
}

/// One that shows no member at all is asked once more, too.
#[rstest]
#[case::in_the_status_tree("/status$", false)]
#[case::in_the_list_of_members("/members$", true)]
#[tokio::test(start_paused = true)]
async fn a_replica_without_members_ends_no_drain(#[case] path: &str, #[case] while_stopped: bool) {
    let mut world = World::serving(&service("web", json!({}))).await;
    world.settings.plans = false;
    let (pool, member) = first_member(&world.cloud);
    let path_of_member = format!("/v2.0/lbaas/pools/{pool}/members/{}", id(&member));
    put(&world, &path_of_member, &json!({"member": {"weight": 0}}));
    let now = world.cloud.snapshot();
    put(&world, &format!("/v2.0/lbaas/pools/{pool}/members"), &json!({"members": []}));
    world.cloud.settle();
    let behind = world.cloud.snapshot();
    world.cloud.restore(now);
    if while_stopped {
        world.stop().await;
    }
    world.cloud.faults().add(octavia(Method::GET, path).as_of(behind).once());
    world.add_node("node-3", "v1.36.0");
    if while_stopped {
        world.start().await;
    }
    world.quiet().await;
    assert_eq!(world.cloud.members(&pool).len(), 3, "{}", world.cloud_state());
    assert_eq!(first_member(&world.cloud).1["weight"], 0);
}

/// So many creations are under way at most on an Octavia that does one thing after another.
const WINDOW: usize = 10;

#[tokio::test(start_paused = true)]
async fn an_id_that_cannot_be_written_lets_no_other_creation_in() {
    let world = World::started().await;
    world.cloud.set_delay(OperationKind::LoadBalancerCreate, Capacity::SMALL_CREATION);
    world.cloud.set_capacity(Some(Capacity::small()));
    let names_one = |body: &[u8]| String::from_utf8_lossy(body).contains("load-balancer-id");
    let refused = KubeFault::when(move |request| request.method == Method::PATCH && names_one(&request.body));
    world.kube.inject(refused.times(60).refuse());
    (0..30).for_each(|number| world.create(&service(&format!("web-{number}"), json!({}))));
    let is_pending = |one: &&Value| one["provisioning_status"] == "PENDING_CREATE";
    let served = |world: &World| (0..30).all(|number| !world.ingress(&format!("web-{number}")).is_empty());
    let start = Instant::now();
    while !served(&world) {
        let pending = world.cloud.load_balancers().iter().filter(is_pending).count();
        assert!(pending <= WINDOW, "{pending} at once");
        assert!(start.elapsed() < Duration::from_secs(3600));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(world.cloud.load_balancers().len(), 30);
}

/// Six batches get no answer.
#[rstest]
#[case::of_a_hundred_members(100)]
#[case::of_a_thousand_members(1000)]
#[tokio::test(start_paused = true)]
async fn requests_that_hang_stop_no_other_service(#[case] nodes: usize) {
    let cloud = Cloud::builder()
        .nodes(nodes)
        .cluster_cidr("198.18.0.0/20")
        .token_lifetime(Duration::from_secs(1 << 30))
        .build();
    let mut world = World::in_cloud(ApiVersion::V1_36, cloud);
    world.settings.plans = false;
    world.start().await;
    for number in 0..8 {
        world.create(&service(&format!("web-{number}"), json!({})));
    }
    for number in 0..8 {
        world.until_published(&format!("web-{number}")).await;
    }
    world.quiet().await;
    let hangs = octavia(Method::PUT, "/pools/[^/]+/members").latency(Duration::from_secs(3600)).times(6);
    world.cloud.faults().add(hangs);
    world.add_node("joining", "v1.36.0");
    tokio::time::sleep(Duration::from_secs(40)).await;
    let has_it = |pool: &&Value| pool["members"].as_array().map_or(0, Vec::len) == nodes + 1;
    assert_eq!(world.cloud.pools().iter().filter(has_it).count(), 2, "those that are answered");
}

/// Lists of all load balancers take longer than anybody waits, and each of them can be read.
#[tokio::test(start_paused = true)]
async fn a_list_that_is_too_slow_stops_no_service_that_can_be_read() {
    const SERVICES: usize = 12;
    let mut world = World::started().await;
    world.settings.plans = false;
    let name = |number: usize| format!("web-{number}");
    for number in 0..SERVICES {
        world.serve(&service(&name(number), json!({}))).await;
    }
    world.stop().await;
    let lists = octavia(Method::GET, "/loadbalancers(\\?project_id=.*)?$").latency(Duration::from_secs(3600));
    world.cloud.faults().add(lists);
    world.start().await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    (0..SERVICES).for_each(|number| world.annotate(&name(number), LIMIT, Some("100")));
    let start = Instant::now();
    let is_done = |world: &World| world.cloud.listeners().iter().all(|one| one["connection_limit"] == 100);
    world.until("all are changed", is_done).await;
    assert!(start.elapsed() < Duration::from_secs(600), "{:?}", start.elapsed());
}

/// The only worker is busy when Octavia has finished, and for long after that.
#[tokio::test(start_paused = true)]
async fn an_end_that_nobody_had_time_for_is_not_lost() {
    let mut world = World::new(ApiVersion::V1_36);
    world.settings.service.concurrency = 1;
    world.settings.plans = false;
    world.start().await;
    for name in ["web", "busy"] {
        world.serve(&service(name, json!({}))).await;
    }
    let pool_of = |name: &str| {
        let pools = world.cloud.pools();
        pools.iter().find(|pool| pool["name"].as_str().unwrap().ends_with(name)).map(id).unwrap()
    };
    let slow = octavia(Method::PUT, &format!("/pools/{}", pool_of("busy"))).latency(Duration::from_secs(45));
    world.cloud.faults().add(slow.once());
    world.annotate("web", PROXY, Some("v2"));
    world.until("the first step is under way", |world| world.cloud_state().contains("PENDING")).await;
    world.patch("busy", &json!({"spec": {"sessionAffinity": "ClientIP"}}));
    tokio::time::sleep(Duration::from_secs(45)).await;
    let start = Instant::now();
    world.until_ingress("web", "198.19.0.11(Proxy)").await;
    assert!(start.elapsed() < Duration::from_secs(40), "{:?}", start.elapsed());
    world.quiet().await;
    assert!(world.warnings("web").is_empty(), "{:?}", world.warnings("web"));
    assert!(world.take_cloud_writes().iter().filter(|write| *write == "POST pools").count() == 1);
}

/// A repair that failed is made again after a pause, in which others may have taken the load balancer: whose it is shows in an answer from
/// after the pause began, as the rules of a trace have it. So many change at once that the poller's list shows all of them.
#[tokio::test(start_paused = true)]
async fn a_repair_after_a_pause_begins_with_a_look() {
    const SERVICES: usize = 6;
    let mut world = World::started().await;
    world.settings.plans = false;
    for number in 0..SERVICES {
        world.serve(&service(&format!("web-{number}"), json!({}))).await;
    }
    let failures = WorkerFault::fail(OperationKind::MemberBatch).times(3 * 6);
    world.cloud.faults().add_worker(failures);
    world.add_node("node-3", "v1.36.0");
    tokio::time::sleep(Duration::from_secs(300)).await;
    world.quiet().await;
    for pool in world.cloud.pools() {
        assert_eq!(world.cloud.members(pool["id"].as_str().unwrap()).len(), 3);
    }
}

/// A step that the cloud had no time for goes again, but not while the step of another Service holds the lock of their load balancer, as the
/// rules of a trace have it.
#[tokio::test(start_paused = true)]
async fn a_delayed_step_waits_for_that_of_another_service() {
    let (world, guest) = world_and_guest().await;
    world.serve(&guest).await;
    world.cloud.set_delays(Duration::from_secs(20));
    world.cloud.faults().add(octavia(Method::PUT, "/members").answer(503, json!({})).once());
    world.take_calls();
    world.third_node_joins().await;
    let answers = world.take_calls().into_iter().filter_map(|call| call.answer?.status);
    let refused = answers.filter(|status| *status == StatusCode::CONFLICT).count();
    for pool in world.cloud.pools() {
        assert_eq!(world.cloud.members(&id(&pool)).len(), 3);
    }
    // The rules speak first, when the world ends.
    drop(world);
    assert_eq!(refused, 0);
}

/// Several members that go are one batch, which names those that stay: what administrators have set on these is read before, as the rules of
/// a trace have it.
#[tokio::test(start_paused = true)]
async fn members_that_stay_are_listed_when_several_go() {
    let mut world = World::started().await;
    world.settings.plans = false;
    let both = ["node-3", "node-4"];
    both.iter().for_each(|name| world.add_node(name, "v1.36.0"));
    world.serve(&service("web", json!({}))).await;
    both.iter().for_each(|name| drop(world.kube.delete("nodes", "", name).unwrap()));
    world.quiet().await;
    assert_eq!(world.cloud.members(&id(&world.cloud.pools()[0])).len(), 2);
}

/// A Service that goes while a step of its own holds the lock reads nothing below its load balancer before that has ended, as the rules of a
/// trace have it.
#[tokio::test(start_paused = true)]
async fn a_service_that_goes_waits_for_the_end_of_its_own_step() {
    let mut world = World::serving(&service("web", json!({}))).await;
    world.settings.plans = false;
    world.cloud.set_delays(Duration::from_secs(20));
    world.annotate("web", LIMIT, Some("100"));
    world.until("the step is under way", |world| world.cloud_state().contains("PENDING")).await;
    world.release("web").await;
    assert!(world.cloud.load_balancers().is_empty());
}

/// What Octavia answers when it has too much to do.
fn overloaded(path: &str) -> Fault {
    octavia(Method::GET, path).answer(429, json!({"faultstring": "Too many requests"})).once()
}

/// An overloaded Octavia gets the same question again, and not five others.
#[rstest]
#[case::when_a_node_joins("/status$", false)]
#[case::when_a_port_was_added("/status$", true)]
#[tokio::test(start_paused = true)]
async fn a_read_that_is_refused_for_overload_costs_no_full_read(
    #[case] path: &str,
    #[case] adds_a_port: bool,
) {
    let mut world =
        World::serving(&service("web", json!({"metadata": {"annotations": {PROXY: "v2"}}}))).await;
    world.settings.plans = false;
    world.cloud.faults().add(overloaded(path));
    if adds_a_port {
        let ports = json!([
            {"name": "http", "port": 80, "protocol": "TCP", "nodePort": 30080},
            {"name": "https", "port": 443, "protocol": "TCP", "nodePort": 30443},
        ]);
        world.patch("web", &json!({"spec": {"ports": ports}}));
        // The change itself is planned after a full read.
        world.until("the port is made", |world| world.cloud.listeners().len() == 2).await;
        world.take_calls();
    } else {
        world.add_node("node-3", "v1.36.0");
    }
    world.quiet().await;
    let calls: Vec<String> = world.take_calls().into_iter().map(|call| call.name).collect();
    let full_reads = calls.iter().filter(|name| *name == "GET listeners").count();
    assert_eq!(full_reads, 0, "{calls:#?}");
    assert!(calls.iter().any(|name| name == "GET loadbalancers/ID/status"), "{calls:#?}");
    assert!(world.cloud_state().contains("member node-3") || adds_a_port, "{}", world.cloud_state());
}
