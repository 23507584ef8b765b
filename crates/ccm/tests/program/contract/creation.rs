//! Creation of a load balancer.

use openstack_ccm_kube_sim::ApiVersion;
use openstack_ccm_openstack_sim::{OperationKind, Sim as Cloud, WorkerFault};
use rstest::rstest;
use serde_json::{Value, json};

use super::setup::{annotated, cluster_subnet, configured, load_balancer, member_subnets, only_floating_ip};
use crate::support::{ANNOTATION, World, lb_name, service};

fn with_ports(ports: &Value) -> Value {
    service("web", json!({"spec": {"ports": ports}}))
}

fn members(world: &World) -> Vec<Value> {
    let pools = world.cloud.pools();
    pools.iter().flat_map(|pool| world.cloud.members(pool["id"].as_str().unwrap())).collect()
}

fn member_names(world: &World) -> Vec<String> {
    let mut names: Vec<String> =
        members(world).iter().map(|member| member["name"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

/// The base: one request makes the whole tree, the floating IP leads to the VIP, and status, annotations, finalizer and
/// events tell of it.
///
/// Contract: C1, same.
#[tokio::test(start_paused = true)]
async fn c1_the_base_is_what_occm_makes() {
    let world = World::started().await;
    world.create(&annotated(&[]));
    world.until_ingress("web", "198.19.0.11(VIP)").await;
    world.quiet().await;
    let writes = world.take_cloud_writes();
    assert_eq!(writes.iter().filter(|name| *name == "POST loadbalancers").count(), 1, "{writes:?}");
    assert!(!writes.iter().any(|name| name == "POST listeners" || name == "POST pools"), "{writes:?}");
    let made = load_balancer(&world);
    assert_eq!(made["description"], "Kubernetes external service default/web from cluster c1");
    assert!(made["tags"].as_array().unwrap().contains(&json!(lb_name("web"))));
    let listener = world.cloud.listeners()[0].clone();
    assert_eq!(listener["name"], json!(format!("listener_0_{}", lb_name("web"))));
    let timeouts = ["client_data", "member_connect", "member_data", "tcp_inspect"];
    let timeouts = timeouts.map(|name| listener[format!("timeout_{name}")].clone());
    assert_eq!(timeouts, [json!(50000), json!(5000), json!(50000), json!(0)]);
    assert_eq!(listener["connection_limit"], -1);
    assert_eq!(world.cloud.pools()[0]["lb_algorithm"], "ROUND_ROBIN");
    assert_eq!(member_names(&world), ["node-1", "node-2"]);
    assert!(world.cloud.health_monitors().is_empty());
    assert_eq!(only_floating_ip(&world)["port_id"], made["vip_port_id"]);
    let id = world.annotation("web", &format!("{ANNOTATION}load-balancer-id"));
    assert_eq!(id.as_deref(), made["id"].as_str());
    let events = world.events("web").join("\n");
    assert!(events.contains("EnsuringLoadBalancer") && events.contains("EnsuredLoadBalancer"), "{events}");
}

/// Each port gets a listener and a pool of its protocol, numbered in order.
///
/// Contract: C2, same.
/// Contract: C3, same.
#[tokio::test(start_paused = true)]
async fn c2_c3_each_port_gets_listener_and_pool() {
    let world = World::serving(&with_ports(&json!([
        {"name": "a", "port": 80, "protocol": "TCP"}, {"name": "b", "port": 443, "protocol": "TCP"},
        {"name": "c", "port": 53, "protocol": "UDP"}, {"name": "d", "port": 99, "protocol": "SCTP"},
    ])))
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
    assert_eq!(members(&world).len(), 8);
}

/// Session affinity by client address is persistence by source address.
///
/// Contract: C4, same.
#[tokio::test(start_paused = true)]
async fn c4_client_ip_affinity_is_persistence_by_source_ip() {
    let world = World::serving(&service("web", json!({"spec": {"sessionAffinity": "ClientIP"}}))).await;
    assert_eq!(world.cloud.pools()[0]["session_persistence"]["type"], "SOURCE_IP");
}

/// Limit and timeouts come from annotations; a value that is not a number is refused by name.
///
/// Contract: C6, better: a limit that is not a number is an error that names it, instead of silently no limit.
#[tokio::test(start_paused = true)]
async fn c6_limit_and_timeouts_come_from_annotations() {
    let world = World::started().await;
    world.create(&annotated(&[("connection-limit", "abc"), ("timeout-member-connect", "7000")]));
    world.until_warned("web", "abc").await;
    world.annotate("web", &format!("{ANNOTATION}connection-limit"), Some("100"));
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
    let world = World::started().await;
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
    let world = World::started().await;
    let flavor = world.cloud.add_octavia_flavor("large");
    world.cloud.add_octavia_availability_zone("az1");
    world.cloud.set_octavia_api(api);
    world.create(&annotated(&[("flavor-id", flavor.as_str()), ("availability-zone", "az1")]));
    world.until_published("web").await;
    world.quiet().await;
    let made = load_balancer(&world);
    let expected = if api < 6 { Value::Null } else { json!(flavor) };
    assert_eq!((&made["flavor_id"], &made["availability_zone"]), (&expected, &Value::Null));
    let warnings = world.warnings("web");
    assert_eq!(warnings.len(), reasons.len(), "{warnings:?}");
    for reason in reasons {
        assert!(warnings.iter().any(|warning| warning.contains(reason)), "{warnings:?}");
    }
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
    let world = configured(|world| {
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

/// Without node ports there are no members, and the Service is served nevertheless.
///
/// Contract: C14, same.
#[tokio::test(start_paused = true)]
async fn c14_without_node_ports_there_are_no_members() {
    let world =
        World::serving(&service("web", json!({"spec": {"allocateLoadBalancerNodePorts": false}}))).await;
    assert!(members(&world).is_empty());
    assert_eq!((world.cloud.pools().len(), world.cloud.floating_ips().len()), (1, 1));
}

/// A node is reached at its external address where it has no other; one without any is left out.
///
/// Contract: C15, same.
#[tokio::test(start_paused = true)]
async fn c15_external_addresses_do_and_nodes_without_address_are_left_out() {
    let world = World::started().await;
    let address = json!([{"type": "ExternalIP", "address": "198.18.0.50"}]);
    world.kube.patch_status("nodes", "", "node-1", &json!({"status": {"addresses": address}})).unwrap();
    world.kube.patch_status("nodes", "", "node-2", &json!({"status": {"addresses": []}})).unwrap();
    world.serve(&annotated(&[])).await;
    assert_eq!(member_names(&world), ["node-1"]);
    assert_eq!(members(&world)[0]["address"], "198.18.0.50");
}

/// A cluster without nodes gets its load balancer, without members, and the user is warned.
///
/// Contract: C16, better: OCCM makes none until there are nodes, and then starts with a creation of minutes.
#[tokio::test(start_paused = true)]
async fn c16_without_nodes_there_is_a_load_balancer_without_members() {
    let cloud = Cloud::builder().nodes(0).build();
    let mut world = World::in_cloud(ApiVersion::V1_36, cloud);
    let subnet = world.cloud.seed().subnet_id.clone();
    world.settings.cloud_conf = format!("subnet-id={subnet}\n");
    world.start().await;
    world.create(&annotated(&[]));
    world.until_published("web").await;
    assert!(members(&world).is_empty());
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
    let world = configured(|_| "node-selector=env=prod\n".to_owned()).await;
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
    let world = World::started().await;
    world.create(&service("web", json!({"spec": {"loadBalancerClass": "example.org/other"}})));
    world.quiet().await;
    assert!(world.take_cloud_writes().is_empty());
    assert!(world.service("web")["metadata"]["finalizers"].is_null());
    assert!(world.events("web").is_empty());
}

/// If several load balancers have the name, none is used, and an Event says how to choose.
///
/// Contract: C20, same.
#[tokio::test(start_paused = true)]
async fn c20_two_load_balancers_of_the_name_are_refused() {
    let world = World::started().await;
    let body = json!({"loadbalancer": {"name": lb_name("web"), "vip_subnet_id": world.cloud.seed().subnet_id,
        "description": "Kubernetes external service default/web from cluster c1"}});
    for _ in 0..2 {
        assert_eq!(world.cloud.user().post("load-balancer", "/v2.0/lbaas/loadbalancers", &body).0, 201);
    }
    world.cloud.settle();
    world.create(&annotated(&[]));
    world.until_warned("web", "multiple").await;
    let warnings = world.warnings("web");
    assert_eq!(warnings[0].matches("<id of kube_service_c1_default_web>").count(), 2, "{warnings:?}");
    assert_eq!(world.cloud.load_balancers().len(), 2);
    assert!(world.take_cloud_writes().is_empty());
}

/// A node whose labels begin or cease to fit the selector joins or leaves by that alone.
///
/// Defect: 34, better: labels that a selector names are watched.
#[tokio::test(start_paused = true)]
async fn a_node_joins_and_leaves_by_its_labels() {
    let world = World::serving(&annotated(&[("node-selector", "env=prod")])).await;
    assert!(member_names(&world).is_empty());
    let label = |value: Value| json!({"metadata": {"labels": {"env": value}}});
    world.kube.patch("nodes", "", "node-2", &label(json!("prod"))).unwrap();
    world.until("it is a member", |world| member_names(world) == ["node-2"]).await;
    world.kube.patch("nodes", "", "node-2", &label(json!("test"))).unwrap();
    world.until("it has left", |world| member_names(world).is_empty()).await;
}

/// A load balancer of the legacy name is found although one of the new name is going.
///
/// Defect: 74, better: the legacy name is tried whenever the present one finds nothing to use.
#[tokio::test(start_paused = true)]
async fn a_legacy_load_balancer_is_not_hidden_by_one_that_goes() {
    let mut world = World::new(ApiVersion::V1_36);
    world.create(&annotated(&[]));
    let uid = world.service("web")["metadata"]["uid"].as_str().unwrap().replace('-', "");
    let legacy: String = format!("a{uid}").chars().take(32).collect();
    let make = |name: &str| {
        let body = json!({"loadbalancer": {"name": name, "vip_subnet_id": world.cloud.seed().subnet_id}});
        let (_, answer) = world.cloud.user().post("load-balancer", "/v2.0/lbaas/loadbalancers", &body);
        answer["loadbalancer"]["id"].as_str().unwrap().to_owned()
    };
    let (going, kept) = (make(&lb_name("web")), make(&legacy));
    world.publish("web", "192.0.2.1");
    world.cloud.settle();
    world.cloud.faults().add_worker(WorkerFault::hold(OperationKind::LoadBalancerDelete));
    let path = format!("/v2.0/lbaas/loadbalancers/{going}?cascade=true");
    assert_eq!(world.cloud.user().delete("load-balancer", &path).0, 204);
    world.start().await;
    let id = format!("{ANNOTATION}load-balancer-id");
    world.until("it has one", |world| world.annotation("web", &id).is_some()).await;
    assert_eq!(world.annotation("web", &id), Some(kept));
}

/// A quota that is met is named; when there is room again the Service is served.
///
/// Contract: C23, same.
#[tokio::test(start_paused = true)]
async fn c23_a_quota_is_named_and_more_room_heals() {
    let world = World::started().await;
    world.cloud.set_octavia_quota("load_balancer", 0);
    world.create(&annotated(&[]));
    world.until_warned("web", "uota").await;
    assert!(world.annotation("web", &format!("{ANNOTATION}load-balancer-id")).is_none());
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
    let mut world = World::started().await;
    world.cloud.faults().add_worker(WorkerFault::fail(OperationKind::LoadBalancerCreate).times(1));
    world.create(&annotated(&[]));
    world.until("it is being made", |world| !world.cloud.load_balancers().is_empty()).await;
    if restarted {
        world.stop().await;
        world.pass(600).await;
        assert_eq!(load_balancer(&world)["provisioning_status"], "ERROR");
        world.start().await;
    }
    world.until_published("web").await;
    world.quiet().await;
    assert_eq!(load_balancer(&world)["provisioning_status"], "ACTIVE");
    assert!(world.cloud.leaked_ports().is_empty());
}
