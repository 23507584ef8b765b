//! How the address is published, by what the cluster can do and what users and operators ask for.

use openstack_ccm_kube_sim::ApiVersion;
use rstest::rstest;
use serde_json::json;

use crate::support::{ADDRESS, ANNOTATION, PROXY, World, service};

const IP: &str = "198.19.0.11";
const NEW: [&str; 2] = ["v1.36.0", "v1.36.0"];
const OLD: [&str; 2] = ["v1.28.0", "v1.28.0"];
const MIXED: [&str; 2] = ["v1.36.0", "v1.29.4"];
const SUFFIX: &str = "ingress-hostname-suffix = lb.example.org\n";
const ALWAYS: &str = "enable-ingress-hostname = true\n";
const NONE: &[(&str, &str)] = &[];

/// A cluster where a PROXY Service with these annotations is served.
async fn serving(
    version: ApiVersion,
    kubelets: [&str; 2],
    annotations: &[(&str, &str)],
    cloud_conf: &str,
    gate: Option<bool>,
) -> World {
    let mut world = World::new(version);
    world.set_kubelet("node-1", kubelets[0]);
    world.set_kubelet("node-2", kubelets[1]);
    world.settings.cloud_conf = cloud_conf.to_owned();
    world.settings.service.ip_mode_gate = gate;
    world.start().await;
    let mut web = service("web", json!({"metadata": {"annotations": {PROXY: "v2"}}}));
    for (key, value) in annotations {
        web["metadata"]["annotations"][format!("{ANNOTATION}{key}")] = json!(value);
    }
    world.serve(&web).await;
    world
}

#[rstest]
#[case::current(ApiVersion::V1_36, NEW, NONE, "", "198.19.0.11(Proxy)", false)]
#[case::first_with_the_gate_on(ApiVersion::V1_30, ["v1.30.0", "v1.30.0"], NONE, "", "198.19.0.11(Proxy)", false)]
#[case::v1_29_gate_on(ApiVersion::V1_29_GATE_ON, ["v1.30.0", "v1.30.0"], NONE, "", "198.19.0.11(Proxy)", false)]
#[case::v1_29_gate_off(ApiVersion::V1_29, ["v1.29.0", "v1.29.0"], NONE, "", "198.19.0.11", true)]
#[case::v1_28(ApiVersion::V1_28, OLD, NONE, "", "198.19.0.11", true)]
#[case::v1_28_suffix(ApiVersion::V1_28, OLD, NONE, SUFFIX, "198.19.0.11.lb.example.org", false)]
#[case::v1_29_gate_off_suffix(ApiVersion::V1_29, ["v1.29.0", "v1.29.0"], NONE, SUFFIX, "198.19.0.11.lb.example.org", false)]
#[case::old_nodes(ApiVersion::V1_36, OLD, NONE, "", "198.19.0.11(Proxy)", true)]
#[case::one_old_node_without_a_fallback(ApiVersion::V1_36, MIXED, NONE, "", "198.19.0.11(Proxy)", true)]
#[case::a_virtual_node(ApiVersion::V1_36, ["v1.36.0", "v1.15.2-vk-azure-aci-1.5.1"], NONE, SUFFIX, "198.19.0.11(Proxy)", false)]
#[case::a_simulated_node(ApiVersion::V1_36, ["v1.36.0", "kwok-v0.6.0"], NONE, SUFFIX, "198.19.0.11(Proxy)", false)]
#[case::operator_says_proxy(ApiVersion::V1_36, OLD, NONE, "ip-mode = proxy\n", "198.19.0.11(Proxy)", true)]
#[case::operator_says_proxy_before_the_suffix(
    ApiVersion::V1_36,
    OLD,
    NONE,
    "ip-mode = proxy\ningress-hostname-suffix = lb.example.org\n",
    "198.19.0.11(Proxy)",
    true
)]
#[case::old_nodes_suffix(ApiVersion::V1_36, OLD, NONE, SUFFIX, "198.19.0.11.lb.example.org", false)]
#[case::one_old_node(ApiVersion::V1_36, MIXED, NONE, SUFFIX, "198.19.0.11.lb.example.org", false)]
#[case::suffix_is_not_used_without_need(ApiVersion::V1_36, NEW, NONE, SUFFIX, "198.19.0.11(Proxy)", false)]
#[case::suffix_is_used_where_it_is_enabled(ApiVersion::V1_36, NEW, NONE, ALWAYS, "198.19.0.11.nip.io", false)]
#[case::the_service_overrides_the_operator(ApiVersion::V1_36, NEW, &[("enable-ingress-hostname", "false")], ALWAYS, "198.19.0.11(Proxy)", false)]
#[case::the_service_asks_for_a_name(ApiVersion::V1_36, NEW, &[("enable-ingress-hostname", "true")], SUFFIX, "198.19.0.11.lb.example.org", false)]
#[case::a_name_all_the_same_where_the_mode_is_dropped(ApiVersion::V1_28, OLD, &[("enable-ingress-hostname", "false")], ALWAYS, "198.19.0.11.nip.io", false)]
#[case::hostname(ApiVersion::V1_36, NEW, &[("hostname", "web.example.org")], "", "web.example.org", false)]
#[case::hostname_on_old(ApiVersion::V1_28, OLD, &[("hostname", "web.example.org")], SUFFIX, "web.example.org", false)]
#[case::forced_vip(ApiVersion::V1_36, NEW, &[("ip-mode", "vip")], "", "198.19.0.11(VIP)", true)]
#[case::forced_proxy_over_old_nodes(ApiVersion::V1_36, OLD, &[("ip-mode", "proxy")], "", "198.19.0.11(Proxy)", true)]
#[case::proxy_cannot_be_forced_on_an_old_server(ApiVersion::V1_28, OLD, &[("ip-mode", "proxy")], SUFFIX, "198.19.0.11.lb.example.org", false)]
#[case::mode_before_hostname(ApiVersion::V1_36, NEW, &[("ip-mode", "proxy"), ("hostname", "web.example.org")], "", "198.19.0.11(Proxy)", false)]
#[case::operator_says_vip(ApiVersion::V1_36, NEW, NONE, "ip-mode = vip\n", "198.19.0.11(VIP)", true)]
#[case::service_over_operator(ApiVersion::V1_36, NEW, &[("ip-mode", "auto")], "ip-mode = vip\n", "198.19.0.11(Proxy)", false)]
#[tokio::test(start_paused = true)]
async fn a_proxy_service_is_published_in_the_way_that_works(
    #[case] version: ApiVersion,
    #[case] kubelets: [&str; 2],
    #[case] annotations: &[(&str, &str)],
    #[case] cloud_conf: &str,
    #[case] expected: &str,
    #[case] warned: bool,
) {
    let world = serving(version, kubelets, annotations, cloud_conf, None).await;
    assert_eq!(world.ingress("web"), [expected]);
    assert_eq!(!world.warnings("web").is_empty(), warned, "{:?}", world.warnings("web"));
    assert_eq!(world.annotation("web", ADDRESS).as_deref(), Some(IP), "the real address can always be read");
}

#[rstest]
#[case::off_on_a_fit_cluster(ApiVersion::V1_36, NEW, false, SUFFIX, "198.19.0.11.lb.example.org")]
#[case::on_with_old_nodes(ApiVersion::V1_36, OLD, true, SUFFIX, "198.19.0.11(Proxy)")]
#[tokio::test(start_paused = true)]
async fn the_flag_replaces_the_judgement(
    #[case] version: ApiVersion,
    #[case] kubelets: [&str; 2],
    #[case] gate: bool,
    #[case] cloud_conf: &str,
    #[case] expected: &str,
) {
    let world = serving(version, kubelets, NONE, cloud_conf, Some(gate)).await;
    assert_eq!(world.ingress("web"), [expected]);
}

/// The warning names the cause and both ways out; each of them heals it without a restart.
#[tokio::test(start_paused = true)]
async fn a_user_without_a_fallback_reads_what_to_do_and_it_helps() {
    let world = serving(ApiVersion::V1_28, OLD, NONE, "", None).await;
    let warnings = world.warnings("web");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    for hint in [
        "LoadBalancerIPModeNotHonoured",
        "1.30",
        "loadbalancer.openstack.org/hostname",
        "ingress-hostname-suffix",
    ] {
        assert!(warnings[0].contains(hint), "{hint} in {warnings:?}");
    }
    world.annotate("web", "loadbalancer.openstack.org/hostname", Some("web.example.org"));
    world.until_ingress("web", "web.example.org").await;
    world.annotate("web", "loadbalancer.openstack.org/hostname", None);
    world.until_ingress("web", IP).await;
    world.replace_api_server(ApiVersion::V1_36);
    world.set_kubelets("v1.36.0");
    world.until_ingress("web", "198.19.0.11(Proxy)").await;
}

/// Who asks for `vip` on a PROXY load balancer is warned once of what pods get, also where the PROXY protocol came later.
#[tokio::test(start_paused = true)]
async fn who_asks_for_vip_on_a_proxy_load_balancer_is_warned_once() {
    let bypassed = |world: &World| {
        let mut warnings = world.warnings("web");
        warnings.retain(|warning| warning.starts_with("Warning LoadBalancerBypassRequested: "));
        warnings
    };
    let plain = service("web", json!({"metadata": {"annotations": {format!("{ANNOTATION}ip-mode"): "vip"}}}));
    let world = World::serving(&plain).await;
    assert_eq!(bypassed(&world), [""; 0], "pods lose nothing");
    world.annotate_to_rest("web", PROXY, Some("v2")).await;
    for round in ["1", "2"] {
        world.annotate_to_rest("web", "example.org/round", Some(round)).await;
    }
    assert_eq!(world.ingress("web"), ["198.19.0.11(VIP)"]);
    let warnings = bypassed(&world);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("broken header") && warnings[0].contains("/ip-mode"), "{warnings:?}");
    world.annotate("web", "ip-mode", None);
    world.until_ingress("web", "198.19.0.11(Proxy)").await;
    assert_eq!(bypassed(&world).len(), 1);
}

/// Service proxies take an address in `externalIPs` whatever its mode is. Names of other namespaces are nobody's business.
#[rstest]
#[case::beside_it("default", "10.96.0.99", PROXY, Some("the Service forgotten"))]
#[case::elsewhere("kube-system", "10.96.0.99", PROXY, Some("a Service of another namespace"))]
#[case::without_the_header("default", "10.96.0.99", "example.org/any", None)]
#[case::headless("default", "None", PROXY, None)]
#[tokio::test(start_paused = true)]
async fn who_loses_packets_to_external_ips_reads_which_service_takes_them(
    #[case] namespace: &str,
    #[case] cluster_ip: &str,
    #[case] annotation: &str,
    #[case] named: Option<&str>,
) {
    let mut world = World::new(ApiVersion::V1_36);
    let other = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "forgotten", "namespace": namespace},
        "spec": {"type": "ClusterIP", "clusterIP": cluster_ip, "externalIPs": [IP], "ports": [{"port": 80}]}});
    world.kube.create(&other).unwrap();
    world.start().await;
    world.create(&service("web", json!({"metadata": {"annotations": {annotation: "v2"}}})));
    world.until_served("web").await;
    let mut warnings = world.warnings("web");
    warnings.retain(|warning| warning.starts_with("Warning LoadBalancerAddressInExternalIPs: "));
    assert_eq!(warnings.len(), usize::from(named.is_some()), "{warnings:?}");
    assert!(warnings.iter().all(|warning| warning.contains(named.unwrap())), "{warnings:?}");
}

#[rstest]
#[case::plain(json!({}))]
#[case::proxy(json!({"metadata": {"annotations": {PROXY: "true"}}}))]
#[tokio::test(start_paused = true)]
async fn a_stored_mode_that_this_program_does_not_know_is_replaced(#[case] change: serde_json::Value) {
    let mut world = World::serving(&service("web", change)).await;
    let before = world.ingress("web");
    world.stop().await;
    // A newer API server: its list says a word that does not exist yet.
    world.settings.translation = Some((r#""ipMode":""#, r#""ipMode":"Future"#));
    world.start_to_rest().await;
    assert_eq!(world.ingress("web"), before);
    world.release("web").await;
    assert!(world.cloud.load_balancers().is_empty());
}
