//! Who may connect, and what a namespace may refer to.

use rstest::rstest;
use serde_json::{Value, json};

use crate::contract::setup::{
    INTERNAL, allowed_cidrs, annotated, attach, configured, floating_ip, id, load_balancer,
};
use crate::support::{ANNOTATION, World, lb_name, service};

const RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";

#[tokio::test(start_paused = true)]
async fn the_cluster_itself_may_connect_where_the_service_asks_for_it() {
    let world = World::started().await;
    let of_node = floating_ip(&world.cloud, "198.19.0.77", "of a node");
    attach(&world.cloud, &of_node, &world.cloud.nodes()[0].port_id);
    world.serve(&annotated(&[(RANGES, "203.0.113.0/24")])).await;
    assert_eq!(allowed_cidrs(&world), [["203.0.113.0/24"]]);
    world.annotate_to_rest("web", "allow-cluster-sources", Some("true")).await;
    let gateway =
        world.cloud.routers()[0]["external_gateway_info"]["external_fixed_ips"][0]["ip_address"].clone();
    let mut expected = vec![
        "198.18.0.0/24".to_owned(),
        "198.19.0.77/32".to_owned(),
        format!("{}/32", gateway.as_str().unwrap()),
        "203.0.113.0/24".to_owned(),
    ];
    expected.sort();
    assert_eq!(allowed_cidrs(&world), [expected]);
    let events = world.events("web");
    let listed = events.iter().find(|event| event.contains("LoadBalancerClusterSourcesAllowed")).unwrap();
    assert!(
        listed.starts_with("Normal") && listed.contains("198.18.0.0/24") && listed.contains("198.19.0.77/32"),
        "{listed}"
    );
    world.annotate_to_rest("web", "allow-cluster-sources", None).await;
    assert_eq!(allowed_cidrs(&world), [["203.0.113.0/24"]]);
}

#[tokio::test(start_paused = true)]
async fn without_source_ranges_there_is_nothing_to_add() {
    let world = World::serving(&annotated(&[("allow-cluster-sources", "true")])).await;
    assert_eq!(allowed_cidrs(&world), [["0.0.0.0/0"]]);
}

/// A cluster in which the namespace `default` may use what the lines say.
async fn restricted(lines: &str) -> World {
    configured(|_| format!("[LoadBalancerNamespace \"default\"]\n{lines}")).await
}

const ELSEWHERE: &str = "00000000-0000-4000-8000-000000000000";

/// Defect: 84, better: cloud.conf may say what a namespace may refer to.
#[rstest]
#[case::network("allowed-networks=", "network-id")]
#[case::floating_network("allowed-networks=", "floating-network-id")]
#[case::subnet("allowed-subnets=11111111-0000-4000-8000-000000000000", "subnet-id")]
#[case::member_subnet("allowed-subnets=", "member-subnet-id")]
#[case::floating_subnet("allowed-subnets=", "floating-subnet-id")]
#[case::floating_subnet_by_name("allowed-subnets=", "floating-subnet")]
#[case::port("allowed-ports=", "port-id")]
#[tokio::test(start_paused = true)]
async fn what_a_namespace_may_not_name_is_refused_before_anything_is_made(
    #[case] line: &str,
    #[case] key: &str,
) {
    let world = restricted(line).await;
    world.create(&annotated(&[(key, ELSEWHERE)]));
    world.until_warned_at_rest("web", "is not allowed in this namespace").await;
    let (warnings, list) = (world.warnings("web"), line.split('=').next().unwrap());
    assert!(warnings.len() == 1 && warnings[0].contains(key) && warnings[0].contains(list), "{warnings:?}");
    assert!(world.take_cloud_writes().is_empty());
    world.annotate("web", &format!("{ANNOTATION}{key}"), None);
    world.until_published("web").await;
}

#[tokio::test(start_paused = true)]
async fn what_is_on_the_list_or_not_restricted_may_be_named() {
    let world = configured(|world| {
        let subnet = &world.cloud.seed().subnet_id;
        format!("[LoadBalancerNamespace \"*\"]\nallowed-subnets={ELSEWHERE},{subnet}\n")
    })
    .await;
    let seed = world.cloud.seed().clone();
    world.serve(&annotated(&[("subnet-id", &seed.subnet_id), ("network-id", &seed.network_id)])).await;
    assert_eq!(load_balancer(&world)["vip_subnet_id"], json!(seed.subnet_id));
}

#[tokio::test(start_paused = true)]
async fn secrets_are_allowed_by_id() {
    let world = restricted("allowed-secrets=c1\n").await;
    let reference = |id: &str| format!("https://barbican.example.org/v1/containers/{id}");
    world.create(&annotated(&[("default-tls-container-ref", &reference("c2"))]));
    world.until_warned("web", "add this value to allowed-secrets").await;
    world.annotate("web", "default-tls-container-ref", Some(&reference("c1")));
    world.until_warned("web", "does not exist").await;
}

#[tokio::test(start_paused = true)]
async fn addresses_are_allowed_by_network() {
    let world = restricted("allowed-addresses=198.19.0.128/25\n").await;
    for address in ["198.19.0.77", "198.19.0.200"] {
        floating_ip(&world.cloud, address, "");
    }
    world.create(&service("web", json!({"spec": {"loadBalancerIP": "198.19.0.77"}})));
    world.until_warned("web", "spec.loadBalancerIP: \"198.19.0.77\" is not allowed").await;
    world.patch("web", &json!({"spec": {"loadBalancerIP": "198.19.0.200"}}));
    world.until_ingress("web", "198.19.0.200(VIP)").await;
}

/// What a Service says it had is no more than what it asks for.
#[rstest]
#[case::nothing_is_allowed("allowed-addresses=\n", false)]
#[case::it_is_allowed("allowed-addresses=198.18.0.222/32\n", true)]
#[tokio::test(start_paused = true)]
async fn an_address_in_an_annotation_is_no_way_around_the_list(#[case] policy: &str, #[case] gets_it: bool) {
    let world = restricted(policy).await;
    world.create(&annotated(&[(INTERNAL, "true"), ("load-balancer-address", "198.18.0.222")]));
    world.until_published("web").await;
    assert_eq!(load_balancer(&world)["vip_address"] == "198.18.0.222", gets_it);
}

/// The id that the program itself wrote into the annotation is no wish of the user.
#[tokio::test(start_paused = true)]
async fn a_service_may_always_use_its_own_load_balancer_and_those_on_the_list() {
    let mut listed = String::new();
    let world = configured(|world| {
        let subnet = world.cloud.seed().subnet_id.clone();
        let mut made = [String::new(), String::new()];
        for (name, id_of) in ["listed", "unlisted"].into_iter().zip(&mut made) {
            let body = json!({"loadbalancer": {"name": name, "vip_subnet_id": subnet}});
            let (_, answer) = world.cloud.user().post("load-balancer", "/v2.0/lbaas/loadbalancers", &body);
            *id_of = id(&answer["loadbalancer"]);
        }
        world.cloud.settle();
        listed.clone_from(&made[0]);
        format!("[LoadBalancerNamespace \"default\"]\nallowed-load-balancers={listed}\n")
    })
    .await;
    world.serve(&service("web", json!({}))).await;
    world.annotate_to_rest("web", "example.org/note", Some("another pass")).await;
    assert!(world.warnings("web").is_empty(), "{:?}", world.warnings("web"));
    let internal = "service.beta.kubernetes.io/openstack-internal-load-balancer";
    let on = |name: &str, lb: &Value| {
        let annotations = json!({internal: "true", format!("{ANNOTATION}load-balancer-id"): lb["id"]});
        service(name, json!({"metadata": {"annotations": annotations}}))
    };
    let find = |name: &str| world.cloud.load_balancer(name).unwrap();
    world.create(&on("guest", &find("listed")));
    world.until_published("guest").await;
    world.create(&on("intruder", &find("unlisted")));
    world.until_warned_at_rest("intruder", "add it to allowed-load-balancers").await;
    assert!(find("unlisted")["listeners"].as_array().is_none_or(Vec::is_empty));
}

/// Octavia takes a second load balancer on a VIP port, and turns it to ERROR: it is refused before.
#[tokio::test(start_paused = true)]
async fn a_second_load_balancer_on_one_port_is_refused() {
    let world = World::serving(&service("web", json!({}))).await;
    let port = load_balancer(&world)["vip_port_id"].as_str().unwrap().to_owned();
    let annotations = json!({format!("{ANNOTATION}port-id"): port});
    world.create(&service("second", json!({"metadata": {"annotations": annotations}})));
    world
        .until_warned("second", "is already the VIP port of load balancer kube_service_c1_default_web")
        .await;
    world.quiet().await;
    assert!(world.cloud.load_balancer(&lb_name("second")).is_none());
    assert_eq!(load_balancer(&world)["provisioning_status"], "ACTIVE");
}

#[tokio::test(start_paused = true)]
async fn a_service_without_node_ports_is_warned_that_nothing_answers() {
    let world = World::started().await;
    world.create(&service("web", json!({"spec": {"allocateLoadBalancerNodePorts": false}})));
    world.until_served("web").await;
    world.assert_warned_once("web", "LoadBalancerWithoutNodePorts");
    assert_eq!(world.ingress("web"), ["198.19.0.11(VIP)"]);
}
