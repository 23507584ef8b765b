//! Nodes and their servers.

use openstack_ccm_controllers::node_lifecycle::NodeLifecycleOptions;
use openstack_ccm_openstack_sim::Fault;
use rstest::rstest;
use serde_json::json;

use super::setup::id;
use crate::support::World;
use crate::support::nodes::SHUTDOWN;

const TYPE: &str = "node.kubernetes.io/instance-type";
const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";

async fn started() -> World {
    let mut world = World::without_nodes();
    world.start().await;
    world
}

/// The addresses of sub-ports of a server's trunk are addresses of its node; one that cannot be read is ignored.
///
/// Contract: N8, better: the sub-ports come with the one list of ports, in place of two requests for each.
#[tokio::test(start_paused = true)]
async fn n8_addresses_of_sub_ports_are_addresses_of_the_node() {
    let world = started().await;
    let server = world.cloud.add_node("node-1");
    let user = world.cloud.user();
    let network =
        id(&user.post("network", "/v2.0/networks", &json!({"network": {"name": "vlan10"}})).1["network"]);
    let subnet = json!({"subnet": {"network_id": network, "ip_version": 4, "cidr": "10.10.0.0/24"}});
    user.post("network", "/v2.0/subnets", &subnet);
    world.cloud.add_sub_port(&server.port_id, &network, 10);
    let parent = user.get("network", &format!("/v2.0/ports/{}", server.port_id)).1;
    let trunk = parent["port"]["trunk_details"]["trunk_id"].as_str().unwrap();
    let port = json!({"port": {"network_id": network}});
    let of_others = id(&world.cloud.admin().post("network", "/v2.0/ports", &port).1["port"]);
    let sub_port = json!({"port_id": of_others, "segmentation_type": "vlan", "segmentation_id": 11});
    let path = format!("/v2.0/trunks/{trunk}/add_subports");
    let (added, _) = world.cloud.admin().put("network", &path, &json!({"sub_ports": [sub_port]}));
    assert_eq!(added, 200);
    world.register("node-1");
    world.until_initialised("node-1").await;
    let addresses = world.node_addresses("node-1");
    assert_eq!(addresses.matches("InternalIP 10.10.0.").count(), 1, "{addresses}");
    assert!(addresses.starts_with(&format!("InternalIP {}", server.addresses[0])), "{addresses}");
}

/// A new node is found by its name and gets provider id, labels and both families of addresses.
///
/// Contract: N9, same.
#[tokio::test(start_paused = true)]
async fn n9_a_new_node_is_found_by_its_name() {
    let world = started().await;
    let server = world.cloud.add_node("node-1");
    // Nova's filter is a regular expression that matches anywhere.
    world.cloud.add_node("node-10");
    world.pass(1).await;
    world.take_calls();
    world.register("node-1");
    world.until_initialised("node-1").await;
    world.pass(1).await;
    assert_eq!(world.provider_id("node-1"), format!("openstack:///{}", server.server_id));
    assert_eq!(world.label("node-1", TYPE), "m1.lab");
    assert_eq!(world.label("node-1", ZONE), "nova");
    assert_eq!(world.label("node-1", REGION), "RegionOne");
    let [v4, v6] = &server.addresses[..] else { panic!("{server:?}") };
    let expected = format!("InternalIP {v4}, InternalIP {v6}, Hostname node-1");
    assert_eq!(world.node_addresses("node-1"), expected);
    assert_eq!(world.take_cloud_calls(), ["GET /", "GET /v2.1/servers/detail", "GET ports"]);
    assert_eq!(world.events("node-1"), ["Normal Synced: Node synced successfully"]);
}

/// With `OS_CCM_REGIONAL=true` the provider ids of new nodes name the region.
///
/// Contract: N10, same.
#[tokio::test(start_paused = true)]
async fn n10_provider_ids_name_the_region_on_request() {
    let mut world = World::without_nodes();
    world.settings.regional_provider_ids = true;
    world.start().await;
    world.join("node-1").await;
    let expected = format!("openstack://RegionOne/{}", world.server_id("node-1"));
    assert_eq!(world.provider_id("node-1"), expected);
    // What has been written is found again.
    world.set_ready("node-1", "Unknown");
    world.cloud.set_server_status("node-1", "SHUTOFF");
    world.until("it is tainted", |world| world.has_taint("node-1", SHUTDOWN)).await;
}

/// A node of another region or provider is left alone in everything.
///
/// Contract: N11, better: it is skipped without an error in every round.
/// Framework: N7, same.
/// Defect: 47, better: it is skipped without an error in every round.
#[rstest]
#[case::region("openstack://R2/8a2ba4ba-1c25-4c8a-b4a0-1d0c8b7f4f10")]
#[case::provider("aws:///eu-central-1a/i-1234")]
#[tokio::test(start_paused = true)]
async fn n11_a_node_of_another_region_is_left_alone(#[case] provider_id: &str) {
    let world = started().await;
    world.cloud.add_node("node-1");
    world.register_with("node-1", &json!({"providerID": provider_id}));
    world.pass(30).await;
    world.set_ready("node-1", "Unknown");
    let before = world.node("node-1");
    world.take_calls();
    world.pass(600).await;
    assert_eq!(world.node("node-1"), before);
    assert!(world.is_uninitialized("node-1"));
    assert!(world.events("node-1").is_empty());
    assert!(world.take_cloud_calls().is_empty());
}

/// A node whose server is gone is deleted; while Nova cannot say, it stays.
///
/// Contract: N13, better: Nova has to say so in two rounds and in a last question about this one server.
#[tokio::test(start_paused = true)]
async fn n13_a_node_without_server_is_deleted() {
    let world = started().await;
    world.join("node-1").await;
    world.join("node-2").await;
    world.set_ready("node-2", "Unknown");
    let failing = Fault::new().service("compute").answer(500, json!({"computeFault": {"message": "boom"}}));
    let failing = world.cloud.faults().add(failing);
    world.cloud.remove_node("node-2");
    world.pass(600).await;
    assert!(!world.node("node-2").is_null());
    world.cloud.faults().remove(failing);
    world.until("it is deleted", |world| world.node("node-2").is_null()).await;
    world.pass(60).await;
    assert!(!world.node("node-1").is_null());
    let events = world.events("node-2");
    assert!(
        events.iter().any(|event| event
            == "Normal DeletingNode: Deleting node node-2 because it does not exist in the cloud provider"),
        "{events:?}"
    );
}

/// A server that is powered off taints its node; one that is suspended does not.
///
/// Contract: N13, same.
#[rstest]
#[case::shut_off("SHUTOFF", true)]
#[case::suspended("SUSPENDED", false)]
#[case::paused("PAUSED", false)]
#[case::error("ERROR", false)]
#[case::deleted_and_still_shown("DELETED", false)]
#[tokio::test(start_paused = true)]
async fn n13_only_a_server_that_is_powered_off_taints(#[case] status: &str, #[case] tainted: bool) {
    let world = started().await;
    world.join("node-1").await;
    world.cloud.set_server_status("node-1", status);
    world.set_ready("node-1", "Unknown");
    world.pass(60).await;
    assert_eq!(world.has_taint("node-1", SHUTDOWN), tainted);
    world.cloud.set_server_status("node-1", "ACTIVE");
    world.set_ready("node-1", "True");
    world.pass(60).await;
    assert!(!world.has_taint("node-1", SHUTDOWN));
    assert!(!world.node("node-1").is_null());
}

/// A node without a provider id whose name no server has, or several, is not deleted, and an event says what to do.
///
/// Contract: N14, better: the reason and the way out are an event on the node.
/// Defect: 46, better: an Event shows the reason, and the node is still never deleted by its name alone.
#[rstest]
#[case::none(0, "no server named node-1")]
#[case::several(2, "several servers named node-1")]
#[tokio::test(start_paused = true)]
async fn n14_a_node_without_server_of_its_name_stays(#[case] servers: usize, #[case] problem: &str) {
    let world = started().await;
    for _ in 0..servers {
        world.cloud.add_node("node-1");
    }
    world.register("node-1");
    world.set_ready("node-1", "Unknown");
    world.pass(600).await;
    assert!(world.is_uninitialized("node-1"));
    let warnings = world.warnings("node-1");
    assert!(warnings[0].contains(problem) && warnings[0].contains("--provider-id"), "{warnings:?}");
}

/// Kubernetes has only lower case, so the case of a server's name counts only where it distinguishes servers.
#[rstest]
#[case::one(&["Node-3"], Some("Node-3"))]
#[case::exact_one_first(&["NODE-3", "node-3"], Some("node-3"))]
#[case::several(&["Node-3", "NODE-3"], None)]
#[tokio::test(start_paused = true)]
async fn the_name_of_a_server_may_differ_from_its_node_in_case(
    #[case] servers: &[&str],
    #[case] expected: Option<&str>,
    #[values(false, true)] beside_others: bool,
) {
    let world = started().await;
    let servers: Vec<_> = servers.iter().map(|name| world.cloud.add_node(name)).collect();
    if beside_others {
        world.register("of-nobody");
    }
    world.register("node-3");
    world.pass(600).await;
    let found = servers.iter().find(|server| expected == Some(&server.name));
    assert_eq!(world.is_uninitialized("node-3"), found.is_none());
    if let Some(server) = found {
        assert_eq!(world.provider_id("node-3"), format!("openstack:///{}", server.server_id));
    } else {
        let warnings = world.warnings("node-3");
        assert!(servers.iter().all(|server| warnings[0].contains(&server.server_id)), "{warnings:?}");
    }
}

/// A name with a domain, or one that several servers have, does not identify the server. The id that the kubelet reports does, if an address
/// of the Node confirms it: a guest may report any id.
#[rstest]
#[case::with_domain("node-4.novalocal", &["node-4"], true)]
#[case::several("node-4", &["node-4", "node-4"], true)]
#[case::address_of_another_server("node-4.novalocal", &["node-4"], false)]
#[tokio::test(start_paused = true)]
async fn a_node_is_found_by_the_id_of_its_machine_if_an_address_confirms_it(
    #[case] name: &str,
    #[case] servers: &[&str],
    #[case] confirmed: bool,
    #[values(false, true)] beside_others: bool,
) {
    let world = started().await;
    let other = world.cloud.add_node("other");
    let servers: Vec<_> = servers.iter().map(|name| world.cloud.add_node(name)).collect();
    let server = servers.last().unwrap();
    if beside_others {
        world.register("of-nobody");
    }
    let address = if confirmed { &server.addresses[0] } else { &other.addresses[0] };
    world.register_machine(name, &server.server_id.to_uppercase(), address);
    world.pass(600).await;
    assert_eq!(world.is_uninitialized(name), !confirmed);
    if confirmed {
        assert_eq!(world.provider_id(name), format!("openstack:///{}", server.server_id));
    } else {
        let warnings = world.warnings(name);
        assert!(warnings[0].contains("systemUUID"), "{warnings:?}");
    }
}

/// The instance type is the name of the flavor, or its id where the name cannot be a label. Where Nova names flavors in
/// servers (2.47), no request for the flavor is made; before, one for each flavor.
///
/// Contract: N16, same.
/// Defect: 48, better: microversion 2.47 where Nova has it, and flavors are remembered.
#[rstest]
#[case::named_in_server("m1.large", true, "m1.large", 0)]
#[case::asked_for("m1.small", false, "m1.small", 1)]
#[case::invalid_named_in_server("my flavor", true, "id", 1)]
#[case::invalid_asked_for("my flavor", false, "id", 1)]
#[tokio::test(start_paused = true)]
async fn n16_the_instance_type_is_the_flavor(
    #[case] flavor: &str,
    #[case] has_2_47: bool,
    #[case] expected: &str,
    #[case] requests: usize,
) {
    let mut world = World::without_nodes();
    world.cloud.set_nova_microversion(if has_2_47 { 104 } else { 1 });
    let flavor_id = world.cloud.add_flavor(flavor);
    for name in ["node-1", "node-2", "node-3"] {
        world.cloud.add_node(name);
        world.cloud.set_server_flavor(name, &flavor_id);
    }
    world.start().await;
    world.register("node-1");
    world.until_initialised("node-1").await;
    world.register("node-2");
    world.register("node-3");
    world.until_initialised("node-3").await;
    let expected = if expected == "id" { flavor_id.as_str() } else { expected };
    for name in ["node-1", "node-2", "node-3"] {
        assert_eq!(world.label(name, TYPE), expected);
    }
    let calls = world.take_cloud_calls();
    let flavors = calls.iter().filter(|call| call.contains("flavors")).count();
    assert_eq!(flavors, requests, "{calls:?}");
}

/// A flavor that was deleted while servers of it run does not keep new nodes out of the cluster.
#[rstest]
#[case(true, "my-flavor")]
#[case(false, "id")]
#[tokio::test(start_paused = true)]
async fn a_deleted_flavor_keeps_no_node_out(#[case] has_2_47: bool, #[case] expected: &str) {
    let mut world = World::without_nodes();
    world.cloud.set_nova_microversion(if has_2_47 { 104 } else { 1 });
    let flavor_id = world.cloud.add_flavor("my flavor");
    world.cloud.add_node("node-1");
    world.cloud.set_server_flavor("node-1", &flavor_id);
    if !has_2_47 {
        world.cloud.remove_flavor(&flavor_id);
    } else {
        let nothing = json!({"flavors": []});
        world.cloud.faults().add(Fault::new().service("compute").path("/flavors").answer(200, nothing));
    }
    world.start().await;
    world.register("node-1");
    world.until_initialised("node-1").await;
    let expected = if expected == "id" { flavor_id.as_str() } else { expected };
    assert_eq!(world.label("node-1", TYPE), expected);
}

/// `[Networking]` of cloud.conf decides about addresses through the whole program.
#[tokio::test(start_paused = true)]
async fn settings_of_networking_are_followed() {
    let mut world = World::without_nodes();
    world.settings.cloud_conf =
        "[Networking]\nipv6-support-disabled=true\npublic-network-name=cluster\n".into();
    world.cloud.add_node("node-1");
    world.cloud.set_server_access_ipv4("node-1", "203.0.113.77");
    world.cloud.set_server_metadata("node-1", "hostname", "node-1.example.org");
    world.start().await;
    world.register("node-1");
    world.until_initialised("node-1").await;
    let address = &world.cloud.nodes()[0].addresses[0];
    let expected = format!("ExternalIP 203.0.113.77, Hostname node-1.example.org, ExternalIP {address}");
    assert_eq!(world.node_addresses("node-1"), expected);
}

/// The delay is that of whoever wants to look before a Node goes; without it nothing is different.
///
/// Contract: O21, better: OCCM has no such switch.
#[tokio::test(start_paused = true)]
async fn a_node_without_server_is_deleted_after_the_delay() {
    let mut world = World::without_nodes();
    let delay = std::time::Duration::from_secs(600);
    world.settings.node_lifecycle =
        Some(NodeLifecycleOptions { deletion_delay: delay, ..NodeLifecycleOptions::default() });
    world.start().await;
    for name in ["node-1", "node-2", "node-3"] {
        world.join(name).await;
    }
    let before = world.cloud.snapshot();
    world.cloud.remove_node("node-2");
    world.set_ready("node-2", "Unknown");
    world.pass(550).await;
    assert!(!world.node("node-2").is_null(), "the delay is not over");
    world.cloud.restore(before);
    world.pass(60).await;
    world.cloud.remove_node("node-2");
    world.pass(550).await;
    assert!(!world.node("node-2").is_null(), "it began anew when the server was there");
    world.pass(100).await;
    assert!(world.node("node-2").is_null());
}

/// Two regions, one instance for each, as in the guide: each initialises its nodes, deletes those whose server is gone, and says nothing of
/// those of the other.
///
/// Contract: O22, better: OCCM warns of each new node of the other region until that is initialised.
#[tokio::test(start_paused = true)]
async fn two_instances_look_after_the_nodes_of_their_regions() {
    let mut one = World::without_nodes();
    let mut two = World::without_nodes();
    two.kube = one.kube.clone();
    two.settings.cloud_conf = "[Global]\nregion=RegionTwo\n".to_owned();
    for world in [&mut one, &mut two] {
        world.settings.regional_provider_ids = true;
        world.settings.serves = false;
        world.settings.plans = false;
    }
    one.start().await;
    one.cloud.add_node("one-1");
    two.cloud.add_node("two-1");
    for name in ["one-1", "two-1"] {
        one.register(name);
    }
    one.pass(120).await;
    assert!(one.is_uninitialized("two-1"), "its own instance does not run yet");
    assert!(one.node_warnings("two-1").is_empty(), "{:?}", one.node_warnings("two-1"));
    two.start().await;
    two.until_initialised("two-1").await;
    for name in ["one-2", "one-3"] {
        one.join(name).await;
    }
    two.cloud.add_node("two-2");
    two.join("two-3").await;
    two.register("two-2");
    two.until_initialised("two-2").await;
    let ids = [one.provider_id("one-1"), one.provider_id("two-1")];
    for (id, region) in ids.iter().zip(["RegionOne", "RegionTwo"]) {
        assert!(id.as_str().unwrap().starts_with(&format!("openstack://{region}/")), "{id}");
    }
    two.cloud.remove_node("two-1");
    one.set_ready("two-1", "Unknown");
    one.set_ready("one-1", "Unknown");
    one.until("the node of the other region is deleted by its instance", |world| {
        world.node("two-1").is_null()
    })
    .await;
    one.pass(900).await;
    for name in ["one-1", "one-2", "one-3", "two-2", "two-3"] {
        assert!(!one.node(name).is_null(), "{name} is kept");
        assert!(one.node_warnings(name).is_empty(), "{name}: {:?}", one.node_warnings(name));
    }
    two.stop().await;
}
