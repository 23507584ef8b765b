//! Changes of a Service that is served.

use openstack_ccm_core::service::{ExternalTrafficPolicy, Protocol, Service, SessionAffinity};
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::cluster::{Cluster, NAME, annotate, port, web};
use crate::line::{Exchange, Fault};

/// Names of the writes since the last time.
fn writes(cloud: &Cloud) -> Vec<String> {
    cloud.line.take_log().iter().filter(|call| call.is_write()).map(Exchange::name).collect()
}

fn monitor_ports(cloud: &Cloud) -> Vec<Value> {
    cloud.members(NAME).iter().map(|member| member["monitor_port"].clone()).collect()
}

/// A cluster with the base Service.
async fn served() -> (Cloud, Cluster, Service) {
    served_with(|_| {}).await
}

async fn served_with(shape: impl FnOnce(&mut Service)) -> (Cloud, Cluster, Service) {
    let cloud = Cloud::new();
    let mut cluster = Cluster::new(&cloud);
    let mut service = web();
    shape(&mut service);
    cluster.settle(&mut service).await.expect("served");
    cluster.take_reasons();
    cloud.line.take_log();
    (cloud, cluster, service)
}

#[tokio::test(start_paused = true)]
async fn e1_a_new_port_is_complete_before_it_listens() {
    let (cloud, mut cluster, mut service) = served().await;
    service.ports.push(port(Protocol::Tcp, 443, 30443));
    annotate(&mut service, "enable-health-monitor", "false");
    cluster.settle(&mut service).await.expect("served");
    assert_eq!(writes(&cloud), ["POST pools", "PUT pools/ID/members", "POST listeners"]);
    assert_eq!(cloud.listener_ports(&cloud.load_balancer_id(NAME)), [80, 443]);
}

#[tokio::test(start_paused = true)]
async fn e2_a_port_that_goes_takes_its_pool_along() {
    let (cloud, mut cluster, mut service) = served_with(|service| {
        service.ports.push(port(Protocol::Tcp, 443, 30443));
    })
    .await;
    service.ports.remove(0);
    cluster.settle(&mut service).await.expect("served");
    assert_eq!(writes(&cloud), ["DELETE listeners/ID", "DELETE pools/ID"]);
    let listeners = cloud.listeners();
    assert_eq!(listeners.len(), 1);
    assert_eq!(listeners[0]["name"], json!(format!("listener_1_{NAME}")), "names keep their index");
    assert_eq!(cloud.pools().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn e3_a_new_node_port_is_one_batch() {
    let (cloud, mut cluster, mut service) = served().await;
    service.ports[0].node_port = Some(30081);
    cluster.settle(&mut service).await.expect("served");
    assert_eq!(writes(&cloud), ["PUT pools/ID/members"]);
    assert!(cloud.members(NAME).iter().all(|member| member["protocol_port"] == 30081));
    assert_eq!(cloud.members(NAME).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn e4_a_port_that_moves_is_there_before_the_old_one_goes() {
    let (cloud, mut cluster, mut service) = served().await;
    service.ports[0].port = 8080;
    cluster.settle(&mut service).await.expect("served");
    let writes = writes(&cloud);
    let position = |name: &str| writes.iter().position(|write| write == name);
    assert!(position("POST listeners") < position("DELETE listeners/ID"), "{writes:?}");
    assert_eq!(cloud.listener_ports(&cloud.load_balancer_id(NAME)), [8080]);
    assert_eq!(cloud.pools().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn e5_all_changes_of_a_listener_are_one_request() {
    let (cloud, mut cluster, mut service) = served().await;
    annotate(&mut service, "connection-limit", "100");
    annotate(&mut service, "timeout-client-data", "60000");
    service.source_ranges = vec!["10.0.0.0/8".into()];
    cluster.settle(&mut service).await.expect("served");
    let log: Vec<_> = cloud.line.take_log().into_iter().filter(Exchange::is_write).collect();
    assert_eq!(log.len(), 1);
    let expected =
        json!({"connection_limit": 100, "timeout_client_data": 60000, "allowed_cidrs": ["10.0.0.0/8"]});
    assert_eq!(log[0].body["listener"], expected);
}

#[tokio::test(start_paused = true)]
async fn e6_a_method_that_octavia_refuses_does_not_stop_the_service() {
    let (cloud, mut cluster, mut service) = served().await;
    annotate(&mut service, "lb-method", "LEAST_CONNECTIONS");
    cluster.settle(&mut service).await.expect("served");
    assert_eq!(cloud.pools()[0]["lb_algorithm"], "LEAST_CONNECTIONS");
    let body = r#"{"faultcode":"Client","faultstring":"Invalid input for field/attribute lb_algorithm","debuginfo":null}"#;
    cloud.line.fail(Fault::answer("PUT pools", 400, body));
    annotate(&mut service, "lb-method", "SOURCE_IP");
    cluster.settle(&mut service).await.expect("served nevertheless");
    assert!(cluster.take_reasons().contains(&"LoadBalancerLbMethodUnknown"));
}

#[tokio::test(start_paused = true)]
async fn e7_proxy_protocol_is_switched_without_a_gap() {
    let (cloud, mut cluster, mut service) =
        served_with(|service| annotate(service, "enable-health-monitor", "true")).await;
    for (value, protocol) in [("v2", "PROXYV2"), ("true", "PROXY"), ("false", "TCP")] {
        annotate(&mut service, "proxy-protocol", value);
        cluster.settle(&mut service).await.expect("served");
        let expected = [
            "POST pools",
            "PUT pools/ID/members",
            "POST healthmonitors",
            "PUT listeners/ID",
            "DELETE pools/ID",
        ];
        assert_eq!(writes(&cloud), expected);
        let pools = cloud.pools();
        assert_eq!(pools.len(), 1);
        assert_eq!(pools[0]["protocol"], protocol);
        assert_eq!(cloud.listeners()[0]["default_pool_id"], pools[0]["id"]);
        assert_eq!(cloud.member_names(NAME), ["n1", "n2"]);
    }
}

#[tokio::test(start_paused = true)]
async fn e8_x_forwarded_for_replaces_the_listener() {
    let (cloud, mut cluster, mut service) = served().await;
    annotate(&mut service, "x-forwarded-for", "true");
    cluster.settle(&mut service).await.expect("served");
    let listeners = cloud.listeners();
    assert_eq!(listeners.len(), 1);
    assert_eq!(listeners[0]["protocol"], "HTTP");
    assert_eq!(listeners[0]["insert_headers"], json!({"X-Forwarded-For": "true"}));
    assert_eq!(cloud.pools().len(), 1);
    assert!(cluster.take_reasons().contains(&"LoadBalancerListenerReplaced"));
}

#[tokio::test(start_paused = true)]
async fn e9_another_certificate_is_one_change_and_checked_once() {
    let cloud = Cloud::new();
    let (first, second) = (cloud.new_certificate("a"), cloud.new_certificate("b"));
    let mut cluster = Cluster::new(&cloud);
    let mut service = web();
    annotate(&mut service, "default-tls-container-ref", &first);
    cluster.settle(&mut service).await.expect("served");
    let checks = |log: &[Exchange]| log.iter().filter(|call| call.target.contains("/v1/")).count();
    assert_eq!(checks(&cloud.line.take_log()), 1, "once for the creation");
    cluster.settle(&mut service).await.expect("served");
    assert_eq!(checks(&cloud.line.take_log()), 0, "not while nothing changes");

    annotate(&mut service, "default-tls-container-ref", &second);
    cluster.settle(&mut service).await.expect("served");
    let writes: Vec<_> = cloud.line.take_log().into_iter().filter(Exchange::is_write).collect();
    assert_eq!(writes.len(), 1);
    assert_eq!(writes[0].body["listener"], json!({"default_tls_container_ref": second}));

    annotate(&mut service, "x-forwarded-for", "true");
    cluster.settle(&mut service).await.expect("served");
    let writes: Vec<_> = cloud.line.take_log().into_iter().filter(Exchange::is_write).collect();
    assert_eq!(writes.len(), 1);
    assert_eq!(writes[0].body["listener"], json!({"insert_headers": {"X-Forwarded-For": "true"}}));
}

#[tokio::test(start_paused = true)]
async fn e12_a_certificate_that_is_not_there_is_refused_before_anything_is_made() {
    let cloud = Cloud::new();
    let mut service = web();
    let missing = "http://barbican.example/v1/containers/00000000-0000-4000-8000-000000000000";
    annotate(&mut service, "default-tls-container-ref", missing);
    let failure = Cluster::new(&cloud).settle(&mut service).await.expect_err("refused");
    assert!(failure.message.contains("default-tls-container-ref"), "{failure}");
    assert!(cloud.load_balancers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn e13_an_administrators_limit_is_reset_and_his_header_kept() {
    let (cloud, mut cluster, mut service) =
        served_with(|service| annotate(service, "x-forwarded-for", "true")).await;
    let headers = json!({"X-Forwarded-For": "true", "X-Forwarded-Port": "true"});
    cloud.update_listener(&json!({"connection_limit": 5, "insert_headers": headers}));
    cluster.settle(&mut service).await.expect("served");
    let listeners = cloud.listeners();
    assert_eq!((&listeners[0]["connection_limit"], &listeners[0]["insert_headers"]), (&json!(-1), &headers));
}

#[tokio::test(start_paused = true)]
async fn e14_an_untagged_listener_of_an_administrator_stays() {
    let (cloud, mut cluster, mut service) = served().await;
    let id = cloud.load_balancer_id(NAME);
    cloud.new_listener(&id, "by hand", 9999, json!({}));
    service.ports.push(port(Protocol::Tcp, 443, 30443));
    cluster.settle(&mut service).await.expect("served");
    assert_eq!(cloud.listener_ports(&id), [80, 443, 9999]);
    cluster.release(&mut service).await.expect("gone");
    assert_eq!(cloud.listener_ports(&id), [9999], "and keeps its load balancer");
}

#[tokio::test(start_paused = true)]
async fn e16_session_affinity_follows_the_service() {
    let (cloud, mut cluster, mut service) = served().await;
    service.session_affinity = SessionAffinity::ClientIp { timeout_seconds: None };
    cluster.settle(&mut service).await.expect("served");
    assert_eq!(cloud.pools()[0]["session_persistence"]["type"], "SOURCE_IP");
    service.session_affinity = SessionAffinity::None;
    cluster.settle(&mut service).await.expect("served");
    assert_eq!(cloud.pools()[0]["session_persistence"], Value::Null);
    assert_eq!(writes(&cloud), ["PUT pools/ID", "PUT pools/ID"]);
}

#[tokio::test(start_paused = true)]
async fn e17_proxy_protocol_leaves_udp_alone() {
    let (cloud, ..) = served_with(|service| {
        annotate(service, "proxy-protocol", "v2");
        service.ports.push(port(Protocol::Udp, 53, 30053));
    })
    .await;
    let mut protocols: Vec<_> = cloud.pools().iter().map(|pool| pool["protocol"].clone()).collect();
    protocols.sort_by_key(Value::to_string);
    assert_eq!(protocols, ["PROXYV2", "UDP"]);
}

#[tokio::test(start_paused = true)]
async fn e19_a_member_removed_by_hand_comes_back() {
    let (cloud, mut cluster, mut service) = served().await;
    cloud.remove_members();
    cluster.settle(&mut service).await.expect("served");
    assert_eq!(cloud.member_names(NAME), ["n1", "n2"]);
}

#[tokio::test(start_paused = true)]
async fn m1_m4_monitors_are_of_the_type_of_their_port() {
    let (cloud, ..) = served_with(|service| {
        annotate(service, "enable-health-monitor", "true");
        service.ports.push(port(Protocol::Udp, 53, 30053));
    })
    .await;
    let mut monitors = cloud.monitors();
    monitors.sort_by_key(|monitor| monitor["name"].to_string());
    let shown: Vec<_> = monitors
        .iter()
        .map(|monitor| {
            json!([
                monitor["name"],
                monitor["type"],
                monitor["delay"],
                monitor["timeout"],
                monitor["max_retries"],
                monitor["max_retries_down"]
            ])
        })
        .collect();
    let name = |index: usize| format!("monitor_{index}_{NAME}");
    assert_eq!(shown, [json!([name(0), "TCP", 5, 3, 1, 3]), json!([name(1), "UDP-CONNECT", 5, 3, 1, 3])]);
}

#[tokio::test(start_paused = true)]
async fn m2_m3_monitors_follow_the_annotations() {
    let (cloud, mut cluster, mut service) = served().await;
    annotate(&mut service, "enable-health-monitor", "true");
    annotate(&mut service, "health-monitor-delay", "10");
    cluster.settle(&mut service).await.expect("served");
    annotate(&mut service, "health-monitor-delay", "20");
    cluster.settle(&mut service).await.expect("served");
    assert_eq!(cloud.monitors()[0]["delay"], 20);
    annotate(&mut service, "enable-health-monitor", "false");
    cluster.settle(&mut service).await.expect("served");
    assert_eq!(writes(&cloud), ["POST healthmonitors", "PUT healthmonitors/ID", "DELETE healthmonitors/ID"]);
    assert!(cloud.monitors().is_empty());
}

#[tokio::test(start_paused = true)]
async fn m5_m8_policy_local_asks_the_service_proxy() {
    let (cloud, mut cluster, mut service) =
        served_with(|service| annotate(service, "enable-health-monitor", "true")).await;
    service.external_traffic_policy = ExternalTrafficPolicy::Local;
    service.health_check_node_port = Some(32000);
    cluster.settle(&mut service).await.expect("served");
    let monitors = cloud.monitors();
    assert_eq!(monitors.len(), 1);
    assert_eq!(
        json!([
            monitors[0]["type"],
            monitors[0]["url_path"],
            monitors[0]["http_method"],
            monitors[0]["expected_codes"]
        ]),
        json!(["HTTP", "/healthz", "GET", "200"])
    );
    assert_eq!(monitor_ports(&cloud), [json!(32000), json!(32000)]);

    service.external_traffic_policy = ExternalTrafficPolicy::Cluster;
    service.health_check_node_port = None;
    cluster.settle(&mut service).await.expect("served");
    assert_eq!(cloud.monitors()[0]["type"], "TCP");
    assert_eq!(monitor_ports(&cloud), [Value::Null, Value::Null]);
}

#[tokio::test(start_paused = true)]
async fn s1_s2_source_ranges_are_normalised_and_the_field_wins() {
    let (cloud, mut cluster, mut service) = served().await;
    let cidrs = || {
        let mut cidrs: Vec<_> = cloud.listeners()[0]["allowed_cidrs"].as_array().unwrap().clone();
        cidrs.sort_by_key(Value::to_string);
        cidrs
    };
    annotate(
        &mut service,
        "service.beta.kubernetes.io/load-balancer-source-ranges",
        "10.0.0.0/8, 192.0.2.0/24",
    );
    cluster.settle(&mut service).await.expect("served");
    assert_eq!(cidrs(), ["10.0.0.0/8", "192.0.2.0/24"]);
    service.source_ranges = vec!["192.168.32.1/24".into(), "10.0.0.0/8".into()];
    cluster.settle(&mut service).await.expect("served");
    assert_eq!(cidrs(), ["10.0.0.0/8", "192.168.32.0/24"]);
}

#[tokio::test(start_paused = true)]
async fn s3_a_range_that_is_none_is_told_and_nothing_changes() {
    let (cloud, mut cluster, mut service) = served().await;
    annotate(&mut service, "service.beta.kubernetes.io/load-balancer-source-ranges", "foo");
    let ready = cluster.settle(&mut service).await.expect("served on");
    let failure = ready.unfinished.expect("what is wrong is told");
    assert!(failure.message.contains("foo"), "{failure}");
    assert_eq!(writes(&cloud), [""; 0]);
}
