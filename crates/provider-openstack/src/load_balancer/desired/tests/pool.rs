//! Pools, members and health monitors.

use super::*;

#[test]
fn client_ip_affinity_is_source_ip_persistence() {
    let world = World::new().with(|world| {
        world.service.session_affinity = SessionAffinity::ClientIp { timeout_seconds: Some(10800) };
        world.service.ports.extend([port(Protocol::Udp, 53), port(Protocol::Sctp, 132)]);
    });
    let persistence = |protocol, port| {
        let persistence = world.listener(protocol, port).pool.pool.attributes.session_persistence?;
        assert_eq!(persistence.kind, SessionPersistenceType::SourceIp);
        Some(persistence.persistence_timeout)
    };
    assert_eq!(persistence(Protocol::Tcp, 80), Some(None), "Octavia refuses a timeout for streams");
    assert_eq!(persistence(Protocol::Udp, 53), Some(Some(10800)));
    assert_eq!(persistence(Protocol::Sctp, 132), Some(Some(10800)));
}

#[test]
fn monitors_are_of_the_type_of_their_port() {
    let world = World::new().annotated("enable-health-monitor", "true").with(|world| {
        world.service.ports =
            vec![port(Protocol::Tcp, 80), port(Protocol::Udp, 53), port(Protocol::Sctp, 132)];
    });
    let tree = world.tree();
    let monitors: Vec<&str> = tree.lines().filter(|line| line.contains("monitor")).map(str::trim).collect();
    assert_snapshot!(monitors.join("\n"), @"
    health monitor monitor_0_kube_service_c1_default_web: TCP delay=5 timeout=3 max_retries=1 max_retries_down=3
    health monitor monitor_1_kube_service_c1_default_web: UDP-CONNECT delay=5 timeout=3 max_retries=1 max_retries_down=3
    health monitor monitor_2_kube_service_c1_default_web: SCTP delay=5 timeout=3 max_retries=1 max_retries_down=3
    ");
}

fn local(world: World) -> World {
    world.with(|world| {
        world.service.external_traffic_policy = ExternalTrafficPolicy::Local;
        world.service.health_check_node_port = Some(32000);
        world.service.ports = vec![port(Protocol::Tcp, 80), port(Protocol::Udp, 53)];
    })
}

#[test]
fn with_policy_local_the_service_proxy_is_asked() {
    let world = local(World::new().annotated("enable-health-monitor", "true"));
    assert_snapshot!(world.tree(), @"
    create load balancer kube_service_c1_default_web provider=amphora vip_subnet_id=SUB1
      listener listener_0_kube_service_c1_default_web: TCP 80 connection_limit=-1 timeout_client_data=50000 timeout_member_connect=5000 timeout_member_data=50000 timeout_tcp_inspect=0 allowed_cidrs=[0.0.0.0/0]
        pool pool_0_kube_service_c1_default_web: TCP ROUND_ROBIN
          member n1 10.0.0.11:30080 (monitor_port=32000)
          member n2 10.0.0.12:30080 (monitor_port=32000)
          health monitor monitor_0_kube_service_c1_default_web: HTTP delay=5 timeout=3 max_retries=1 max_retries_down=3 http=GET /healthz 200
      listener listener_1_kube_service_c1_default_web: UDP 53 connection_limit=-1 timeout_client_data=50000 timeout_member_connect=5000 timeout_member_data=50000 timeout_tcp_inspect=0 allowed_cidrs=[0.0.0.0/0]
        pool pool_1_kube_service_c1_default_web: UDP ROUND_ROBIN
          member n1 10.0.0.11:30053 (monitor_port=32000)
          member n2 10.0.0.12:30053 (monitor_port=32000)
          health monitor monitor_1_kube_service_c1_default_web: HTTP delay=5 timeout=3 max_retries=1 max_retries_down=3 http=GET /healthz 200
    ");
}

/// Defect: 15, better: what is compared is what is sent.
#[rstest]
#[case::udp_on_old_octavia(15, "amphora", Protocol::Udp)]
#[case::ovn(26, "ovn", Protocol::Tcp)]
#[case::ovn_udp(26, "ovn", Protocol::Udp)]
fn where_http_checks_are_impossible_members_have_no_monitor_port(
    #[case] minor: u32,
    #[case] provider: &str,
    #[case] protocol: Protocol,
) {
    let world = local(World::new().annotated("enable-health-monitor", "true").octavia(minor, provider));
    let wanted = world.listener(protocol, if protocol == Protocol::Tcp { 80 } else { 53 });
    assert!(wanted.pool.monitor.is_some_and(|monitor| monitor.attributes.http.is_none()));
    assert!(wanted.pool.members.iter().all(|member| member.monitor_port.is_none()));
}

#[test]
fn policy_local_without_monitors_changes_nothing() {
    let wanted = local(World::new()).listener(Protocol::Tcp, 80);
    assert!(wanted.pool.monitor.is_none());
    assert!(wanted.pool.members.iter().all(|member| member.monitor_port.is_none()));
}

#[test]
fn without_nodes_or_node_ports_there_are_no_members() {
    let no_nodes = World::new().with(|world| world.nodes.clear());
    assert!(no_nodes.listener(Protocol::Tcp, 80).pool.members.is_empty());
    let no_node_port = World::new().with(|world| world.service.ports[0].node_port = None);
    assert!(no_node_port.listener(Protocol::Tcp, 80).pool.members.is_empty());
}

#[test]
fn nodes_that_cannot_be_members_are_named() {
    let world = World::new().with(|world| {
        world.nodes[0].addresses.clear();
        let mut twin = world.nodes[1].clone();
        twin.name = "n3".to_owned();
        world.nodes.push(twin);
    });
    assert_eq!(world.listener(Protocol::Tcp, 80).pool.members.len(), 1);
    assert_snapshot!(world.notices(), @"
    LoadBalancerNodeSkipped: node n1 is not added as a member: it has no InternalIP and no ExternalIP of the Service's IP family
    LoadBalancerNodeSkipped: node n3 is not added as a member: node n2 has the same address 10.0.0.12
    ");
}

#[test]
fn the_node_selector_chooses_members() {
    let world = World::new().annotated("node-selector", "env=prod").with(|world| {
        world.nodes[1].labels.insert("env".to_owned(), "prod".to_owned());
    });
    let members = world.listener(Protocol::Tcp, 80).pool.members;
    assert_eq!(members.iter().map(|member| member.name.as_str()).collect::<Vec<_>>(), ["n2"]);
}

#[test]
fn members_are_on_the_member_subnet() {
    let world = World::new().with(|world| world.facts.member_subnet_id = Some("SUB2".to_owned()));
    let members = world.listener(Protocol::Tcp, 80).pool.members;
    let subnets: Vec<Option<&str>> = members.iter().map(|member| member.subnet_id.as_deref()).collect();
    assert_eq!(subnets, [Some("SUB2"), Some("SUB2")]);
}

#[test]
fn a_udp_check_more_often_than_octavia_allows_is_refused() {
    let world = World::new()
        .annotated("enable-health-monitor", "true")
        .annotated("health-monitor-delay", "2")
        .annotated("health-monitor-timeout", "1")
        .with(|world| world.service.ports[0].protocol = Protocol::Udp);
    assert_snapshot!(world.refusal(), @"health-monitor-delay is 2, but Octavia requires at least 3 for UDP port 80: raise health-monitor-delay");
}
