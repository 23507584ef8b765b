//! The annotations that OCCM does not have: what each does, live, and what is said where it cannot.

use rstest::rstest;
use serde_json::{Value, json};

use crate::contract::setup::{annotated, id, load_balancer, only_floating_ip};
use crate::support::{ANNOTATION, World, lb_name, service};

/// A Service with two TCP ports and a UDP port.
fn two_ports(annotations: &[(&str, &str)]) -> Value {
    let mut service = annotated(annotations);
    service["spec"]["ports"] = json!([
        {"name": "http", "port": 80, "protocol": "TCP"},
        {"name": "https", "port": 443, "protocol": "TCP"},
        {"name": "quic", "port": 443, "protocol": "UDP"},
    ]);
    service
}

/// Listener and pool protocol of each port, sorted.
fn protocols(world: &World) -> Vec<String> {
    let pools = world.cloud.pools();
    let protocol = |listener: &Value| {
        let pool = pools.iter().find(|pool| pool["id"] == listener["default_pool_id"]).unwrap();
        format!("{} {} {}", listener["protocol_port"], listener["protocol"], pool["protocol"])
            .replace('"', "")
    };
    let mut found: Vec<String> = world.cloud.listeners().iter().map(protocol).collect();
    found.sort();
    found
}

fn set(world: &World, key: &str, value: Option<&str>) {
    world.annotate("web", &format!("{ANNOTATION}{key}"), value);
}

#[tokio::test(start_paused = true)]
async fn ports_speak_the_proxy_protocol_one_by_one() {
    let world = World::serving(&two_ports(&[("proxy-protocol", "v2:443,v1:80")])).await;
    assert_eq!(protocols(&world), ["443 TCP PROXYV2", "443 UDP UDP", "80 TCP PROXY"]);
    assert_eq!(world.ingress("web"), ["198.19.0.11(Proxy)"]);
    set(&world, "proxy-protocol", Some("v2:443"));
    world.quiet().await;
    assert_eq!(protocols(&world), ["443 TCP PROXYV2", "443 UDP UDP", "80 TCP TCP"]);
    assert_eq!(
        world.ingress("web"),
        ["198.19.0.11(Proxy)"],
        "one port that needs it decides for the address"
    );
    set(&world, "proxy-protocol", None);
    world.until_served_at("web", "198.19.0.11(VIP)").await;
    assert_eq!(protocols(&world), ["443 TCP TCP", "443 UDP UDP", "80 TCP TCP"]);
    assert!(world.warnings("web").is_empty(), "{:?}", world.warnings("web"));
}

#[tokio::test(start_paused = true)]
async fn a_list_of_proxy_ports_leaves_the_header_to_the_others() {
    let annotations = [("proxy-protocol", "v1:443"), ("x-forwarded-for", "true")];
    let world = World::serving(&two_ports(&annotations)).await;
    assert_eq!(protocols(&world), ["443 TCP PROXY", "443 UDP UDP", "80 HTTP HTTP"]);
}

#[rstest]
#[case::no_such_port("v2:8080", "has the port 8080, which is not in spec.ports")]
#[case::twice("v2:80,v1:80", "lists port 80 twice")]
#[case::version("v3:80", "has the version \"v3\"")]
#[tokio::test(start_paused = true)]
async fn a_list_of_proxy_ports_that_is_wrong_is_named(#[case] value: &str, #[case] problem: &str) {
    let world = World::serving(&two_ports(&[])).await;
    set(&world, "proxy-protocol", Some(value));
    world.until_warned_at_rest("web", problem).await;
    assert!(world.warnings("web").len() == 1 && world.take_cloud_writes().is_empty());
}

/// The headers that the listener of a TCP port inserts.
fn headers(world: &World, port: u16) -> Vec<String> {
    let listeners = world.cloud.listeners();
    let of_port = |one: &&Value| one["protocol_port"] == port && one["protocol"] != "UDP";
    let inserted = listeners.iter().find(of_port).unwrap()["insert_headers"].as_object().unwrap().clone();
    inserted.into_iter().filter(|(_, value)| value == "true").map(|(name, _)| name).collect()
}

/// Headers come and go on a listener that speaks HTTP, without an interruption; the last one takes HTTP along.
#[tokio::test(start_paused = true)]
async fn headers_come_and_go() {
    let world = World::serving(&annotated(&[("x-forwarded-for", "true")])).await;
    for (key, now) in [
        ("x-forwarded-port", &["X-Forwarded-For", "X-Forwarded-Port"][..]),
        ("x-forwarded-proto", &["X-Forwarded-For", "X-Forwarded-Port", "X-Forwarded-Proto"]),
    ] {
        set(&world, key, Some("true"));
        world.quiet().await;
        assert_eq!(headers(&world, 80), now);
        assert_eq!(world.take_cloud_writes(), ["PUT listeners/ID"]);
    }
    set(&world, "x-forwarded-port", None);
    set(&world, "x-forwarded-for", Some("false"));
    world.quiet().await;
    assert_eq!(headers(&world, 80), ["X-Forwarded-Proto"]);
    assert_eq!(protocols(&world), ["80 HTTP HTTP"]);
    assert!(world.warnings("web").is_empty(), "{:?}", world.warnings("web"));
    set(&world, "x-forwarded-proto", None);
    world.quiet().await;
    assert_eq!(protocols(&world), ["80 TCP TCP"]);
    assert_eq!(world.ingress("web"), ["198.19.0.11(VIP)"]);
}

/// A header that somebody added by hand stays where the Service never asked for it, and goes with a wish that it had.
#[rstest]
#[case::by_hand(false, &["X-Forwarded-For", "X-Forwarded-Port"])]
#[case::by_annotation(true, &["X-Forwarded-For"])]
#[tokio::test(start_paused = true)]
async fn a_header_goes_with_the_wish_for_it(#[case] asked: bool, #[case] left: &[&str]) {
    let mut world = World::serving(&annotated(&[("x-forwarded-for", "true")])).await;
    if asked {
        set(&world, "x-forwarded-port", Some("true"));
    } else {
        let path = format!("/v2.0/lbaas/listeners/{}", id(&world.cloud.listeners()[0]));
        let headers = json!({"X-Forwarded-For": "true", "X-Forwarded-Port": "true"});
        let body = json!({"listener": {"insert_headers": headers}});
        world.cloud.user().change("load-balancer", &path, &body);
        world.cloud.settle();
        // Not understood, and so no wish.
        set(&world, "x-forwarded-port", Some("yes"));
    }
    world.quiet().await;
    world.restart().await;
    set(&world, "x-forwarded-port", None);
    set(&world, "connection-limit", Some("100"));
    world.quiet().await;
    assert_eq!(headers(&world, 80), left);
}

/// The PROXY protocol carries address and port, not what the client speaks.
#[tokio::test(start_paused = true)]
async fn headers_say_what_the_client_speaks_beside_the_proxy_protocol() {
    let world = World::serving(&two_ports(&[("proxy-protocol", "v2"), ("x-forwarded-proto", "true")])).await;
    assert_eq!(protocols(&world), ["443 HTTP PROXYV2", "443 UDP UDP", "80 HTTP PROXYV2"]);
    assert_eq!(headers(&world, 443), ["X-Forwarded-Proto"]);
    assert!(world.warnings("web").is_empty(), "{:?}", world.warnings("web"));
}

/// The only health monitor of a TCP pool.
fn monitors(world: &World) -> Vec<String> {
    let one = |monitor: &Value| {
        format!(
            "{} {} {} {}",
            monitor["type"], monitor["http_method"], monitor["url_path"], monitor["expected_codes"]
        )
        .replace('"', "")
    };
    let mut found: Vec<String> = world.cloud.health_monitors().iter().map(one).collect();
    found.sort();
    found
}

#[tokio::test(start_paused = true)]
async fn members_are_checked_as_the_annotations_say() {
    let world = World::serving(&annotated(&[("enable-health-monitor", "true")])).await;
    assert_eq!(monitors(&world), ["TCP null null null"]);
    set(&world, "health-monitor-type", Some("HTTP"));
    world.quiet().await;
    assert_eq!(monitors(&world), ["HTTP GET / 200"]);
    world.take_calls();
    let request = json!({"metadata": {"annotations": {
        format!("{ANNOTATION}health-monitor-path"): "/ready",
        format!("{ANNOTATION}health-monitor-method"): "HEAD",
        format!("{ANNOTATION}health-monitor-expected-codes"): "200-299",
    }}});
    world.patch_to_rest("web", &request).await;
    assert_eq!(monitors(&world), ["HTTP HEAD /ready 200-299"]);
    assert_eq!(world.take_cloud_writes(), ["PUT healthmonitors/ID"], "the request changes live");
    for kind in ["HTTPS", "PING", "TLS-HELLO"] {
        set(&world, "health-monitor-type", Some(kind));
        world.quiet().await;
        assert!(monitors(&world)[0].starts_with(kind), "{:?}", monitors(&world));
    }
    set(&world, "health-monitor-type", None);
    world.quiet().await;
    assert_eq!(monitors(&world), ["TCP null null null"]);
}

#[tokio::test(start_paused = true)]
async fn a_chosen_check_replaces_that_of_the_health_check_node_port_on_tcp_only() {
    let mut object = two_ports(&[
        ("enable-health-monitor", "true"),
        ("health-monitor-type", "HTTP"),
        ("health-monitor-path", "/up"),
    ]);
    object["spec"]["externalTrafficPolicy"] = json!("Local");
    object["spec"]["healthCheckNodePort"] = json!(31000);
    let world = World::serving(&object).await;
    assert_eq!(monitors(&world), ["HTTP GET /healthz 200", "HTTP GET /up 200", "HTTP GET /up 200"]);
}

#[rstest]
#[case::no_monitor(&[("health-monitor-type", "HTTP")], "the pools have no health monitor")]
#[case::no_request(&[("enable-health-monitor", "true"), ("health-monitor-path", "/up")], "set loadbalancer.openstack.org/health-monitor-type")]
#[case::no_tls(&[("tls-versions", "TLSv1.3")], "the load balancer does not terminate TLS")]
#[tokio::test(start_paused = true)]
async fn an_annotation_without_effect_is_named(#[case] annotations: &[(&str, &str)], #[case] why: &str) {
    let world = World::serving(&annotated(annotations)).await;
    world.assert_warned_once("web", why);
}

/// A certificate in Barbican.
pub(crate) fn container(world: &World, name: &str) -> String {
    let body = json!({"name": name, "type": "certificate", "secret_refs": []});
    let answer = world.cloud.user().make("key-manager", "/v1/containers", &body);
    answer["container_ref"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn tls_looks_as_the_annotations_say_and_goes_back_to_octavias_defaults() {
    let world = World::started().await;
    let (first, second) = (container(&world, "one"), container(&world, "two"));
    world.serve(&annotated(&[("default-tls-container-ref", &first)])).await;
    let plain = world.cloud.listeners()[0].clone();
    let options = json!({"metadata": {"annotations": {
        format!("{ANNOTATION}sni-container-refs"): second,
        format!("{ANNOTATION}tls-versions"): "TLSv1.3",
        format!("{ANNOTATION}tls-ciphers"): "TLS_AES_256_GCM_SHA384",
        format!("{ANNOTATION}alpn-protocols"): "http/1.1",
    }}});
    world.patch_to_rest("web", &options).await;
    assert_eq!(world.take_cloud_writes(), ["PUT listeners/ID"], "one live change");
    let listener = world.cloud.listeners()[0].clone();
    assert_eq!(listener["sni_container_refs"], json!([second]));
    assert_eq!(listener["tls_versions"], json!(["TLSv1.3"]));
    assert_eq!(listener["tls_ciphers"], "TLS_AES_256_GCM_SHA384");
    assert_eq!(listener["alpn_protocols"], json!(["http/1.1"]));
    let none = json!({"metadata": {"annotations": {
        format!("{ANNOTATION}sni-container-refs"): null,
        format!("{ANNOTATION}tls-versions"): null,
        format!("{ANNOTATION}tls-ciphers"): null,
        format!("{ANNOTATION}alpn-protocols"): null,
    }}});
    world.patch_to_rest("web", &none).await;
    let back = world.cloud.listeners()[0].clone();
    assert_eq!(back["sni_container_refs"], json!([]));
    assert!(
        back["tls_versions"] != json!(["TLSv1.3"]) && back["tls_ciphers"] != "TLS_AES_256_GCM_SHA384",
        "{back}"
    );
    assert_eq!(back["tags"], plain["tags"]);
    world.take_calls();
    world.annotate_to_rest("web", "example.org/note", Some("x")).await;
    assert!(world.take_cloud_writes().is_empty());
}

/// What is behind a reference may be renewed where the store is not Barbican. Nobody knows that but the user.
#[tokio::test(start_paused = true)]
async fn another_revision_sends_the_certificate_again() {
    let mut world = World::started().await;
    let reference = container(&world, "one");
    world.serve(&annotated(&[("default-tls-container-ref", &reference), ("tls-revision", "1")])).await;
    world.restart_to_rest().await;
    assert!(world.take_cloud_writes().is_empty());
    set(&world, "tls-revision", Some("2026-11-21"));
    world.quiet().await;
    assert_eq!(world.take_cloud_writes(), ["PUT listeners/ID"]);
    let sent = world
        .cloud
        .log()
        .calls()
        .into_iter()
        .rfind(|call| call.path.contains("/listeners/") && call.is_write())
        .unwrap();
    assert_eq!(sent.json()["listener"]["default_tls_container_ref"], json!(reference));
    let tags = |world: &World| {
        let listener = world.cloud.listeners()[0].clone();
        let tags = listener["tags"].as_array().unwrap().clone();
        tags.iter().filter_map(Value::as_str).filter(|tag| tag.contains("revision")).count()
    };
    assert_eq!(tags(&world), 1);
    set(&world, "tls-revision", None);
    world.quiet().await;
    assert_eq!((tags(&world), world.take_cloud_writes().len()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn what_an_administrator_set_on_a_tls_listener_stays() {
    let world = World::started().await;
    let reference = container(&world, "one");
    world.serve(&annotated(&[("default-tls-container-ref", &reference)])).await;
    let listener = id(&world.cloud.listeners()[0]);
    let body = json!({"listener": {"tls_versions": ["TLSv1.3"], "alpn_protocols": ["h2"]}});
    let path = format!("/v2.0/lbaas/listeners/{listener}");
    world.cloud.user().change("load-balancer", &path, &body);
    world.cloud.settle();
    set(&world, "connection-limit", Some("100"));
    world.quiet().await;
    let listener = &world.cloud.listeners()[0];
    assert_eq!(
        (&listener["tls_versions"], &listener["alpn_protocols"]),
        (&json!(["TLSv1.3"]), &json!(["h2"]))
    );
    assert_eq!(listener["connection_limit"], 100);
}

#[tokio::test(start_paused = true)]
async fn a_certificate_for_sni_that_does_not_exist_is_named() {
    let world = World::started().await;
    let reference = container(&world, "one");
    world.serve(&annotated(&[("default-tls-container-ref", &reference)])).await;
    let state = world.cloud_state();
    set(
        &world,
        "sni-container-refs",
        Some("https://barbican.example.org/v1/containers/11111111-0000-4000-8000-000000000000"),
    );
    world.until_warned_at_rest("web", "11111111-0000-4000-8000-000000000000 does not exist").await;
    assert_eq!(world.cloud_state(), state);
    set(&world, "sni-container-refs", Some(&container(&world, "two")));
    world.until("it is there", |world| world.cloud.listeners()[0]["sni_container_refs"] != json!([])).await;
}

#[tokio::test(start_paused = true)]
async fn options_of_tls_that_octavia_does_not_have_are_named() {
    let world = World::started().await;
    world.cloud.set_octavia_api(14);
    let reference = container(&world, "one");
    world.serve(&annotated(&[("default-tls-container-ref", &reference), ("tls-versions", "TLSv1.3")])).await;
    world.assert_warned_once("web", "requires Octavia API 2.17");
}

#[tokio::test(start_paused = true)]
async fn a_reclaim_policy_that_is_not_known_is_named_while_it_can_be_mended_and_keeps_in_the_end() {
    let world = World::serving(&service("web", json!({}))).await;
    set(&world, "reclaim-policy", Some("Recycle"));
    world.until_warned("web", "\"Recycle\" is not a valid value; use \"delete\", \"retain\"").await;
    world.release("web").await;
    assert!(world.cloud.load_balancer(&lb_name("web")).is_some());
    assert!(!only_floating_ip(&world)["port_id"].is_null());
}

/// Defect: 58, better: an event names what needs a new load balancer.
#[tokio::test(start_paused = true)]
async fn settings_that_come_too_late_are_named_and_change_nothing() {
    let world = World::started().await;
    let (flavor, other) = (world.cloud.add_octavia_flavor("big"), world.cloud.add_octavia_flavor("small"));
    world.serve(&annotated(&[("flavor-id", &flavor)])).await;
    assert!(world.warnings("web").is_empty());
    set(&world, "flavor-id", Some(&other));
    world.until_warned_at_rest("web", "LoadBalancerNeedsRecreation").await;
    let warnings = world.warnings("web");
    assert!(
        warnings.len() == 1
            && warnings[0].contains(&format!("asks for {other}, the load balancer has {flavor}")),
        "{warnings:?}"
    );
    assert!(world.take_cloud_writes().is_empty());
    assert_eq!(load_balancer(&world)["flavor_id"], json!(flavor));
}
