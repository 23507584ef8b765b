//! Changes of a Service that is served.

use http::Method;
use openstack_ccm_kube_sim::ApiVersion;
use openstack_ccm_openstack_sim::{Fault, OperationKind, Sim};
use rstest::rstest;
use serde_json::{Value, json};

use super::setup::{annotated, configured, id, load_balancer};
use crate::support::{ANNOTATION, PROXY, World, service};

const HEADERS: &str = "loadbalancer.openstack.org/x-forwarded-for";
const METHOD: &str = "loadbalancer.openstack.org/lb-method";

fn ports(ports: &[(&str, u16, u16)]) -> Value {
    let ports: Vec<Value> = ports
        .iter()
        .map(|(protocol, port, node_port)| {
            json!({"name": format!("p{port}-{}", protocol.to_lowercase()), "protocol": protocol, "port": port,
                "nodePort": node_port})
        })
        .collect();
    json!({"spec": {"ports": ports}})
}

/// A served Service with TCP port 80 on node port 30080.
async fn served() -> World {
    World::serving(&service("web", ports(&[("TCP", 80, 30080)]))).await
}

async fn changed(world: &World, change: &Value) -> Vec<String> {
    world.patch_to_rest("web", change).await;
    world.take_cloud_writes()
}

fn listener(world: &World, port: u16) -> Value {
    world.cloud.listeners().into_iter().find(|one| one["protocol_port"] == port).expect("a listener")
}

fn only_pool(world: &World) -> Value {
    let pools = world.cloud.pools();
    let [only] = pools.as_slice() else { panic!("{pools:#?}") };
    only.clone()
}

fn edit(cloud: &Sim, path: &str, body: &Value) {
    cloud.user().change("load-balancer", &format!("/v2.0/lbaas/{path}"), body);
    cloud.settle();
}

/// A new port gets its pool, members and listener; the others are not touched.
///
/// Contract: E1, better: the pool is complete before the listener gets it.
#[tokio::test(start_paused = true)]
async fn e1_a_new_port_is_added() {
    let world = served().await;
    let before = listener(&world, 80);
    let writes = changed(&world, &ports(&[("TCP", 80, 30080), ("TCP", 443, 30443)])).await;
    assert_eq!(writes, ["POST pools", "PUT pools/ID/members", "POST listeners"]);
    assert_eq!(listener(&world, 80)["id"], before["id"]);
    assert_eq!(listener(&world, 443)["name"], "listener_1_kube_service_c1_default_web");
}

/// A port that goes takes its listener and pool along; the others keep their names.
///
/// Contract: E2, better: the listener goes first, so that it never answers without a pool.
#[tokio::test(start_paused = true)]
async fn e2_a_port_is_removed() {
    let world = World::serving(&service("web", ports(&[("TCP", 80, 30080), ("TCP", 443, 30443)]))).await;
    let writes = changed(&world, &ports(&[("TCP", 443, 30443)])).await;
    assert_eq!(writes, ["DELETE listeners/ID", "DELETE pools/ID"]);
    assert_eq!(listener(&world, 443)["name"], "listener_1_kube_service_c1_default_web");
    assert_eq!((world.cloud.listeners().len(), world.cloud.pools().len()), (1, 1));
}

/// Another node port is one request for the members.
///
/// Contract: E3, same.
#[tokio::test(start_paused = true)]
async fn e3_a_new_node_port_is_one_batch() {
    let world = served().await;
    assert_eq!(changed(&world, &ports(&[("TCP", 80, 30081)])).await, ["PUT pools/ID/members"]);
    assert!(world.cloud_state().contains(":30081 ACTIVE"), "{}", world.cloud_state());
}

/// A port that moves is there before the old one goes.
///
/// Contract: E4, same.
#[tokio::test(start_paused = true)]
async fn e4_a_port_moves() {
    let world = served().await;
    let writes = changed(&world, &ports(&[("TCP", 8080, 30080)])).await;
    let made = writes.iter().position(|name| name == "POST listeners").expect("a new listener");
    let gone = writes.iter().position(|name| name == "DELETE listeners/ID").expect("the old one");
    assert!(made < gone, "{writes:?}");
    assert_eq!(world.cloud.listeners().len(), 1);
}

/// Several attributes of a listener change with one request.
///
/// Contract: E5, same.
#[tokio::test(start_paused = true)]
async fn e5_attributes_of_a_listener_change_together() {
    let world = served().await;
    let change = json!({
        "metadata": {"annotations": {
            "loadbalancer.openstack.org/connection-limit": "100",
            "loadbalancer.openstack.org/timeout-client-data": "60000",
        }},
        "spec": {"loadBalancerSourceRanges": ["192.0.2.0/24"]},
    });
    assert_eq!(changed(&world, &change).await, ["PUT listeners/ID"]);
    let listener = listener(&world, 80);
    assert_eq!(
        (&listener["connection_limit"], &listener["timeout_client_data"]),
        (&json!(100), &json!(60000))
    );
    assert_eq!(listener["allowed_cidrs"], json!(["192.0.2.0/24"]));
}

/// The method follows its annotation and falls back to cloud.conf. One that is not known is reported, and the pools keep the
/// one that they have; a node that joins becomes a member all the same.
///
/// Contract: E6, better: a new Service with a method that is not known is refused before anything is made.
#[tokio::test(start_paused = true)]
async fn e6_the_method_follows_its_annotation() {
    let world = served().await;
    world.annotate_to_rest("web", METHOD, Some("LEAST_CONNECTIONS")).await;
    assert_eq!(world.take_cloud_writes(), ["PUT pools/ID"]);
    assert_eq!(only_pool(&world)["lb_algorithm"], "LEAST_CONNECTIONS");
    world.annotate_to_rest("web", METHOD, None).await;
    assert_eq!(only_pool(&world)["lb_algorithm"], "ROUND_ROBIN");
    world.annotate_to_rest("web", METHOD, Some("FOO")).await;
    assert!(
        world.warnings("web").iter().any(|warning| warning.contains("FOO")),
        "{:?}",
        world.warnings("web")
    );
    assert_eq!(only_pool(&world)["lb_algorithm"], "ROUND_ROBIN");
    assert!(!world.ingress("web").is_empty());
    world.take_calls();
    world.third_node_joins().await;
    assert_eq!(world.take_cloud_writes(), ["PUT pools/ID/members"]);
}

/// PROXY protocol is switched on, to its other version and off without a gap: the new pool is complete before the listener gets
/// it.
///
/// Contract: E7, better: OCCM deletes the pool first, and connections fail until the new one is filled.
#[tokio::test(start_paused = true)]
async fn e7_proxy_protocol_is_switched_without_a_gap() {
    let world = World::serving(&annotated(&[("enable-health-monitor", "true")])).await;
    world.take_calls();
    for (value, protocol, mode) in
        [("v2", "PROXYV2", "Proxy"), ("true", "PROXY", "Proxy"), ("false", "TCP", "VIP")]
    {
        world.annotate("web", PROXY, Some(value));
        world.until_served_at("web", &format!("198.19.0.11({mode})")).await;
        let writes = [
            "POST pools",
            "PUT pools/ID/members",
            "POST healthmonitors",
            "PUT listeners/ID",
            "DELETE pools/ID",
        ];
        assert_eq!(world.take_cloud_writes(), writes);
        assert_eq!(only_pool(&world)["protocol"], protocol);
        assert_eq!(listener(&world, 80)["default_pool_id"], only_pool(&world)["id"]);
    }
}

/// A listener that has to speak another protocol is replaced, and an Event reports the short interruption.
///
/// Contract: E8, better: OCCM asks for a second listener on the port, which Octavia refuses every time.
#[tokio::test(start_paused = true)]
async fn e8_a_listener_of_another_protocol_is_replaced() {
    let world = served().await;
    world.annotate_to_rest("web", HEADERS, Some("true")).await;
    assert_eq!(listener(&world, 80)["protocol"], "HTTP");
    assert_eq!(only_pool(&world)["protocol"], "HTTP");
    let warnings = world.warnings("web");
    assert!(warnings.iter().any(|warning| warning.contains("LoadBalancerListenerReplaced")), "{warnings:?}");
}

/// X-Forwarded-For and PROXY protocol exclude each other: the user gets an Event and listeners and pools stay as they are; a node
/// that joins becomes a member all the same.
///
/// Contract: E10, better: OCCM does nothing at all for the Service until one of the two is removed.
#[tokio::test(start_paused = true)]
async fn e10_headers_and_proxy_protocol_exclude_each_other() {
    let world = served().await;
    let both = json!({"metadata": {"annotations": {HEADERS: "true", PROXY: "v2"}}});
    assert_eq!(changed(&world, &both).await, Vec::<String>::new());
    assert!(!world.warnings("web").is_empty());
    assert!(!world.ingress("web").is_empty(), "the last good state serves on");
    world.third_node_joins().await;
    assert_eq!(world.take_cloud_writes(), ["PUT pools/ID/members"]);
}

/// X-Forwarded-For makes an HTTP listener that inserts the header.
///
/// Contract: E11, same.
#[tokio::test(start_paused = true)]
async fn e11_headers_make_an_http_listener() {
    let world = World::serving(&annotated(&[("x-forwarded-for", "true")])).await;
    let listener = listener(&world, 80);
    assert_eq!((&listener["protocol"], &only_pool(&world)["protocol"]), (&json!("HTTP"), &json!("HTTP")));
    assert_eq!(listener["insert_headers"], json!({"X-Forwarded-For": "true"}));
}

/// What an administrator changed of ours is put right at the next check; a header of his stays.
///
/// Contract: E13, same.
#[tokio::test(start_paused = true)]
async fn e13_the_limit_is_reset_and_the_header_kept() {
    let world = World::serving(&annotated(&[("x-forwarded-for", "true")])).await;
    let path = format!("listeners/{}", id(&listener(&world, 80)));
    let headers = json!({"X-Forwarded-For": "true", "X-Forwarded-Port": "true"});
    edit(&world.cloud, &path, &json!({"listener": {"connection_limit": 7, "insert_headers": headers}}));
    world.annotate_to_rest("web", "timeout-client-data", Some("60000")).await;
    let listener = listener(&world, 80);
    assert_eq!((&listener["connection_limit"], &listener["insert_headers"]), (&json!(-1), &headers));
}

/// A listener of an administrator on the Service's own load balancer stays.
///
/// Contract: E14, better: OCCM deletes it at the next reconciliation.
#[tokio::test(start_paused = true)]
async fn e14_a_listener_of_an_administrator_stays() {
    let world = served().await;
    let body = json!({"listener": {"name": "admin", "protocol": "TCP", "protocol_port": 9999,
        "loadbalancer_id": load_balancer(&world)["id"]}});
    world.cloud.user().make("load-balancer", "/v2.0/lbaas/listeners", &body);
    world.cloud.settle();
    let writes = changed(&world, &ports(&[("TCP", 80, 30080), ("TCP", 443, 30443)])).await;
    assert!(!writes.iter().any(|write| write.starts_with("DELETE")), "{writes:?}");
    assert_eq!(listener(&world, 9999)["name"], "admin");
}

/// A listener whose tags say that it is somebody else's is a conflict, whatever its protocol.
///
/// Contract: E15, better: OCCM silently takes over an HTTP listener, and refuses a TCP one.
#[rstest]
#[case::tcp(false)]
#[case::http(true)]
#[tokio::test(start_paused = true)]
async fn e15_a_listener_of_somebody_else_is_a_conflict(#[case] headers: bool) {
    let world =
        World::serving(&annotated(&[("x-forwarded-for", if headers { "true" } else { "false" })])).await;
    let path = format!("listeners/{}", id(&listener(&world, 80)));
    edit(&world.cloud, &path, &json!({"listener": {"tags": ["team-a"]}}));
    world.annotate("web", "connection-limit", Some("100"));
    world.until_warned("web", "already used by listener").await;
    assert_eq!(listener(&world, 80)["tags"], json!(["team-a"]));
    assert_eq!(listener(&world, 80)["connection_limit"], -1);
}

/// Session affinity follows the Service while it is served.
///
/// Contract: E16, better: OCCM never changes it.
#[tokio::test(start_paused = true)]
async fn e16_session_affinity_follows_the_service() {
    let world = served().await;
    assert_eq!(changed(&world, &json!({"spec": {"sessionAffinity": "ClientIP"}})).await, ["PUT pools/ID"]);
    assert_eq!(only_pool(&world)["session_persistence"]["type"], "SOURCE_IP");
    assert_eq!(changed(&world, &json!({"spec": {"sessionAffinity": "None"}})).await, ["PUT pools/ID"]);
    assert_eq!(only_pool(&world)["session_persistence"], Value::Null);
}

/// Session persistence that an administrator set by hand on a pool stays, whatever else changes, a restart included; OCCM
/// never touches it either. That which the Service asked for goes when the Service does not ask any more.
#[rstest]
#[case::by_cookie("HTTP_COOKIE", "http")]
#[case::by_address("SOURCE_IP", "tcp")]
#[tokio::test(start_paused = true)]
async fn persistence_set_by_hand_stays(#[case] kind: &str, #[case] protocol: &str) {
    let headers = if protocol == "http" { "true" } else { "false" };
    let mut world = World::serving(&annotated(&[("x-forwarded-for", headers)])).await;
    let path = format!("pools/{}", id(&only_pool(&world)));
    edit(&world.cloud, &path, &json!({"pool": {"session_persistence": {"type": kind}}}));
    world.annotate_to_rest("web", "lb-method", Some("LEAST_CONNECTIONS")).await;
    world.restart().await;
    world.annotate_to_rest("web", "connection-limit", Some("100")).await;
    assert_eq!(only_pool(&world)["lb_algorithm"], "LEAST_CONNECTIONS");
    assert_eq!(only_pool(&world)["session_persistence"]["type"], kind);
    changed(&world, &json!({"spec": {"sessionAffinity": "ClientIP"}})).await;
    assert_eq!(only_pool(&world)["session_persistence"]["type"], "SOURCE_IP");
    world.restart().await;
    changed(&world, &json!({"spec": {"sessionAffinity": "None"}})).await;
    assert_eq!(only_pool(&world)["session_persistence"], Value::Null);
}

/// PROXY protocol on a Service with a UDP port leaves that port plain.
///
/// Contract: E17, better: OCCM asks for a UDP listener with a PROXY pool, which Octavia refuses.
#[tokio::test(start_paused = true)]
async fn e17_udp_stays_plain() {
    let mut service = annotated(&[("proxy-protocol", "v2")]);
    service["spec"]["ports"] = ports(&[("TCP", 80, 30080), ("UDP", 53, 30053)])["spec"]["ports"].clone();
    let world = World::serving(&service).await;
    let mut protocols: Vec<Value> = world.cloud.pools().iter().map(|pool| pool["protocol"].clone()).collect();
    protocols.sort_by_key(Value::to_string);
    assert_eq!(protocols, ["PROXYV2", "UDP"]);
}

/// Settings that only a new load balancer can have change nothing on one that serves.
///
/// Contract: E18, better: an Event says what needs a new load balancer.
#[tokio::test(start_paused = true)]
async fn e18_settings_of_creation_are_not_changed_later() {
    let world = served().await;
    let flavor = world.cloud.add_octavia_flavor("large");
    world.annotate_to_rest("web", "flavor-id", Some(&flavor)).await;
    assert_eq!(world.take_cloud_writes(), Vec::<String>::new());
    assert!(!world.warnings("web").is_empty(), "the user is warned");
}

/// A member that somebody removed comes back with the next check.
///
/// Contract: E19, better: the check comes by itself, half an hour later at the latest.
#[tokio::test(start_paused = true)]
async fn e19_a_member_removed_by_hand_comes_back_by_itself() {
    let world = served().await;
    let path = format!("pools/{}/members", id(&only_pool(&world)));
    edit(&world.cloud, &path, &json!({"members": []}));
    let both = |world: &World| world.cloud.members(&id(&only_pool(world))).len() == 2;
    world.until("both nodes are members again", both).await;
}

/// Weight and subnet that an administrator gave a member stay.
///
/// Contract: E20, same.
#[tokio::test(start_paused = true)]
async fn e20_the_weight_of_a_member_stays() {
    let world = served().await;
    let pool = id(&only_pool(&world));
    let member = id(&world.cloud.members(&pool)[0]);
    edit(&world.cloud, &format!("pools/{pool}/members/{member}"), &json!({"member": {"weight": 5}}));
    let writes = changed(&world, &json!({"spec": {"sessionAffinity": "ClientIP"}})).await;
    assert_eq!(writes, ["PUT pools/ID"]);
    world.third_node_joins().await;
    let weights: Vec<Value> = world.cloud.members(&pool).iter().map(|one| one["weight"].clone()).collect();
    assert_eq!(weights.iter().filter(|weight| **weight == json!(5)).count(), 1, "{weights:?}");
    assert_eq!(weights.len(), 3);
}

/// A certificate reference makes a listener that ends TLS; with PROXY protocol its pool speaks that. What is not there, or
/// no reference, is refused before anything is made, unless the store is another one; an empty annotation turns it off.
///
/// Contract: E9, same.
/// Contract: E12, same.
#[tokio::test(start_paused = true)]
async fn e9_e12_tls_is_ended_with_the_certificate_that_is_named() {
    let world = configured(|_| String::new()).await;
    let container = |name: &str| {
        let body = json!({"name": name, "type": "generic", "secret_refs": []});
        let answer = world.cloud.user().make("key-manager", "/v1/containers", &body);
        answer["container_ref"].as_str().unwrap().to_owned()
    };
    let (first, second) = (container("a"), container("b"));
    let key = format!("{ANNOTATION}default-tls-container-ref");
    world.create(&annotated(&[("default-tls-container-ref", "foo")]));
    world.until_warned("web", "foo").await;
    assert!(world.cloud.load_balancers().is_empty());
    world.annotate("web", &key, Some(&first));
    world.until_served("web").await;
    assert_eq!(listener(&world, 80)["protocol"], "TERMINATED_HTTPS");
    assert_eq!(only_pool(&world)["protocol"], "HTTP");
    world.take_calls();
    world.annotate_to_rest("web", &key, Some(&second)).await;
    assert_eq!(world.take_cloud_writes(), ["PUT listeners/ID"]);
    assert_eq!(listener(&world, 80)["default_tls_container_ref"], second);
    world.annotate_to_rest("web", HEADERS, Some("true")).await;
    assert_eq!(world.take_cloud_writes(), ["PUT listeners/ID"]);
    assert_eq!(only_pool(&world)["protocol"], "HTTP");
    world.annotate("web", HEADERS, None);
    world.annotate_to_rest("web", PROXY, Some("true")).await;
    assert_eq!(only_pool(&world)["protocol"], "PROXY");
}

/// A certificate in a store that is not Barbican is sent as it is written, and an empty annotation turns off what cloud.conf
/// says.
///
/// Contract: E12, better: a store that is not Barbican needs no key manager in the cloud.
#[tokio::test(start_paused = true)]
async fn e12_a_certificate_may_be_in_another_store() {
    let external = "container-store=external\ndefault-tls-container-ref=of-cloud-conf\n";
    let world = configured(|_| external.to_owned()).await;
    // Octavia's own certificate manager knows the store; here it is only seen what it is sent.
    let taken = json!({"faultcode": "Client", "faultstring": "Could not retrieve certificate: ['foo']",
        "debuginfo": null});
    let post = Fault::new().service("load-balancer").method(Method::POST).path("loadbalancers$");
    let refused = world.cloud.faults().add(post.answer(400, taken));
    world.create(&annotated(&[("default-tls-container-ref", "foo")]));
    world.until_warned_at_rest("web", "Could not retrieve certificate").await;
    let calls = world.take_calls();
    assert!(calls.iter().all(|call| !call.name.contains("containers")), "nobody looks for it");
    world.cloud.faults().remove(refused);
    world.annotate("web", "default-tls-container-ref", Some(""));
    world.until_published("web").await;
    assert_eq!(listener(&world, 80)["protocol"], "TCP");
}

/// A cloud without a key manager cannot have the certificate: the user gets an Event before anything is created.
///
/// Contract: E12, same.
#[tokio::test(start_paused = true)]
async fn e12_without_a_key_manager_a_certificate_in_barbican_is_refused() {
    let mut world = World::new(ApiVersion::V1_36);
    world.settings.key_manager = false;
    world.start().await;
    let reference = "https://barbican.example.org/v1/containers/11111111-0000-4000-8000-000000000000";
    world.create(&annotated(&[("default-tls-container-ref", reference)]));
    world.until_warned_at_rest("web", "the cloud has no key manager").await;
    assert!(world.take_cloud_writes().is_empty());
}

/// An outage of Barbican holds up no change that is not about certificates, also after a restart.
///
/// Defect: 72, better: a certificate is looked up before it is sent to Octavia, and not in every reconciliation.
#[tokio::test(start_paused = true)]
async fn an_outage_of_barbican_holds_up_nothing_else() {
    let mut world = World::started().await;
    let body = json!({"name": "a", "type": "generic", "secret_refs": []});
    let (_, answer) = world.cloud.user().post("key-manager", "/v1/containers", &body);
    let reference = answer["container_ref"].as_str().unwrap().to_owned();
    world.serve(&annotated(&[("default-tls-container-ref", &reference)])).await;
    world.cloud.faults().add(Fault::new().service("key-manager").answer(503, json!({})));
    world.restart_to_rest().await;
    world.take_calls();
    world.third_node_joins().await;
    world.annotate_to_rest("web", "connection-limit", Some("100")).await;
    assert_eq!(world.take_cloud_writes(), ["PUT pools/ID/members", "PUT listeners/ID"]);
    assert!(world.warnings("web").is_empty(), "{:?}", world.warnings("web"));
}

/// Members that cannot be read are not replaced blindly: what an administrator set on them would be lost.
///
/// Defect: 63, better: the reconciliation fails and is retried.
#[tokio::test(start_paused = true)]
async fn members_that_cannot_be_read_are_not_written() {
    let world = served().await;
    let pool = id(&only_pool(&world));
    let member = id(&world.cloud.members(&pool)[0]);
    edit(&world.cloud, &format!("pools/{pool}/members/{member}"), &json!({"member": {"weight": 5}}));
    let unreadable = Fault::new().service("load-balancer").method(Method::GET).path("/members");
    let unreadable = world.cloud.faults().add(unreadable.answer(500, json!({})));
    world.patch("web", &ports(&[("TCP", 80, 30081)]));
    world.until_warned("web", "reading the load balancer").await;
    assert_eq!(world.take_cloud_writes(), Vec::<String>::new());
    world.cloud.faults().remove(unreadable);
    world.quiet().await;
    assert!(world.cloud_state().contains(":30081 ACTIVE"), "{}", world.cloud_state());
}

/// A method that Octavia refuses is named once and not sent again with every change; another one is.
///
/// Defect: 64, better: one event, and no request that is refused again and again.
#[tokio::test(start_paused = true)]
async fn a_method_that_octavia_refuses_is_sent_once() {
    let world = served().await;
    let body = json!({"faultcode": "Client", "faultstring": "Provider 'amphora' does not support SOURCE_IP",
        "debuginfo": null});
    let refused = Fault::new().service("load-balancer").method(Method::PUT).path("/pools/[^/]+$");
    let refused = world.cloud.faults().add(refused.answer(400, body));
    world.annotate("web", METHOD, Some("SOURCE_IP"));
    world.until_warned("web", "LoadBalancerLbMethodUnknown").await;
    world.quiet_unplanned().await;
    world.take_calls();
    world.add_node("node-3", "v1.36.0");
    world.quiet_unplanned().await;
    world.pass(7200).await;
    assert_eq!(world.take_cloud_writes(), ["PUT pools/ID/members"]);
    assert_eq!(world.warnings("web").len(), 1, "{:?}", world.warnings("web"));
    world.cloud.faults().remove(refused);
    world.annotate("web", METHOD, Some("LEAST_CONNECTIONS"));
    world.quiet_unplanned().await;
    assert_eq!(only_pool(&world)["lb_algorithm"], "LEAST_CONNECTIONS");
}

/// The affinity of UDP ports lasts as long as the Service says, also when that changes. On TCP ports Octavia has no such
/// time; who chose one is warned, and nobody else.
#[rstest]
#[case::of_kubernetes(10_800, false)]
#[case::chosen(600, true)]
#[tokio::test(start_paused = true)]
async fn affinity_lasts_as_long_as_the_service_says(#[case] timeout: u32, #[case] warned: bool) {
    let mut service = service("web", ports(&[("TCP", 80, 30080), ("UDP", 53, 30053)]));
    let config = |seconds: u32| json!({"clientIP": {"timeoutSeconds": seconds}});
    service["spec"]["sessionAffinity"] = json!("ClientIP");
    service["spec"]["sessionAffinityConfig"] = config(timeout);
    let world = World::serving(&service).await;
    let lasts = |world: &World, protocol: &str| {
        let pools = world.cloud.pools();
        let pool = pools.iter().find(|pool| pool["protocol"] == protocol).unwrap();
        assert_eq!(pool["session_persistence"]["type"], "SOURCE_IP");
        pool["session_persistence"]["persistence_timeout"].clone()
    };
    assert_eq!((lasts(&world, "TCP"), lasts(&world, "UDP")), (Value::Null, json!(timeout)));
    let warnings = world.warnings("web");
    assert_eq!(warnings.len(), usize::from(warned), "{warnings:?}");
    assert!(warnings.iter().all(|warning| warning.contains("has no effect on 80/TCP")), "{warnings:?}");
    let writes = changed(&world, &json!({"spec": {"sessionAffinityConfig": config(1200)}})).await;
    assert_eq!(writes, ["PUT pools/ID"], "only that of the UDP port");
    assert_eq!(lasts(&world, "UDP"), json!(1200));
}

/// `appProtocol` makes nothing; where the load balancer takes part in HTTP and the nodes say that they do not speak it, the
/// user is warned.
#[rstest]
#[case::http2_without_tls("kubernetes.io/h2c", "true", Some("speaks HTTP/1.1"))]
#[case::tls("https", "true", Some("expects plain HTTP"))]
#[case::fits("http", "true", None)]
#[case::untouched("kubernetes.io/h2c", "false", None)]
#[tokio::test(start_paused = true)]
async fn an_app_protocol_that_cannot_work_is_named(
    #[case] app_protocol: &str,
    #[case] headers: &str,
    #[case] expected: Option<&str>,
) {
    let mut service = annotated(&[(HEADERS, headers)]);
    service["spec"]["ports"][0]["appProtocol"] = json!(app_protocol);
    let world = World::serving(&service).await;
    let warnings = world.warnings("web");
    assert_eq!(warnings.len(), usize::from(expected.is_some()), "{warnings:?}");
    if let Some(expected) = expected {
        assert!(warnings[0].contains("LoadBalancerAppProtocolMismatch"), "{warnings:?}");
        assert!(warnings[0].contains(expected), "{warnings:?}");
    }
    assert_eq!(listener(&world, 80)["protocol"], if headers == "true" { "HTTP" } else { "TCP" });
}

/// Headers that an administrator sets on a listener in front of a PROXY pool do not reach the nodes: the user is warned. The one
/// that belongs to an annotation is taken off, others stay.
#[tokio::test(start_paused = true)]
async fn headers_that_octavia_does_not_insert_are_named() {
    let world = World::started().await;
    let body = json!({"name": "a", "type": "generic", "secret_refs": []});
    let (_, answer) = world.cloud.user().post("key-manager", "/v1/containers", &body);
    let reference = answer["container_ref"].as_str().unwrap().to_owned();
    world.serve(&annotated(&[("default-tls-container-ref", &reference), ("proxy-protocol", "v2")])).await;
    let path = format!("listeners/{}", id(&listener(&world, 80)));
    let headers = json!({"X-Forwarded-For": "true", "X-Forwarded-Port": "true", "X-Forwarded-Proto": "true"});
    edit(&world.cloud, &path, &json!({"listener": {"insert_headers": headers}}));
    world.annotate_to_rest("web", "connection-limit", Some("100")).await;
    let warnings = world.warnings("web");
    assert!(warnings[0].contains("LoadBalancerHeadersNotInserted"), "{warnings:?}");
    assert!(warnings[0].contains("insert X-Forwarded-For, X-Forwarded-Port, which"), "{warnings:?}");
    let kept = json!({"X-Forwarded-Port": "true", "X-Forwarded-Proto": "true"});
    assert_eq!(listener(&world, 80)["insert_headers"], kept);
}

/// A batch that fails inside Octavia is noticed although the load balancer is ACTIVE again.
#[tokio::test(start_paused = true)]
async fn a_batch_that_fails_inside_octavia_is_sent_again() {
    let world = served().await;
    let fault = openstack_ccm_openstack_sim::WorkerFault::fail(OperationKind::MemberBatch).times(1);
    world.cloud.faults().add_worker(fault);
    world.add_node("node-3", "v1.36.0");
    world.quiet_unplanned().await;
    assert_eq!(world.take_cloud_writes(), ["PUT pools/ID/members"; 2]);
    let pool = id(&only_pool(&world));
    assert!(world.cloud.members(&pool).iter().all(|member| member["provisioning_status"] == "ACTIVE"));
}
