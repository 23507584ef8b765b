//! Input that cannot work: one clear event, nothing breaks, and the next good input heals it without a restart.

use openstack_ccm_kube_sim::ApiVersion;
use openstack_ccm_openstack_sim::Fault;
use openstack_ccm_provider_openstack::load_balancer::annotations::{ALL, Form};
use rstest::rstest;
use serde_json::json;

use crate::support::{ANNOTATION, World, lb_name, service};

const NOWHERE: &str = "00000000-0000-4000-8000-000000000000";

/// A wrong value of each annotation that is read.
fn wrong(key: &str, form: Form) -> Option<String> {
    let text = match form {
        Form::Output(_) => return None,
        Form::Bool => "maybe",
        Form::Integer { max, .. } => return Some(max.wrapping_add(1).to_string()),
        Form::Word(_) => "nonsense",
        Form::Uuid(_) => "a-name",
        Form::Text(_) => match key.rsplit_once('/').map_or(key, |(_, name)| name) {
            "class" => "unknown",
            "proxy-protocol" => "v2:443",
            "health-monitor-path" => "healthz",
            "health-monitor-expected-codes" => "2xx",
            "sni-container-refs" => "my-certificates",
            "tls-versions" => "TLSv1.4",
            "tls-ciphers" => "A,B",
            "alpn-protocols" => "h3",
            "floating-subnet" => "~(",
            "floating-subnet-tags" => "!&",
            "default-tls-container-ref" => "my-certificate",
            "node-selector" => "=edge",
            "hostname" => "under_score",
            "load-balancer-source-ranges" => "everybody",
            "availability-zone" => return Some("z".repeat(256)),
            other => panic!("no wrong value is known for {other}"),
        },
    };
    Some(text.to_owned())
}

/// Each annotation in turn on one Service that serves: the load balancer stays as it is, the user is told key and
/// value once, and taking the value back is enough.
#[tokio::test(start_paused = true)]
async fn a_wrong_annotation_is_named_once_and_the_load_balancer_serves_on() {
    for annotation in ALL {
        let Some(value) = wrong(annotation.key, annotation.form) else { continue };
        let (key, shown) = (annotation.key, value.chars().take(80).collect::<String>());
        let world = World::serving(&service("web", json!({}))).await;
        let (state, ingress) = (world.cloud_state(), world.ingress("web"));
        let port = |port: u16| json!([{"name": "http", "port": port, "protocol": "TCP"}]);
        // A good change beside the wrong one: nothing is done by halves.
        let before = world.annotation("web", key);
        world
            .patch("web", &json!({"metadata": {"annotations": {key: value}}, "spec": {"ports": port(8080)}}));
        world.until_warned("web", &shown).await;
        // Some repetitions later.
        tokio::time::sleep(std::time::Duration::from_secs(250)).await;
        let warnings = world.warnings("web");
        assert_eq!(warnings.len(), 1, "{key}: {warnings:?}");
        assert!(warnings[0].contains(key) && warnings[0].contains(&shown), "{warnings:?}");
        assert_eq!((world.cloud_state(), world.ingress("web")), (state, ingress), "{key}");
        world.annotate("web", key, before.as_deref());
        let listens = |world: &World| world.cloud.listeners()[0]["protocol_port"] == 8080;
        world.until(&format!("the good change is made without {key}"), listens).await;
        world.quiet().await;
        assert_eq!(world.warnings("web").len(), 1, "{key}");
    }
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
#[case::subnet("subnet-id", "subnet 00000000-0000-4000-8000-000000000000 does not exist")]
#[case::member_subnet("member-subnet-id", "subnet 00000000-0000-4000-8000-000000000000 does not exist")]
#[case::floating_network(
    "floating-network-id",
    "network 00000000-0000-4000-8000-000000000000 does not exist"
)]
#[case::port("port-id", "port 00000000-0000-4000-8000-000000000000 does not exist")]
#[case::load_balancer(
    "load-balancer-id",
    "load balancer 00000000-0000-4000-8000-000000000000 does not exist"
)]
#[tokio::test(start_paused = true)]
async fn an_id_that_nothing_has_is_named_and_a_right_one_heals(#[case] key: &str, #[case] message: &str) {
    let world = World::started().await;
    world.create(&service(
        "web",
        json!({"metadata": {"annotations": {format!("{ANNOTATION}{key}"): NOWHERE}}}),
    ));
    world.until_warned("web", message).await;
    world.quiet().await;
    let warnings = world.warnings("web");
    assert!(warnings.len() == 1 && warnings[0].contains(key), "{warnings:?}");
    assert!(world.cloud.load_balancers().is_empty() && world.cloud.leaked_ports().is_empty());
    assert!(world.take_cloud_writes().is_empty());
    world.annotate("web", &format!("{ANNOTATION}{key}"), None);
    world.until_published("web").await;
}

#[rstest]
#[case::load_balancers("load_balancer")]
#[case::listeners("listener")]
#[case::pools("pool")]
#[case::members("member")]
#[tokio::test(start_paused = true)]
async fn a_quota_of_octavia_that_is_met_is_named_and_raising_it_heals(#[case] resource: &str) {
    let world = World::started().await;
    world.cloud.set_octavia_quota(resource, 0);
    world.create(&service("web", json!({})));
    world.until_warned("web", "quota").await;
    tokio::time::sleep(std::time::Duration::from_secs(1800)).await;
    let warnings = world.warnings("web");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    world.cloud.set_octavia_quota(resource, 10);
    world.until_published("web").await;
    world.quiet().await;
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
    let world = World::started().await;
    let subnet = &world.cloud.seed().subnet_id;
    let theirs = json!({"loadbalancer": {"name": lb_name("web"), "vip_subnet_id": subnet,
        "description": "Kubernetes external service default/web from cluster c1",
        "tags": ["openstack-ccm-cluster=another", lb_name("web")]}});
    world.cloud.user().post("load-balancer", "/v2.0/lbaas/loadbalancers", &theirs);
    world.cloud.settle();
    let before = world.cloud_state();
    world.create(&service("web", json!({})));
    world.until_warned("web", "belongs to another cluster").await;
    world.quiet().await;
    assert_eq!(world.cloud_state(), before);
    assert_eq!(world.warnings("web").len(), 1);
    world.annotate("web", "loadbalancer.openstack.org/allow-foreign-cluster", Some("true"));
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
    world.delete("web");
    world.until_gone("web").await;
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
    world.delete("web");
    world.until_gone("web").await;
    world.quiet().await;
    assert_eq!(world.cloud_state(), before);
}

#[rstest]
#[case::no_node(true)]
#[case::all_excluded(false)]
#[tokio::test(start_paused = true)]
async fn a_cluster_without_nodes_is_told_and_heals_when_one_joins(#[case] delete: bool) {
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
    world.until_warned("web", "There are no available nodes for LoadBalancer").await;
    world.quiet().await;
    world.add_node("node-3", "v1.36.0");
    world.until("it is a member", |world| world.cloud_state().contains("member node-3")).await;
    world.until_published("web").await;
}
