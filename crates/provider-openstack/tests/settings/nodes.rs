//! Which nodes become members, and by which address.

use openstack_ccm_core::node::{AddressKind, Node, NodeAddress};
use openstack_ccm_core::service::IpFamily;
use openstack_ccm_provider_openstack::load_balancer::settings::node_address::{
    AddressChoice, NodeAddressKind,
};
use openstack_ccm_provider_openstack::load_balancer::settings::{NodeSelector, node_address};
use rstest::rstest;

use super::fixture::Case;

fn node(labels: &[(&str, &str)], addresses: &[(AddressKind, &str)]) -> Node {
    Node {
        name: "node-1".to_owned(),
        provider_id: None,
        addresses: addresses
            .iter()
            .map(|(kind, address)| NodeAddress { kind: *kind, address: (*address).to_owned() })
            .collect(),
        labels: labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        backend: true,
    }
}

#[rstest]
#[case::all_nodes("", &[], true)]
#[case::blank("  ", &[], true)]
#[case::value("pool=edge", &[("pool", "edge")], true)]
#[case::other_value("pool=edge", &[("pool", "core")], false)]
#[case::no_labels("pool=edge", &[], false)]
#[case::key_only("pool", &[("pool", "anything")], true)]
#[case::empty_value_means_key_only("pool=", &[("pool", "anything")], true)]
#[case::key_only_missing("pool", &[("zone", "a")], false)]
#[case::empty_pairs_are_dropped("pool=edge,", &[("pool", "edge")], true)]
#[case::empty_pairs_select_nothing("pool=edge, ,", &[("pool", "core")], false)]
#[case::commas_alone(",", &[], true)]
#[case::the_later_value_wins("pool=a,pool=b", &[("pool", "b")], true)]
#[case::the_earlier_value_loses("pool=a,pool=b", &[("pool", "a")], false)]
#[case::all_pairs(" pool=edge , zone=a ", &[("pool", "edge"), ("zone", "a")], true)]
#[case::one_pair_missing("pool=edge,zone=a", &[("pool", "edge")], false)]
fn a_selector_matches_labels(#[case] selector: &str, #[case] labels: &[(&str, &str)], #[case] matches: bool) {
    let selector = NodeSelector::parse(selector).unwrap();
    assert_eq!(selector.matches(&node(labels, &[])), matches);
}

#[rstest]
#[case::annotation(Some("pool=edge"), Some("pool=core"), "pool=edge")]
#[case::config(None, Some("pool=core"), "pool=core")]
#[case::empty_is_all_nodes(Some(""), Some("pool=core"), "")]
fn the_selector_comes_from_annotation_or_config(
    #[case] annotation: Option<&str>,
    #[case] configured: Option<&str>,
    #[case] expected: &str,
) {
    let case = Case::new().maybe("node-selector", annotation).config(|config| {
        config.load_balancer.node_selector = configured.map(str::to_owned);
    });
    let selector = case.settings().node_selector;
    assert_eq!(selector, NodeSelector::parse(expected).unwrap());
    assert_eq!(selector == NodeSelector::default(), expected.is_empty());
}

use AddressKind::{ExternalIp, InternalIp, Name};

#[rstest]
#[case::internal_first(&[(ExternalIp, "203.0.113.1"), (InternalIp, "10.0.0.1")], Some(IpFamily::V4), Some("10.0.0.1"))]
#[case::external_if_need_be(&[(Name, "node-1"), (ExternalIp, "203.0.113.1")], Some(IpFamily::V4), Some("203.0.113.1"))]
#[case::first_of_the_family(&[(InternalIp, "2001:db8::1"), (InternalIp, "10.0.0.1"), (InternalIp, "10.0.0.2")], Some(IpFamily::V4), Some("10.0.0.1"))]
#[case::external_of_the_family_before_internal_of_another(&[(InternalIp, "10.0.0.1"), (ExternalIp, "2001:db8::1")], Some(IpFamily::V6), Some("2001:db8::1"))]
#[case::no_family_no_preference(&[(InternalIp, "2001:db8::1"), (InternalIp, "10.0.0.1")], None, Some("2001:db8::1"))]
#[case::none_of_the_family(&[(InternalIp, "10.0.0.1")], Some(IpFamily::V6), None)]
#[case::names_are_no_addresses(&[(Name, "10.0.0.1")], None, None)]
#[case::garbage_is_skipped(&[(InternalIp, "10.0.0"), (InternalIp, "10.0.0.2")], None, Some("10.0.0.2"))]
fn the_address_of_a_member(
    #[case] addresses: &[(AddressKind, &str)],
    #[case] family: Option<IpFamily>,
    #[case] expected: Option<&str>,
) {
    let address = node_address::of(&node(&[], addresses), family);
    assert_eq!(address.map(|address| address.to_string()).as_deref(), expected);
}

const SEVERAL: &[(AddressKind, &str)] = &[
    (InternalIp, "10.0.0.1"),
    (InternalIp, "192.168.0.1"),
    (ExternalIp, "203.0.113.1"),
    (ExternalIp, "198.51.100.1"),
];

/// `subnet` is that of the members, `present` a member that is there.
#[rstest]
#[case::nothing_known(None, None, None, "10.0.0.1")]
#[case::in_the_subnet(None, Some("192.168.0.0/24"), None, "192.168.0.1")]
#[case::an_external_one_in_the_subnet(None, Some("198.51.100.0/24"), None, "198.51.100.1")]
#[case::none_in_the_subnet(None, Some("172.16.0.0/24"), None, "10.0.0.1")]
#[case::a_member_stays(None, Some("192.168.0.0/24"), Some("10.0.0.1"), "10.0.0.1")]
#[case::an_address_that_went_does_not(None, Some("192.168.0.0/24"), Some("10.0.0.9"), "192.168.0.1")]
#[case::external(Some(NodeAddressKind::External), None, Some("10.0.0.1"), "203.0.113.1")]
#[case::external_in_the_subnet(
    Some(NodeAddressKind::External),
    Some("198.51.100.0/24"),
    None,
    "198.51.100.1"
)]
#[case::external_outside(Some(NodeAddressKind::External), Some("192.168.0.0/24"), None, "203.0.113.1")]
#[case::internal_in_the_subnet(
    Some(NodeAddressKind::Internal),
    Some("192.168.0.0/24"),
    Some("10.0.0.1"),
    "192.168.0.1"
)]
fn of_several_addresses_the_one_in_the_subnet_of_the_members(
    #[case] kind: Option<NodeAddressKind>,
    #[case] subnet: Option<&str>,
    #[case] present: Option<&str>,
    #[case] expected: &str,
) {
    let choice = AddressChoice {
        family: Some(IpFamily::V4),
        kind,
        member_network: subnet.map(|subnet| subnet.parse().unwrap()),
        present: present.iter().map(|address| address.parse().unwrap()).collect(),
    };
    assert_eq!(choice.of(&node(&[], SEVERAL)), Some(expected.parse().unwrap()));
}

#[test]
fn a_kind_that_a_node_lacks_is_replaced_by_the_other() {
    let choice = AddressChoice { kind: Some(NodeAddressKind::External), ..AddressChoice::default() };
    let internal = node(&[], &[(InternalIp, "10.0.0.1")]);
    assert_eq!(choice.of(&internal), Some("10.0.0.1".parse().unwrap()));
}
