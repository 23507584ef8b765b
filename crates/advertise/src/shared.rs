//! Services that share an address have to agree on its mode.
//!
//! A service proxy in IPVS mode binds a whole address to the node as soon as one Service publishes it without
//! `ipMode: Proxy`; from then on the node refuses the ports of all other Services on the address. So a Service that needs
//! the load balancer decides for all.

use std::net::IpAddr;

use openstack_ccm_core::advertise::{IpModeChoice, Needs, Path, Preference};

/// Whether a Service needs its addresses to lead through the load balancer.
pub fn needs_load_balancer(path: Path, preference: &Preference) -> bool {
    match preference.service_mode.unwrap_or(preference.cluster_mode) {
        IpModeChoice::Proxy => true,
        IpModeChoice::Vip => false,
        IpModeChoice::Auto => path != Path::Direct,
    }
}

/// Whether two Services have an address in common.
pub fn share(one: &[IpAddr], other: &[IpAddr]) -> bool {
    one.iter().any(|address| other.contains(address))
}

/// The path of a Service, given whether another one on its address needs the load balancer.
pub fn path(own: Path, needed_by_another: bool) -> Path {
    match own {
        Path::Direct if needed_by_another => Path::ThroughLoadBalancer(Needs::SharedAddress),
        Path::Direct | Path::ThroughLoadBalancer(_) => own,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const PROXY: Path = Path::ThroughLoadBalancer(Needs::ProxyProtocol);

    #[rstest]
    #[case::plain(Path::Direct, None, IpModeChoice::Auto, false)]
    #[case::proxy(PROXY, None, IpModeChoice::Auto, true)]
    #[case::service_insists_on_vip(PROXY, Some(IpModeChoice::Vip), IpModeChoice::Auto, false)]
    #[case::operator_insists_on_vip(PROXY, None, IpModeChoice::Vip, false)]
    #[case::service_asks_for_proxy(Path::Direct, Some(IpModeChoice::Proxy), IpModeChoice::Vip, true)]
    #[case::operator_asks_for_proxy(Path::Direct, None, IpModeChoice::Proxy, true)]
    fn a_service_needs_the_load_balancer_by_its_path_unless_somebody_insists(
        #[case] path: Path,
        #[case] service_mode: Option<IpModeChoice>,
        #[case] cluster_mode: IpModeChoice,
        #[case] expected: bool,
    ) {
        let preference = Preference { service_mode, cluster_mode, ..Preference::default() };
        assert_eq!(needs_load_balancer(path, &preference), expected);
    }

    #[test]
    fn only_a_plain_path_follows_the_neighbour() {
        assert_eq!(path(Path::Direct, true), Path::ThroughLoadBalancer(Needs::SharedAddress));
        assert_eq!(path(Path::Direct, false), Path::Direct);
        assert_eq!(path(PROXY, true), PROXY);
    }

    #[test]
    fn one_common_address_is_enough() {
        let list = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<IpAddr>>();
        assert!(share(&list(&["192.0.2.1", "2001:db8::1"]), &list(&["2001:db8::1"])));
        assert!(!share(&list(&["192.0.2.1"]), &list(&["192.0.2.2"])) && !share(&[], &list(&["192.0.2.2"])));
    }
}
