//! Entries of `status.loadBalancer.ingress`: read, created and compared.
//! Pure.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::{LoadBalancerIngress, Service};
use openstack_ccm_core::advertise::hostname;

/// `ipMode` of traffic that reaches the node with the load balancer's address (KEP-1860): a node may short-circuit it.
///
/// The modes are an open set: a mode that this program does not know (of a newer API) is kept, never refused.
pub const VIP: &str = "VIP";

/// `ipMode` of traffic that reaches the node with the node's address: a node must let it travel through the load balancer.
pub const PROXY: &str = "Proxy";

/// Returns the published entries. Unknown values are kept, never refused; empty values become absent.
pub fn entries(service: &Service) -> Vec<LoadBalancerIngress> {
    let status = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    let ingress = status.and_then(|status| status.ingress.as_deref()).unwrap_or_default();
    ingress
        .iter()
        .map(|entry| LoadBalancerIngress {
            ip: entry.ip.clone().filter(|ip| !ip.is_empty()),
            hostname: entry.hostname.clone().filter(|hostname| !hostname.is_empty()),
            ip_mode: entry.ip_mode.clone(),
            // This program never writes ports.
            ports: entry.ports.clone().filter(|ports| !ports.is_empty()),
        })
        .collect()
}

/// Creates an entry with an address. Each written entry has either an address or a hostname.
pub fn of_address(ip: IpAddr, mode: Option<&str>) -> LoadBalancerIngress {
    let (ip, ip_mode) = (Some(ip.to_string()), mode.map(str::to_owned));
    LoadBalancerIngress { ip, ip_mode, ..LoadBalancerIngress::default() }
}

/// Creates an entry with a hostname; it never has a mode, which the API server would refuse.
pub fn of_hostname(hostname: impl Into<String>) -> LoadBalancerIngress {
    LoadBalancerIngress { hostname: Some(hostname.into()), ..LoadBalancerIngress::default() }
}

/// Whether the published list is equivalent to the wanted one.
///
/// An absent mode beside an address equals `VIP`, because the API server fills it in. Where the server is known to
/// drop the field (`compare_mode` false) modes are not compared, because it would never agree.
pub fn same_entries(
    published: &[LoadBalancerIngress],
    wanted: &[LoadBalancerIngress],
    compare_mode: bool,
) -> bool {
    published.len() == wanted.len()
        && published.iter().zip(wanted).all(|(one, other)| same_entry(one, other, compare_mode))
}

fn same_entry(one: &LoadBalancerIngress, other: &LoadBalancerIngress, compare_mode: bool) -> bool {
    same_ip(one.ip.as_deref(), other.ip.as_deref())
        && one.hostname == other.hostname
        && one.ports.is_some() == other.ports.is_some()
        && (!compare_mode || mode(one) == mode(other))
}

/// Compares parsed addresses, which have several spellings.
fn same_ip(one: Option<&str>, other: Option<&str>) -> bool {
    let parsed = |text: Option<&str>| text.and_then(|text| text.parse::<IpAddr>().ok());
    one == other || parsed(one).is_some_and(|one| Some(one) == parsed(other))
}

/// Whether an entry leads to an address: by itself, or by a hostname made of the address.
pub fn names_address(entry: &LoadBalancerIngress, address: IpAddr) -> bool {
    let made_of = |hostname: &str| hostname.starts_with(&hostname::for_address(address, ""));
    entry.ip.as_deref().and_then(|ip| ip.parse().ok()) == Some(address)
        || entry.hostname.as_deref().is_some_and(made_of)
}

fn mode(entry: &LoadBalancerIngress) -> Option<&str> {
    entry.ip_mode.as_deref().or(entry.ip.is_some().then_some(VIP))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn entry(ip: &str, mode: Option<&str>) -> LoadBalancerIngress {
        LoadBalancerIngress { ip: Some(ip.into()), ..of_address("192.0.2.1".parse().unwrap(), mode) }
    }

    #[rstest]
    #[case::absent_is_vip(entry("192.0.2.1", None), entry("192.0.2.1", Some("VIP")), true, true)]
    #[case::mode_differs(entry("192.0.2.1", Some("VIP")), entry("192.0.2.1", Some("Proxy")), true, false)]
    #[case::dropped_mode_is_not_compared(
        entry("192.0.2.1", None),
        entry("192.0.2.1", Some("Proxy")),
        false,
        true
    )]
    #[case::unknown_mode_is_repaired(
        entry("192.0.2.1", Some("Router")),
        entry("192.0.2.1", None),
        true,
        false
    )]
    #[case::other_address(entry("192.0.2.1", None), entry("192.0.2.2", None), false, false)]
    #[case::other_spelling(entry("2001:db8:0::1", None), entry("2001:db8::1", None), true, true)]
    #[case::hostname_is_not_an_address(of_hostname("a.example"), entry("192.0.2.2", None), false, false)]
    fn comparison_is_normalised(
        #[case] published: LoadBalancerIngress,
        #[case] wanted: LoadBalancerIngress,
        #[case] compare_mode: bool,
        #[case] same: bool,
    ) {
        assert_eq!(same_entries(&[published], &[wanted], compare_mode), same);
    }

    #[rstest]
    #[case::address(entry("192.0.2.1", Some("Proxy")), true)]
    #[case::other(entry("192.0.2.11", None), false)]
    #[case::hostname(of_hostname("192.0.2.1.example.org"), true)]
    #[case::other_hostname(of_hostname("192.0.2.11.example.org"), false)]
    #[case::chosen_hostname(of_hostname("web.example.org"), false)]
    fn an_entry_names_an_address_also_in_a_hostname(#[case] entry: LoadBalancerIngress, #[case] names: bool) {
        assert_eq!(names_address(&entry, "192.0.2.1".parse().unwrap()), names);
    }

    #[test]
    fn an_empty_list_differs_from_any_entry() {
        assert!(same_entries(&[], &[], true));
        assert!(!same_entries(&[], &[entry("192.0.2.1", None)], true));
    }
}
