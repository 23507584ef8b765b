//! What nodes do with packets: service proxies as they were recorded, NetworkPolicies as Kubernetes defines them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use openstack_ccm_kube_sim::{
    ApiVersion, Departure, Destination, READS_HEADER, Reading, Sender, Sim, Stop, Transport,
};
use rstest::rstest;
use serde_json::{Value, json};

const LOAD_BALANCER: &str = "203.0.113.10";
const NODES: [&str; 2] = ["10.0.0.11", "10.0.0.12"];

/// Two nodes; a client on the first, the pod of a Service on the second.
fn cluster(kubelet: &str) -> Sim {
    let sim = Sim::new(ApiVersion::V1_36);
    for (place, address) in NODES.iter().enumerate() {
        let name = format!("node-{}", place + 1);
        sim.create(&json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})).unwrap();
        let status = json!({"addresses": [{"type": "InternalIP", "address": address}], "nodeInfo": {"kubeletVersion": kubelet}});
        sim.patch_status("nodes", "", &name, &json!({"status": status})).unwrap();
    }
    pod(&sim, "client", "node-1", "10.244.1.2");
    pod(&sim, "web", "node-2", "10.244.2.7");
    let ports = json!([{"name": "http", "port": 80, "nodePort": 30080, "protocol": "TCP"}]);
    sim.create(
        &json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"},
        "spec": {"type": "LoadBalancer", "ports": ports}}),
    )
    .unwrap();
    sim.create(&json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "web", "labels": {"kubernetes.io/service-name": "web"}},
        "endpoints": [{"addresses": ["10.244.2.7"], "nodeName": "node-2", "conditions": {"ready": true}}],
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}]}))
        .unwrap();
    sim
}

fn pod(sim: &Sim, name: &str, node: &str, address: &str) {
    let containers = json!([{"name": "one", "ports": [{"name": "http", "containerPort": 8080}]}]);
    sim.create(
        &json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"nodeName": node, "containers": containers}}),
    )
    .unwrap();
    sim.patch_status("pods", "default", name, &json!({"status": {"podIP": address}})).unwrap();
}

fn publish(sim: &Sim, entry: &Value) {
    let status = json!({"status": {"loadBalancer": {"ingress": [entry]}}});
    sim.patch_status("services", "default", "web", &status).unwrap();
}

fn to(address: &str, port: u16) -> Destination {
    Destination { address: address.parse().unwrap(), port, transport: Transport::Tcp }
}

fn client() -> Sender {
    Sender::Pod("default".to_owned(), "client".to_owned())
}

/// Which pods a node port leads to, or where it ends.
fn at_node_port(sim: &Sim, node: usize, port: u16) -> Vec<Result<String, Stop>> {
    let reached = sim.data_path().arrive(to(NODES[node], port), "10.0.0.50".parse().unwrap());
    reached.into_iter().map(|one| one.map(|reached| reached.pod)).collect()
}

#[rstest]
#[case::vip("v1.36.0", json!({"ip": LOAD_BALANCER, "ipMode": "VIP"}), true)]
#[case::no_mode("v1.36.0", json!({"ip": LOAD_BALANCER}), true)]
#[case::proxy("v1.36.0", json!({"ip": LOAD_BALANCER, "ipMode": "Proxy"}), false)]
#[case::proxy_on_an_old_node("v1.29.9", json!({"ip": LOAD_BALANCER, "ipMode": "Proxy"}), true)]
#[case::hostname("v1.28.0", json!({"hostname": "203.0.113.10.example.org"}), false)]
#[case::other_address("v1.36.0", json!({"ip": "203.0.113.11"}), false)]
fn a_node_short_circuits_what_is_published_as_its_own(
    #[case] kubelet: &str,
    #[case] entry: Value,
    #[case] around: bool,
) {
    let sim = cluster(kubelet);
    publish(&sim, &entry);
    let departure = sim.data_path().leave(&client(), to(LOAD_BALANCER, 80)).unwrap();
    assert_eq!(
        matches!(&departure, Departure::Around(_, reached) if reached[0].is_ok()),
        around,
        "{departure:?}"
    );
    if !around {
        // A pod leaves the cluster with the address of its node.
        assert_eq!(departure, Departure::Leaves(NODES[0].parse().unwrap()));
    }
    let other = sim.data_path().leave(&client(), to(LOAD_BALANCER, 443)).unwrap();
    assert!(matches!(other, Departure::Leaves(_)), "another port is nobody's");
}

/// kube-proxy with these words, and this configuration where they name the file.
fn kube_proxy(sim: &Sim, image: &str, words: &[&str], configuration: &str) {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kube-proxy", "namespace": "kube-system"},
        "data": {"config.conf": configuration}});
    sim.create(&map).unwrap();
    for node in ["node-1", "node-2"] {
        sim.create(&json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("kube-proxy-{node}"), "namespace": "kube-system", "labels": {"k8s-app": "kube-proxy"}},
            "spec": {"nodeName": node, "volumes": [{"name": "kube-proxy", "configMap": {"name": "kube-proxy"}}],
                "containers": [{"name": "kube-proxy", "image": image, "command": words,
                    "volumeMounts": [{"name": "kube-proxy", "mountPath": "/var/lib/kube-proxy"}]}]}}))
            .unwrap();
    }
}

const WITH_FILE: &[&str] = &["kube-proxy", "--config=/var/lib/kube-proxy/config.conf"];
const GATE_OFF: &str = "featureGates:\n  LoadBalancerIPMode: false\n";

/// The pod on the node counts, not kubelet; flags beside a file do not.
#[rstest]
#[case::old("kube-proxy:v1.29.9", WITH_FILE, "", true)]
#[case::old_with_the_gate(
    "kube-proxy:v1.29.9",
    WITH_FILE,
    "featureGates:\n  LoadBalancerIPMode: true\n",
    false
)]
#[case::new("mirror.example.org/kube-proxy:v1.31.0@sha256:0", WITH_FILE, "", false)]
#[case::gate_off("kube-proxy:v1.31.0", WITH_FILE, GATE_OFF, true)]
#[case::gate_off_in_vain("kube-proxy:v1.32.0", WITH_FILE, GATE_OFF, false)]
#[case::gate_off_by_flag("kube-proxy:v1.30.0", &["kube-proxy", "--feature-gates=LoadBalancerIPMode=false"], "", true)]
#[case::flag_beside_a_file("kube-proxy:v1.30.0", &["kube-proxy", "--config=/var/lib/kube-proxy/config.conf", "--feature-gates=LoadBalancerIPMode=false"], "", false)]
fn kube_proxy_is_what_its_pod_runs(
    #[case] image: &str,
    #[case] words: &[&str],
    #[case] configuration: &str,
    #[case] around: bool,
) {
    let sim = cluster("v1.36.0");
    publish(&sim, &json!({"ip": LOAD_BALANCER, "ipMode": "Proxy"}));
    kube_proxy(&sim, image, words, configuration);
    let departure = sim.data_path().leave(&client(), to(LOAD_BALANCER, 80)).unwrap();
    assert_eq!(matches!(departure, Departure::Around(..)), around, "{departure:?}");
}

#[rstest]
#[case::elsewhere("nodePortAddresses: [127.0.0.0/8]", Err(Stop::NodePort))]
#[case::here("nodePortAddresses: [10.0.0.0/24]", Ok("web".to_owned()))]
#[case::primary("nodePortAddresses: [primary]", Ok("web".to_owned()))]
fn node_ports_are_open_where_kube_proxy_opens_them(
    #[case] text: &str,
    #[case] expected: Result<String, Stop>,
) {
    let sim = cluster("v1.36.0");
    kube_proxy(&sim, "kube-proxy:v1.36.0", WITH_FILE, text);
    assert_eq!(at_node_port(&sim, 0, 30080), [expected]);
}

#[rstest]
#[case::of_the_service(json!({}), true)]
#[case::headless(json!({"clusterIP": "None"}), false)]
#[case::another_port(json!({"ports": [{"port": 81}]}), false)]
fn external_ips_short_circuit_whatever_the_mode_is(#[case] change: Value, #[case] around: bool) {
    let sim = cluster("v1.36.0");
    publish(&sim, &json!({"ip": LOAD_BALANCER, "ipMode": "Proxy"}));
    let mut spec = json!({"externalIPs": [LOAD_BALANCER], "ports": [{"port": 80}]});
    spec.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    sim.create(
        &json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "forgotten"}, "spec": spec}),
    )
    .unwrap();
    let departure = sim.data_path().leave(&client(), to(LOAD_BALANCER, 80)).unwrap();
    let expected = Departure::Around("default/forgotten".to_owned(), vec![Err(Stop::Endpoint)]);
    assert_eq!(departure == expected, around, "{departure:?}");
}

#[test]
fn a_port_makes_of_the_header_what_a_test_wrote_down() {
    let sim = cluster("v1.36.0");
    let reading = |word: &str| {
        let annotations = json!({READS_HEADER: json!({"8080": word}).to_string()});
        sim.patch("pods", "default", "web", &json!({"metadata": {"annotations": annotations}})).unwrap();
        let reached = sim.data_path().arrive(to(NODES[0], 30080), "10.0.0.50".parse().unwrap());
        reached.into_iter().next().unwrap().unwrap().reading
    };
    assert_eq!(reading("optional"), Reading::Optional);
    assert_eq!(reading("required"), Reading::Required);
    // The node replaces the source by its own address.
    assert_eq!(reading("required from 10.0.0.11/32"), Reading::Required);
    assert_eq!(reading("required from 10.0.0.50/32"), Reading::Never);
}

#[test]
fn source_ranges_count_on_the_node_that_short_circuits() {
    let sim = cluster("v1.36.0");
    publish(&sim, &json!({"ip": LOAD_BALANCER}));
    sim.patch("services", "default", "web", &json!({"spec": {"loadBalancerSourceRanges": ["192.0.2.0/24"]}}))
        .unwrap();
    let departure = sim.data_path().leave(&client(), to(LOAD_BALANCER, 80)).unwrap();
    assert_eq!(departure, Departure::Around("default/web".to_owned(), vec![Err(Stop::SourceRanges)]));
    assert_eq!(
        at_node_port(&sim, 0, 30080),
        [Ok("web".to_owned())],
        "the load balancer's packets are not asked"
    );
}

#[test]
fn a_node_port_leads_to_ready_endpoints_of_its_port() {
    let sim = cluster("v1.36.0");
    assert_eq!(at_node_port(&sim, 0, 30080), [Ok("web".to_owned())]);
    assert_eq!(at_node_port(&sim, 0, 30081), [Err(Stop::NodePort)]);
    let slice = |patch: &Value| drop(sim.patch("endpointslices", "default", "web", patch).unwrap());
    slice(&json!({"ports": [{"name": "http", "port": 9999, "protocol": "TCP"}]}));
    assert_eq!(at_node_port(&sim, 0, 30080), [Err(Stop::Port)], "no container listens");
    slice(&json!({"ports": [{"name": "web", "port": 8080, "protocol": "TCP"}]}));
    assert_eq!(at_node_port(&sim, 0, 30080), [Err(Stop::Endpoint)], "no slice has the name of the port");
    slice(&json!({"ports": [{"name": "http", "port": 8080, "protocol": "UDP"}]}));
    assert_eq!(at_node_port(&sim, 0, 30080), [Err(Stop::Endpoint)]);
    let ends = json!({"ready": false, "serving": true, "terminating": true});
    let endpoint = |conditions: &Value| json!([{"addresses": ["10.244.2.7"], "nodeName": "node-2", "conditions": conditions}]);
    slice(
        &json!({"ports": [{"name": "http", "port": 8080, "protocol": "TCP"}], "endpoints": endpoint(&ends)}),
    );
    assert_eq!(
        at_node_port(&sim, 0, 30080),
        [Ok("web".to_owned())],
        "the last that serves goes on until it ends"
    );
    slice(&json!({"endpoints": endpoint(&json!({"ready": false}))}));
    assert_eq!(at_node_port(&sim, 0, 30080), [Err(Stop::Endpoint)]);
}

#[test]
fn with_the_policy_local_a_node_serves_its_own_endpoints() {
    let sim = cluster("v1.36.0");
    let spec = json!({"externalTrafficPolicy": "Local", "healthCheckNodePort": 31000});
    sim.patch("services", "default", "web", &json!({"spec": spec})).unwrap();
    assert_eq!(at_node_port(&sim, 0, 30080), [Err(Stop::Endpoint)]);
    assert_eq!(at_node_port(&sim, 1, 30080), [Ok("web".to_owned())]);
    publish(&sim, &json!({"ip": LOAD_BALANCER}));
    let departure = sim.data_path().leave(&client(), to(LOAD_BALANCER, 80)).unwrap();
    assert!(
        matches!(departure, Departure::Around(_, reached) if reached[0].is_ok()),
        "from inside every node serves"
    );
}

fn policy(sim: &Sim, spec: &Value) {
    let policy = json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "one"}, "spec": spec});
    sim.create(&policy).unwrap();
}

#[rstest]
#[case::nothing(json!([]), true)]
#[case::everything(json!([{}]), false)]
#[case::pods(json!([{"to": [{"podSelector": {}}]}]), true)]
#[case::block(json!([{"to": [{"ipBlock": {"cidr": "203.0.113.0/24"}}]}]), false)]
#[case::excepted(json!([{"to": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["203.0.113.0/24"]}}]}]), true)]
#[case::other_port(json!([{"ports": [{"port": 443}]}]), true)]
#[case::range_of_ports(json!([{"ports": [{"port": 79, "endPort": 81}]}]), false)]
#[case::udp(json!([{"ports": [{"protocol": "UDP"}]}]), true)]
fn a_policy_for_what_leaves_a_pod_counts_for_the_address(#[case] egress: Value, #[case] denied: bool) {
    let sim = cluster("v1.36.0");
    publish(&sim, &json!({"ip": LOAD_BALANCER, "ipMode": "Proxy"}));
    policy(
        &sim,
        &json!({"podSelector": {"matchLabels": {"app": "client"}}, "policyTypes": ["Egress"], "egress": egress}),
    );
    let departure = sim.data_path().leave(&client(), to(LOAD_BALANCER, 80)).unwrap();
    assert_eq!(departure == Departure::Denied, denied, "{departure:?}");
    let of_node = sim.data_path().leave(&Sender::Node("node-1".to_owned()), to(LOAD_BALANCER, 80)).unwrap();
    assert!(matches!(of_node, Departure::Leaves(_)), "nodes have no policies");
}

#[rstest]
#[case::nobody(json!([]), false, false)]
#[case::everybody(json!([{}]), true, true)]
#[case::the_client(json!([{"from": [{"podSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["client"]}]}}]}]), false, true)]
#[case::nodes(json!([{"from": [{"ipBlock": {"cidr": "10.0.0.0/24"}}]}]), true, false)]
#[case::named_port(json!([{"ports": [{"port": "http"}]}]), true, true)]
#[case::port_of_the_service(json!([{"ports": [{"port": 80}]}]), false, false)]
fn a_policy_for_what_comes_to_a_pod_meets_the_load_balancer_or_the_client(
    #[case] ingress: Value,
    #[case] through: bool,
    #[case] around: bool,
) {
    let sim = cluster("v1.36.0");
    publish(&sim, &json!({"ip": LOAD_BALANCER}));
    policy(&sim, &json!({"podSelector": {"matchLabels": {"app": "web"}}, "ingress": ingress}));
    assert_eq!(at_node_port(&sim, 0, 30080)[0].is_ok(), through);
    let departure = sim.data_path().leave(&client(), to(LOAD_BALANCER, 80)).unwrap();
    let Departure::Around(_, reached) = departure else { panic!("{departure:?}") };
    assert_eq!(reached[0].is_ok(), around, "{reached:?}");
}
