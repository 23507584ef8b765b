//! Changes of a Service that is served.

use openstack_ccm_core::service::{ExternalTrafficPolicy, Protocol, Service};
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
