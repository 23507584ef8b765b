//! The status at the switch from OCCM: pods that reached an application reach it afterwards.

use rstest::rstest;
use serde_json::{Value, json};

use crate::contract::setup::INTERNAL;
use crate::support::{ANNOTATION, World, service};

const IP: &str = "198.19.0.11";
const TLS: &str = "default-tls-container-ref";
const XFF: &str = "x-forwarded-for";
const PROXY: &str = "proxy-protocol";
/// Strangers only.
const LACKING: &[&str] = &["203.0.113.0/24"];
/// The nodes, and everybody beyond the router.
const HOLDING: &[&str] = &["198.18.0.0/15"];

/// What OCCM 1.36 publishes for a Service with these annotations.
fn as_occm_publishes(annotations: &[(&str, &str)], address: &str, suffix: bool) -> Value {
    let value = |key: &str| annotations.iter().find(|(name, _)| *name == key).map(|(_, value)| *value);
    let proxy = value(PROXY).is_some();
    match value("hostname") {
        Some(hostname) => json!({"hostname": hostname}),
        None if proxy && suffix => json!({"hostname": format!("{address}.nip.io")}),
        None => json!({"ip": address, "ipMode": if proxy { "Proxy" } else { "VIP" }}),
    }
}

/// Serves a Service, and leaves it as OCCM does: its status, and none of the annotations of this program alone.
async fn left_by_occm(annotations: &[(&str, &str)], ranges: &[&str], cloud_conf: &str) -> World {
    let mut world = World::configured(cloud_conf).await;
    let body = json!({"name": "a", "type": "generic", "secret_refs": []});
    let (_, answer) = world.cloud.user().post("key-manager", "/v1/containers", &body);
    let certificate = answer["container_ref"].as_str().unwrap().to_owned();
    let mut web = service("web", json!({"spec": {"loadBalancerSourceRanges": ranges}}));
    for (key, value) in annotations {
        let value = if *key == TLS { certificate.as_str() } else { value };
        let key = if key.contains('/') { (*key).to_owned() } else { format!("{ANNOTATION}{key}") };
        web["metadata"]["annotations"][key] = json!(value);
    }
    world.serve(&web).await;
    world.stop().await;
    let address = world.annotation("web", "load-balancer-address").unwrap();
    let entry = as_occm_publishes(annotations, &address, cloud_conf.contains("enable-ingress-hostname"));
    let status = json!({"status": {"loadBalancer": {"ingress": [entry]}}});
    world.kube.patch_status("services", "default", "web", &status).unwrap();
    for key in ["owned-load-balancer-id", "settled"] {
        world.annotate("web", &format!("{ANNOTATION}{key}"), None);
    }
    world
}

#[rstest]
#[case::plain(&[], &[], "(VIP)")]
#[case::plain_ranges(&[], LACKING, "(VIP)")]
#[case::proxy_v1(&[(PROXY, "true")], &[], "(Proxy)")]
#[case::proxy_v2(&[(PROXY, "v2")], &[], "(Proxy)")]
#[case::proxy_ranges(&[(PROXY, "v2")], LACKING, "(Proxy)!")]
#[case::proxy_ranges_with_the_cluster(&[(PROXY, "v2")], HOLDING, "(Proxy)")]
#[case::tls(&[(TLS, "")], &[], "(Proxy)")]
#[case::tls_ranges(&[(TLS, "")], LACKING, "(VIP)!")]
#[case::tls_ranges_with_the_cluster(&[(TLS, "")], HOLDING, "(Proxy)")]
#[case::header(&[(XFF, "true")], &[], "(Proxy)")]
#[case::header_ranges(&[(XFF, "true")], LACKING, "(VIP)!")]
#[case::header_ranges_with_the_cluster(&[(XFF, "true")], HOLDING, "(Proxy)")]
#[case::header_allowed(&[(XFF, "true"), ("allow-cluster-sources", "true")], LACKING, "(Proxy)")]
#[case::internal_header(&[(XFF, "true"), (INTERNAL, "true")], &[], "(Proxy)")]
#[case::internal_header_ranges(&[(XFF, "true"), (INTERNAL, "true")], LACKING, "(VIP)!")]
#[case::internal_header_nodes_are_enough(&[(XFF, "true"), (INTERNAL, "true")], &["198.18.0.0/24"], "(Proxy)")]
#[case::hostname(&[(XFF, "true"), ("hostname", "web.example.org")], LACKING, "web.example.org")]
#[case::hostname_proxy(&[(PROXY, "v1"), ("hostname", "web.example.org")], &[], "web.example.org")]
#[tokio::test(start_paused = true)]
async fn no_status_changes_that_pods_got_through_by(
    #[case] annotations: &[(&str, &str)],
    #[case] ranges: &[&str],
    #[case] expected: &str,
) {
    let mut world = left_by_occm(annotations, ranges, "").await;
    let address = world.annotation("web", "load-balancer-address").unwrap();
    let (entry, warned) = expected.strip_suffix('!').map_or((expected, false), |entry| (entry, true));
    let expected = if entry.starts_with('(') { format!("{address}{entry}") } else { entry.to_owned() };
    for _ in 0..2 {
        world.start_to_rest().await;
        assert_eq!(world.ingress("web"), [expected.as_str()]);
        world.stop().await;
    }
    let warnings: Vec<String> = world.warnings("web");
    let reads = warnings.iter().any(|warning| {
        ["LoadBalancerSourceRangesLackCluster", "198.18.0.0/24", "allow-cluster-sources"]
            .iter()
            .all(|part| warning.contains(part))
    });
    assert_eq!(reads, warned, "{warnings:?}");
}

/// A change is one when something else was published before: at the switch from OCCM, once, and not at a restart.
#[rstest]
#[case::same_mode(&[(PROXY, "v2")], &[])]
#[case::plain(&[], &[])]
#[case::hostname(&[(PROXY, "v1"), ("hostname", "web.example.org")], &[])]
#[case::other_mode(&[(XFF, "true")], &[
    "Normal LoadBalancerIPModeChanged: The load balancer is now published by address with ipMode Proxy: the \
    load balancer \
     inserts HTTP headers",
])]
#[tokio::test(start_paused = true)]
async fn only_a_mode_that_was_another_one_before_has_changed(
    #[case] annotations: &[(&str, &str)],
    #[case] expected: &[&str],
) {
    let changes = |world: &World| {
        let mut events = world.events("web");
        events.retain(|event| event.contains("LoadBalancerIPModeChanged"));
        events
    };
    let mut world = left_by_occm(annotations, &[], "").await;
    assert_eq!(changes(&world), [""; 0], "the first publication");
    for _ in 0..2 {
        world.start_to_rest().await;
        world.stop().await;
        assert_eq!(changes(&world), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_hostname_for_proxy_load_balancers_stays() {
    let mut world = left_by_occm(&[(PROXY, "v2")], LACKING, "enable-ingress-hostname = true\n").await;
    world.start_to_rest().await;
    assert_eq!(world.ingress("web"), [format!("{IP}.nip.io")]);
}

/// With `allow-cluster-sources` the Warning's advice is followed, and the address leads through the load balancer.
#[tokio::test(start_paused = true)]
async fn the_advice_of_the_warning_helps() {
    let mut world = left_by_occm(&[(XFF, "true")], LACKING, "").await;
    world.start_to_rest().await;
    assert_eq!(world.ingress("web"), [format!("{IP}(VIP)")]);
    world.annotate("web", "allow-cluster-sources", Some("true"));
    world.until_ingress("web", &format!("{IP}(Proxy)")).await;
}

/// A plain Service beside one that needs the load balancer, on one address.
#[rstest]
#[case::open(&[], "(Proxy)")]
#[case::its_own_ranges_lack_the_cluster(LACKING, "(VIP)")]
#[tokio::test(start_paused = true)]
async fn a_neighbour_on_the_address_follows_unless_that_shuts_pods_out(
    #[case] ranges: &[&str],
    #[case] expected: &str,
) {
    let mut world = left_by_occm(&[(PROXY, "v2")], &[], "").await;
    let load_balancer = world.annotation("web", "load-balancer-id").unwrap();
    world.start().await;
    let mut plain = service("plain", json!({"spec": {"loadBalancerSourceRanges": ranges}}));
    plain["metadata"]["annotations"] = json!({format!("{ANNOTATION}load-balancer-id"): load_balancer});
    plain["spec"]["ports"] = json!([{"name": "other", "port": 8080, "protocol": "TCP"}]);
    world.serve(&plain).await;
    world.stop().await;
    let entry = json!({"ip": IP, "ipMode": "VIP"});
    let status = json!({"status": {"loadBalancer": {"ingress": [entry]}}});
    world.kube.patch_status("services", "default", "plain", &status).unwrap();
    world.start_to_rest().await;
    assert_eq!(world.ingress("plain"), [format!("{IP}{expected}")]);
    assert_eq!(world.ingress("web"), [format!("{IP}(Proxy)")]);
}
