//! Nodes with several interfaces: which of their addresses load balancers send to.

use openstack_ccm_kube_sim::ApiVersion;
use rstest::rstest;
use serde_json::json;

use crate::contract::setup::{annotated, load_balancer};
use crate::support::{World, text};

/// Gives each node an InternalIP on another network before the one that it has, and an ExternalIP.
fn with_several_interfaces(world: &World) {
    for (number, node) in world.kube.list("nodes", "").unwrap().into_iter().enumerate() {
        let name = node["metadata"]["name"].as_str().unwrap().to_owned();
        let mut addresses = node["status"]["addresses"].as_array().unwrap().clone();
        addresses.insert(0, json!({"type": "InternalIP", "address": format!("172.16.0.{}", number + 1)}));
        addresses.push(json!({"type": "ExternalIP", "address": format!("203.0.113.{}", number + 1)}));
        world.kube.patch_status("nodes", "", &name, &json!({"status": {"addresses": addresses}})).unwrap();
    }
}

/// The networks of the members' addresses, by their first number.
fn members(world: &World) -> Vec<String> {
    let mut found: Vec<String> = world.members().iter().map(|one| text(&one["address"]).to_owned()).collect();
    found.sort();
    found.iter().map(|address| address.split('.').next().unwrap().to_owned()).collect()
}

fn world(conf: impl FnOnce(&World) -> String) -> World {
    let mut world = World::new(ApiVersion::V1_36);
    with_several_interfaces(&world);
    world.settings.cloud_conf = conf(&world);
    world
}

fn in_subnet(world: &World) -> String {
    format!("member-subnet-id = {}\n", world.cloud.seed().subnet_id)
}

/// The load balancer is on the network of the nodes, and nobody names a subnet.
fn on_network(world: &World) -> String {
    format!("subnet-id =\nnetwork-id = {}\n", world.cloud.seed().network_id)
}

/// Members are the addresses in the subnet that somebody names for them; where nobody does, the first, as ever.
///
/// Contract: O5, better: OCCM takes the first InternalIP, whether it is in `member-subnet-id` or not.
#[rstest]
#[case::named(true, "198")]
#[case::not_named(false, "172")]
#[tokio::test(start_paused = true)]
async fn members_are_in_the_subnet_that_is_named(#[case] named: bool, #[case] network: &str) {
    let mut world = world(|world| if named { in_subnet(world) } else { on_network(world) });
    world.start().await;
    world.serve(&annotated(&[])).await;
    assert_eq!(members(&world), [network; 2]);
    assert_eq!(load_balancer(&world)["provisioning_status"], "ACTIVE");
}

/// A node that is a member already stays one by the address that it has, also when the operator names the subnet later; a new node has
/// its address there.
#[tokio::test(start_paused = true)]
async fn a_member_keeps_its_address() {
    let mut world = world(on_network);
    world.start().await;
    world.serve(&annotated(&[])).await;
    world.settings.cloud_conf = format!("{}{}", on_network(&world), in_subnet(&world));
    world.restart_to_rest().await;
    assert_eq!(members(&world), ["172"; 2]);
    world.third_node_joins().await;
    assert_eq!(members(&world), ["172", "172", "198"]);
}

/// The user of a Service says which kind of address is meant, at any time; a word that is not known changes nothing.
///
/// Contract: O6, better: OCCM has no such annotation; one is proposed with this name.
#[tokio::test(start_paused = true)]
async fn the_user_names_the_kind_of_address() {
    let mut world = world(in_subnet);
    world.start().await;
    world.serve(&annotated(&[])).await;
    let set = |kind| world.annotate("web", "node-address-type", kind);
    set(Some("ExternalIP"));
    world.quiet().await;
    assert_eq!(members(&world), ["203"; 2]);
    set(Some("external"));
    world.until_warned_at_rest("web", "node-address-type").await;
    assert_eq!(members(&world), ["203"; 2]);
    set(Some("InternalIP"));
    world.quiet().await;
    assert_eq!(members(&world), ["198"; 2]);
}
