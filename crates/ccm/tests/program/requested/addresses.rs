//! Annotations in place of `spec.loadBalancerIP`, which Kubernetes has deprecated.

use serde_json::{Value, json};

use crate::contract::setup::{annotated, attach, floating_ip, load_balancer};
use crate::support::{World, service};

const FLOATING_IP: &str = "loadbalancer.openstack.org/floating-ip";
const VIP_ADDRESS: &str = "loadbalancer.openstack.org/vip-address";
const INTERNAL: &str = "service.beta.kubernetes.io/openstack-internal-load-balancer";
const ASKED: &str = "198.19.0.77";
const OTHER: &str = "198.19.0.78";

/// Contract: O18, better: OCCM has `spec.loadBalancerIP` only.
#[tokio::test(start_paused = true)]
async fn a_floating_ip_is_asked_for_by_annotation_and_exchanged_when_that_changes() {
    let world = World::started().await;
    floating_ip(&world.cloud, ASKED, "");
    world.serve(&annotated(&[("floating-ip", ASKED)])).await;
    assert_eq!(world.ingress("web"), [format!("{ASKED}(VIP)")]);
    // Only what the Service got from the program makes way.
    let mut world = World::serving(&service("web", json!({}))).await;
    // A plan does not know what the controller has seen.
    world.settings.plans = false;
    floating_ip(&world.cloud, OTHER, "");
    world.annotate("web", FLOATING_IP, Some(OTHER));
    world.until_served_at("web", &format!("{OTHER}(VIP)")).await;
    assert!(world.warnings("web").is_empty(), "{:#?}", world.warnings("web"));
}

/// Manifests carry the annotation for other controllers, where it had no effect here so far.
#[tokio::test(start_paused = true)]
async fn an_annotation_that_was_there_before_changes_nothing_at_the_start() {
    let mut world = World::serving(&service("web", json!({}))).await;
    let before = world.ingress("web");
    floating_ip(&world.cloud, ASKED, "");
    floating_ip(&world.cloud, OTHER, "");
    world.stop().await;
    world.annotate("web", FLOATING_IP, Some(ASKED));
    world.annotate("web", VIP_ADDRESS, Some("10.0.0.77"));
    world.start_to_rest().await;
    assert!(world.take_cloud_writes().is_empty());
    assert_eq!(world.ingress("web"), before);
    let warnings = world.warnings("web");
    for part in ["floating-ip is 198.19.0.77", "vip-address asks for 10.0.0.77"] {
        assert!(warnings.iter().any(|warning| warning.contains(part)), "{part}: {warnings:#?}");
    }
    world.settings.plans = false;
    world.annotate("web", FLOATING_IP, Some(OTHER));
    world.until_ingress("web", &format!("{OTHER}(VIP)")).await;
}

/// Version 0.2.0 knew none of these: whoever has them in a manifest keeps what serves, and learns what they mean now.
#[tokio::test(start_paused = true)]
async fn an_upgrade_with_every_new_annotation_present_changes_nothing_at_the_start() {
    let mut world = World::started().await;
    floating_ip(&world.cloud, ASKED, "");
    let ports = json!([{"name": "dns", "port": 53, "protocol": "TCP", "nodePort": 30053}]);
    world.serve(&service("web", json!({}))).await;
    world.serve(&service("other", json!({"spec": {"loadBalancerIP": ASKED, "ports": ports}}))).await;
    let before = (world.ingress("web"), world.ingress("other"));
    world.stop().await;
    for (name, value) in [
        (FLOATING_IP, ASKED),
        (VIP_ADDRESS, "10.0.0.77"),
        ("loadbalancer.openstack.org/lb-provider", "ovn"),
        ("loadbalancer.openstack.org/share-by-address", "true"),
    ] {
        world.annotate("web", name, Some(value));
    }
    world.annotate("other", "loadbalancer.openstack.org/share-by-address", Some("true"));
    world.take_cloud_writes();
    world.start().await;
    world.pass(4000).await;
    assert!(world.take_cloud_writes().is_empty());
    assert_eq!((world.ingress("web"), world.ingress("other")), before);
    let warnings = world.warnings("web").join("\n");
    for part in ["floating-ip is 198.19.0.77", "lb-providers in [LoadBalancer] of cloud.conf"] {
        assert!(warnings.contains(part), "{part}: {warnings}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_field_and_the_annotation_have_to_agree() {
    let world = World::started().await;
    let asks = |annotation: &str| json!({"metadata": {"annotations": {FLOATING_IP: annotation}}, "spec": {"loadBalancerIP": ASKED}});
    floating_ip(&world.cloud, ASKED, "");
    world.create(&service("web", asks(OTHER)));
    world.until_warned("web", "the address in spec.loadBalancerIP").await;
    assert!(world.cloud.load_balancers().is_empty());
    world.annotate("web", FLOATING_IP, Some(ASKED));
    world.until_ingress("web", &format!("{ASKED}(VIP)")).await;
}

#[tokio::test(start_paused = true)]
async fn an_internal_load_balancer_gets_the_address_of_the_annotation() {
    let world = World::started().await;
    let prefix = world.cloud.nodes()[0].addresses[0].rsplit_once('.').unwrap().0.to_owned();
    let asked = format!("{prefix}.200");
    world.serve(&annotated(&[(INTERNAL, "true"), ("vip-address", &asked), ("floating-ip", ASKED)])).await;
    assert_eq!(load_balancer(&world)["vip_address"], json!(asked));
    assert!(world.cloud.floating_ips().is_empty());
    world.until_warned("web", "floating-ip").await;
}

const WRITTEN: &str = "loadbalancer.openstack.org/load-balancer-address";

/// The annotation that shows the address looks like one that asks for it.
#[tokio::test(start_paused = true)]
async fn the_annotation_that_shows_the_address_names_the_one_that_asks_for_it() {
    let world = World::started().await;
    world.create(&annotated(&[(WRITTEN, ASKED)]));
    world
        .until_warned(
            "web",
            "to ask for 198.19.0.77, set loadbalancer.openstack.org/floating-ip to this address",
        )
        .await;
    world.until_served("web").await;
    let published = world.ingress("web");
    let shown = world.annotation("web", WRITTEN).unwrap();
    assert_eq!(published, [format!("{shown}(VIP)")]);
    assert_eq!(world.warnings("web").len(), 1, "{:#?}", world.warnings("web"));
    world.annotate("web", WRITTEN, Some(OTHER));
    world
        .until_warned(
            "web",
            "to ask for 198.19.0.78, set loadbalancer.openstack.org/floating-ip to this address",
        )
        .await;
    world.quiet().await;
    assert_eq!((world.ingress("web"), world.annotation("web", WRITTEN)), (published, Some(shown)));
}

/// Neutron does not show on which port a floating IP is that somebody attached: it leads to the address of the load balancer.
#[tokio::test(start_paused = true)]
async fn a_floating_ip_without_a_port_counts_if_only_one_subnet_has_its_address() {
    let (world, id) = exposed_beside(None).await;
    world.until_served_at("web", &format!("{ASKED}(VIP)")).await;
    assert_eq!(ids(&world.cloud.floating_ips()), [id], "no second one is made");
}

/// Where two subnets have the address, it may be on the port of another machine.
#[tokio::test(start_paused = true)]
async fn a_floating_ip_without_a_port_is_left_alone_if_two_subnets_have_its_address() {
    let (world, id) = exposed_beside(Some("198.18.0.0/24")).await;
    let before = shown(&world, &id);
    world.quiet().await;
    assert_eq!(shown(&world, &id), before);
    let published = world.ingress("web");
    assert!(!published.iter().any(|entry| entry.contains(ASKED)), "{published:?}");
}

/// A Service that was internal and is no longer, with a floating IP that leads to the VIP and does not show its port; another network
/// has this subnet.
async fn exposed_beside(subnet: Option<&str>) -> (World, String) {
    let mut world = World::serving(&annotated(&[(INTERNAL, "true")])).await;
    if let Some(cidr) = subnet {
        let user = world.cloud.user();
        let (_, network) = user.post("network", "/v2.0/networks", &json!({"network": {"name": "else"}}));
        let subnet = json!({"network_id": network["network"]["id"], "ip_version": 4, "cidr": cidr});
        user.make("network", "/v2.0/subnets", &json!({"subnet": subnet}));
    }
    let id = floating_ip(&world.cloud, ASKED, "of a person");
    attach(&world.cloud, &id, load_balancer(&world)["vip_port_id"].as_str().unwrap());
    assert!(world.cloud.hide_floating_ip_port(&id));
    world.stop().await;
    world.annotate("web", INTERNAL, None);
    world.start().await;
    (world, id)
}

fn ids(objects: &[Value]) -> Vec<&str> {
    objects.iter().filter_map(|one| one["id"].as_str()).collect()
}

fn shown(world: &World, id: &str) -> Option<Value> {
    world.cloud.floating_ips().into_iter().find(|one| one["id"] == id)
}
