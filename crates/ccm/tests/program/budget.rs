//! What each change costs: calls to OpenStack and to Kubernetes, from the change until everything is done.

use std::collections::BTreeMap;
use std::time::Duration;

use openstack_ccm_kube_sim::ApiVersion;
use serde_json::{Value, json};

use crate::support::{Call, PROXY, Side, World, lb_name, service};

/// The calls that a change costs.
#[derive(Debug, PartialEq, Eq)]
struct Cost {
    openstack_writes: usize,
    openstack_calls: usize,
    /// Events included.
    kubernetes_writes: usize,
}

async fn cost(world: &mut World) -> Cost {
    world.quiet().await;
    counted(world)
}

/// The same for a change of nodes: what was sent is read later.
async fn cost_of_nodes(world: &mut World) -> Cost {
    tokio::time::sleep(Duration::from_secs(20)).await;
    counted(world)
}

/// What it costs to read it, when it has become calm.
async fn cost_of_verification(world: &mut World) -> Cost {
    tokio::time::sleep(Duration::from_secs(60)).await;
    counted(world)
}

fn counted(world: &World) -> Cost {
    let calls = world.take_calls();
    let count =
        |side, write: bool| calls.iter().filter(|call| call.side == side && (!write || call.write)).count();
    Cost {
        openstack_writes: count(Side::OpenStack, true),
        openstack_calls: count(Side::OpenStack, false),
        kubernetes_writes: count(Side::Kubernetes, true),
    }
}

/// Rounds of the poller are among the calls: one list for all load balancers that are PENDING, while there are any.
#[tokio::test(start_paused = true)]
async fn the_budget_is_kept() {
    let mut table = Vec::new();
    let mut world = World::started().await;

    world.create(&service("web", json!({})));
    world.until_published("web").await;
    table.push(("create", cost(&mut world).await));

    world.create(&service("web-2", json!({})));
    world.until_published("web-2").await;
    table.push(("create another", cost(&mut world).await));
    world.delete("web-2");
    world.until_gone("web-2").await;
    table.push(("delete", cost(&mut world).await));

    world.patch("web", &json!({"metadata": {"labels": {"a": "b"}}}));
    table.push(("no change that matters", cost(&mut world).await));
    world.annotate("web", "deploy.example.com/revision", Some("2"));
    table.push(("an annotation of somebody else", cost(&mut world).await));

    world.restart().await;
    table.push(("restart", cost(&mut world).await));

    world.add_node("node-3", "v1.36.0");
    table.push(("node added, after a restart", cost(&mut world).await));
    world.add_node("node-4", "v1.36.0");
    table.push(("another node added", cost_of_nodes(&mut world).await));
    table.push(("and verified", cost_of_verification(&mut world).await));
    for number in 5..10 {
        world.add_node(&format!("node-{number}"), "v1.36.0");
        table.push(("one of five nodes added", cost_of_nodes(&mut world).await));
    }
    table.push(("and all verified", cost_of_verification(&mut world).await));

    let ports = json!([
        {"name": "http", "port": 80, "protocol": "TCP", "nodePort": 30080},
        {"name": "https", "port": 443, "protocol": "TCP", "nodePort": 30443},
    ]);
    // The node port of the first port is part of the change: its members change too.
    world.patch("web", &json!({"spec": {"ports": ports}}));
    table.push(("port added", cost(&mut world).await));

    world.annotate("web", PROXY, Some("v2"));
    table.push(("proxy protocol on, two ports", cost(&mut world).await));

    let expected = [
        //                                    OpenStack        Kubernetes
        //                                writes  calls (most) writes
        ("create", 3, 12, 5),
        ("create another", 3, 9, 5),
        ("delete", 2, 8, 3),
        ("no change that matters", 0, 0, 0),
        ("an annotation of somebody else", 0, 0, 0),
        ("restart", 0, 4, 0),
        ("node added, after a restart", 1, 10, 2),
        // With one list for all Services before the batches.
        ("another node added", 1, 4, 1),
        ("and verified", 0, 1, 1),
        ("one of five nodes added", 1, 3, 1),
        ("one of five nodes added", 1, 3, 1),
        ("one of five nodes added", 1, 3, 1),
        ("one of five nodes added", 1, 3, 1),
        ("one of five nodes added", 1, 4, 1),
        ("and all verified", 0, 1, 1),
        ("port added", 4, 16, 3),
        ("proxy protocol on, two ports", 8, 24, 4),
    ];
    let expected: Vec<_> = expected
        .map(|(change, openstack_writes, openstack_calls, kubernetes_writes)| {
            (change, Cost { openstack_writes, openstack_calls, kubernetes_writes })
        })
        .into();
    // A look that comes at the very moment in which Octavia is done may spare another one.
    for ((_, cost), (_, most)) in table.iter_mut().zip(&expected) {
        cost.openstack_calls = cost.openstack_calls.max(most.openstack_calls);
    }
    assert_eq!(table, expected);
}

/// The calls to OpenStack since the last time by name and how often, reads first. The rounds of the poller are shared by all Services and not
/// counted.
fn take_counts(world: &World) -> Vec<String> {
    let calls = world.take_calls();
    let mut counts: BTreeMap<(bool, &str), usize> = BTreeMap::new();
    for call in calls.iter().filter(|call| call.side == Side::OpenStack && !call.poll) {
        *counts.entry((call.write, &call.name)).or_default() += 1;
    }
    counts.iter().map(|((_, name), count)| format!("{count} {name}")).collect()
}

fn http(node_port: u16) -> Value {
    json!({"name": "http", "port": 80, "protocol": "TCP", "nodePort": node_port})
}

/// A served Service with one port.
async fn served() -> World {
    World::serving(&service("web", json!({"spec": {"ports": [http(30080)]}}))).await
}

#[tokio::test(start_paused = true)]
async fn a_second_creation_asks_for_nothing_that_is_known() {
    let world = World::started().await;
    world.create(&service("web", json!({})));
    world.until_published("web").await;
    world.quiet().await;
    // The last list shows whether a request of an earlier process has made another one meanwhile.
    let expected = [
        "1 GET /",
        "1 GET floatingips",
        "2 GET loadbalancers",
        "1 GET loadbalancers/ID/status",
        "1 GET networks/ID",
        "1 GET security-groups",
        "1 GET subnets",
        "1 POST floatingips",
        "1 POST loadbalancers",
        "1 PUT floatingips/ID/tags",
    ];
    assert_eq!(take_counts(&world), expected);
    world.create(&service("web-2", json!({})));
    world.until_published("web-2").await;
    world.quiet().await;
    let again = take_counts(&world);
    let known = ["GET /", "networks", "networks/ID", "subnets"];
    assert!(again.iter().all(|call| known.iter().all(|known| !call.ends_with(known))), "{again:?}");
}

/// What it depends on is known where nothing else changed.
#[tokio::test(start_paused = true)]
async fn a_changed_limit_costs_a_look_at_the_load_balancer_alone() {
    let world = served().await;
    world.annotate("web", "loadbalancer.openstack.org/connection-limit", Some("100"));
    world.quiet().await;
    let calls = take_counts(&world);
    let expected = [
        "1 GET floatingips",
        "1 GET loadbalancers/ID",
        "1 GET loadbalancers/ID/status",
        "1 PUT listeners/ID",
    ];
    assert_eq!(calls, expected);
    assert_eq!(world.cloud.listeners()[0]["connection_limit"], 100);
}

/// However many ports a Service has, its load balancer is read once, and one status tree confirms what was done.
///
/// Defect: 23, better: nothing is read that an answer told.
#[tokio::test(start_paused = true)]
async fn an_added_port_costs_its_writes_and_what_no_answer_tells() {
    let world = served().await;
    let https = json!({"name": "https", "port": 443, "protocol": "TCP", "nodePort": 30443});
    world.patch("web", &json!({"spec": {"ports": [http(30080), https]}}));
    world.quiet().await;
    let expected = [
        "1 GET floatingips",
        "1 GET loadbalancers/ID",
        "1 GET loadbalancers/ID/status",
        "1 POST listeners",
        "1 POST pools",
        "1 PUT pools/ID/members",
    ];
    assert_eq!(take_counts(&world), expected);
}

#[tokio::test(start_paused = true)]
async fn proxy_protocol_costs_one_look_at_the_members_of_the_new_pool() {
    let world = served().await;
    world.annotate("web", PROXY, Some("true"));
    world.quiet().await;
    // No listener has the new pool before it is complete, so that the tree cannot show its members.
    let expected = [
        "1 GET floatingips",
        "1 GET loadbalancers/ID",
        "1 GET loadbalancers/ID/status",
        "1 GET pools/ID/members",
        "1 DELETE pools/ID",
        "1 POST pools",
        "1 PUT listeners/ID",
        "1 PUT pools/ID/members",
    ];
    assert_eq!(take_counts(&world), expected);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_looks_for_what_is_there_and_what_is_left() {
    let world = served().await;
    world.delete("web");
    world.until_gone("web").await;
    world.quiet().await;
    let expected = [
        "2 GET floatingips",
        "2 GET loadbalancers",
        "1 GET loadbalancers/ID",
        "1 GET security-groups",
        "1 DELETE floatingips/ID",
        "1 DELETE loadbalancers/ID",
    ];
    assert_eq!(take_counts(&world), expected);
}

/// A Service is held before anything is made for it, names its load balancer as soon as there is one, and is published with everything else in
/// one write: a program that ends between two of these leaves nothing that the next one would not find. Whoever starts over writes nothing.
#[tokio::test(start_paused = true)]
async fn a_creation_writes_its_service_three_times_and_a_restart_not_at_all() {
    let mut world = World::started().await;
    world.create(&service("web", json!({})));
    world.until_published("web").await;
    world.quiet().await;
    let parts = |calls: Vec<Call>| -> Vec<Vec<&str>> {
        let bodies = calls.into_iter().filter(|call| call.name == "PATCH services/NAME/status");
        let bodies = bodies.filter_map(|call| call.request).map(|request| request.body);
        let has = |body: &Value, part: &str| !body.pointer(part).is_none_or(Value::is_null);
        bodies
            .map(|body| {
                let named = ["/metadata/finalizers", "/metadata/annotations", "/status"];
                named.into_iter().filter(|part| has(&body, part)).collect()
            })
            .collect()
    };
    let expected = [
        vec!["/metadata/finalizers"],
        vec!["/metadata/annotations"],
        vec!["/metadata/annotations", "/status"],
    ];
    assert_eq!(parts(world.take_calls()), expected);
    world.restart().await;
    world.quiet().await;
    assert_eq!(parts(world.take_calls()), Vec::<Vec<&str>>::new());
}

/// An internal Service with PROXY protocol and two ports.
fn internal(name: &str) -> Value {
    let internal = "service.beta.kubernetes.io/openstack-internal-load-balancer";
    let mut service = service(name, json!({"metadata": {"annotations": {PROXY: "v2", internal: "true"}}}));
    service["spec"]["ports"] = json!([
        {"name": "http", "port": 80, "protocol": "TCP"},
        {"name": "https", "port": 443, "protocol": "TCP"},
    ]);
    service
}

/// Calls to Octavia since the last time: writes and reads.
fn octavia_calls(world: &World) -> (usize, usize) {
    let collections = ["loadbalancers", "listeners", "pools", "healthmonitors"];
    let is_octavias = |call: &&Call| {
        let path = call.name.split_once(' ').map_or("", |(_, path)| path);
        path == "/" || collections.iter().any(|collection| path.starts_with(collection))
    };
    let calls = world.take_calls();
    let calls = calls.iter().filter(|call| call.side == Side::OpenStack).filter(is_octavias);
    let (writes, reads): (Vec<_>, Vec<_>) = calls.partition(|call| call.write);
    (writes.len(), reads.len())
}

/// Octavia has locked the load balancer, so that nothing could be changed yet.
#[tokio::test(start_paused = true)]
async fn a_node_that_joins_during_a_creation_costs_nothing_until_octavia_is_done() {
    let mut world = World::new(ApiVersion::V1_36);
    world.cloud.set_delays(Duration::from_secs(60));
    world.start().await;
    world.create(&service("web", json!({})));
    world.until("the load balancer is being created", |world| world.cloud.load_balancers().len() == 1).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    world.take_calls();

    world.add_node("node-3", "v1.36.0");
    tokio::time::sleep(Duration::from_secs(30)).await;
    let beside_polls = |count: &String| !count.ends_with(" GET loadbalancers");
    assert_eq!(take_counts(&world).into_iter().filter(beside_polls).collect::<Vec<_>>(), [] as [&str; 0]);

    let has_all = |world: &World| {
        let pools = world.cloud.pools();
        pools.iter().all(|pool| world.cloud.members(pool["id"].as_str().unwrap()).len() == 3)
    };
    world.until_published("web").await;
    world.until("the node is a member", has_all).await;
}

/// What changes of six internal Services with two ports each cost Octavia, looks at its locks included.
#[tokio::test(start_paused = true)]
async fn octavia_is_asked_for_what_no_answer_has_told() {
    let mut world = World::started().await;
    world.add_node("node-3", "v1.36.0");
    world.quiet().await;
    world.take_calls();
    let mut table = Vec::new();
    world.create(&internal("web-0"));
    world.until_published("web-0").await;
    world.quiet().await;
    table.push(("create the first", octavia_calls(&world)));
    for number in 1..6 {
        world.create(&internal(&format!("web-{number}")));
    }
    for number in 1..6 {
        world.until_published(&format!("web-{number}")).await;
    }
    world.quiet().await;
    table.push(("create five", octavia_calls(&world)));
    let mut ports = world.service("web-0")["spec"]["ports"].clone();
    let third = json!({"name": "more", "port": 8080, "protocol": "TCP", "nodePort": 30999});
    ports.as_array_mut().unwrap().push(third);
    world.patch("web-0", &json!({"spec": {"ports": ports}}));
    world.quiet().await;
    table.push(("port added", octavia_calls(&world)));
    world.annotate("web-0", PROXY, Some("false"));
    world.quiet().await;
    table.push(("proxy protocol off, three ports", octavia_calls(&world)));
    world.add_node("node-4", "v1.36.0");
    tokio::time::sleep(Duration::from_secs(80)).await;
    table.push(("node added, and verified", octavia_calls(&world)));
    world.restart().await;
    world.quiet().await;
    table.push(("restart after a node change", octavia_calls(&world)));
    world.restart().await;
    world.quiet().await;
    table.push(("another restart", octavia_calls(&world)));
    world.annotate("web-0", PROXY, Some("v2"));
    world.quiet().await;
    world.take_calls();
    world.delete("web-0");
    world.until_gone("web-0").await;
    world.quiet().await;
    table.push(("delete", octavia_calls(&world)));
    world.restart().await;
    world.quiet().await;
    world.take_calls();
    for number in 1..6 {
        world.delete(&format!("web-{number}"));
    }
    for number in 1..6 {
        world.until_gone(&format!("web-{number}")).await;
    }
    world.quiet().await;
    table.push(("delete five, after a restart", octavia_calls(&world)));
    let expected = [
        //                                writes, reads at most, target for both
        ("create the first", (1, 5), 8),
        ("create five", (5, 13), 22),
        ("port added", (3, 6), 9),
        // The members of each new pool, before a listener gets it, and a check of the lock before that, before the first deletion and
        // at the end.
        ("proxy protocol off, three ports", (12, 12), 26),
        // How many checks of the locks three rounds of batches need depends on when each load balancer is done.
        ("node added, and verified", (13, 9), 22),
        ("restart after a node change", (0, 2), 8),
        ("another restart", (0, 2), 2),
        // 18 for the six.
        ("delete", (1, 3), 4),
        ("delete five, after a restart", (5, 9), 14),
    ];
    assert!(expected.iter().all(|(_, (writes, reads), target)| writes + reads <= *target));
    let expected = expected.map(|(change, most, _)| (change, most));
    // As above.
    for ((_, (_, reads)), (_, (_, most))) in table.iter_mut().zip(&expected) {
        *reads = (*reads).max(*most);
    }
    assert_eq!(table, expected);
}

/// After a start nothing is known of a load balancer but that it is as its Service asks for. Where a node joins many, lists for all show them,
/// and each costs what nobody but its pool can tell: members, to leave alone what somebody set on them, and the batch. The status tree afterwards
/// is the price of any change.
#[tokio::test(start_paused = true)]
async fn the_first_node_after_a_start_costs_two_calls_for_each_load_balancer_and_its_confirmation() {
    const SERVICES: usize = 60;
    let mut world = World::started().await;
    for number in 0..SERVICES {
        world.create(&service(&format!("web-{number}"), json!({})));
    }
    for number in 0..SERVICES {
        world.until_published(&format!("web-{number}")).await;
    }
    world.quiet_unplanned().await;
    world.restart().await;
    world.quiet_unplanned().await;
    world.take_calls();
    world.add_node("node-3", "v1.36.0");
    world.quiet_unplanned().await;
    let (mut each, mut shared) = (BTreeMap::new(), 0);
    for call in world.take_calls().into_iter().filter(|call| call.side == Side::OpenStack) {
        if call.name.contains("/ID/") {
            *each.entry(call.name).or_insert(0) += 1;
        } else {
            shared += 1;
        }
    }
    let expected = ["GET loadbalancers/ID/status", "GET pools/ID/members", "PUT pools/ID/members"]
        .map(|name| (name.to_owned(), SERVICES));
    assert_eq!(each, BTreeMap::from(expected));
    assert!(shared < SERVICES, "{shared} lists");
}

/// Who the Service with the many ports is on its load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Alone,
    Owner,
    Guest,
}

/// The calls to OpenStack that PROXY protocol for `count` ports costs.
async fn cost_of_proxy(role: Role, count: u16) -> usize {
    let ports: Vec<_> = (0..count)
        .map(|port| json!({"name": format!("p{port}"), "port": 1000 + port, "protocol": "TCP"}))
        .collect();
    let mut wide = service("wide", json!({}));
    wide["spec"]["ports"] = json!(ports);
    let mut narrow = service("narrow", json!({}));
    let world = World::started().await;
    let (first, second) = match role {
        Role::Alone => (&mut wide, None),
        Role::Owner => (&mut wide, Some(&mut narrow)),
        Role::Guest => (&mut narrow, Some(&mut wide)),
    };
    world.serve(first).await;
    if let Some(second) = second {
        let name = lb_name(first["metadata"]["name"].as_str().unwrap());
        let id = world.cloud.load_balancer(&name).unwrap()["id"].clone();
        second["metadata"]["annotations"] = json!({"loadbalancer.openstack.org/load-balancer-id": id});
        world.serve(second).await;
    }
    world.annotate("wide", PROXY, Some("v2"));
    world.quiet().await;
    let pools = world.cloud.pools();
    assert_eq!(pools.iter().filter(|pool| pool["protocol"] == "PROXYV2").count(), usize::from(count));
    world.take_calls().iter().filter(|call| call.side == Side::OpenStack).count()
}

/// What a change of all ports costs grows with the number of ports, on a load balancer that others use too as well.
#[tokio::test(start_paused = true)]
async fn proxy_protocol_for_many_ports_costs_as_much_on_a_shared_load_balancer() {
    for count in [5, 10, 20] {
        let alone = cost_of_proxy(Role::Alone, count).await;
        assert!(alone <= 14 * usize::from(count), "{count} ports: {alone} calls");
        for role in [Role::Owner, Role::Guest] {
            let shared = cost_of_proxy(role, count).await;
            assert!(shared <= 2 * alone, "{count} ports, {role:?}: {shared} calls, and {alone} alone");
        }
    }
}
