//! A Service changes.

use insta::assert_snapshot;
use openstack_ccm_core::service::Protocol;

use super::notices;
use crate::load_balancer::objects::{Desired, ListenerKey};
use crate::load_balancer::plan::tests::cloud::Cloud;
use crate::load_balancer::plan::tests::shape::{Kind, Port, Shape, tcp};
use crate::load_balancer::plan::{Plan, serve};

/// The plan that leads from one Service to another.
fn change(before: &Shape, after: impl FnOnce(&mut Shape)) -> Plan {
    let cloud = Cloud::serving(&before.desired());
    serve(&before.clone().with(after).desired(), &cloud.observed)
}

#[test]
fn a_new_service_is_one_tree_and_a_floating_ip() {
    let shape = Shape::web().with(|shape| {
        shape.monitor_delay = Some(5);
        shape.ports[0].kind = Kind::Proxy;
        shape.ports.push(Port { key: ListenerKey::new(Protocol::Udp, 53), ..tcp(53, 30053) });
    });
    let plan = serve(&shape.desired(), &Cloud::default().observed);
    assert_snapshot!(plan, @"
    create load balancer kube_service_c1_default_web provider=amphora vip_subnet_id=SUB1 tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
      listener listener_0_web: TCP 80 connection_limit=-1 timeout_client_data=50000 timeout_member_connect=5000 timeout_member_data=50000 timeout_tcp_inspect=0 allowed_cidrs=[0.0.0.0/0] tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
        pool pool_0_web: PROXY ROUND_ROBIN tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
          member n1 10.0.0.11:30080
          member n2 10.0.0.12:30080
          health monitor monitor_0_web: TCP delay=5 timeout=3 max_retries=1 max_retries_down=3 tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
      listener listener_1_web: UDP 53 connection_limit=-1 timeout_client_data=50000 timeout_member_connect=5000 timeout_member_data=50000 timeout_tcp_inspect=0 allowed_cidrs=[0.0.0.0/0] tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
        pool pool_1_web: UDP ROUND_ROBIN tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
          member n1 10.0.0.11:30053
          member n2 10.0.0.12:30053
          health monitor monitor_1_web: UDP-CONNECT delay=5 timeout=3 max_retries=1 max_retries_down=3 tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
    create floating IP on network EXT1 for port (new) VIP of kube_service_c1_default_web
    done
    ");
}

#[test]
fn an_unchanged_service_costs_nothing() {
    assert_snapshot!(change(&Shape::web(), |_| {}), @"nothing to do");
}

#[test]
fn a_node_more_is_one_batch_for_each_pool_that_names_it_alone() {
    let before = Shape::web().with(|shape| shape.ports.push(tcp(443, 30443)));
    let plan = change(&before, |shape| {
        shape.nodes.insert(3);
    });
    assert_snapshot!(plan, @"
    add members to pool pool-2: [n3 10.0.0.13:30080]
    add members to pool pool-6: [n3 10.0.0.13:30443]
    done
    ");
}

#[test]
fn a_node_less_goes_by_its_id() {
    assert_snapshot!(change(&Shape::web(), |shape| { shape.nodes.remove(&1); }), @"
    remove member member-3 (n1) from pool pool-2
    done
    ");
}

/// Without nodes the members that are there stay and everything else goes on.
#[test]
fn no_node_left_empties_no_pool() {
    let plan = change(&Shape::web(), |shape| {
        shape.nodes.clear();
        shape.connection_limit = 100;
    });
    assert_snapshot!(plan, @"
    update listener listener-5 (TCP:80): connection_limit=100
    done
    ");
}

#[test]
fn nodes_that_come_and_go_are_one_batch() {
    let plan = change(&Shape::web(), |shape| {
        shape.nodes.remove(&1);
        shape.nodes.insert(3);
    });
    assert_snapshot!(plan, @"
    set members of pool pool-2: [n2 10.0.0.12:30080, n3 10.0.0.13:30080]
    done
    ");
}

/// Before API version 2.11 a batch names all members.
#[test]
fn an_old_octavia_gets_all_members() {
    let cloud = Cloud::serving(&Shape::web().desired());
    let more = Shape::web().with(|shape| {
        shape.nodes.insert(3);
    });
    let desired = Desired { additive: false, ..more.desired() };
    assert_snapshot!(serve(&desired, &cloud.observed), @"
    set members of pool pool-2: [n1 10.0.0.11:30080, n2 10.0.0.12:30080, n3 10.0.0.13:30080]
    done
    ");
}

#[test]
fn another_node_port_is_one_batch() {
    assert_snapshot!(change(&Shape::web(), |shape| shape.ports[0].node_port = 30081), @"
    set members of pool pool-2: [n1 10.0.0.11:30081, n2 10.0.0.12:30081]
    done
    ");
}

#[test]
fn a_new_port_is_complete_before_it_listens() {
    let before = Shape::web().with(|shape| shape.monitor_delay = Some(5));
    assert_snapshot!(change(&before, |shape| shape.ports.push(tcp(443, 30443))), @"
    create pool pool_1_web: TCP ROUND_ROBIN tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
    set members of pool (new) pool_1_web: [n1 10.0.0.11:30443, n2 10.0.0.12:30443]
    create health monitor monitor_1_web: TCP delay=5 timeout=3 max_retries=1 max_retries_down=3 tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1] of pool (new) pool_1_web
    create listener listener_1_web: TCP 443 connection_limit=-1 timeout_client_data=50000 timeout_member_connect=5000 timeout_member_data=50000 timeout_tcp_inspect=0 allowed_cidrs=[0.0.0.0/0] tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1] with pool (new) pool_1_web
    done
    ");
}

#[test]
fn a_removed_port_loses_its_listener_before_its_pool() {
    let before = Shape::web().with(|shape| shape.ports.push(tcp(443, 30443)));
    assert_snapshot!(change(&before, |shape| { shape.ports.remove(0); }), @"
    delete listener listener-5 (TCP:80)
    delete pool pool-2 (pool_0_web)
    done
    ");
}

#[test]
fn a_moved_port_listens_in_the_new_place_before_it_leaves_the_old() {
    assert_snapshot!(change(&Shape::web(), |shape| shape.ports[0].key.port = 8080), @"
    create pool pool_0_web: TCP ROUND_ROBIN tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
    set members of pool (new) pool_0_web: [n1 10.0.0.11:30080, n2 10.0.0.12:30080]
    create listener listener_0_web: TCP 8080 connection_limit=-1 timeout_client_data=50000 timeout_member_connect=5000 timeout_member_data=50000 timeout_tcp_inspect=0 allowed_cidrs=[0.0.0.0/0] tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1] with pool (new) pool_0_web
    delete listener listener-5 (TCP:80)
    delete pool pool-2 (pool_0_web)
    done
    ");
}

/// Defect: 2, better: the new pool is complete before the listener turns to it, and the old one goes last.
#[test]
fn proxy_protocol_on_swaps_to_a_complete_pool() {
    let before = Shape::web().with(|shape| shape.monitor_delay = Some(5));
    assert_snapshot!(change(&before, |shape| shape.ports[0].kind = Kind::Proxy), @"
    create pool pool_0_web: PROXY ROUND_ROBIN tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
    set members of pool (new) pool_0_web: [n1 10.0.0.11:30080, n2 10.0.0.12:30080]
    create health monitor monitor_0_web: TCP delay=5 timeout=3 max_retries=1 max_retries_down=3 tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1] of pool (new) pool_0_web
    set default pool of listener listener-6 (TCP:80): (new) pool_0_web
    delete pool pool-2 (pool_0_web)
    done
    ");
}

#[test]
fn proxy_protocol_off_swaps_back() {
    let before = Shape::web().with(|shape| shape.ports[0].kind = Kind::Proxy);
    assert_snapshot!(change(&before, |shape| shape.ports[0].kind = Kind::Plain), @"
    create pool pool_0_web: TCP ROUND_ROBIN tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
    set members of pool (new) pool_0_web: [n1 10.0.0.11:30080, n2 10.0.0.12:30080]
    set default pool of listener listener-5 (TCP:80): (new) pool_0_web
    delete pool pool-2 (pool_0_web)
    done
    ");
}

#[test]
fn another_version_of_proxy_protocol_swaps_too() {
    let before = Shape::web().with(|shape| shape.ports[0].kind = Kind::Proxy);
    assert_snapshot!(change(&before, |shape| shape.ports[0].kind = Kind::ProxyV2), @"
    create pool pool_0_web: PROXYV2 ROUND_ROBIN tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
    set members of pool (new) pool_0_web: [n1 10.0.0.11:30080, n2 10.0.0.12:30080]
    set default pool of listener listener-5 (TCP:80): (new) pool_0_web
    delete pool pool-2 (pool_0_web)
    done
    ");
}

#[test]
fn a_swap_that_was_interrupted_goes_on_with_the_pool_that_is_there() {
    let before = Shape::web();
    let after = Shape::web().with(|shape| shape.ports[0].kind = Kind::Proxy).desired();
    let mut cloud = Cloud::serving(&before.desired());
    for _ in 0..2 {
        let plan = serve(&after, &cloud.observed);
        cloud.apply(&plan.steps[0]);
        cloud.finish_pending();
    }
    assert_snapshot!(serve(&after, &cloud.observed), @"
    set default pool of listener listener-5 (TCP:80): pool-7
    delete pool pool-2 (pool_0_web)
    done
    ");
    // Changed one's mind in between: the half-made pool goes.
    assert_snapshot!(serve(&before.desired(), &cloud.observed), @"
    delete pool pool-7 (pool_0_web)
    done
    ");
}

/// Defect: 1, better: the listener of the previous protocol goes first, so that Octavia does not refuse the
/// new one for ever.
#[test]
fn x_forwarded_for_on_replaces_the_listener_and_says_so() {
    let plan = change(&Shape::web(), |shape| shape.ports[0].kind = Kind::Http);
    assert_snapshot!(plan, @"
    create pool pool_0_web: HTTP ROUND_ROBIN tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
    set members of pool (new) pool_0_web: [n1 10.0.0.11:30080, n2 10.0.0.12:30080]
    update pool pool-2: tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-former-listener-port=80, openstack-ccm-former-listener-protocol=TCP, openstack-ccm-service=s1]
    delete listener listener-5 (TCP:80)
    create listener listener_0_web: HTTP 80 connection_limit=-1 timeout_client_data=50000 timeout_member_connect=5000 timeout_member_data=50000 timeout_tcp_inspect=0 insert_headers=[X-Forwarded-For] allowed_cidrs=[0.0.0.0/0] tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1] with pool (new) pool_0_web
    delete pool pool-2 (pool_0_web)
    done
    ");
    assert_snapshot!(notices(&plan), @"LoadBalancerListenerReplaced: port TCP:80 changes from TCP to HTTP, which requires replacing the listener: connections to this port fail for a few seconds");
}

#[test]
fn x_forwarded_for_off_replaces_the_listener() {
    let before = Shape::web().with(|shape| shape.ports[0].kind = Kind::Http);
    assert_snapshot!(change(&before, |shape| shape.ports[0].kind = Kind::Plain), @"
    create pool pool_0_web: TCP ROUND_ROBIN tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
    set members of pool (new) pool_0_web: [n1 10.0.0.11:30080, n2 10.0.0.12:30080]
    update pool pool-2: tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-former-listener-header=X-Forwarded-For:true, openstack-ccm-former-listener-port=80, openstack-ccm-former-listener-protocol=HTTP, openstack-ccm-service=s1]
    delete listener listener-5 (TCP:80)
    create listener listener_0_web: TCP 80 connection_limit=-1 timeout_client_data=50000 timeout_member_connect=5000 timeout_member_data=50000 timeout_tcp_inspect=0 allowed_cidrs=[0.0.0.0/0] tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1] with pool (new) pool_0_web
    delete pool pool-2 (pool_0_web)
    done
    ");
}

#[test]
fn tls_with_the_same_pool_protocol_keeps_the_pool() {
    let before = Shape::web().with(|shape| shape.ports[0].kind = Kind::Proxy);
    assert_snapshot!(change(&before, |shape| shape.ports[0].kind = Kind::TlsProxy), @"
    update pool pool-2: tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-former-listener-port=80, openstack-ccm-former-listener-protocol=TCP, openstack-ccm-service=s1]
    delete listener listener-5 (TCP:80)
    create listener listener_0_web: TERMINATED_HTTPS 80 connection_limit=-1 timeout_client_data=50000 timeout_member_connect=5000 timeout_member_data=50000 timeout_tcp_inspect=0 allowed_cidrs=[0.0.0.0/0] tls_container_ref=https://barbican/v1/secrets/1 tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1] with pool pool-2
    done
    ");
}

#[test]
fn a_health_monitor_comes_and_goes() {
    assert_snapshot!(change(&Shape::web(), |shape| shape.monitor_delay = Some(5)), @"
    create health monitor monitor_0_web: TCP delay=5 timeout=3 max_retries=1 max_retries_down=3 tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1] of pool pool-2
    done
    ");
    let before = Shape::web().with(|shape| shape.monitor_delay = Some(5));
    assert_snapshot!(change(&before, |shape| shape.monitor_delay = None), @"
    delete health monitor monitor-5
    done
    ");
}

/// Defect: 37, better: every attribute is compared.
#[test]
fn a_changed_health_monitor_is_one_update() {
    let before = Shape::web().with(|shape| shape.monitor_delay = Some(5));
    assert_snapshot!(change(&before, |shape| shape.monitor_delay = Some(20)), @"
    update health monitor monitor-5: delay=20
    done
    ");
}

/// The members are never without a check, and never with one that was not made for them.
#[test]
fn a_health_monitor_of_another_type_comes_with_a_pool_of_its_own() {
    let cluster = Shape::web().with(|shape| shape.monitor_delay = Some(5));
    let local = cluster.clone().with(|shape| shape.ports[0].health_check_port = Some(32000));
    assert_snapshot!(change(&cluster, |shape| *shape = local.clone()), @"
    create pool pool_0_web: TCP ROUND_ROBIN tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
    set members of pool (new) pool_0_web: [n1 10.0.0.11:30080 (monitor_port=32000), n2 10.0.0.12:30080 (monitor_port=32000)]
    create health monitor monitor_0_web: HTTP delay=5 timeout=3 max_retries=1 max_retries_down=3 http=GET /healthz 200 tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1] of pool (new) pool_0_web
    set default pool of listener listener-6 (TCP:80): (new) pool_0_web
    delete pool pool-2 (pool_0_web)
    done
    ");
    assert_snapshot!(change(&local, |shape| *shape = cluster), @"
    create pool pool_0_web: TCP ROUND_ROBIN tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
    set members of pool (new) pool_0_web: [n1 10.0.0.11:30080, n2 10.0.0.12:30080]
    create health monitor monitor_0_web: TCP delay=5 timeout=3 max_retries=1 max_retries_down=3 tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1] of pool (new) pool_0_web
    set default pool of listener listener-6 (TCP:80): (new) pool_0_web
    delete pool pool-2 (pool_0_web)
    done
    ");
}

/// What takes the place of the pool takes time; the nodes do not wait for it.
#[test]
fn the_members_of_a_pool_that_is_replaced_follow_the_nodes_first() {
    let local = Shape::web().with(|shape| {
        shape.monitor_delay = Some(5);
        shape.ports[0].health_check_port = Some(32000);
    });
    let plan = change(&local, |shape| {
        shape.ports[0].health_check_port = None;
        shape.nodes.insert(3);
    });
    assert_snapshot!(plan.steps[0], @"add members to pool pool-2: [n3 10.0.0.13:30080 (monitor_port=32000)]");
}

#[test]
fn limit_timeout_and_source_ranges_together_are_one_update() {
    let plan = change(&Shape::web(), |shape| {
        shape.connection_limit = 100;
        shape.client_timeout = 60000;
        shape.cidrs = vec!["10.0.0.0/8", "192.0.2.0/24"];
    });
    assert_snapshot!(plan, @"
    update listener listener-5 (TCP:80): connection_limit=100 timeout_client_data=60000 allowed_cidrs=[10.0.0.0/8, 192.0.2.0/24]
    done
    ");
}

/// Defect: 9, better: a change of the session affinity reaches the pool.
#[test]
fn session_affinity_and_method_change_in_place() {
    assert_snapshot!(change(&Shape::web(), |shape| shape.sticky = true), @"
    update pool pool-2: session_persistence=SOURCE_IP tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1, openstack-ccm-sets=session-persistence]
    done
    ");
    let before = Shape::web().with(|shape| shape.sticky = true);
    let plan = change(&before, |shape| {
        shape.sticky = false;
        shape.least_connections = true;
    });
    assert_snapshot!(plan, @"
    update pool pool-2: session_persistence=none tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
    update pool pool-2: lb_algorithm=LEAST_CONNECTIONS
    done
    ");
}
