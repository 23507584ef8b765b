//! Nodes through the whole program: what they cost, what goes wrong, and being killed at every call.

use std::fmt::Write as _;
use std::time::Duration;

use openstack_ccm_controllers::node::NodeControllerOptions;
use openstack_ccm_controllers::node_lifecycle::NodeLifecycleOptions;
use openstack_ccm_kube_sim::{ApiVersion, Fault as KubeFault};
use openstack_ccm_openstack_sim::{Fault, Sim as Cloud};
use rstest::rstest;
use serde_json::json;

use crate::support::nodes::SHUTDOWN;
use crate::support::{Stop, World, service};

/// Calls of a thousand nodes: the number does not depend on the number of nodes, only on the pages of the lists.
#[tokio::test(start_paused = true)]
async fn the_number_of_calls_does_not_grow_with_the_number_of_nodes() {
    let mut world = World::without_nodes();
    for number in 0..60 {
        let name = format!("node-{number}");
        world.cloud.add_node(&name);
        world.register(&name);
    }
    world.start().await;
    for number in 0..60 {
        world.until_initialised(&format!("node-{number}")).await;
    }
    assert_eq!(world.take_cloud_calls(), ["GET /", "GET /v2.1/servers/detail", "GET ports"]);
    world.pass(305).await;
    assert_eq!(world.take_cloud_calls(), ["GET /v2.1/servers/detail", "GET ports"]);
    for number in 0..20 {
        world.set_ready(&format!("node-{number}"), "Unknown");
    }
    world.pass(5).await;
    assert_eq!(world.take_cloud_calls(), ["GET /v2.1/servers/detail"]);
}

/// An address that a server gets later is on its node with the next check.
#[tokio::test(start_paused = true)]
async fn a_floating_ip_becomes_an_external_address() {
    let mut world = World::without_nodes();
    world.start().await;
    world.join("node-1").await;
    let port = world.cloud.nodes()[0].port_id.clone();
    let network = world.cloud.seed().public_network_id.clone();
    let body = json!({"floatingip": {"floating_network_id": network, "port_id": port}});
    let (_, answer) = world.cloud.user().post("network", "/v2.0/floatingips", &body);
    let address = answer["floatingip"]["floating_ip_address"].as_str().unwrap().to_owned();
    world.pass(310).await;
    let addresses = world.node_addresses("node-1");
    assert!(addresses.ends_with(&format!("ExternalIP {address}, Hostname node-1")), "{addresses}");
}

const HOST: &str = "topology.openstack.org/host-id";
const ZONE: &str = "topology.kubernetes.io/zone";

/// A migration moves a server to another hypervisor; one that is shelved has none.
#[tokio::test(start_paused = true)]
async fn the_label_of_the_hypervisor_follows_the_server_and_that_of_the_zone_does_not() {
    let mut world = World::without_nodes();
    world.start().await;
    world.join("node-1").await;
    world.join("node-2").await;
    let server = world.cloud.servers().into_iter().find(|server| server["name"] == "node-1").unwrap();
    assert_eq!(world.label("node-1", HOST), server["hostId"]);
    let zone = world.label("node-1", ZONE);
    world.cloud.move_server("node-1", "b0b0", "zone-9");
    world.pass(310).await;
    assert_eq!(world.label("node-1", HOST), "b0b0");
    assert_eq!(world.label("node-1", ZONE), zone);
    let [warning] = &world.node_warnings("node-1")[..] else { panic!("{:?}", world.node_warnings("node-1")) };
    let moved = format!("NodeServerMoved: The Node has the label {ZONE}={}", zone.as_str().unwrap());
    assert!(warning.starts_with(&moved), "{warning}");
    for part in ["zone-9", "kubectl drain node-1", "kubectl delete node node-1"] {
        assert!(warning.contains(part), "{part} is missing: {warning}");
    }
    world.cloud.move_server("node-1", "", "");
    world.pass(310).await;
    assert!(world.label("node-1", HOST).is_null());
    assert!(world.node_warnings("node-2").is_empty());
}

/// Three of eight servers are gone, and the API server or Nova needs ten seconds for an answer about one of them.
#[rstest]
#[case::one_after_the_other(1, 3)]
#[case::beside_one_another(3, 1)]
#[tokio::test(start_paused = true)]
async fn last_questions_and_taints_go_beside_one_another_as_the_flag_says(
    #[case] concurrency: usize,
    #[case] turns: u64,
    #[values(false, true)] gone: bool,
) {
    const ANSWER: Duration = Duration::from_secs(10);
    let mut world = World::without_nodes();
    world.settings.node_lifecycle =
        Some(NodeLifecycleOptions { concurrency, ..NodeLifecycleOptions::default() });
    world.start().await;
    let names: Vec<String> = (0..8).map(|number| format!("node-{number}")).collect();
    for name in &names {
        world.join(name).await;
    }
    let single = Fault::new().service("compute").path("/servers/[0-9a-f-]{36}$").latency(ANSWER);
    world.cloud.faults().add(single);
    world.kube.inject(KubeFault::on("PATCH", "/nodes/").delay(ANSWER));
    for name in &names[..3] {
        if gone {
            world.cloud.remove_node(name);
        } else {
            world.cloud.set_server_status(name, "SHUTOFF");
        }
        world.set_ready(name, "Unknown");
    }
    let done = |world: &World| {
        let is_done = |name: &&String| world.node(name).is_null() || world.has_taint(name, SHUTDOWN);
        names[..3].iter().filter(is_done).count()
    };
    world.until("the first one is done", |world| done(world) > 0).await;
    let first = tokio::time::Instant::now();
    world.until("all are done", |world| done(world) == 3).await;
    let taken = first.elapsed();
    assert!(
        taken >= ANSWER * u32::try_from(turns - 1).unwrap() && taken < ANSWER * u32::try_from(turns).unwrap(),
        "{taken:?}"
    );
    let metrics = world.metrics();
    let calls = |result| {
        format!(
            "cloud_node_lifecycle_controller_cloud_provider_calls_total{{operation=\"instance_exists\",result=\"{result}\"}} "
        )
    };
    assert!(metrics.contains(&calls("success")), "{metrics}");
    assert_eq!(metrics.contains(&format!("{}3", calls("instance_not_found"))), gone, "{metrics}");
    assert!(
        metrics.contains("cloud_node_lifecycle_controller_monitor_nodes_duration_seconds_count "),
        "{metrics}"
    );
}

/// An hour without OpenStack deletes no node and loses no address; afterwards new nodes join without a restart.
#[tokio::test(start_paused = true)]
async fn an_hour_without_openstack_costs_nothing() {
    let mut world = World::without_nodes();
    world.start().await;
    world.join("node-1").await;
    world.join("node-2").await;
    world.set_ready("node-2", "Unknown");
    let before = (world.node_addresses("node-1"), world.node_addresses("node-2"));
    let away = world.cloud.faults().add(Fault::new().answer(503, json!({})));
    world.cloud.add_node("node-3");
    world.register("node-3");
    world.pass(3600).await;
    assert_eq!((world.node_addresses("node-1"), world.node_addresses("node-2")), before);
    assert!(world.is_uninitialized("node-3"));
    world.cloud.faults().remove(away);
    world.until_initialised("node-3").await;
}

/// An empty or a cut list of servers never deletes nodes, nor do credentials of another project.
#[rstest]
#[case::empty_list("/servers/detail")]
#[case::nothing_is_found("/servers")]
#[tokio::test(start_paused = true)]
async fn an_empty_answer_deletes_no_node(#[case] path: &str) {
    let mut world = World::without_nodes();
    world.start().await;
    for number in 0..5 {
        let name = format!("node-{number}");
        world.join(&name).await;
        world.set_ready(&name, "Unknown");
    }
    let missing = json!({"itemNotFound": {"code": 404, "message": "Instance could not be found."}});
    let single = Fault::new().service("compute").path("/servers/[0-9a-f-]{36}$").answer(404, missing);
    if path == "/servers" {
        world.cloud.faults().add(single);
    }
    let empty = json!({"servers": []});
    world.cloud.faults().add(Fault::new().service("compute").path("/servers/detail").answer(200, empty));
    world.pass(600).await;
    assert_eq!(world.kube.list("nodes", "").unwrap().len(), 5);
    let held: Vec<String> = (0..5).flat_map(|number| world.warnings(&format!("node-{number}"))).collect();
    assert_eq!(held.len(), 1, "{held:?}");
    assert!(held[0].contains("NodeDeletionHeld") && held[0].contains("5 of 5"), "{held:?}");
}

/// Members of the only pool.
fn members(world: &World) -> usize {
    world.cloud.members(world.cloud.pools()[0]["id"].as_str().unwrap()).len()
}

/// Most servers are gone at once: no node and no member is given up, and when the servers are back everything goes on.
#[tokio::test(start_paused = true)]
async fn most_servers_that_vanish_at_once_cost_no_node_and_no_member() {
    let lifetime = Duration::from_secs(1 << 30);
    let cloud = Cloud::builder().nodes(240).token_lifetime(lifetime).build();
    let mut world = World::in_cloud(ApiVersion::V1_36, cloud);
    world.settings.node = Some(NodeControllerOptions::default());
    world.settings.node_lifecycle = Some(NodeLifecycleOptions::default());
    let servers: Vec<String> = world.cloud.nodes().into_iter().map(|server| server.name).collect();
    servers.iter().for_each(|name| world.set_ready(name, "True"));
    world.start().await;
    world.serve(&service("web", json!({}))).await;
    assert_eq!(members(&world), 240);
    let before = world.cloud.snapshot();
    for name in &servers[..200] {
        world.cloud.remove_node(name);
        world.set_ready(name, "Unknown");
    }
    world.pass(120).await;
    assert_eq!(world.kube.list("nodes", "").unwrap().len(), 240);
    assert_eq!(members(&world), 240);
    let events = world.kube.list("events", "default").unwrap();
    let held = events.iter().filter(|event| event["reason"] == "NodeDeletionHeld").collect::<Vec<_>>();
    assert_eq!(held.len(), 1, "{held:?}");
    assert!(held[0]["message"].as_str().unwrap().contains("200 of 240"), "{held:?}");
    world.cloud.restore(before);
    servers[..200].iter().for_each(|name| world.set_ready(name, "True"));
    world.pass(60).await;
    world.cloud.remove_node(&servers[0]);
    world.set_ready(&servers[0], "Unknown");
    world.until("the node is deleted", |world| world.node(&servers[0]).is_null()).await;
    world.until("its member is gone", |world| members(world) == 239).await;
    assert_eq!(world.kube.list("nodes", "").unwrap().len(), 239);
}

/// What is going on when the program is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Story {
    Join,
    ShutDown,
    ComeBack,
    Vanish,
    Renumber,
}

impl Story {
    async fn prepare(self, stop: Stop) -> World {
        let mut world = World::without_nodes();
        world.settings.node.as_mut().unwrap().status_update_frequency = Duration::from_secs(30);
        world.start().await;
        world.join("node-1").await;
        world.join("node-2").await;
        if self == Self::ComeBack {
            world.cloud.set_server_status("node-2", "SHUTOFF");
            world.set_ready("node-2", "Unknown");
            world.until("it is tainted", |world| world.has_taint("node-2", SHUTDOWN)).await;
        }
        world.stop_at(stop);
        world
    }

    fn act(self, world: &World) {
        match self {
            Self::Join => {
                world.cloud.add_node("node-3");
                world.register("node-3");
            }
            Self::ShutDown => {
                world.cloud.set_server_status("node-2", "SHUTOFF");
                world.set_ready("node-2", "Unknown");
            }
            Self::ComeBack => {
                world.cloud.set_server_status("node-2", "ACTIVE");
                world.set_ready("node-2", "True");
            }
            Self::Vanish => {
                world.cloud.remove_node("node-2");
                world.set_ready("node-2", "Unknown");
            }
            Self::Renumber => world.cloud.set_server_access_ipv4("node-2", "203.0.113.5"),
        }
    }

    fn is_over(self, world: &World) -> bool {
        match self {
            Self::Join => !world.is_uninitialized("node-3"),
            Self::ShutDown => world.has_taint("node-2", SHUTDOWN),
            Self::ComeBack => !world.has_taint("node-2", SHUTDOWN),
            Self::Vanish => world.node("node-2").is_null(),
            Self::Renumber => world.node_addresses("node-2").contains("203.0.113.5"),
        }
    }
}

/// All nodes as text.
fn nodes(world: &World) -> String {
    let mut text = String::new();
    for node in world.kube.list("nodes", "").unwrap() {
        let name = node["metadata"]["name"].as_str().unwrap();
        let _ = writeln!(
            text,
            "{name} {} {} {} {}",
            node["spec"]["providerID"],
            node["spec"]["taints"],
            node["metadata"]["labels"],
            world.node_addresses(name)
        );
    }
    world.cloud.servers().into_iter().fold(text, |text, server| {
        let [id, name, host] = ["id", "name", "hostId"].map(|key| server[key].as_str().unwrap().to_owned());
        text.replace(&id, &format!("<id of {name}>")).replace(&host, &format!("<host of {name}>"))
    })
}

/// One run, killed once at most. Answers how it ended, and whether it was killed.
async fn run(story: Story, stop: Stop) -> (String, bool) {
    let mut world = story.prepare(stop).await;
    story.act(&world);
    let killed = !world.reaches("the story is over", |world| story.is_over(world)).await;
    if killed {
        world.kill().await;
        world.start().await;
    }
    world.until("the story is over", |world| story.is_over(world)).await;
    (nodes(&world), killed)
}

#[rstest]
#[case::join(Story::Join, 4)]
#[case::shut_down(Story::ShutDown, 2)]
#[case::come_back(Story::ComeBack, 1)]
#[case::vanish(Story::Vanish, 4)]
#[case::renumber(Story::Renumber, 3)]
#[tokio::test(start_paused = true)]
async fn killed_at_any_call_nodes_end_the_same(#[case] story: Story, #[case] at_least: usize) {
    let (expected, _) = run(story, Stop::Before(usize::MAX)).await;
    insta::assert_snapshot!(format!("nodes_{story:?}"), expected);
    for stop in [Stop::Before, Stop::After] {
        let mut kills = 0;
        loop {
            let (end, killed) = run(story, stop(kills)).await;
            assert!(
                end == expected,
                "{story:?} killed {stop:?} a call:\n{end}\nexpected:\n{expected}",
                stop = stop(kills)
            );
            if !killed {
                break;
            }
            kills += 1;
        }
        assert!(kills >= at_least, "{story:?} makes only {kills} calls");
    }
}
