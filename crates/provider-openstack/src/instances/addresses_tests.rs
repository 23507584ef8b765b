use openstack_ccm_core::instance::address::InstanceAddress;
use rstest::rstest;
use serde_json::{Value, from_value, json};

use super::*;

#[allow(clippy::needless_pass_by_value, reason = "json! literals read better by value")]
fn server(value: Value) -> Server {
    let mut server = json!({"id": "s", "name": "n", "status": "ACTIVE", "tenant_id": "p"});
    server.as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
    from_value(server).unwrap()
}

fn port(id: &str, address: &str, status: &str) -> Port {
    from_value(json!({
        "id": id, "network_id": "n", "status": status,
        "fixed_ips": [{"subnet_id": "s", "ip_address": address}],
    }))
    .unwrap()
}

fn fixed(address: &str) -> Value {
    json!({"addr": address, "version": 4, "OS-EXT-IPS:type": "fixed"})
}

fn floating(address: &str) -> Value {
    json!({"addr": address, "version": 4, "OS-EXT-IPS:type": "floating"})
}

/// A server with two addresses on `private`, one of them with a floating IP, and two on `public`.
fn example() -> Server {
    server(json!({
        "accessIPv4": "50.56.176.99",
        "accessIPv6": "2001:4800:790e:510:be76:4eff:fe04:82a8",
        "metadata": {"hostname": "h"},
        "addresses": {
            "private": [fixed("10.0.0.32"), floating("50.56.176.36"), fixed("10.0.0.31")],
            "public": [fixed("50.56.176.35"), fixed("2001:4800:780e:510:be76:4eff:fe04:84a8")],
        },
    }))
}

fn example_ports() -> Vec<Port> {
    vec![port("b", "10.0.0.31", "ACTIVE"), port("a", "10.0.0.32", "ACTIVE")]
}

fn networking(lines: &[(&str, &str)]) -> Networking {
    let mut networking = Networking::default();
    for (key, value) in lines {
        match *key {
            "ipv6-support-disabled" => networking.ipv6_support_disabled = true,
            "public-network-name" => networking.public_network_name.push((*value).to_owned()),
            "internal-network-name" => networking.internal_network_name.push((*value).to_owned()),
            "exclude-network-name" => networking.exclude_network_name.push((*value).to_owned()),
            "address-sort-order" => {
                networking.address_sort_order =
                    value.split(", ").map(|range| range.parse().unwrap()).collect();
            }
            other => panic!("{other}"),
        }
    }
    networking
}

fn written(addresses: &[InstanceAddress]) -> Vec<String> {
    addresses.iter().map(|address| format!("{} {}", address.kind.as_str(), address.address)).collect()
}

fn of_example(settings: &[(&str, &str)]) -> Vec<String> {
    let ports = example_ports();
    written(&addresses(&example(), &ports.iter().collect::<Vec<_>>(), &[], &networking(settings)))
}

const PUBLIC: (&str, &str) = ("public-network-name", "public");

/// The addresses of a node come in one order: ports, noted addresses, hostname, then by network.
///
/// Contract: N1, same.
/// Contract: N2, same.
/// Contract: N3, same.
#[rstest]
#[case::n1(&[PUBLIC], &[
    "InternalIP 10.0.0.32",
    "InternalIP 10.0.0.31",
    "ExternalIP 50.56.176.99",
    "ExternalIP 2001:4800:790e:510:be76:4eff:fe04:82a8",
    "Hostname h",
    "ExternalIP 50.56.176.36",
    "ExternalIP 50.56.176.35",
    "ExternalIP 2001:4800:780e:510:be76:4eff:fe04:84a8",
])]
#[case::n2(&[PUBLIC, ("ipv6-support-disabled", "true")], &[
    "InternalIP 10.0.0.32",
    "InternalIP 10.0.0.31",
    "ExternalIP 50.56.176.99",
    "Hostname h",
    "ExternalIP 50.56.176.36",
    "ExternalIP 50.56.176.35",
])]
#[case::n3(&[PUBLIC, ("address-sort-order", "10.0.0.0/8, 50.56.176.0/24, 2001:4800::/32")], &[
    "InternalIP 10.0.0.31",
    "InternalIP 10.0.0.32",
    "ExternalIP 50.56.176.35",
    "ExternalIP 50.56.176.36",
    "ExternalIP 50.56.176.99",
    "ExternalIP 2001:4800:780e:510:be76:4eff:fe04:84a8",
    "ExternalIP 2001:4800:790e:510:be76:4eff:fe04:82a8",
    "Hostname h",
])]
fn n1_n2_n3_addresses_come_in_order(#[case] settings: &[(&str, &str)], #[case] expected: &[&str]) {
    assert_eq!(of_example(settings), expected);
}

/// The order of addresses does not depend on the order in which Neutron happens to list ports.
///
/// Defect: 49, better: ports are put in the order of Nova's map of addresses, so that the first address stays.
#[test]
fn the_order_in_which_neutron_lists_ports_does_not_matter() {
    let mut ports = example_ports();
    let first = addresses(&example(), &ports.iter().collect::<Vec<_>>(), &[], &networking(&[PUBLIC]));
    ports.reverse();
    let second = addresses(&example(), &ports.iter().collect::<Vec<_>>(), &[], &networking(&[PUBLIC]));
    assert_eq!(first, second);
}

/// An address of the public network is external, also where a port of the server has it.
///
/// Contract: N4, same.
#[test]
fn n4_an_address_of_the_public_network_is_external_only() {
    let mut ports = example_ports();
    ports.push(port("c", "50.56.176.35", "ACTIVE"));
    let list =
        written(&addresses(&example(), &ports.iter().collect::<Vec<_>>(), &[], &networking(&[PUBLIC])));
    let shown: Vec<&String> = list.iter().filter(|line| line.contains("50.56.176.35")).collect();
    assert_eq!(shown, ["ExternalIP 50.56.176.35"]);
}

fn with_also_private() -> (Server, Vec<Port>) {
    let server = server(json!({
        "accessIPv4": "50.56.176.99",
        "addresses": {
            "also-private": [fixed("10.0.0.64")],
            "private": [fixed("10.0.0.32"), floating("50.56.176.36"), fixed("10.0.0.31")],
        },
    }));
    (server, example_ports())
}

/// Where internal networks are named, fixed addresses of other networks are dropped.
///
/// Contract: N5, same.
/// Contract: N6, same.
#[rstest]
#[case::n5(
    &[("internal-network-name", "also-private")],
    &["ExternalIP 50.56.176.99", "InternalIP 10.0.0.64", "ExternalIP 50.56.176.36"]
)]
#[case::n6(
    &[("internal-network-name", "private"), ("internal-network-name", "also-private")],
    &["InternalIP 10.0.0.32", "InternalIP 10.0.0.31", "ExternalIP 50.56.176.99", "InternalIP 10.0.0.64",
      "ExternalIP 50.56.176.36"]
)]
fn n5_n6_only_named_networks_are_internal(#[case] settings: &[(&str, &str)], #[case] expected: &[&str]) {
    let (server, ports) = with_also_private();
    let list = addresses(&server, &ports.iter().collect::<Vec<_>>(), &[], &networking(settings));
    assert_eq!(written(&list), expected);
}

/// The address of a port that is not active comes from Nova's map, in the place that it has there.
///
/// Contract: N7, same.
#[test]
fn n7_a_port_that_is_down_counts_only_through_novas_map() {
    let server = server(json!({
        "accessIPv4": "50.56.176.99",
        "addresses": {"private": [fixed("10.0.0.32")]},
    }));
    let down = port("a", "10.0.0.32", "DOWN");
    let list = addresses(&server, &[&down], &[], &networking(&[]));
    assert_eq!(written(&list), ["ExternalIP 50.56.176.99", "InternalIP 10.0.0.32"]);
}

/// The addresses of a trunk's sub-ports count as if Nova showed them on their network.
///
/// Contract: N8, same.
#[rstest]
#[case::internal(&[], "InternalIP 10.10.0.5")]
#[case::external(&[("public-network-name", "vlan10")], "ExternalIP 10.10.0.5")]
fn n8_addresses_of_sub_ports_are_shown(#[case] settings: &[(&str, &str)], #[case] expected: &str) {
    let (server, ports) = with_also_private();
    let sub_port = port("sub", "10.10.0.5", "ACTIVE");
    let sub_ports = [SubPort { network: "vlan10", port: &sub_port }];
    let list = addresses(&server, &ports.iter().collect::<Vec<_>>(), &sub_ports, &networking(settings));
    assert_eq!(written(&list).last().unwrap(), expected);
}

/// Both families of a dual-stack port are shown, in the order of the port.
#[test]
fn both_families_of_a_port_are_internal() {
    let server = server(json!({"addresses": {"private": [fixed("10.0.0.1"), fixed("fd00::1")]}}));
    let port: Port = from_value(json!({
        "id": "a", "network_id": "n", "status": "ACTIVE",
        "fixed_ips": [
            {"subnet_id": "4", "ip_address": "10.0.0.1"},
            {"subnet_id": "6", "ip_address": "fd00::1"},
        ],
    }))
    .unwrap();
    let list = addresses(&server, &[&port], &[], &networking(&[]));
    assert_eq!(written(&list), ["InternalIP 10.0.0.1", "InternalIP fd00::1"]);
    let sorted = addresses(&server, &[&port], &[], &networking(&[("address-sort-order", "fd00::/8")]));
    assert_eq!(written(&sorted), ["InternalIP fd00::1", "InternalIP 10.0.0.1"]);
}

/// Networks for storage or management are none of the cluster's business, whatever else is said about them.
///
/// Contract: O7, better: OCCM has no such key; one is proposed with this name.
#[rstest]
#[case::its_floating_ip_goes_too("private", &[
    "ExternalIP 50.56.176.99",
    "ExternalIP 2001:4800:790e:510:be76:4eff:fe04:82a8",
    "Hostname h",
    "ExternalIP 50.56.176.35",
    "ExternalIP 2001:4800:780e:510:be76:4eff:fe04:84a8",
])]
#[case::public("public", &[
    "InternalIP 10.0.0.32",
    "InternalIP 10.0.0.31",
    "ExternalIP 50.56.176.99",
    "ExternalIP 2001:4800:790e:510:be76:4eff:fe04:82a8",
    "Hostname h",
    "ExternalIP 50.56.176.36",
])]
fn addresses_on_excluded_networks_are_left_out(#[case] network: &str, #[case] expected: &[&str]) {
    assert_eq!(of_example(&[PUBLIC, ("exclude-network-name", network)]), expected);
    assert_eq!(of_example(&[PUBLIC, ("exclude-network-name", "other")]), of_example(&[PUBLIC]));
}
