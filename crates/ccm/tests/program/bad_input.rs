//! Input that cannot work: one clear event, nothing breaks, and the next good input heals it without a restart.

use openstack_ccm_kube_sim::ApiVersion;
use openstack_ccm_openstack_sim::Fault;
use openstack_ccm_provider_openstack::load_balancer::annotations::{ALL, Form};
use rstest::rstest;
use serde_json::json;

use crate::support::{ANNOTATION, World, lb_name, service};

const NOWHERE: &str = "00000000-0000-4000-8000-000000000000";

/// The last part of a key.
pub(crate) fn short(key: &str) -> &str {
    key.rsplit_once('/').map_or(key, |(_, name)| name)
}

/// Wrong values of each annotation that is read: of another type, and out of range at both ends.
pub(crate) fn wrong(key: &str, form: Form) -> Vec<String> {
    let text = match form {
        Form::Output(_) => return Vec::new(),
        Form::Bool => "maybe",
        Form::Integer { min, max, .. } => {
            return vec![(min - 1).to_string(), max.wrapping_add(1).to_string(), "soon".to_owned()];
        }
        Form::Word(_) => "nonsense",
        Form::Uuid(_) => "a-name",
        Form::Text(_) => match short(key) {
            "tags" | "load-balancer-tags" | "listener-tags" | "pool-tags" => "openstack-ccm-cluster=another",
            "class" => "unknown",
            "lb-provider" => "nobody",
            "proxy-protocol" => "v2:443",
            "health-monitor-path" => "healthz",
            "health-monitor-expected-codes" => "2xx",
            "sni-container-refs" => "my-certificates",
            "tls-versions" => "TLSv1.4",
            "tls-ciphers" => "A,B",
            "alpn-protocols" => "h3",
            "tls-revision" => "a,b",
            "floating-subnet" => "~(",
            "floating-subnet-tags" => "!&",
            "default-tls-container-ref" => "my-certificate",
            "node-selector" => "=edge",
            "hostname" => "under_score",
            "floating-ip" | "vip-address" => "198.19.0.300",
            "load-balancer-source-ranges" | "metrics-allow-cidrs" => "everybody",
            "availability-zone" => return vec!["z".repeat(256)],
            other => panic!("no wrong value is known for {other}"),
        },
    };
    vec![text.to_owned()]
}

/// What each annotation that refers to something can name and nobody has.
pub(crate) fn unknown(key: &str, form: Form) -> Option<String> {
    match form {
        Form::Uuid(_) => Some(NOWHERE.to_owned()),
        Form::Text(_) => match short(key) {
            "default-tls-container-ref" | "sni-container-refs" => {
                Some(format!("https://barbican.example.org/v1/containers/{NOWHERE}"))
            }
            "availability-zone" => Some("nowhere".to_owned()),
            "class" => Some("nobody".to_owned()),
            "floating-subnet" => Some("no-such-subnet-*".to_owned()),
            "floating-subnet-tags" => Some("no-such-tag".to_owned()),
            _ => None,
        },
        Form::Bool | Form::Integer { .. } | Form::Word(_) | Form::Output(_) => None,
    }
}

/// What each annotation that refers to something can name and somebody else has: another project, which this one cannot see.
fn of_somebody_else(world: &World, key: &str) -> Option<String> {
    let stranger = world.cloud.stranger();
    let make = |service: &str, path: &str, kind: &str, body: serde_json::Value| {
        let answer = stranger.make(service, path, &body);
        answer[kind]["id"].as_str().unwrap_or_default().to_owned()
    };
    let network = || make("network", "/v2.0/networks", "network", json!({"network": {"name": "theirs"}}));
    let subnet = |network: &str| {
        let body = json!({"subnet": {"network_id": network, "ip_version": 4, "cidr": "10.77.0.0/24"}});
        make("network", "/v2.0/subnets", "subnet", body)
    };
    match short(key) {
        "load-balancer-id" => {
            let body = json!({"loadbalancer": {"name": "theirs", "vip_subnet_id": subnet(&network())}});
            let id = make("load-balancer", "/v2.0/lbaas/loadbalancers", "loadbalancer", body);
            world.cloud.settle();
            Some(id)
        }
        "port-id" => {
            let network = network();
            subnet(&network);
            Some(make("network", "/v2.0/ports", "port", json!({"port": {"network_id": network}})))
        }
        "network-id" | "floating-network-id" => Some(network()),
        "subnet-id" | "member-subnet-id" | "floating-subnet-id" => Some(subnet(&network())),
        "default-tls-container-ref" | "sni-container-refs" => {
            let body = json!({"name": "theirs", "type": "generic", "secret_refs": []});
            let answer = stranger.make("key-manager", "/v1/containers", &body);
            answer["container_ref"].as_str().map(str::to_owned)
        }
        _ => None,
    }
}

/// A new Service names what it cannot have: one clear event with key and value, nothing is made and nothing left behind, and
/// another Service is served meanwhile. Without the annotation it is served too.
async fn is_named_and_heals(world: &World, key: &str, value: &str) {
    let mut web = service("web", json!({"metadata": {"annotations": {key: value}}}));
    if short(key) == "sni-container-refs" {
        let body = json!({"name": "ours", "type": "generic", "secret_refs": []});
        let (_, answer) = world.cloud.user().post("key-manager", "/v1/containers", &body);
        let tls = format!("{ANNOTATION}default-tls-container-ref");
        web["metadata"]["annotations"][tls] = answer["container_ref"].clone();
    }
    let before = world.cloud.load_balancers().len();
    world.create(&web);
    world.create(&service("other", json!({})));
    world.until_published("other").await;
    let value = world.without_ids(value);
    world.until_warned("web", &value).await;
    // Some repetitions later.
    tokio::time::sleep(std::time::Duration::from_secs(250)).await;
    let warnings = world.warnings("web");
    assert_eq!(warnings.len(), 1, "{key}: {warnings:?}");
    assert!(warnings[0].contains(short(key)) && warnings[0].contains(&value), "{key}: {warnings:?}");
    assert_eq!(world.cloud.load_balancers().len(), before + 1, "{key}: only that of the other Service");
    assert!(world.cloud.leaked_ports().is_empty(), "{key}");
    world.annotate("web", key, None);
    world.until_published("web").await;
}

#[tokio::test(start_paused = true)]
async fn what_nothing_has_is_named_and_without_it_the_service_is_served() {
    for annotation in ALL {
        let Some(value) = unknown(annotation.key, annotation.form) else { continue };
        let world = World::started().await;
        is_named_and_heals(&world, annotation.key, &value).await;
        let key = short(annotation.key);
        if let Some(kind) =
            ["network", "subnet", "port"].iter().find(|kind| key.ends_with(&format!("{kind}-id")))
        {
            let text = format!("{kind} {value} does not exist");
            assert!(world.warnings("web")[0].contains(&text), "{key}: {:?}", world.warnings("web"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_somebody_else_has_is_named_and_not_used() {
    for annotation in ALL {
        let world = World::started().await;
        let Some(value) = of_somebody_else(&world, annotation.key) else { continue };
        is_named_and_heals(&world, annotation.key, &value).await;
    }
}

/// An annotation without a value is as none, or hides what cloud.conf says: it never stops anything.
#[tokio::test(start_paused = true)]
async fn an_empty_annotation_stops_nothing() {
    for annotation in ALL.iter().filter(|annotation| !matches!(annotation.form, Form::Output(_))) {
        let world = World::serving(&service("web", json!({}))).await;
        let ingress = world.ingress("web");
        let ports = json!([{"name": "http", "port": 8080, "protocol": "TCP"}]);
        let change = json!({"metadata": {"annotations": {annotation.key: ""}}, "spec": {"ports": ports}});
        world.patch("web", &change);
        let listens = |world: &World| world.cloud.listeners()[0]["protocol_port"] == 8080;
        world.until(&format!("a change beside an empty {} is made", annotation.key), listens).await;
        world.quiet().await;
        assert_eq!(world.ingress("web"), ingress, "{}", annotation.key);
        assert!(world.warnings("web").is_empty(), "{}: {:?}", annotation.key, world.warnings("web"));
        assert_eq!(world.cloud.load_balancers().len(), 1, "{}", annotation.key);
    }
}

/// Each annotation in turn on one Service that serves: an Event names key and value once, a change beside it is made,
/// and taking the value back is enough.
#[tokio::test(start_paused = true)]
async fn a_wrong_annotation_is_named_once_and_the_load_balancer_serves_on() {
    for annotation in ALL {
        let (key, values) = (annotation.key, wrong(annotation.key, annotation.form));
        if values.is_empty() {
            continue;
        }
        let world = World::serving(&service("web", json!({}))).await;
        let before = world.annotation("web", key);
        for (count, value) in values.iter().enumerate() {
            goes_on_and_heals(&world, key, before.as_deref(), value).await;
            let of_value =
                |warning: &&String| warning.contains(key) && !warning.contains("SettingWithoutEffect:");
            let warnings = world.warnings("web");
            assert_eq!(
                warnings.iter().filter(of_value).count(),
                count + 1,
                "{key}: one for each value: {warnings:?}"
            );
        }
    }
}

async fn goes_on_and_heals(world: &World, key: &str, before: Option<&str>, value: &str) {
    let shown = value.chars().take(80).collect::<String>();
    let ingress = world.ingress("web");
    let taken = world.cloud.listeners()[0]["protocol_port"].as_u64().unwrap();
    let port = taken + 1;
    // A good change beside the wrong one: it is made, unless it would take a guess about who may connect or with what
    // certificate.
    let ports = json!([{"name": "http", "port": port, "protocol": "TCP"}]);
    world.patch("web", &json!({"metadata": {"annotations": {key: value}}, "spec": {"ports": ports}}));
    world.until_warned("web", &shown).await;
    // Some repetitions later.
    tokio::time::sleep(std::time::Duration::from_secs(250)).await;
    let warnings = world.warnings("web");
    assert!(warnings.iter().any(|one| one.contains(key) && one.contains(&shown)), "{key}: {warnings:?}");
    assert_eq!(world.ingress("web"), ingress, "{key}");
    world.annotate("web", key, before);
    let listens = |world: &World| {
        let ports: Vec<_> = world.cloud.listeners().iter().map(|one| one["protocol_port"].clone()).collect();
        ports == [json!(port)]
    };
    world.until(&format!("the good change is made without {key}"), listens).await;
    world.quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_service_with_wrong_input_holds_up_no_other() {
    let mut world = World::new(ApiVersion::V1_36);
    world.settings.service.concurrency = 1;
    world.start().await;
    for number in 0..5 {
        let annotations =
            json!({"metadata": {"annotations": {"loadbalancer.openstack.org/timeout-client-data": "soon"}}});
        world.create(&service(&format!("wrong-{number}"), annotations));
    }
    world.create(&service("right", json!({})));
    world.until_published("right").await;
    for number in 0..5 {
        let name = format!("wrong-{number}");
        world.until_warned(&name, "\"soon\"").await;
        assert!(world.ingress(&name).is_empty());
        world.annotate(&name, "loadbalancer.openstack.org/timeout-client-data", Some("60000"));
        world.until_published(&name).await;
    }
    assert_eq!(world.cloud.load_balancers().len(), 6);
}

#[rstest]
#[case::load_balancers("load_balancer", 1)]
#[case::listeners("listener", 1)]
#[case::pools("pool", 1)]
// The load balancer is made without them, and they are refused once more.
#[case::members("member", 2)]
#[tokio::test(start_paused = true)]
async fn a_quota_of_octavia_that_is_met_is_named_and_raising_it_heals(
    #[case] resource: &str,
    #[case] told: usize,
) {
    let world = World::started().await;
    world.cloud.set_octavia_quota(resource, 0);
    world.create(&service("web", json!({})));
    world.until_warned("web", "quota").await;
    tokio::time::sleep(std::time::Duration::from_secs(1800)).await;
    let warnings = world.warnings("web");
    assert_eq!(warnings.len(), told, "{warnings:?}");
    world.cloud.set_octavia_quota(resource, 10);
    world.until_served("web").await;
    assert_eq!(world.cloud.load_balancers().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_quota_of_floating_ips_that_is_met_is_named_and_raising_it_heals() {
    let world = World::started().await;
    world.cloud.set_neutron_quota("floatingip", 0);
    world.create(&service("web", json!({})));
    world.until_warned("web", "quota of \"floatingip\"").await;
    assert!(world.ingress("web").is_empty());
    world.cloud.set_neutron_quota("floatingip", 1);
    world.until_ingress("web", "198.19.0.11(VIP)").await;
    assert_eq!(world.cloud.load_balancers().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_role_that_is_missing_is_named_and_granting_it_heals() {
    let world = World::started().await;
    let body = json!({"faultcode": "Client", "faultstring": "Policy does not allow this request to be performed.",
        "debuginfo": null});
    let denied = world
        .cloud
        .faults()
        .add(Fault::new().service("load-balancer").path("loadbalancers").answer(403, body));
    world.create(&service("web", json!({})));
    world.until_warned("web", "load-balancer_member").await;
    world.cloud.faults().remove(denied);
    world.until_published("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_of_another_cluster_is_not_touched_unless_that_is_allowed() {
    let mut world = World::started().await;
    let subnet = &world.cloud.seed().subnet_id;
    let theirs = json!({"loadbalancer": {"name": lb_name("web"), "vip_subnet_id": subnet,
        "description": "Kubernetes external service default/web from cluster c1",
        "tags": ["openstack-ccm-cluster=another", lb_name("web")]}});
    world.cloud.user().post("load-balancer", "/v2.0/lbaas/loadbalancers", &theirs);
    world.cloud.settle();
    let before = world.cloud_state();
    world.create(&service("web", json!({})));
    world.until_warned_at_rest("web", "belongs to another cluster").await;
    assert_eq!(world.cloud_state(), before);
    assert_eq!(world.warnings("web").len(), 1);
    world.stop().await;
    world.settings.cloud_conf = "adopt-foreign-cluster = true\n".to_owned();
    world.start().await;
    world.until_published("web").await;
    assert_eq!(world.cloud.load_balancers().len(), 1, "it was taken over");
}

#[tokio::test(start_paused = true)]
async fn a_refused_service_that_is_deleted_leaves_the_load_balancer_of_the_other_cluster() {
    let world = World::started().await;
    let subnet = &world.cloud.seed().subnet_id;
    let theirs = json!({"loadbalancer": {"name": lb_name("web"), "vip_subnet_id": subnet,
        "tags": ["openstack-ccm-cluster=another"]}});
    world.cloud.user().post("load-balancer", "/v2.0/lbaas/loadbalancers", &theirs);
    world.cloud.settle();
    world.create(&service("web", json!({})));
    world.until_warned("web", "belongs to another cluster").await;
    world.release("web").await;
    assert_eq!(world.cloud.load_balancers().len(), 1);
}

/// A load balancer that somebody made by hand and that the Service names is used, and given back as it was.
#[tokio::test(start_paused = true)]
async fn a_load_balancer_made_by_hand_is_used_and_given_back() {
    let world = World::started().await;
    let subnet = &world.cloud.seed().subnet_id;
    let body = json!({"loadbalancer": {"name": "by-hand", "vip_subnet_id": subnet}});
    let (_, answer) = world.cloud.user().post("load-balancer", "/v2.0/lbaas/loadbalancers", &body);
    world.cloud.settle();
    let before = world.cloud_state();
    let id = answer["loadbalancer"]["id"].as_str().unwrap().to_owned();
    let annotations = json!({
        "loadbalancer.openstack.org/load-balancer-id": id,
        "service.beta.kubernetes.io/openstack-internal-load-balancer": "true",
    });
    world.serve(&service("web", json!({"metadata": {"annotations": annotations}}))).await;
    assert_eq!(world.cloud.load_balancers().len(), 1);
    assert_eq!(world.cloud.listeners().len(), 1);
    world.release("web").await;
    world.quiet().await;
    assert_eq!(world.cloud_state(), before);
}

#[rstest]
#[case::no_node(true)]
#[case::all_excluded(false)]
#[tokio::test(start_paused = true)]
async fn a_cluster_without_nodes_is_reported_and_heals_when_one_joins(#[case] delete: bool) {
    let mut world = World::new(ApiVersion::V1_36);
    for node in ["node-1", "node-2"] {
        if delete {
            world.kube.delete("nodes", "", node).unwrap();
        } else {
            let label = "node.kubernetes.io/exclude-from-external-load-balancers";
            world.kube.patch("nodes", "", node, &json!({"metadata": {"labels": {label: "true"}}})).unwrap();
        }
    }
    world.start().await;
    world.create(&service("web", json!({})));
    world.until_warned_at_rest("web", "There are no available nodes for LoadBalancer").await;
    world.add_node("node-3", "v1.36.0");
    world.until("it is a member", |world| world.cloud_state().contains("member node-3")).await;
    world.until_published("web").await;
}

/// Octavia would only say that the request is bad.
#[tokio::test(start_paused = true)]
async fn an_internal_address_outside_of_the_subnet_is_refused_with_the_subnet() {
    let world = World::started().await;
    let internal = "service.beta.kubernetes.io/openstack-internal-load-balancer";
    let wish =
        json!({"metadata": {"annotations": {internal: "true"}}, "spec": {"loadBalancerIP": "198.51.100.7"}});
    world.create(&service("web", wish));
    world.until_warned_at_rest("web", "198.51.100.7 is not in ").await;
    assert!(world.cloud.load_balancers().is_empty());
}

/// All annotations of an object may have 256 KiB.
#[tokio::test(start_paused = true)]
async fn an_annotation_that_is_too_long_is_named_and_the_load_balancer_serves_on() {
    let mut world = World::serving(&service("web", json!({}))).await;
    world.settings.plans = false;
    let key = "loadbalancer.openstack.org/connection-limit";
    world.annotate("web", key, Some(&"7".repeat(200_000)));
    world.until_warned("web", "(200000 bytes; limit 16384 for all annotations").await;
    assert!(world.warnings("web").iter().any(|warning| warning.contains(key)), "{:?}", world.warnings("web"));
    world.add_node("node-3", "v1.36.0");
    world.until("the node is a member", |world| world.cloud_state().contains("member node-3")).await;
}
