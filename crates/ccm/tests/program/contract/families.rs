//! Creation for IPv6 and for two families.

use openstack_ccm_kube_sim::ApiVersion;
use openstack_ccm_openstack_sim::Sim as Cloud;
use rstest::rstest;
use serde_json::{Value, json};

use super::setup::{INTERNAL, allowed_cidrs, load_balancer, member_subnets};
use crate::cloud_faults::{REPLACE, breaks_down};
use crate::support::{ADDRESS, World, service};

const VIP_ADDRESS: &str = "loadbalancer.openstack.org/vip-address";

/// A cluster on a network with subnets of both families; the nodes have an address of each. Nothing but the external
/// network is configured, unless `cloud_conf` says more.
async fn dual_stack(cloud_conf: &str) -> World {
    dual_stack_with_octavia(cloud_conf, 30).await
}

async fn dual_stack_with_octavia(cloud_conf: &str, minor: u8) -> World {
    let cloud = Cloud::builder().nodes(2).ipv6(true).octavia_api(minor).build();
    cloud.set_delays(std::time::Duration::from_secs(2));
    let mut world = World::in_cloud(ApiVersion::V1_36, cloud);
    for node in world.cloud.nodes() {
        let addresses =
            node.addresses.iter().map(|address| json!({"type": "InternalIP", "address": address}));
        let status = json!({"status": {"addresses": addresses.collect::<Vec<_>>()}});
        world.kube.patch_status("nodes", "", &node.name, &status).unwrap();
    }
    world.settings.cloud_conf = format!("network-id=\nsubnet-id=\n{cloud_conf}");
    world.start().await;
    world
}

fn of_families(families: &[&str], change: Value) -> Value {
    let policy = if families.len() == 2 { "RequireDualStack" } else { "SingleStack" };
    let mut service = service("web", change);
    service["spec"]["ipFamilies"] = json!(families);
    service["spec"]["ipFamilyPolicy"] = json!(policy);
    service
}

fn subnets(world: &World) -> (Value, Value) {
    let seed = world.cloud.seed();
    (json!(seed.subnet_id), json!(seed.subnet_v6_id))
}

fn members_are_ipv6(world: &World) -> Vec<bool> {
    world.members().iter().map(|member| member["address"].as_str().unwrap().contains(':')).collect()
}

/// An IPv6 Service gets its VIP and its members on the IPv6 subnet of the nodes, admits everybody of that family, and has
/// no floating IP.
///
/// Contract: C26, better: that an IPv6 address needs no floating IP is no warning, unless the Service asks for one.
#[tokio::test(start_paused = true)]
async fn c26_an_ipv6_service_is_on_the_ipv6_subnet_of_the_nodes() {
    let world = dual_stack("").await;
    world.create(&of_families(&["IPv6"], json!({})));
    world.until_served("web").await;
    let (_, v6) = subnets(&world);
    let lb = load_balancer(&world);
    assert_eq!(lb["vip_subnet_id"], v6);
    assert_eq!(lb["additional_vips"], json!([]));
    assert_eq!(world.ingress("web"), [format!("{}(VIP)", lb["vip_address"].as_str().unwrap())]);
    assert_eq!(member_subnets(&world), [v6.clone(), v6]);
    assert_eq!(members_are_ipv6(&world), [true, true]);
    assert_eq!(allowed_cidrs(&world), [["::/0"]]);
    assert!(world.cloud.floating_ips().is_empty());
    assert!(
        world.take_calls().iter().all(|call| !call.name.ends_with("floatingips")),
        "nobody looks for one"
    );
    assert!(world.warnings("web").is_empty(), "{:?}", world.warnings("web"));
}

/// Who asks for a floating IP of an IPv6 Service is warned that it has none.
#[tokio::test(start_paused = true)]
async fn c26_a_floating_ip_that_is_asked_for_and_not_needed_is_named() {
    let world = dual_stack("").await;
    let network = world.cloud.seed().public_network_id.clone();
    let annotations =
        json!({"metadata": {"annotations": {"loadbalancer.openstack.org/floating-network-id": network}}});
    world.create(&of_families(&["IPv6"], annotations));
    world.until_warned_at_rest("web", "LoadBalancerFloatingIPSkipped").await;
    assert_eq!(world.warnings("web").len(), 1);
}

/// A Service of both families has one load balancer with an address of each: the IPv4 one behind its floating IP, the IPv6
/// one as it is, in the order of the families. Everybody of both families may connect.
///
/// Contract: C27, better: OCCM serves the first family only.
/// Switch: `dual-stack = false` in `[LoadBalancer]`.
#[rstest]
#[case::ipv4_first(&["IPv4", "IPv6"], "")]
#[case::ipv6_first(&["IPv6", "IPv4"], "")]
#[case::configured_ipv4_subnet(&["IPv4", "IPv6"], "subnet")]
#[case::configured_subnet_of_the_second_family(&["IPv6", "IPv4"], "subnet")]
#[case::configured_network(&["IPv4", "IPv6"], "network")]
#[tokio::test(start_paused = true)]
async fn c27_a_service_of_two_families_gets_an_address_of_each(
    #[case] families: &[&str],
    #[case] configured: &str,
) {
    let world = if configured.is_empty() { dual_stack("").await } else { dual_stack_in(configured).await };
    world.create(&of_families(families, json!({})));
    world.until_served("web").await;
    let (v4, v6) = subnets(&world);
    let lb = load_balancer(&world);
    let first_is_v6 = families[0] == "IPv6";
    let (first, second) = if first_is_v6 { (&v6, &v4) } else { (&v4, &v6) };
    assert_eq!((&lb["vip_subnet_id"], &lb["additional_vips"][0]["subnet_id"]), (first, second));
    let addresses = [&lb["vip_address"], &lb["additional_vips"][0]["ip_address"]];
    let v6_address = addresses.into_iter().filter_map(Value::as_str).find(|text| text.contains(':')).unwrap();
    let mut expected = vec!["198.19.0.11(VIP)".to_owned(), format!("{v6_address}(VIP)")];
    if first_is_v6 {
        expected.reverse();
    }
    assert_eq!(world.ingress("web"), expected);
    assert_eq!(allowed_cidrs(&world), [["0.0.0.0/0", "::/0"]]);
    assert_eq!(members_are_ipv6(&world), [first_is_v6, first_is_v6]);
    let members_on = if configured == "network" { &Value::Null } else { first };
    assert_eq!(member_subnets(&world), [members_on.clone(), members_on.clone()]);
    assert!(world.warnings("web").is_empty(), "{:?}", world.warnings("web"));
    let published = world.annotation("web", ADDRESS);
    assert_eq!(published.as_deref(), Some(expected[0].trim_end_matches("(VIP)")));

    world.take_calls();
    world.third_node_joins().await;
    world.annotate_to_rest("web", "example.org/note", Some("nothing that matters")).await;
    let writes = world.take_cloud_writes();
    assert!(writes.iter().all(|write| write.ends_with("members")), "{writes:?}");
    world.release("web").await;
    assert!(world.cloud.load_balancers().is_empty() && world.cloud.floating_ips().is_empty());
}

/// The same with the network, or the IPv4 subnet, of the nodes in cloud.conf.
async fn dual_stack_in(configured: &str) -> World {
    let mut world = dual_stack("").await;
    world.stop().await;
    let seed = world.cloud.seed().clone();
    let line = match configured {
        "network" => format!("network-id={}\n", seed.network_id),
        _ => format!("subnet-id={}\n", seed.subnet_id),
    };
    world.settings.cloud_conf.push_str(&line);
    world.start().await;
    world
}

/// With the switch, a Service of both families gets what OCCM gives: an address of the first.
///
/// Contract: C27, same.
#[rstest]
#[case::ipv4_first(&["IPv4", "IPv6"], "198.19.0.11(VIP)")]
#[case::ipv6_first(&["IPv6", "IPv4"], "fd00:18::")]
#[tokio::test(start_paused = true)]
async fn c27_with_the_switch_only_the_first_family_is_served(
    #[case] families: &[&str],
    #[case] address: &str,
) {
    let world = dual_stack("dual-stack=false\n").await;
    world.create(&of_families(families, json!({})));
    world.until_served("web").await;
    let ingress = world.ingress("web");
    assert!(ingress.len() == 1 && ingress[0].starts_with(address), "{ingress:?}");
    assert_eq!(load_balancer(&world)["additional_vips"], json!([]));
    assert!(world.warnings("web").is_empty());
}

/// An internal Service of both families is published by its two VIPs.
///
/// Defect: 71, better: each family has its address.
#[tokio::test(start_paused = true)]
async fn c27_an_internal_service_of_two_families_is_published_by_its_vips() {
    let world = dual_stack("").await;
    let internal = json!({"metadata": {"annotations": {INTERNAL: "true"}}});
    world.create(&of_families(&["IPv4", "IPv6"], internal));
    world.until_served("web").await;
    let lb = load_balancer(&world);
    let vips = [&lb["vip_address"], &lb["additional_vips"][0]["ip_address"]];
    let expected: Vec<String> = vips.iter().map(|vip| format!("{}(VIP)", vip.as_str().unwrap())).collect();
    assert_eq!(world.ingress("web"), expected);
}

/// Every address of a Service has the same mode.
#[tokio::test(start_paused = true)]
async fn c27_both_addresses_have_the_mode_that_the_service_needs() {
    let world = dual_stack("").await;
    let proxy = json!({"metadata": {"annotations": {"loadbalancer.openstack.org/proxy-protocol": "v2"}}});
    world.create(&of_families(&["IPv4", "IPv6"], proxy));
    world.until_served("web").await;
    let ingress = world.ingress("web");
    assert!(ingress.len() == 2 && ingress.iter().all(|entry| entry.ends_with("(Proxy)")), "{ingress:?}");
}

/// Where a second address cannot be had the Service gets one, and an event says why.
#[rstest]
#[case::old_octavia("", 25, "requires Octavia API 2.26")]
#[case::no_subnet("narrow", 30, "has no IPv6 subnet")]
#[tokio::test(start_paused = true)]
async fn c27_a_second_address_that_cannot_be_had_is_named(
    #[case] network: &str,
    #[case] minor: u8,
    #[case] reason: &str,
) {
    let world =
        if network.is_empty() { dual_stack_with_octavia("", minor).await } else { World::started().await };
    world.create(&of_families(&["IPv4", "IPv6"], json!({})));
    world.until_served_at("web", "198.19.0.11(VIP)").await;
    world.assert_warned_once("web", reason);
}

/// A load balancer that was made for one family cannot get a second address: it serves on, and an event says what helps.
#[tokio::test(start_paused = true)]
async fn c27_a_service_that_becomes_dual_stack_later_has_to_be_recreated_and_is_warned() {
    let world = dual_stack("").await;
    world.serve(&of_families(&["IPv4"], json!({}))).await;
    world.patch(
        "web",
        &json!({"spec": {"ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "PreferDualStack"}}),
    );
    world.until_warned_at_rest("web", "LoadBalancerSingleStack").await;
    world.assert_warned_once("web", "delete the Service and create it again");
    assert_eq!(world.ingress("web"), ["198.19.0.11(VIP)"]);
    assert!(world.take_cloud_writes().is_empty());
}

/// UDP reaches members of its own family only, so such a port is named.
#[tokio::test(start_paused = true)]
async fn c27_a_udp_port_of_a_dual_stack_service_is_named() {
    let world = dual_stack("").await;
    let ports = json!({"spec": {"ports": [
        {"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "http", "port": 80, "protocol": "TCP"}]}});
    world.create(&of_families(&["IPv4", "IPv6"], ports));
    world.until_served("web").await;
    world.assert_warned_once("web", "53/UDP cannot be reached on the IPv6 address");
    assert_eq!(world.ingress("web").len(), 2);
}

/// A dual-stack load balancer that is recreated has both its addresses again: one that broke, and one that somebody deleted
/// while the program did not run. Of the latter only the VIP behind the floating IP is not known.
#[rstest]
#[case::broke(false)]
#[case::deleted_while_nobody_looked(true)]
#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_is_recreated_has_both_addresses_again(#[case] away: bool) {
    let mut world = dual_stack(REPLACE).await;
    let mut other = of_families(&["IPv4", "IPv6"], json!({}));
    other["metadata"]["name"] = json!("other");
    world.serve(&other).await;
    world.serve(&of_families(&["IPv4", "IPv6"], json!({}))).await;
    // Lower addresses become free, which Neutron would give to a new load balancer.
    world.release("other").await;
    let before = load_balancer(&world);
    let (ingress, path) =
        (world.ingress("web"), format!("/v2.0/lbaas/loadbalancers/{}", before["id"].as_str().unwrap()));
    assert_eq!(ingress.len(), 2);
    if away {
        world.stop().await;
        assert_eq!(world.cloud.user().delete("load-balancer", &format!("{path}?cascade=true")).0, 204);
        world.cloud.settle();
        world.start().await;
    } else {
        breaks_down(&world, "web");
    }
    let anew = |world: &World| {
        let found = world.cloud.load_balancer("kube_service_c1_default_web");
        found.is_some_and(|one| one["id"] != before["id"] && one["provisioning_status"] == "ACTIVE")
    };
    world.until("it is recreated", anew).await;
    world.quiet().await;
    assert_eq!(world.ingress("web"), ingress);
    let after = load_balancer(&world);
    let second = |load_balancer: &Value| load_balancer["additional_vips"][0]["ip_address"].clone();
    assert_eq!(second(&after), second(&before));
    assert_eq!(after["vip_address"] == before["vip_address"], !away);
}

/// An IPv6 Service chooses its VIP.
///
/// Contract: C28, same.
#[tokio::test(start_paused = true)]
async fn c28_an_ipv6_service_chooses_its_address() {
    let world = dual_stack("").await;
    world.create(&of_families(&["IPv6"], json!({"spec": {"loadBalancerIP": "fd00:18::5"}})));
    world.until_ingress("web", "fd00:18::5(VIP)").await;
    assert_eq!(load_balancer(&world)["vip_address"], "fd00:18::5");
}

/// One address of each family, each in the subnet of its family.
///
/// Contract: O18, better: OCCM has one field for one address.
#[tokio::test(start_paused = true)]
async fn a_service_of_two_families_chooses_both_addresses() {
    let world = dual_stack("").await;
    let (v4, v6) = subnets(&world);
    let prefix = world.cloud.nodes()[0].addresses[0].rsplit_once('.').unwrap().0.to_owned();
    let asks = |text: &str| json!({"metadata": {"annotations": {INTERNAL: "true", VIP_ADDRESS: text}}});
    let both = format!("fd00:18::5, {prefix}.200");
    world.create(&of_families(&["IPv4"], asks(&both)));
    world.until_warned("web", "has too many addresses").await;
    world.release("web").await;
    world.create(&of_families(&["IPv4", "IPv6"], asks("fd00:99::5")));
    world.until_warned("web", "vip-address: fd00:99::5 is not in").await;
    assert!(world.cloud.load_balancers().is_empty());
    world.annotate("web", VIP_ADDRESS, Some(&both));
    world.until_served("web").await;
    assert_eq!(world.ingress("web"), [format!("{prefix}.200(VIP)"), "fd00:18::5(VIP)".to_owned()]);
    let lb = load_balancer(&world);
    assert_eq!((&lb["vip_subnet_id"], &lb["additional_vips"][0]["subnet_id"]), (&v4, &v6));
    world.annotate("web", VIP_ADDRESS, Some(&format!("{prefix}.200,fd00:18::6")));
    world.until_warned("web", "vip-address asks for fd00:18::6, the load balancer has fd00:18::5").await;
}

/// The IPv4 subnet of cloud.conf gives an IPv6 Service no address that it wants.
#[tokio::test(start_paused = true)]
async fn an_ipv6_service_is_not_put_on_an_ipv4_subnet() {
    let mut world = dual_stack("").await;
    world.stop().await;
    let (ipv4, _) = subnets(&world);
    world.settings.cloud_conf = format!("network-id=\nsubnet-id={}\n", ipv4.as_str().unwrap());
    world.start().await;
    world.create(&of_families(&["IPv6"], json!({})));
    world.until_warned("web", "asks for IPv6 only").await;
    let warnings = world.warnings("web").join("\n");
    for way_out in ["loadbalancer.openstack.org/subnet-id", "set spec.ipFamilies to IPv4"] {
        assert!(warnings.contains(way_out), "{warnings}");
    }
    assert!(world.cloud.load_balancers().is_empty());
    world.create(&service("old", json!({})));
    world.until_published("old").await;
}
