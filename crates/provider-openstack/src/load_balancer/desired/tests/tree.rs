//! The whole tree, the VIP and the floating IP.

use super::*;

#[test]
fn the_base_is_what_occm_makes() {
    assert_snapshot!(World::new().tree(), @"
    create load balancer kube_service_c1_default_web provider=amphora vip_subnet_id=SUB1
      listener listener_0_kube_service_c1_default_web: TCP 80 connection_limit=-1 timeout_client_data=50000 timeout_member_connect=5000 timeout_member_data=50000 timeout_tcp_inspect=0 allowed_cidrs=[0.0.0.0/0]
        pool pool_0_kube_service_c1_default_web: TCP ROUND_ROBIN
          member n1 10.0.0.11:30080
          member n2 10.0.0.12:30080
    ");
}

/// Defect: 76, better: whatever can carry a tag carries one.
#[test]
fn everything_carries_the_identity_of_cluster_and_service() {
    let desired = World::new().annotated("enable-health-monitor", "true").desired().unwrap();
    let tags: Vec<&String> = desired.load_balancer.tags.iter().collect();
    assert_snapshot!(format!("{tags:?}"), @r#"["kube_service_c1_default_web", "openstack-ccm-cluster=c1c1", "openstack-ccm-service=11111111-2222-3333-4444-555555555555"]"#);
    let wanted = &desired.listeners[&ListenerKey::new(Protocol::Tcp, 80)];
    let tags = &desired.load_balancer.tags;
    assert_eq!(
        [&wanted.listener.tags, &wanted.pool.pool.tags, &wanted.pool.monitor.as_ref().unwrap().tags],
        [tags, tags, tags]
    );
    let FloatingIpGoal::External(floating_ip) = desired.floating_ip else {
        panic!("the Service is external")
    };
    assert!(floating_ip.tags.is_subset(tags), "{:?}", floating_ip.tags);
}

#[test]
fn an_octavia_without_tags_gets_none() {
    let desired = World::new().octavia(4, "amphora").desired().unwrap();
    assert!(desired.load_balancer.tags.is_empty());
}

/// Defect: 3, better: a UDP port beside stays plain and the Service is served.
#[test]
fn proxy_protocol_is_for_tcp_ports_and_udp_beside_stays_udp() {
    let world = World::new().annotated("proxy-protocol", "v2").with(|world| {
        world.service.ports =
            vec![port(Protocol::Tcp, 80), port(Protocol::Udp, 80), port(Protocol::Sctp, 132)];
    });
    assert_snapshot!(world.tree(), @"
    create load balancer kube_service_c1_default_web provider=amphora vip_subnet_id=SUB1
      listener listener_0_kube_service_c1_default_web: TCP 80 connection_limit=-1 timeout_client_data=50000 timeout_member_connect=5000 timeout_member_data=50000 timeout_tcp_inspect=0 allowed_cidrs=[0.0.0.0/0]
        pool pool_0_kube_service_c1_default_web: PROXYV2 ROUND_ROBIN
          member n1 10.0.0.11:30080
          member n2 10.0.0.12:30080
      listener listener_1_kube_service_c1_default_web: UDP 80 connection_limit=-1 timeout_client_data=50000 timeout_member_connect=5000 timeout_member_data=50000 timeout_tcp_inspect=0 allowed_cidrs=[0.0.0.0/0]
        pool pool_1_kube_service_c1_default_web: UDP ROUND_ROBIN
          member n1 10.0.0.11:30080
          member n2 10.0.0.12:30080
      listener listener_2_kube_service_c1_default_web: SCTP 132 connection_limit=-1 timeout_client_data=50000 timeout_member_connect=5000 timeout_member_data=50000 timeout_tcp_inspect=0 allowed_cidrs=[0.0.0.0/0]
        pool pool_2_kube_service_c1_default_web: SCTP ROUND_ROBIN
          member n1 10.0.0.11:30132
          member n2 10.0.0.12:30132
    ");
}

#[test]
fn an_ipv6_service_has_ipv6_throughout_and_no_floating_ip() {
    let world = World::new().with(|world| {
        world.service.ip_families = vec![IpFamily::V6, IpFamily::V4];
        world.facts.vip_family = IpFamily::V6;
    });
    assert_snapshot!(world.tree(), @"
    create load balancer kube_service_c1_default_web provider=amphora vip_subnet_id=SUB1
      listener listener_0_kube_service_c1_default_web: TCP 80 connection_limit=-1 timeout_client_data=50000 timeout_member_connect=5000 timeout_member_data=50000 timeout_tcp_inspect=0 allowed_cidrs=[::/0]
        pool pool_0_kube_service_c1_default_web: TCP ROUND_ROBIN
          member n1 [2001:db8::11]:30080
          member n2 [2001:db8::12]:30080
    ");
    assert_eq!(world.desired().unwrap().floating_ip, FloatingIpGoal::NotNeeded);
}

#[test]
fn the_users_port_replaces_subnet_and_network() {
    let port = "0a1b2c3d-0000-4000-8000-112233445566";
    let world = World::new().annotated("port-id", port);
    assert_snapshot!(world.tree().lines().next().unwrap(), @"create load balancer kube_service_c1_default_web provider=amphora vip_port_id=0a1b2c3d-0000-4000-8000-112233445566");
}

#[test]
fn an_internal_service_asks_for_its_vip_and_for_no_floating_ip() {
    let world = World::new()
        .annotated("service.beta.kubernetes.io/openstack-internal-load-balancer", "true")
        .annotated("keep-floatingip", "true")
        .with(|world| world.service.load_balancer_ip = Some("10.0.0.50".to_owned()));
    let desired = world.desired().unwrap();
    assert_eq!(desired.load_balancer.vip.address, Some([10, 0, 0, 50].into()));
    assert_eq!(desired.floating_ip, FloatingIpGoal::Internal { keep: true, takes_off_others: false });
}

#[test]
fn an_external_service_asks_for_its_floating_ip() {
    let world = World::new().with(|world| world.service.load_balancer_ip = Some("203.0.113.7".to_owned()));
    let desired = world.desired().unwrap();
    assert_eq!(desired.load_balancer.vip.address, None);
    let FloatingIpGoal::External(floating_ip) = desired.floating_ip else {
        panic!("the Service is external")
    };
    assert_eq!(floating_ip.address, Some([203, 0, 113, 7].into()));
}

#[test]
fn a_load_balancer_recreated_asks_for_its_former_address() {
    let previous = Some([10, 0, 0, 77].into());
    let world = World::new().with(|world| world.facts.previous_vip_address = previous);
    assert_eq!(world.desired().unwrap().load_balancer.vip.address, previous);
    let other_family = world.with(|world| world.facts.previous_vip_address = "2001:db8::7".parse().ok());
    assert_eq!(other_family.desired().unwrap().load_balancer.vip.address, None);
}

#[test]
fn flavor_and_zone_are_sent_where_they_exist() {
    let flavor = "0a1b2c3d-0000-4000-8000-112233445566";
    let world = World::new().annotated("flavor-id", flavor).annotated("availability-zone", "az1");
    assert_snapshot!(world.tree().lines().next().unwrap(), @"create load balancer kube_service_c1_default_web provider=amphora vip_subnet_id=SUB1 flavor_id=0a1b2c3d-0000-4000-8000-112233445566 availability_zone=az1");
    let world = world.octavia(5, "amphora");
    assert_snapshot!(world.tree().lines().next().unwrap(), @"create load balancer kube_service_c1_default_web provider=amphora vip_subnet_id=SUB1");
    assert_snapshot!(world.notices(), @"
    LoadBalancerFlavorIgnored: flavor-id 0a1b2c3d-0000-4000-8000-112233445566 is ignored: this Octavia, or the load balancer's provider, does not support flavors
    LoadBalancerAvailabilityZonesIgnored: availability-zone az1 is ignored: this Octavia, or the load balancer's provider, does not support availability zones
    ");
}

/// Defect: 45, better: ovn gets the only algorithm that it has.
#[test]
fn ovn_forwards_by_a_hash_of_address_and_port() {
    assert_snapshot!(World::new().octavia(26, "ovn").tree(), @"
    create load balancer kube_service_c1_default_web provider=ovn vip_subnet_id=SUB1
      listener listener_0_kube_service_c1_default_web: TCP 80 connection_limit=-1
        pool pool_0_kube_service_c1_default_web: TCP SOURCE_IP_PORT
          member n1 10.0.0.11:30080
          member n2 10.0.0.12:30080
    ");
}
