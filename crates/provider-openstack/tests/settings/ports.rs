//! What settings mean for single ports, and for the path of clients inside the cluster.

use openstack_ccm_core::advertise::{Needs, Path};
use openstack_ccm_core::notice::Severity;
use openstack_ccm_core::service::Protocol;
use openstack_ccm_provider_openstack::load_balancer::settings::{InsertedHeader, Settings};
use rstest::rstest;

use super::fixture::{Case, port};

const TLS: (&str, &str) = ("default-tls-container-ref", "https://barbican.example.org/v1/containers/c1");
const XFF: (&str, &str) = ("x-forwarded-for", "true");
const PORT: (&str, &str) = ("x-forwarded-port", "true");
const PROTO: (&str, &str) = ("x-forwarded-proto", "true");
const V1: (&str, &str) = ("proxy-protocol", "true");
const V2: (&str, &str) = ("proxy-protocol", "v2");

fn case(annotations: &[(&str, &str)]) -> Case {
    annotations.iter().fold(Case::new(), |case, (key, value)| case.annotate(key, *value))
}

fn protocols(settings: &Settings, protocol: Protocol) -> String {
    let port = port(protocol, 80);
    format!("{} -> {}", settings.listener_protocol(&port), settings.pool_protocol(&port))
}

#[rstest]
#[case::plain(&[], "TCP -> TCP")]
#[case::proxy_1(&[V1], "TCP -> PROXY")]
#[case::proxy_2(&[V2], "TCP -> PROXYV2")]
#[case::header(&[XFF], "HTTP -> HTTP")]
#[case::headers(&[PORT, PROTO], "HTTP -> HTTP")]
#[case::header_beside_proxy(&[PROTO, V1], "HTTP -> PROXY")]
#[case::tls(&[TLS], "TERMINATED_HTTPS -> HTTP")]
#[case::tls_and_header(&[TLS, XFF], "TERMINATED_HTTPS -> HTTP")]
#[case::tls_and_proxy_1(&[TLS, V1], "TERMINATED_HTTPS -> PROXY")]
#[case::tls_and_proxy_2(&[TLS, V2], "TERMINATED_HTTPS -> PROXYV2")]
fn a_tcp_port_follows_the_settings_and_others_stay_plain(
    #[case] annotations: &[(&str, &str)],
    #[case] tcp: &str,
) {
    let settings = case(annotations).settings();
    assert_eq!(protocols(&settings, Protocol::Tcp), tcp);
    assert_eq!(protocols(&settings, Protocol::Udp), "UDP -> UDP");
    assert_eq!(protocols(&settings, Protocol::Sctp), "SCTP -> SCTP");
    for protocol in [Protocol::Udp, Protocol::Sctp] {
        assert!(settings.tls_of(&port(protocol, 443)).is_none());
        assert!(settings.inserted_headers(&port(protocol, 80)).is_empty());
    }
    let tcp_port = port(Protocol::Tcp, 443);
    assert_eq!(settings.tls_of(&tcp_port).is_some(), annotations.contains(&TLS));
    let inserted = settings.inserted_headers(&tcp_port).into_iter().map(InsertedHeader::name);
    let asked = [(XFF, "X-Forwarded-For"), (PORT, "X-Forwarded-Port"), (PROTO, "X-Forwarded-Proto")];
    let asked = asked.into_iter().filter(|(annotation, _)| annotations.contains(annotation));
    assert!(inserted.eq(asked.map(|(_, name)| name)));
}

#[rstest]
#[case::plain(&[], &[Protocol::Tcp], Path::Direct)]
#[case::proxy(&[V2], &[Protocol::Tcp], Path::ThroughLoadBalancer(Needs::ProxyProtocol))]
#[case::proxy_beside_udp(&[V1], &[Protocol::Udp, Protocol::Tcp], Path::ThroughLoadBalancer(Needs::ProxyProtocol))]
#[case::proxy_on_udp_only(&[V1], &[Protocol::Udp, Protocol::Sctp], Path::Direct)]
#[case::tls(&[TLS], &[Protocol::Tcp], Path::ThroughLoadBalancer(Needs::TlsTermination))]
#[case::header(&[XFF], &[Protocol::Tcp], Path::ThroughLoadBalancer(Needs::HeaderInsertion))]
#[case::another_header(&[PROTO], &[Protocol::Tcp], Path::ThroughLoadBalancer(Needs::HeaderInsertion))]
#[case::header_on_udp_only(&[PROTO], &[Protocol::Udp], Path::Direct)]
#[case::proxy_before_tls(&[TLS, V1], &[Protocol::Tcp], Path::ThroughLoadBalancer(Needs::ProxyProtocol))]
#[case::tls_before_header(&[TLS, XFF], &[Protocol::Tcp], Path::ThroughLoadBalancer(Needs::TlsTermination))]
fn the_path_goes_through_the_load_balancer_where_a_tcp_port_needs_it(
    #[case] annotations: &[(&str, &str)],
    #[case] protocols: &[Protocol],
    #[case] expected: Path,
) {
    let ports: Vec<_> = protocols.iter().map(|protocol| port(*protocol, 80)).collect();
    assert_eq!(case(annotations).settings().path(&ports), expected);
}

#[rstest]
#[case::tcp_only(&[Protocol::Tcp], None)]
#[case::mixed(&[Protocol::Tcp, Protocol::Udp], Some((Severity::Normal, "LoadBalancerTcpPortsOnly")))]
#[case::udp_only(&[Protocol::Udp], Some((Severity::Warning, "LoadBalancerSettingWithoutEffect")))]
fn a_warning_names_the_ports_that_do_not_follow(
    #[case] protocols: &[Protocol],
    #[case] expected: Option<(Severity, &str)>,
    #[values(V1, XFF, PORT, PROTO)] annotation: (&str, &str),
) {
    let case = case(&[annotation]).service(|service| {
        service.ports = protocols.iter().map(|protocol| port(*protocol, 53)).collect();
    });
    let notices = case.notices();
    assert_eq!(notices.first().map(|notice| (notice.severity, notice.reason)), expected);
    let message = format!(
        "loadbalancer.openstack.org/{} applies to TCP ports only and has no effect on 53/UDP",
        annotation.0
    );
    assert!(notices.iter().all(|notice| notice.message == message), "{notices:?}");
}
