//! Listeners.

use super::*;

#[rstest]
#[case::plain(&[], ListenerProtocol::Tcp, PoolProtocol::Tcp)]
#[case::proxy(&[("proxy-protocol", "true")], ListenerProtocol::Tcp, PoolProtocol::Proxy)]
#[case::header(&[("x-forwarded-for", "true")], ListenerProtocol::Http, PoolProtocol::Http)]
#[case::tls(&[TLS], ListenerProtocol::TerminatedHttps, PoolProtocol::Http)]
#[case::tls_and_proxy(&[TLS, ("proxy-protocol", "v2")], ListenerProtocol::TerminatedHttps, PoolProtocol::ProxyV2)]
#[case::tls_and_header(&[TLS, ("x-forwarded-for", "true")], ListenerProtocol::TerminatedHttps, PoolProtocol::Http)]
fn protocols_follow_the_annotations(
    #[case] annotations: &[(&str, &str)],
    #[case] listener: ListenerProtocol,
    #[case] pool: PoolProtocol,
) {
    let world = annotations.iter().fold(World::new(), |world, (key, value)| world.annotated(key, value));
    let wanted = world.listener(Protocol::Tcp, 80);
    assert_eq!((wanted.listener.protocol, wanted.pool.pool.protocol), (listener, pool));
    let names = |key| annotations.iter().any(|(name, _)| *name == key);
    assert_eq!(wanted.listener.attributes.tls_container_ref.is_some(), names(TLS.0));
    assert_eq!(
        wanted.listener.attributes.insert_headers.contains_key("X-Forwarded-For"),
        names("x-forwarded-for")
    );
}

#[test]
fn limits_and_timeouts_are_those_of_the_annotations() {
    let world = World::new()
        .annotated("connection-limit", "100")
        .annotated("timeout-client-data", "1000")
        .annotated("timeout-member-connect", "2000")
        .annotated("timeout-member-data", "3000")
        .annotated("timeout-tcp-inspect", "4000");
    assert_snapshot!(world.tree().lines().nth(1).unwrap(), @"  listener listener_0_kube_service_c1_default_web: TCP 80 connection_limit=100 timeout_client_data=1000 timeout_member_connect=2000 timeout_member_data=3000 timeout_tcp_inspect=4000 allowed_cidrs=[0.0.0.0/0]");
}

#[test]
fn an_old_octavia_gets_neither_timeouts_nor_source_ranges() {
    assert_snapshot!(World::new().octavia(0, "amphora").tree().lines().nth(1).unwrap(), @"  listener listener_0_kube_service_c1_default_web: TCP 80 connection_limit=-1");
}

/// Defect: 80, better: ranges of the other family are left out, and an Event says so.
#[test]
fn source_ranges_of_the_other_family_are_left_out_with_a_notice() {
    let world = World::new().with(|world| {
        world.service.source_ranges =
            ["192.168.32.1/24", "10.0.0.0/8", "2001:db8::/32"].map(str::to_owned).to_vec();
    });
    let cidrs = world.listener(Protocol::Tcp, 80).listener.attributes.allowed_cidrs.unwrap();
    assert_eq!(cidrs, ["10.0.0.0/8".parse().unwrap(), "192.168.32.0/24".parse().unwrap()].into());
    assert_snapshot!(world.notices(), @"LoadBalancerSourceRangesIgnored: these source ranges have no effect because their IP family is not that of the load balancer's address: 2001:db8::/32");
}

#[test]
fn source_ranges_that_all_are_of_the_other_family_are_refused() {
    let world = World::new().with(|world| world.service.source_ranges = vec!["2001:db8::/32".to_owned()]);
    assert_snapshot!(world.refusal(), @"none of the source ranges (2001:db8::/32) has the IP family of the load balancer's address: add the networks of the clients");
}

/// Defect: 38, better: a warning only where something that was asked for is not done.
#[test]
fn source_ranges_are_missed_only_where_somebody_asked_for_them() {
    assert_eq!(World::new().octavia(11, "amphora").notices(), "");
    let ranges =
        |world: World| world.with(|world| world.service.source_ranges = vec!["10.0.0.0/8".to_owned()]);
    assert_snapshot!(ranges(World::new().octavia(11, "amphora")).notices(), @"LoadBalancerSourceRangesIgnored: spec.loadBalancerSourceRanges is ignored, so any client can connect: it requires Octavia API 2.12, which this cloud does not have");
    let ovn = ranges(World::new().octavia(26, "ovn"));
    assert_snapshot!(ovn.notices(), @"LoadBalancerSourceRangesIgnored: spec.loadBalancerSourceRanges is ignored, so any client can connect: provider ovn does not support it");
    assert_eq!(ovn.with(|world| world.config.load_balancer.manage_security_groups = true).notices(), "");
}
