//! Creation of a load balancer.

use std::time::Duration;

use openstack_ccm_kube_sim::ApiVersion;
use openstack_ccm_openstack_sim::{OperationKind, Sim as Cloud, WorkerFault};
use rstest::rstest;
use serde_json::{Value, json};

use super::RELEASE;
use super::setup::{
    annotated, cluster_subnet, cluster_uid, configured_on, forget_load_balancer, id, legacy_name,
    load_balancer, make_load_balancer, member_names, member_subnets, only_floating_ip,
};
use crate::support::{ADDRESS, World, lb_name, service};

fn with_ports(ports: &Value) -> Value {
    service("web", json!({"spec": {"ports": ports}}))
}

/// The tree that the only request for a load balancer asked for.
fn posted(world: &World) -> Value {
    let mut posts = world.take_calls().into_iter().filter(|call| call.name == "POST loadbalancers");
    let post = posts.next().expect("a request").request.unwrap();
    assert!(posts.next().is_none(), "one request makes the whole tree");
    post.body["loadbalancer"].clone()
}

/// The tags of everything that is made for the Service `web`.
fn tags(world: &World) -> [String; 3] {
    let uid = world.service("web")["metadata"]["uid"].as_str().unwrap().to_owned();
    [
        lb_name("web"),
        format!("openstack-ccm-cluster={}", cluster_uid(world)),
        format!("openstack-ccm-service={uid}"),
    ]
}

fn load_balancer_id(world: &World) -> Option<String> {
    world.annotation("web", "load-balancer-id")
}

/// Lines of cloud.conf that name neither network nor subnet.
const NOWHERE: &str = "network-id=\nsubnet-id=\n";

/// A node whose address is on no subnet, first of all nodes, and without a server in the cloud.
fn add_hybrid_node(world: &World) {
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "hybrid"},
        "status": {"addresses": [{"type": "InternalIP", "address": "192.168.9.9"}]},
    });
    world.kube.create(&node).unwrap();
}

/// The base: one request makes the whole tree, the floating IP leads to the VIP, and status, annotations, finalizer and
/// events show it.
///
/// Contract: C1, same.
#[tokio::test(start_paused = true)]
async fn c1_the_base_is_what_occm_makes() {
    let world = World::started_on(RELEASE).await;
    let ports = json!([{"name": "http", "port": 80, "protocol": "TCP", "nodePort": 30080}]);
    world.create(&with_ports(&ports));
    world.until_served_at("web", "198.19.0.11(VIP)").await;
    let (subnet, tags) = (world.cloud.seed().subnet_id.clone(), tags(&world));
    let member = |name: &str, address: &str| json!({"name": name, "address": address, "protocol_port": 30080, "subnet_id": subnet});
    let expected = json!({
        "name": lb_name("web"),
        "description": "Kubernetes external service default/web from cluster c1",
        "provider": "amphora",
        "tags": tags,
        "vip_network_id": world.cloud.seed().network_id,
        "vip_subnet_id": subnet,
        "listeners": [{
            "name": format!("listener_0_{}", lb_name("web")),
            "protocol": "TCP",
            "protocol_port": 80,
            "connection_limit": -1,
            "timeout_client_data": 50000,
            "timeout_member_connect": 5000,
            "timeout_member_data": 50000,
            "timeout_tcp_inspect": 0,
            "allowed_cidrs": ["0.0.0.0/0"],
            "tags": tags,
            "default_pool": {
                "name": format!("pool_0_{}", lb_name("web")),
                "protocol": "TCP",
                "lb_algorithm": "ROUND_ROBIN",
                "tags": tags,
                "members": [member("node-1", "198.18.0.50"), member("node-2", "198.18.0.51")],
            },
        }],
    });
    assert_eq!(posted(&world), expected);
    let made = load_balancer(&world);
    let floating_ip = only_floating_ip(&world);
    assert_eq!(floating_ip["floating_network_id"], json!(world.cloud.seed().public_network_id));
    assert_eq!(floating_ip["port_id"], made["vip_port_id"]);
    let description = "Floating IP for Kubernetes external service default/web from cluster c1";
    assert_eq!((&floating_ip["description"], &floating_ip["tags"]), (&json!(description), &json!(tags[1..])));
    assert_eq!(load_balancer_id(&world).as_deref(), made["id"].as_str());
    assert_eq!(world.annotation("web", ADDRESS).as_deref(), Some("198.19.0.11"));
    let events = world.events("web").join("\n");
    assert!(events.contains("EnsuringLoadBalancer") && events.contains("EnsuredLoadBalancer"), "{events}");
    assert!(world.warnings("web").is_empty(), "{events}");
}

/// Each port gets a listener and a pool of its protocol, numbered in order.
///
/// Contract: C2, same.
/// Contract: C3, same.
#[tokio::test(start_paused = true)]
async fn c2_c3_each_port_gets_listener_and_pool() {
    let world = World::serving_on(
        RELEASE,
        &with_ports(&json!([
            {"name": "a", "port": 80, "protocol": "TCP"}, {"name": "b", "port": 443, "protocol": "TCP"},
            {"name": "c", "port": 53, "protocol": "UDP"}, {"name": "d", "port": 99, "protocol": "SCTP"},
        ])),
    )
    .await;
    let mut listeners: Vec<String> = world
        .cloud
        .listeners()
        .iter()
        .map(|one| format!("{} {}", one["name"].as_str().unwrap(), one["protocol"].as_str().unwrap()))
        .collect();
    listeners.sort();
    let name = lb_name("web");
    let expected = ["0_{} TCP", "1_{} TCP", "2_{} UDP", "3_{} SCTP"];
    assert_eq!(listeners, expected.map(|form| format!("listener_{}", form.replace("{}", &name))));
    assert_eq!(world.members().len(), 8);
}

/// Session affinity by client address is persistence by source address.
///
/// Contract: C4, same.
#[tokio::test(start_paused = true)]
async fn c4_client_ip_affinity_is_persistence_by_source_ip() {
    let world =
        World::serving_on(RELEASE, &service("web", json!({"spec": {"sessionAffinity": "ClientIP"}}))).await;
    assert_eq!(world.cloud.pools()[0]["session_persistence"]["type"], "SOURCE_IP");
}

/// Names that are too long are cut with a hash, and found again, also in the form that OCCM cuts.
///
/// Contract: C5, better: two long names never become one.
#[tokio::test(start_paused = true)]
async fn c5_long_names_fit_and_are_found_again() {
    let mut world = World::on(RELEASE);
    world.settings.cluster_name = "c".repeat(250);
    world.start().await;
    world.serve(&annotated(&[])).await;
    let made = world.cloud.load_balancers();
    assert_eq!(made[0]["name"].as_str().map(str::len), Some(255));
    forget_load_balancer(&world);
    world.restart_to_rest().await;
    assert_eq!(load_balancer_id(&world).as_deref(), made[0]["id"].as_str());
    assert_eq!(world.cloud.load_balancers().len(), 1);
}

/// Limit and timeouts come from annotations; a value that is not a number is refused by name.
///
/// Contract: C6, better: a limit that is not a number is an error that names it, instead of silently no limit.
#[tokio::test(start_paused = true)]
async fn c6_limit_and_timeouts_come_from_annotations() {
    let world = World::started_on(RELEASE).await;
    world.create(&annotated(&[("connection-limit", "abc"), ("timeout-member-connect", "7000")]));
    world.until_warned("web", "abc").await;
    world.annotate("web", "connection-limit", Some("100"));
    world.until_published("web").await;
    let listener = world.cloud.listeners()[0].clone();
    assert_eq!(
        (&listener["connection_limit"], &listener["timeout_member_connect"]),
        (&json!(100), &json!(7000))
    );
}

/// The LB has the flavor of the annotation.
///
/// Contract: C7, same.
#[tokio::test(start_paused = true)]
async fn c7_flavor_and_zone_are_those_of_the_annotations() {
    let world = World::started_on(RELEASE).await;
    let flavor = world.cloud.add_octavia_flavor("large");
    world.cloud.add_octavia_availability_zone("az1");
    world.create(&annotated(&[("flavor-id", flavor.as_str()), ("availability-zone", "az1")]));
    world.until_published("web").await;
    let made = load_balancer(&world);
    assert_eq!((&made["flavor_id"], &made["availability_zone"]), (&json!(flavor), &json!("az1")));
}

/// An Octavia that is too old for zones or flavors creates the load balancer without them, and the user gets an Event.
///
/// Contract: C7, better: an omitted flavor is reported too.
#[rstest]
#[case::no_zones(13, &["LoadBalancerAvailabilityZonesIgnored"])]
#[case::neither(5, &["LoadBalancerAvailabilityZonesIgnored", "LoadBalancerFlavorIgnored"])]
#[tokio::test(start_paused = true)]
async fn c7_an_old_octavia_leaves_out_what_it_cannot_do(#[case] api: u8, #[case] reasons: &[&str]) {
    let world = World::started_on(RELEASE).await;
    let flavor = world.cloud.add_octavia_flavor("large");
    world.cloud.add_octavia_availability_zone("az1");
    world.cloud.set_octavia_api(api);
    world.create(&annotated(&[("flavor-id", flavor.as_str()), ("availability-zone", "az1")]));
    world.until_served("web").await;
    let made = load_balancer(&world);
    let expected = if api < 6 { Value::Null } else { json!(flavor) };
    assert_eq!((&made["flavor_id"], &made["availability_zone"]), (&expected, &Value::Null));
    let warnings = world.warnings("web");
    assert_eq!(warnings.len(), reasons.len(), "{warnings:?}");
    for reason in reasons {
        assert!(warnings.iter().any(|warning| warning.contains(reason)), "{warnings:?}");
    }
}

/// The port of the user is the VIP, without subnet and network.
///
/// Contract: C8, same.
#[tokio::test(start_paused = true)]
async fn c8_a_port_of_the_user_is_the_vip() {
    let world = World::started_on(RELEASE).await;
    let seed = world.cloud.seed();
    let fixed_ips = json!([{"subnet_id": seed.subnet_id, "ip_address": "198.18.0.177"}]);
    let port = json!({"port": {"network_id": seed.network_id, "fixed_ips": fixed_ips}});
    let answer = world.cloud.user().make("network", "/v2.0/ports", &port);
    let vip = id(&answer["port"]);
    world.create(&annotated(&[("port-id", &vip)]));
    world.until_published("web").await;
    let tree = posted(&world);
    assert_eq!(tree["vip_port_id"], json!(vip));
    assert_eq!((&tree["vip_subnet_id"], &tree["vip_network_id"]), (&Value::Null, &Value::Null));
    assert_eq!(member_subnets(&world), [json!(seed.subnet_id), json!(seed.subnet_id)]);
}

/// With a network alone Octavia chooses the subnet, and members follow the VIP.
///
/// Contract: C9, same.
#[tokio::test(start_paused = true)]
async fn c9_with_a_network_alone_members_follow_the_vip() {
    let world = configured_on(RELEASE, |_| NOWHERE.to_owned()).await;
    let network = world.cloud.seed().network_id.clone();
    world.create(&annotated(&[("network-id", &network)]));
    world.until_published("web").await;
    let tree = posted(&world);
    assert_eq!((&tree["vip_network_id"], &tree["vip_subnet_id"]), (&json!(network), &Value::Null));
    assert_eq!(member_subnets(&world), [Value::Null, Value::Null]);
}

/// The VIP is where its annotation says, and members where theirs says.
///
/// Contract: C10, same.
/// Contract: C11, same.
#[rstest]
#[case::c10_subnet("subnet-id")]
#[case::c11_member_subnet("member-subnet-id")]
#[tokio::test(start_paused = true)]
async fn c10_c11_vip_and_members_have_their_subnets(#[case] key: &str) {
    let mut other = String::new();
    let world = configured_on(RELEASE, |world| {
        other = cluster_subnet(&world.cloud, "other", "10.9.0.0/24");
        format!("subnet-id={}\nmember-subnet-id={0}\n", world.cloud.seed().subnet_id)
    })
    .await;
    world.serve(&annotated(&[(key, &other)])).await;
    let of_cluster = world.cloud.seed().subnet_id.clone();
    let (vip, member) = if key == "subnet-id" { (&other, &of_cluster) } else { (&of_cluster, &other) };
    assert_eq!(load_balancer(&world)["vip_subnet_id"], json!(vip));
    assert_eq!(member_subnets(&world), [json!(member), json!(member)]);
}

/// Without a subnet anywhere, that of most nodes is taken.
///
/// Contract: C12, better: not that of a node that happens to be first.
#[tokio::test(start_paused = true)]
async fn c12_without_a_subnet_that_of_most_nodes_is_taken() {
    let mut world = configured_on(RELEASE, |_| NOWHERE.to_owned()).await;
    // C13: OCCM would fail over this one.
    add_hybrid_node(&world);
    world.create(&annotated(&[]));
    world.until_served("web").await;
    let subnet = json!(world.cloud.seed().subnet_id);
    assert_eq!(posted(&world)["vip_subnet_id"], subnet);
    assert!(member_subnets(&world).iter().all(|of_member| *of_member == subnet));
    world.assert_warned_once("web", "LoadBalancerNodesSkipped");
    forget_load_balancer(&world);
    world.restart_to_rest().await;
    let asked: Vec<_> = world.take_calls().into_iter().filter(|call| call.name.contains("ports")).collect();
    assert!(asked.is_empty(), "an existing load balancer shows its subnet: {asked:?}");
    assert!(load_balancer_id(&world).is_some());
}

/// If no subnet can be found, nothing is created, and an Event says what to set.
///
/// Contract: C13, better: one node without provider id does no harm, only all of them.
#[tokio::test(start_paused = true)]
async fn c13_no_subnet_and_no_server_is_refused_before_anything_is_made() {
    let mut world = World::in_cloud(ApiVersion::V1_36, Cloud::builder().octavia(RELEASE).nodes(0).build());
    world.settings.cloud_conf = NOWHERE.to_owned();
    add_hybrid_node(&world);
    world.start().await;
    world.create(&annotated(&[]));
    world.until_warned_at_rest("web", "set subnet-id").await;
    assert_eq!(world.take_cloud_writes(), [""; 0]);
}

/// Without node ports there are no members, and the Service is served nevertheless.
///
/// Contract: C14, same.
#[tokio::test(start_paused = true)]
async fn c14_without_node_ports_there_are_no_members() {
    let world = World::serving_on(
        RELEASE,
        &service("web", json!({"spec": {"allocateLoadBalancerNodePorts": false}})),
    )
    .await;
    assert!(world.members().is_empty());
    assert_eq!((world.cloud.pools().len(), world.cloud.floating_ips().len()), (1, 1));
}

/// A node is reached at its external address where it has no other; one without any is left out.
///
/// Contract: C15, same.
#[tokio::test(start_paused = true)]
async fn c15_external_addresses_do_and_nodes_without_address_are_left_out() {
    let world = World::started_on(RELEASE).await;
    let address = json!([{"type": "ExternalIP", "address": "198.18.0.50"}]);
    world.kube.patch_status("nodes", "", "node-1", &json!({"status": {"addresses": address}})).unwrap();
    world.kube.patch_status("nodes", "", "node-2", &json!({"status": {"addresses": []}})).unwrap();
    world.serve(&annotated(&[])).await;
    assert_eq!(member_names(&world), ["node-1"]);
    assert_eq!(world.members()[0]["address"], "198.18.0.50");
}

/// A cluster without nodes gets its load balancer, without members, and the user is warned.
///
/// Contract: C16, better: OCCM makes none until there are nodes, and then starts with a creation of minutes.
#[tokio::test(start_paused = true)]
async fn c16_without_nodes_there_is_a_load_balancer_without_members() {
    let cloud = Cloud::builder().octavia(RELEASE).nodes(0).build();
    let mut world = World::in_cloud(ApiVersion::V1_36, cloud);
    let subnet = world.cloud.seed().subnet_id.clone();
    world.settings.cloud_conf = format!("subnet-id={subnet}\n");
    world.start().await;
    world.create(&annotated(&[]));
    world.until_published("web").await;
    assert!(world.members().is_empty());
    assert!(world.warnings("web").iter().any(|warning| warning.contains("UnAvailableLoadBalancer")));
}

/// The selector of the Service chooses its members; an empty one overrules that of cloud.conf.
///
/// Contract: C17, same.
#[rstest]
#[case::value(Some("env=prod"), &["node-1"])]
#[case::key(Some("env"), &["node-1", "node-2"])]
#[case::both(Some(" env=prod , zone "), &[])]
#[case::empty(Some(""), &["node-1", "node-2"])]
#[case::cloud_conf(None, &["node-1"])]
#[tokio::test(start_paused = true)]
async fn c17_the_node_selector_chooses_members(#[case] selector: Option<&str>, #[case] expected: &[&str]) {
    let world = configured_on(RELEASE, |_| "node-selector=env=prod\n".to_owned()).await;
    for (node, value) in [("node-1", "prod"), ("node-2", "test")] {
        world.kube.patch("nodes", "", node, &json!({"metadata": {"labels": {"env": value}}})).unwrap();
    }
    let annotations: Vec<_> = selector.map(|selector| ("node-selector", selector)).into_iter().collect();
    world.serve(&annotated(&annotations)).await;
    assert_eq!(member_names(&world), expected);
}

/// A Service of another class is not touched.
///
/// Contract: C18, same.
#[tokio::test(start_paused = true)]
async fn c18_another_class_is_not_touched() {
    let world = World::started_on(RELEASE).await;
    world.create(&service("web", json!({"spec": {"loadBalancerClass": "example.org/other"}})));
    world.quiet().await;
    assert!(world.take_cloud_writes().is_empty());
    assert!(world.service("web")["metadata"]["finalizers"].is_null());
    assert!(world.events("web").is_empty());
}

/// A load balancer of the legacy name is adopted.
///
/// Contract: C19, same.
#[tokio::test(start_paused = true)]
async fn c19_a_load_balancer_of_the_legacy_name_is_adopted() {
    let mut world = World::on(RELEASE);
    world.create(&annotated(&[]));
    let legacy = make_load_balancer(&world, &legacy_name(&world), &json!({}));
    // Whoever made it published it. A Service that nobody served before is not looked for by this name.
    world.publish("web", "192.0.2.1");
    world.cloud.settle();
    world.start().await;
    world.until_served_at("web", "198.19.0.11(VIP)").await;
    assert_eq!(world.cloud.load_balancers().len(), 1);
    assert_eq!(load_balancer_id(&world), Some(legacy));
    let ports: Vec<Value> = world.cloud.listeners().iter().map(|one| one["protocol_port"].clone()).collect();
    assert_eq!(ports, [json!(80)]);
}

/// If several load balancers have the name, none is used, and an Event says how to choose.
///
/// Contract: C20, same.
#[tokio::test(start_paused = true)]
async fn c20_two_load_balancers_of_the_name_are_refused() {
    let world = World::started_on(RELEASE).await;
    let description = json!({"description": "Kubernetes external service default/web from cluster c1"});
    for _ in 0..2 {
        make_load_balancer(&world, &lb_name("web"), &description);
    }
    world.cloud.settle();
    world.create(&annotated(&[]));
    world.until_warned("web", "several load balancers are named").await;
    let warnings = world.warnings("web");
    assert_eq!(warnings[0].matches("<id of kube_service_c1_default_web>").count(), 2, "{warnings:?}");
    assert_eq!(world.cloud.load_balancers().len(), 2);
    assert!(world.take_cloud_writes().is_empty());
}

/// A load balancer that is being deleted does not count.
///
/// Contract: C21, same.
#[tokio::test(start_paused = true)]
async fn c21_one_that_is_being_deleted_does_not_count() {
    let world = World::started_on(RELEASE).await;
    let description = json!({"description": "Kubernetes external service default/web from cluster c1"});
    let going = make_load_balancer(&world, &lb_name("web"), &description);
    world.cloud.settle();
    delete_for_ever(&world, &going);
    world.create(&annotated(&[]));
    world.until_published("web").await;
    assert_eq!(world.cloud.load_balancers().len(), 2);
    assert_ne!(load_balancer_id(&world), Some(going));
}

/// Has a load balancer deleted, which never ends.
fn delete_for_ever(world: &World, id: &str) {
    world.cloud.faults().add_worker(WorkerFault::hold(OperationKind::LoadBalancerDelete).of(id));
    let path = format!("/v2.0/lbaas/loadbalancers/{id}?cascade=true");
    assert_eq!(world.cloud.user().delete("load-balancer", &path).0, 204);
}

/// One that is still PENDING is waited for and completed.
///
/// Contract: C22, better: without an error in between.
#[tokio::test(start_paused = true)]
async fn c22_one_of_occm_that_is_still_pending_is_waited_for_and_completed() {
    let world = World::started_on(RELEASE).await;
    world.cloud.set_delays(Duration::from_secs(30));
    let description = "Kubernetes external service default/web from cluster c1";
    let attributes = json!({"description": description, "tags": [lb_name("web")]});
    let pending = make_load_balancer(&world, &lb_name("web"), &attributes);
    world.create(&annotated(&[]));
    world.until("its id is written", |world| load_balancer_id(world).is_some()).await;
    assert_eq!(load_balancer_id(&world), Some(pending.clone()));
    assert_eq!(load_balancer(&world)["provisioning_status"], "PENDING_CREATE");
    world.until_served("web").await;
    assert_eq!(world.cloud.load_balancers().len(), 1);
    let listeners = world.cloud.listeners();
    assert!(listeners.len() == 1 && listeners[0]["loadbalancers"][0]["id"] == pending, "{listeners:#?}");
    assert_eq!(listeners[0]["protocol_port"], 80);
    assert_eq!(member_names(&world), ["node-1", "node-2"]);
    only_floating_ip(&world);
    assert!(world.warnings("web").is_empty(), "{:?}", world.warnings("web"));
    let tags = json!(tags(&world));
    world.until("it is adopted and tagged", |world| load_balancer(world)["tags"] == tags).await;
}

/// A node whose labels begin or cease to fit the selector joins or leaves by that alone.
///
/// Defect: 34, better: labels that a selector names are watched.
#[tokio::test(start_paused = true)]
async fn a_node_joins_and_leaves_by_its_labels() {
    let world = World::serving_on(RELEASE, &annotated(&[("node-selector", "env=prod")])).await;
    assert!(member_names(&world).is_empty());
    let label = |value: Value| json!({"metadata": {"labels": {"env": value}}});
    world.kube.patch("nodes", "", "node-2", &label(json!("prod"))).unwrap();
    world.until("it is a member", |world| member_names(world) == ["node-2"]).await;
    world.kube.patch("nodes", "", "node-1", &label(json!("prod"))).unwrap();
    world.kube.patch("nodes", "", "node-2", &label(json!("test"))).unwrap();
    world.until("it has left", |world| member_names(world) == ["node-1"]).await;
}

/// A load balancer of the legacy name is found although one of the new name is going.
///
/// Defect: 74, better: the legacy name is tried whenever the present one finds nothing to use.
#[tokio::test(start_paused = true)]
async fn a_legacy_load_balancer_is_not_hidden_by_one_that_goes() {
    let mut world = World::on(RELEASE);
    world.create(&annotated(&[]));
    let going = make_load_balancer(&world, &lb_name("web"), &json!({}));
    let kept = make_load_balancer(&world, &legacy_name(&world), &json!({}));
    world.publish("web", "192.0.2.1");
    world.cloud.settle();
    delete_for_ever(&world, &going);
    world.start().await;
    world.until("it has one", |world| load_balancer_id(world).is_some()).await;
    assert_eq!(load_balancer_id(&world), Some(kept));
}

/// A quota that is met is named; when there is room again the Service is served.
///
/// Contract: C23, same.
#[tokio::test(start_paused = true)]
async fn c23_a_quota_is_named_and_more_room_heals() {
    let world = World::started_on(RELEASE).await;
    world.cloud.set_octavia_quota("load_balancer", 0);
    world.create(&annotated(&[]));
    world.until_warned("web", "uota").await;
    assert!(load_balancer_id(&world).is_none());
    world.cloud.set_octavia_quota("load_balancer", 5);
    world.until_published("web").await;
}

/// A load balancer whose creation fails is deleted and recreated, also when nobody waited for it at that moment.
///
/// Contract: C24, same.
/// Contract: C25, better: OCCM leaves it in ERROR for ever when its wait is over before.
#[rstest]
#[case::c24_while_it_is_waited_for(false)]
#[case::c25_while_nobody_waits(true)]
#[tokio::test(start_paused = true)]
async fn c24_c25_one_that_fails_in_the_making_is_recreated(#[case] restarted: bool) {
    let mut world = World::started_on(RELEASE).await;
    world.cloud.faults().add_worker(WorkerFault::fail(OperationKind::LoadBalancerCreate).times(1));
    world.create(&annotated(&[]));
    world.until("it is being made", |world| !world.cloud.load_balancers().is_empty()).await;
    if restarted {
        world.stop().await;
        world.pass(600).await;
        assert_eq!(load_balancer(&world)["provisioning_status"], "ERROR");
        world.start().await;
    }
    world.until_served("web").await;
    assert_eq!(load_balancer(&world)["provisioning_status"], "ACTIVE");
    assert!(world.cloud.leaked_ports().is_empty());
}
