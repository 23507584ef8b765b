//! What is refused before it is sent.

use super::*;

#[rstest]
#[case::proxy("proxy-protocol", "true", 26, "ovn", "only forwards packets")]
#[case::headers("x-forwarded-for", "true", 26, "ovn", "only forwards packets")]
#[case::tls(TLS.0, TLS.1, 26, "ovn", "only forwards packets")]
#[case::method("lb-method", "LEAST_CONNECTIONS", 26, "ovn", "use SOURCE_IP_PORT")]
#[case::method_that_somebody_chose("lb-method", "ROUND_ROBIN", 26, "ovn", "use SOURCE_IP_PORT")]
#[case::source_ip_port("lb-method", "SOURCE_IP_PORT", 12, "amphora", "use SOURCE_IP")]
#[case::proxy_v2("proxy-protocol", "v2", 21, "amphora", "use \"v1\"")]
fn what_the_cloud_cannot_do_is_refused_before_it_leaks_a_port(
    #[case] key: &str,
    #[case] value: &str,
    #[case] minor: u32,
    #[case] provider: &str,
    #[case] words: &str,
) {
    let message = World::new().annotated(key, value).octavia(minor, provider).refusal();
    assert!(message.contains(words), "{message}");
}

#[test]
fn sctp_needs_a_newer_octavia() {
    let world =
        World::new().octavia(22, "amphora").with(|world| world.service.ports[0].protocol = Protocol::Sctp);
    assert_snapshot!(world.refusal(), @"SCTP port 80 requires Octavia API 2.23, which this cloud does not have: remove the port from spec.ports");
}

#[test]
fn a_port_named_twice_is_refused() {
    let world = World::new().with(|world| world.service.ports.push(port(Protocol::Tcp, 80)));
    assert_snapshot!(world.refusal(), @"spec.ports lists TCP:80 twice: remove one of the two entries");
    assert!(World::new().with(|world| world.service.ports.clear()).refusal().contains("no ports"));
}

#[test]
fn a_vip_address_of_the_other_family_is_refused() {
    let world = World::new().with(|world| {
        world.service.load_balancer_ip = Some("2001:db8::5".to_owned());
        world.service.ip_families = vec![IpFamily::V6];
    });
    assert!(world.refusal().contains("2001:db8::5"));
}

/// Damage to a valid tree that Octavia would refuse.
#[rstest]
#[case::pool_protocol(|listener: &mut DesiredListener| listener.pool.pool.protocol = PoolProtocol::Udp)]
#[case::pool_without_name(|listener: &mut DesiredListener| listener.pool.pool.name.clear())]
#[case::name_too_long(|listener: &mut DesiredListener| listener.listener.name = "x".repeat(256))]
#[case::headers_on_tcp(|listener: &mut DesiredListener| listener.listener.attributes.insert_headers = [("X-A".into(), "true".into())].into())]
#[case::certificate_on_tcp(|listener: &mut DesiredListener| listener.listener.attributes.tls_container_ref = Some("x".into()))]
#[case::limit(|listener: &mut DesiredListener| listener.listener.attributes.limits.connection_limit = Some(-2))]
#[case::timeout(|listener: &mut DesiredListener| listener.listener.attributes.limits.timeout_member_data = Some(2_073_600_001))]
#[case::nobody(|listener: &mut DesiredListener| listener.listener.attributes.allowed_cidrs = Some(Default::default()))]
#[case::other_family(|listener: &mut DesiredListener| listener.listener.attributes.allowed_cidrs = Some(["::/0".parse().unwrap()].into()))]
#[case::other_port(|listener: &mut DesiredListener| listener.listener.port = 81)]
#[case::member_twice(|listener: &mut DesiredListener| listener.pool.members.push(listener.pool.members[0].clone()))]
#[case::member_port(|listener: &mut DesiredListener| Arc::make_mut(&mut listener.pool.members[0]).port = 0)]
#[case::monitor_type(|listener: &mut DesiredListener| {
    listener.pool.monitor.as_mut().unwrap().kind = openstack_ccm_openstack_api::octavia::HealthMonitorType::UdpConnect;
})]
#[case::monitor_timeout(|listener: &mut DesiredListener| listener.pool.monitor.as_mut().unwrap().attributes.timeout = 0)]
#[case::monitor_retries(|listener: &mut DesiredListener| listener.pool.monitor.as_mut().unwrap().attributes.max_retries_down = 11)]
fn a_tree_that_octavia_would_refuse_is_never_sent(#[case] damage: fn(&mut DesiredListener)) {
    let mut desired = World::new().annotated("enable-health-monitor", "true").desired().unwrap();
    assert_eq!(validate::tree(&desired, &[IpFamily::V4]), Ok(()));
    desired.listeners.values_mut().for_each(damage);
    let failure = validate::tree(&desired, &[IpFamily::V4]).unwrap_err();
    assert_eq!(failure.class, FailureClass::Bug);
}
