//! Load balancers that several Services share (`load-balancer-id`).

use openstack_ccm_kube_sim::{ApiVersion, merge_patch};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{ADDRESS, ANNOTATION, PROXY, Stop, World, lb_name, service, text};

const OCTAVIA: &str = "load-balancer";
const INTERNAL: &str = "service.beta.kubernetes.io/openstack-internal-load-balancer";
const LB_ID: &str = "loadbalancer.openstack.org/load-balancer-id";
const X_FORWARDED_FOR: &str = "loadbalancer.openstack.org/x-forwarded-for";

fn lb_id(world: &World, name: &str) -> String {
    text(&world.cloud.load_balancer(name).unwrap()["id"]).to_owned()
}

/// A Service on the load balancer with this id.
#[allow(clippy::needless_pass_by_value, reason = "json! literals read better by value")]
fn guest(name: &str, port: u16, lb_id: &str, change: Value) -> Value {
    let mut guest = service(
        name,
        json!({
            "metadata": {"annotations": {LB_ID: lb_id}},
            "spec": {"ports": [{"name": "http", "port": port, "protocol": "TCP"}]},
        }),
    );
    merge_patch(&mut guest, &change);
    guest
}

/// The base: `web` has a load balancer of its own. Answers its id too.
async fn sharing(conf: &str) -> (World, String) {
    let world = World::configured(conf).await;
    world.serve(&service("web", json!({}))).await;
    let id = lb_id(&world, &lb_name("web"));
    (world, id)
}

/// A load balancer that a user made, with a listener on 9000, and where asked for with a floating IP.
fn made_by_hand(world: &World, floating_ip: bool) -> String {
    let user = world.cloud.user();
    let body = json!({"loadbalancer": {"name": "mylb", "vip_subnet_id": world.cloud.seed().subnet_id}});
    let (_, made) = user.post(OCTAVIA, "/v2.0/lbaas/loadbalancers", &body);
    world.cloud.settle();
    let made = &made["loadbalancer"];
    let listener = json!({"listener": {"name": "mine", "protocol": "TCP", "protocol_port": 9000,
        "loadbalancer_id": made["id"]}});
    assert_eq!(user.post(OCTAVIA, "/v2.0/lbaas/listeners", &listener).0, 201);
    world.cloud.settle();
    if floating_ip {
        let body = json!({"floatingip": {"floating_network_id": world.cloud.seed().public_network_id,
            "port_id": made["vip_port_id"], "description": "mine"}});
        assert_eq!(user.post("network", "/v2.0/floatingips", &body).0, 201);
    }
    text(&made["id"]).to_owned()
}

/// The generated names among the tags of a load balancer: its users.
fn users(world: &World, id: &str) -> Vec<String> {
    let load_balancer = world.cloud.load_balancers().into_iter().find(|one| one["id"] == id).unwrap();
    let tags = load_balancer["tags"].as_array().unwrap().iter().map(|tag| text(tag).to_owned());
    let mut users: Vec<String> = tags.filter(|tag| tag.starts_with("kube_service_")).collect();
    users.sort();
    users
}

/// Ports of the listeners of a load balancer.
fn ports(world: &World, id: &str) -> Vec<u64> {
    let listeners = world.cloud.listeners();
    let own = listeners.iter().filter(|listener| listener["loadbalancers"][0]["id"] == id);
    let mut ports: Vec<u64> = own.map(|listener| listener["protocol_port"].as_u64().unwrap()).collect();
    ports.sort_unstable();
    ports
}

/// A second Service has its own listener, named and tagged for it, on the load balancer and the address of the first.
///
/// Contract: H1, same.
#[tokio::test(start_paused = true)]
async fn h1_a_second_service_shares_load_balancer_and_address() {
    let (world, id) = sharing("").await;
    world.serve(&guest("web2", 8080, &id, json!({}))).await;
    let listeners = world.cloud.listeners();
    let its = listeners.iter().find(|listener| listener["protocol_port"] == 8080).unwrap();
    assert_eq!(its["name"], "listener_0_kube_service_c1_default_web2");
    assert!(its["tags"].as_array().unwrap().contains(&json!(lb_name("web2"))), "{its}");
    assert_eq!(users(&world, &id), [lb_name("web"), lb_name("web2")]);
    assert_eq!(world.ingress("web2"), world.ingress("web"));
    assert_eq!(world.cloud.load_balancers().len(), 1);
    assert_eq!(world.cloud.floating_ips().len(), 1);
}

/// A third Service is refused while `max-shared-lb` is 2, and joins when it is 3.
///
/// Contract: H2, same.
#[tokio::test(start_paused = true)]
async fn h2_no_more_services_than_allowed_share_a_load_balancer() {
    let (mut world, id) = sharing("").await;
    world.serve(&guest("web2", 8080, &id, json!({}))).await;
    let before = world.cloud_state();
    world.create(&guest("web3", 9090, &id, json!({})));
    world.until_warned_at_rest("web3", "is already used by 2 Services").await;
    assert_eq!(world.cloud_state(), before);
    assert!(world.take_cloud_writes().is_empty());
    world.stop().await;
    world.settings.cloud_conf = "max-shared-lb = 3\n".to_owned();
    world.start().await;
    world.until_served("web3").await;
    assert_eq!(ports(&world, &id), [80, 8080, 9090]);
}

/// A port that is taken is an error before anything changes, and the annotation stays as the user wrote it.
///
/// Contract: H3, same.
#[tokio::test(start_paused = true)]
async fn h3_a_port_that_is_taken_changes_nothing() {
    let (world, id) = sharing("").await;
    let before = world.cloud_state();
    world.create(&guest("web2", 80, &id, json!({})));
    world.until_warned_at_rest("web2", "is already used by listener").await;
    assert_eq!(world.cloud_state(), before);
    assert_eq!(world.annotation("web2", LB_ID), Some(id));
    assert!(world.warnings("web2").concat().contains("TCP:80"));
}

/// A port that is taken by a listener of another protocol is taken all the same.
///
/// Contract: H4, better: OCCM overlooks HTTP and TLS listeners, and the second Service takes over the listener of the
/// first with its tags and members.
#[tokio::test(start_paused = true)]
async fn h4_an_http_listener_of_another_service_is_not_taken_over() {
    let mut world = World::new(ApiVersion::V1_36);
    world.start().await;
    let headers = json!({"metadata": {"annotations": {X_FORWARDED_FOR: "true"}}});
    world.serve(&service("web", headers.clone())).await;
    let id = lb_id(&world, &lb_name("web"));
    let before = world.cloud_state();
    world.create(&guest("web2", 80, &id, headers));
    world.until_warned_at_rest("web2", "is already used by listener").await;
    assert_eq!(world.cloud_state(), before);
}

/// An internal Service shares a load balancer too, and is published by its VIP.
///
/// Contract: H5, better: OCCM refuses internal Services, so that sharing inside the network is impossible.
/// Defect: 29, better: internal Services share load balancers as well.
#[tokio::test(start_paused = true)]
async fn h5_an_internal_service_shares_by_the_vip() {
    let (world, id) = sharing("").await;
    let internal = json!({"metadata": {"annotations": {INTERNAL: "true"}}});
    world.serve(&guest("web2", 8080, &id, internal)).await;
    assert_eq!(world.ingress("web2"), ["198.18.0.2(VIP)"]);
    assert_eq!(world.ingress("web"), ["198.19.0.11(VIP)"]);
    assert_eq!(world.cloud.floating_ips().len(), 1, "that of the owner stays");
}

/// Without tags nobody could know whose the listeners are.
///
/// Contract: H5, same.
#[tokio::test(start_paused = true)]
async fn h5_an_octavia_without_tags_shares_nothing() {
    let mut world = World::new(ApiVersion::V1_36);
    world.cloud.set_octavia_api(4);
    world.start().await;
    world.serve(&service("web", json!({}))).await;
    let id = lb_id(&world, &lb_name("web"));
    let before = world.cloud_state();
    world.create(&guest("web2", 8080, &id, json!({})));
    world.until_warned_at_rest("web2", "sharing a load balancer requires tags").await;
    assert_eq!(world.cloud_state(), before);
}

/// On a load balancer that a user made, the user's listener and floating IP stay as they are.
///
/// Contract: H6, same.
#[tokio::test(start_paused = true)]
async fn h6_a_load_balancer_made_by_hand_keeps_what_its_user_made() {
    let world = World::started().await;
    let id = made_by_hand(&world, true);
    world.serve(&guest("web", 80, &id, json!({}))).await;
    assert_eq!(ports(&world, &id), [80, 9000]);
    assert_eq!(users(&world, &id), [lb_name("web")]);
    assert_eq!(world.ingress("web"), ["198.19.0.11(VIP)"]);
    assert_eq!(world.cloud.floating_ips()[0]["description"], "mine");
}

/// Without a floating IP on it, an external Service gets one clear event and nothing is changed.
///
/// Contract: H7, better: OCCM makes the listener first and then fails for ever.
#[tokio::test(start_paused = true)]
async fn h7_an_external_service_on_a_load_balancer_without_floating_ip_changes_nothing() {
    let world = World::started().await;
    let id = made_by_hand(&world, false);
    let before = world.cloud_state();
    world.create(&guest("web", 80, &id, json!({})));
    world.until_warned_at_rest("web", "has no floating IP").await;
    assert_eq!(world.cloud_state(), before);
    world.annotate("web", INTERNAL, Some("true"));
    world.until_ingress("web", "198.18.0.2(VIP)").await;
}

/// Until the user corrects the annotation, nodes come and go, and the Service may go too.
#[rstest]
#[case::to_one_without_a_floating_ip(false, "has no floating IP")]
#[case::to_a_taken_port(true, "is already used by listener")]
#[tokio::test(start_paused = true)]
async fn a_service_that_cannot_move_is_served_where_it_is(#[case] taken: bool, #[case] cause: &str) {
    let (world, shared) = sharing("").await;
    let target = if taken { shared } else { made_by_hand(&world, false) };
    world.serve(&service("web2", json!({}))).await;
    let own = lb_id(&world, &lb_name("web2"));
    let published = world.ingress("web2");
    let of_target = |world: &World| {
        let listeners = world.cloud.listeners().into_iter();
        let of_target = listeners.filter(|one| one["loadbalancers"][0]["id"] == *target);
        of_target
            .map(|one| [one["id"].clone(), one["tags"].clone(), one["default_pool_id"].clone()])
            .collect::<Vec<_>>()
    };
    let before = of_target(&world);
    world.annotate("web2", LB_ID, Some(&target));
    world.until_warned("web2", cause).await;
    world.add_node("node-3", "v1.36.0");
    let members = |world: &World| {
        let pools = world.cloud.pools().into_iter();
        let own: Vec<_> = pools.filter(|pool| pool["loadbalancers"][0]["id"] == *own).collect();
        own.iter().map(|pool| world.cloud.members(text(&pool["id"])).len()).collect::<Vec<_>>()
    };
    world.until("the new node is a member where the Service is served", |world| members(world) == [3]).await;
    world.quiet().await;
    assert_eq!(world.ingress("web2"), published);
    assert_eq!(world.annotation("web2", LB_ID).as_ref(), Some(&target), "the user can correct it");
    assert_eq!(of_target(&world), before);
    world.release("web2").await;
    world.quiet().await;
    assert!(world.cloud.load_balancer(&lb_name("web2")).is_none());
    assert_eq!(of_target(&world), before);
}

/// The other Services' listeners are not touched when one changes its ports.
///
/// Contract: H8, same.
#[tokio::test(start_paused = true)]
async fn h8_a_change_of_ports_touches_only_the_own_listeners() {
    let (world, id) = sharing("").await;
    world.serve(&guest("web2", 8080, &id, json!({}))).await;
    let own = |world: &World| {
        world.cloud.listeners().into_iter().find(|listener| listener["protocol_port"] == 80).unwrap()
    };
    let before = own(&world);
    world.patch("web2", &json!({"spec": {"ports": [{"name": "http", "port": 8081, "protocol": "TCP"}]}}));
    world.until("the port has changed", |world| ports(world, &id) == [80, 8081]).await;
    world.quiet().await;
    assert_eq!(own(&world), before);
}

/// When a guest goes, its listener and its tag go with it.
///
/// Contract: H9, same.
#[tokio::test(start_paused = true)]
async fn h9_a_guest_that_goes_takes_only_its_own() {
    let (world, id) = sharing("").await;
    let before = world.cloud_state();
    world.serve(&guest("web2", 8080, &id, json!({}))).await;
    world.release("web2").await;
    world.quiet().await;
    assert_eq!(world.cloud_state(), before);
    assert_eq!(world.ingress("web"), ["198.19.0.11(VIP)"]);
}

/// The load balancer and its floating IP outlive the Service for which they were made, and go with the last one.
///
/// Contract: H10, same.
#[tokio::test(start_paused = true)]
async fn h10_the_last_service_takes_load_balancer_and_floating_ip_with_it() {
    let (world, id) = sharing("").await;
    world.serve(&guest("web2", 8080, &id, json!({}))).await;
    world.release("web").await;
    world.quiet().await;
    assert_eq!(ports(&world, &id), [8080]);
    assert_eq!(users(&world, &id), [lb_name("web2")]);
    assert_eq!(world.cloud.load_balancers()[0]["name"], lb_name("web"));
    assert_eq!(world.ingress("web2"), ["198.19.0.11(VIP)"]);
    world.release("web2").await;
    assert!(world.cloud.load_balancers().is_empty() && world.cloud.floating_ips().is_empty());
    assert!(world.cloud.leaked_ports().is_empty());
}

/// `keep-floatingip` of the last Service keeps the floating IP.
#[tokio::test(start_paused = true)]
async fn the_last_guest_can_keep_the_floating_ip() {
    let (world, id) = sharing("").await;
    let keep = json!({"metadata": {"annotations": {format!("{ANNOTATION}keep-floatingip"): "true"}}});
    world.serve(&guest("web2", 8080, &id, keep)).await;
    for name in ["web", "web2"] {
        world.release(name).await;
    }
    assert!(world.cloud.load_balancers().is_empty());
    assert_eq!(world.cloud.floating_ips().len(), 1);
}

/// A load balancer that a user made stays when the last Service goes, as it was before.
///
/// Contract: H11, better: no empty tag is left on it.
#[tokio::test(start_paused = true)]
async fn h11_a_load_balancer_made_by_hand_stays() {
    let world = World::started().await;
    let id = made_by_hand(&world, true);
    let before = world.cloud_state();
    world.serve(&guest("web", 80, &id, json!({}))).await;
    world.release("web").await;
    world.quiet().await;
    assert_eq!(world.cloud_state(), before);
    assert_eq!(ports(&world, &id), [9000]);
}

/// A Service that is recreated while its load balancer still serves others gets it back.
///
/// Contract: H12, same.
#[tokio::test(start_paused = true)]
async fn h12_a_service_that_is_made_again_gets_its_load_balancer_back() {
    let (world, id) = sharing("").await;
    world.serve(&guest("web2", 8080, &id, json!({}))).await;
    world.release("web").await;
    world.serve(&service("web", json!({}))).await;
    assert_eq!(lb_id(&world, &lb_name("web")), id);
    assert_eq!(users(&world, &id), [lb_name("web"), lb_name("web2")]);
    assert_eq!(ports(&world, &id), [80, 8080]);
    assert_eq!(world.ingress("web"), world.ingress("web2"));
}

/// An id that nothing has is the user's mistake, and no reason not to delete the Service.
///
/// Contract: H13, same.
#[tokio::test(start_paused = true)]
async fn h13_an_id_that_nothing_has_is_an_error_and_can_be_deleted() {
    let world = World::started().await;
    world.create(&guest("web", 80, "00000000-0000-4000-8000-000000000000", json!({})));
    world.until_warned_at_rest("web", "does not exist").await;
    assert!(world.take_cloud_writes().is_empty());
    world.release("web").await;
}

/// A load balancer that was deleted by hand is recreated.
///
/// Contract: H14, better: OCCM asks for the load balancer of its own annotation for ever.
#[tokio::test(start_paused = true)]
async fn h14_a_load_balancer_that_was_deleted_by_hand_is_recreated() {
    let (mut world, id) = sharing("").await;
    let path = format!("/v2.0/lbaas/loadbalancers/{id}?cascade=true");
    world.cloud.user().delete(OCTAVIA, &path);
    world.cloud.settle();
    world.restart().await;
    world.until("there is a new one", |world| world.cloud.load_balancers().len() == 1).await;
    world.quiet().await;
    assert_ne!(lb_id(&world, &lb_name("web")), id);
    assert!(world.warnings("web").iter().any(|one| one.contains("LoadBalancerGone")));
    assert_eq!(world.ingress("web").len(), 1);
}

/// A Service that stops being of type LoadBalancer and becomes one again gets a new load balancer.
///
/// Contract: H15, better: OCCM leaves the id of the deleted load balancer in the annotation and fails for ever.
#[tokio::test(start_paused = true)]
async fn h15_a_service_that_changes_its_type_and_back_gets_a_new_load_balancer() {
    let (world, id) = sharing("").await;
    world.patch("web", &json!({"spec": {"type": "ClusterIP"}}));
    world.until("it is gone", |world| world.cloud.load_balancers().is_empty()).await;
    world.quiet().await;
    assert_eq!(world.annotation("web", LB_ID), None);
    world.patch("web", &json!({"spec": {"type": "LoadBalancer"}}));
    world.until_published("web").await;
    assert_ne!(lb_id(&world, &lb_name("web")), id);
}

/// A guest that is moved to another load balancer by hand, or gets one of its own, leaves nothing behind.
///
/// Defect: 75, better: what the Service had on the former load balancer is taken off it.
#[rstest]
#[case::to_another(true)]
#[case::to_one_of_its_own(false)]
#[tokio::test(start_paused = true)]
async fn a_guest_that_moves_leaves_nothing_behind(#[case] to_another: bool) {
    let (world, id) = sharing("").await;
    world.serve(&service("other", json!({"spec": {"ports": [{"port": 81, "protocol": "TCP"}]}}))).await;
    world.serve(&guest("web2", 8080, &id, json!({}))).await;
    let other = lb_id(&world, &lb_name("other"));
    world.annotate("web2", LB_ID, to_another.then_some(other.as_str()));
    world.until("it has left", |world| ports(world, &id) == [80] && users(world, &id).len() == 1).await;
    world.quiet().await;
    if to_another {
        assert_eq!(ports(&world, &other), [81, 8080]);
        assert_eq!(world.ingress("web2"), world.ingress("other"));
        assert_eq!(world.cloud.load_balancers().len(), 2);
    } else {
        assert_eq!(ports(&world, &lb_id(&world, &lb_name("web2"))), [8080]);
        assert_ne!(world.ingress("web2"), world.ingress("web"));
    }
    let pools = world.cloud.pools().len();
    assert_eq!(pools, 3, "no pool is left behind");
}

/// A pool that OCCM made for a guest has no tags. It goes when the listener gets another one, and when the guest goes,
/// wherever the program dies on the way; a pool that nobody recognises would keep the load balancer for ever.
#[tokio::test(start_paused = true)]
async fn a_pool_that_occm_made_for_a_guest_goes_with_its_listener() {
    let (mut world, id) = sharing("").await;
    world.serve(&guest("web2", 8080, &id, json!({}))).await;
    for call in 0..30 {
        world.stop().await;
        for pool in world.cloud.pools() {
            let path = format!("/v2.0/lbaas/pools/{}", text(&pool["id"]));
            assert_eq!(world.cloud.user().put(OCTAVIA, &path, &json!({"pool": {"tags": []}})).0, 200);
            world.cloud.settle();
        }
        world.start_until(Some(Stop::After(call))).await;
        world.annotate("web2", PROXY, (call % 2 == 0).then_some("v2"));
        if !world.survives().await {
            world.kill().await;
            world.start().await;
        }
        world.quiet().await;
        assert_eq!(world.cloud.pools().len(), 2, "killed after call {call}");
    }
    for name in ["web2", "web"] {
        world.release(name).await;
    }
    assert!(world.cloud.load_balancers().is_empty());
}

/// Services that join one load balancer at the same moment lose no tag and do not exceed the limit.
#[tokio::test(start_paused = true)]
async fn services_that_join_at_once_lose_no_tag_and_keep_the_limit() {
    let (mut world, id) = sharing("max-shared-lb = 4\n").await;
    world.settings.latency = std::time::Duration::from_millis(120);
    world.restart().await;
    for number in 0..6_u16 {
        world.create(&guest(&format!("guest-{number}"), 8000 + number, &id, json!({})));
    }
    world.until("the load balancer is full", |world| users(world, &id).len() == 4).await;
    world.quiet().await;
    assert_eq!(users(&world, &id).len(), 4);
    assert_eq!(ports(&world, &id).len(), 4);
    let served = (0..6).filter(|number| !world.ingress(&format!("guest-{number}")).is_empty());
    assert_eq!(served.count(), 3);
}

/// A Service that changes and one that joins: neither asks for anything while the other has locked the load balancer.
///
/// Defect: 61, better: changes of one load balancer are made one after another.
#[tokio::test(start_paused = true)]
async fn services_on_one_load_balancer_take_turns() {
    let (mut world, id) = sharing("").await;
    world.settings.latency = std::time::Duration::from_millis(120);
    world.restart_to_rest().await;
    let refusals = world.refusals();
    let ports = json!([{"name": "http", "port": 80, "protocol": "TCP", "nodePort": 30081}]);
    world.patch("web", &json!({"spec": {"ports": ports}}));
    world.create(&guest("web2", 8080, &id, json!({})));
    world.until_served("web2").await;
    assert_eq!(world.refusals(), refusals);
    assert!(world.cloud_state().contains(":30081 ACTIVE"), "{}", world.cloud_state());
    for name in ["web", "web2"] {
        assert!(world.warnings(name).is_empty(), "{:?}", world.warnings(name));
    }
}

/// The health monitor of a guest is named for the guest, in its creation and when nodes change.
///
/// Defect: 14, better: one rule for names, so that nothing is renamed back and forth.
#[tokio::test(start_paused = true)]
async fn the_monitor_of_a_guest_keeps_its_name_when_nodes_change() {
    let (mut world, id) = sharing("create-monitor = true\n").await;
    world.serve(&guest("web2", 8080, &id, json!({}))).await;
    let names = |world: &World| {
        let monitors = world.cloud.health_monitors();
        let mut names: Vec<String> = monitors.iter().map(|one| text(&one["name"]).to_owned()).collect();
        names.sort();
        names
    };
    let expected = ["web", "web2"].map(|name| format!("monitor_0_{}", lb_name(name)));
    assert_eq!(names(&world), expected);
    world.third_node_joins().await;
    assert_eq!(world.take_cloud_writes(), ["PUT pools/ID/members"; 2]);
    world.restart().await;
    world.annotate_to_rest("web2", "keep-floatingip", Some("true")).await;
    assert!(world.take_cloud_writes().is_empty());
    assert_eq!(names(&world), expected);
}

/// What is written on a guest names the shared address.
#[tokio::test(start_paused = true)]
async fn the_address_annotation_of_a_guest_is_that_of_the_owner() {
    let (world, id) = sharing("").await;
    world.serve(&guest("web2", 8080, &id, json!({}))).await;
    assert_eq!(world.annotation("web2", ADDRESS), world.annotation("web", ADDRESS));
}
