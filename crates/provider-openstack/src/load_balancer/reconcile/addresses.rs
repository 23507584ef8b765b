//! The addresses by which clients reach a Service.

use std::net::IpAddr;

use openstack_ccm_core::service::IpFamily;

use crate::load_balancer::objects::observed::ObservedLoadBalancer;
use crate::load_balancer::settings::node_address::family_of;

/// Returns one address for each VIP of a wanted family: `outside` replaces the IPv4 VIP that a floating IP leads to. Without any
/// such VIP, `outside` is the only address.
pub(crate) fn addresses(
    load_balancer: Option<&ObservedLoadBalancer>,
    outside: IpAddr,
    families: &[IpFamily],
) -> Vec<IpAddr> {
    let mut addresses: Vec<IpAddr> = Vec::new();
    for vip in load_balancer.into_iter().flat_map(ObservedLoadBalancer::vip_addresses) {
        let address = if vip.is_ipv4() == outside.is_ipv4() { outside } else { vip };
        if families.contains(&family_of(address)) && !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    let place = |address: &IpAddr| families.iter().position(|family| *family == family_of(*address));
    addresses.sort_by_key(place);
    if addresses.is_empty() { vec![outside] } else { addresses }
}

#[cfg(test)]
mod tests {
    use openstack_ccm_openstack_api::octavia::{OperatingStatus, ProvisioningStatus};
    use rstest::rstest;

    use super::*;
    use crate::load_balancer::objects::Tags;
    use crate::load_balancer::objects::observed::{MadeWith, Ownership};

    const V4: IpFamily = IpFamily::V4;
    const V6: IpFamily = IpFamily::V6;

    fn load_balancer(vip: &str, additional: &[&str]) -> ObservedLoadBalancer {
        ObservedLoadBalancer {
            id: "lb".to_owned(),
            name: "lb".to_owned(),
            description: String::new(),
            status: ProvisioningStatus::Active,
            operating: OperatingStatus::Online,
            vip_address: vip.parse().ok(),
            additional_vips: additional
                .iter()
                .map(|address| ("subnet".to_owned(), address.parse().unwrap()))
                .collect(),
            vip_port_id: None,
            vip_subnet_id: None,
            made_with: MadeWith::default(),
            tags: Tags::new(),
            ownership: Ownership::Sole,
            previous_name: None,
            children: None,
        }
    }

    #[rstest]
    #[case::plain("10.0.0.1", &[], "10.0.0.1", &[V4], &["10.0.0.1"])]
    #[case::floating("10.0.0.1", &[], "203.0.113.1", &[V4], &["203.0.113.1"])]
    #[case::dual("10.0.0.1", &["2001:db8::1"], "203.0.113.1", &[V4, V6], &["203.0.113.1", "2001:db8::1"])]
    #[case::ipv6_first("2001:db8::1", &["10.0.0.1"], "203.0.113.1", &[V6, V4], &["2001:db8::1", "203.0.113.1"])]
    #[case::order_of_the_service("10.0.0.1", &["2001:db8::1"], "10.0.0.1", &[V6, V4], &["2001:db8::1", "10.0.0.1"])]
    #[case::one_family_of_two("10.0.0.1", &["2001:db8::1"], "10.0.0.1", &[V4], &["10.0.0.1"])]
    #[case::second_family_missing("10.0.0.1", &[], "10.0.0.1", &[V4, V6], &["10.0.0.1"])]
    #[case::no_family_fits("10.0.0.1", &[], "203.0.113.1", &[V6], &["203.0.113.1"])]
    #[case::old_service_without_families("10.0.0.1", &[], "203.0.113.1", &[], &["203.0.113.1"])]
    fn each_vip_of_a_wanted_family_is_one_address(
        #[case] vip: &str,
        #[case] additional: &[&str],
        #[case] outside: &str,
        #[case] families: &[IpFamily],
        #[case] expected: &[&str],
    ) {
        let found = addresses(Some(&load_balancer(vip, additional)), outside.parse().unwrap(), families);
        let found: Vec<String> = found.iter().map(IpAddr::to_string).collect();
        assert_eq!(found, expected);
    }
}
