//! The plan for each kind of change of a Service that is served.

use insta::assert_snapshot;
use openstack_ccm_core::service::Protocol;
use openstack_ccm_openstack_api::octavia::{ListenerProtocol, ProvisioningStatus, SessionPersistenceType};

use super::cloud::Cloud;
use super::shape::{GENERATED_NAME, Kind, Shape, tcp};
use crate::load_balancer::model::listener::ListenerKey;
use crate::load_balancer::model::observed::Ownership;
use crate::load_balancer::plan::{Plan, serve};

/// The plan that leads from one Service to another.
fn change(before: &Shape, after: impl FnOnce(&mut Shape)) -> Plan {
    let cloud = Cloud::serving(&before.desired());
    serve(&before.clone().with(after).desired(), &cloud.observed)
}

/// The plan for an unchanged Service in a changed cloud.
fn drift(shape: &Shape, change: impl FnOnce(&mut Cloud)) -> Plan {
    let mut cloud = Cloud::serving(&shape.desired());
    change(&mut cloud);
    serve(&shape.desired(), &cloud.observed)
}

fn notices(plan: &Plan) -> String {
    let lines = plan.notices.iter().map(|notice| format!("{}: {}", notice.reason, notice.message));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_new_service_is_one_tree_and_a_floating_ip() {
    let shape = Shape::web().with(|shape| {
        shape.monitor_delay = Some(5);
        shape.ports[0].kind = Kind::Proxy;
        shape.ports.push(super::shape::Port { key: ListenerKey::new(Protocol::Udp, 53), ..tcp(53, 30053) });
    });
    let plan = serve(&shape.desired(), &Cloud::default().observed);
    assert_snapshot!(plan, @"
    create load balancer kube_service_c1_default_web: provider=amphora vip_subnet_id=SUB1 tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
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
fn a_node_more_is_one_batch_for_each_pool() {
    let before = Shape::web().with(|shape| shape.ports.push(tcp(443, 30443)));
    let plan = change(&before, |shape| drop(shape.nodes.insert(3)));
    assert_snapshot!(plan, @"
    set members of pool pool-2: [n1 10.0.0.11:30080, n2 10.0.0.12:30080, n3 10.0.0.13:30080]
    set members of pool pool-6: [n1 10.0.0.11:30443, n2 10.0.0.12:30443, n3 10.0.0.13:30443]
    done
    ");
}

#[test]
fn a_node_less_is_one_batch() {
    assert_snapshot!(change(&Shape::web(), |shape| drop(shape.nodes.remove(&1))), @"
    set members of pool pool-2: [n2 10.0.0.12:30080]
    done
    ");
}

#[test]
fn no_node_left_empties_the_pool() {
    assert_snapshot!(change(&Shape::web(), |shape| shape.nodes.clear()), @"
    set members of pool pool-2: []
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
    assert_snapshot!(change(&before, |shape| drop(shape.ports.remove(0))), @"
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

#[test]
fn proxy_protocol_on_swaps_to_a_complete_pool() {
    let before = Shape::web().with(|shape| shape.monitor_delay = Some(5));
    assert_snapshot!(change(&before, |shape| shape.ports[0].kind = Kind::Proxy), @"
    create pool pool_0_web: PROXY ROUND_ROBIN tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
    set members of pool (new) pool_0_web: [n1 10.0.0.11:30080, n2 10.0.0.12:30080]
    create health monitor monitor_0_web: TCP delay=5 timeout=3 max_retries=1 max_retries_down=3 tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1] of pool (new) pool_0_web
    give listener listener-6 (TCP:80) the pool (new) pool_0_web
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
    give listener listener-5 (TCP:80) the pool (new) pool_0_web
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
    give listener listener-5 (TCP:80) the pool (new) pool_0_web
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
    give listener listener-5 (TCP:80) the pool pool-7
    delete pool pool-2 (pool_0_web)
    done
    ");
    // Changed one's mind in between: the half-made pool goes.
    assert_snapshot!(serve(&before.desired(), &cloud.observed), @"
    delete pool pool-7 (pool_0_web)
    done
    ");
}

#[test]
fn x_forwarded_for_on_replaces_the_listener_and_says_so() {
    let plan = change(&Shape::web(), |shape| shape.ports[0].kind = Kind::Http);
    assert_snapshot!(plan, @"
    create pool pool_0_web: HTTP ROUND_ROBIN tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
    set members of pool (new) pool_0_web: [n1 10.0.0.11:30080, n2 10.0.0.12:30080]
    delete listener listener-5 (TCP:80)
    create listener listener_0_web: HTTP 80 connection_limit=-1 timeout_client_data=50000 timeout_member_connect=5000 timeout_member_data=50000 timeout_tcp_inspect=0 insert_headers=[X-Forwarded-For] allowed_cidrs=[0.0.0.0/0] tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1] with pool (new) pool_0_web
    delete pool pool-2 (pool_0_web)
    done
    ");
    assert_snapshot!(notices(&plan), @"LoadBalancerListenerReplaced: port TCP:80 changes from TCP to HTTP, which Octavia cannot do on a live listener: connections to it fail for some seconds");
}

#[test]
fn x_forwarded_for_off_replaces_the_listener() {
    let before = Shape::web().with(|shape| shape.ports[0].kind = Kind::Http);
    assert_snapshot!(change(&before, |shape| shape.ports[0].kind = Kind::Plain), @"
    create pool pool_0_web: TCP ROUND_ROBIN tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
    set members of pool (new) pool_0_web: [n1 10.0.0.11:30080, n2 10.0.0.12:30080]
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

#[test]
fn a_changed_health_monitor_is_one_update() {
    let before = Shape::web().with(|shape| shape.monitor_delay = Some(5));
    assert_snapshot!(change(&before, |shape| shape.monitor_delay = Some(20)), @"
    update health monitor monitor-5: delay=20
    done
    ");
}

#[test]
fn an_http_check_never_meets_members_without_its_port() {
    let cluster = Shape::web().with(|shape| shape.monitor_delay = Some(5));
    let local = cluster.clone().with(|shape| shape.ports[0].health_check_port = Some(32000));
    assert_snapshot!(change(&cluster, |shape| *shape = local.clone()), @"
    delete health monitor monitor-5
    set members of pool pool-2: [n1 10.0.0.11:30080 (monitor_port=32000), n2 10.0.0.12:30080 (monitor_port=32000)]
    create health monitor monitor_0_web: HTTP delay=5 timeout=3 max_retries=1 max_retries_down=3 http=GET /healthz 200 tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1] of pool pool-2
    done
    ");
    assert_snapshot!(change(&local, |shape| *shape = cluster), @"
    delete health monitor monitor-5
    set members of pool pool-2: [n1 10.0.0.11:30080, n2 10.0.0.12:30080]
    create health monitor monitor_0_web: TCP delay=5 timeout=3 max_retries=1 max_retries_down=3 tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1] of pool pool-2
    done
    ");
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

#[test]
fn session_affinity_and_method_change_in_place() {
    assert_snapshot!(change(&Shape::web(), |shape| shape.sticky = true), @"
    update pool pool-2: session_persistence=SOURCE_IP
    done
    ");
    let before = Shape::web().with(|shape| shape.sticky = true);
    let plan = change(&before, |shape| {
        shape.sticky = false;
        shape.least_connections = true;
    });
    assert_snapshot!(plan, @"
    update pool pool-2: session_persistence=none
    update pool pool-2: lb_algorithm=LEAST_CONNECTIONS
    done
    ");
}

#[test]
fn what_an_administrator_set_stays() {
    let plan = drift(&Shape::web(), |cloud| {
        let children = cloud.children();
        children.listeners[0].attributes.insert_headers.insert("X-Foo".to_owned(), "true".to_owned());
        children.listeners[0].tags.insert("team-a".to_owned());
        children.pools[0].attributes.session_persistence = Some(SessionPersistenceType::HttpCookie);
        children.pools[0].members[0].member.weight = 5;
        children.pools[0].members[0].member.subnet_id = Some("SUB9".to_owned());
        cloud.load_balancer().tags.insert("team-a".to_owned());
    });
    assert_snapshot!(plan, @"nothing to do");
}

#[test]
fn a_batch_keeps_weight_and_subnet_of_members_that_stay() {
    let mut cloud = Cloud::serving(&Shape::web().desired());
    let member = &mut cloud.children().pools[0].members[0].member;
    member.weight = 5;
    member.backup = true;
    member.subnet_id = Some("SUB9".to_owned());
    let kept = member.clone();
    let after = Shape::web().with(|shape| drop(shape.nodes.insert(3))).desired();
    assert_snapshot!(serve(&after, &cloud.observed), @"
    set members of pool pool-2: [n1 10.0.0.11:30080 (weight=5 backup=true), n2 10.0.0.12:30080, n3 10.0.0.13:30080]
    done
    ");
    cloud.converge(&after, |_| {});
    assert_eq!(cloud.children().pools[0].members[0].member, kept);
}

#[test]
fn a_changed_limit_is_reset() {
    let plan = drift(&Shape::web(), |cloud| cloud.children().listeners[0].attributes.connection_limit = 7);
    assert_snapshot!(plan, @"
    update listener listener-5 (TCP:80): connection_limit=-1
    done
    ");
}

#[test]
fn an_occm_load_balancer_is_adopted_by_tags_alone() {
    let shape = Shape::web().with(|shape| shape.monitor_delay = Some(5));
    let plan = drift(&shape, |cloud| {
        let name = GENERATED_NAME.to_owned();
        cloud.load_balancer().tags = [name.clone()].into();
        let children = cloud.children();
        children.listeners[0].tags = [name].into();
        children.pools[0].tags.clear();
        children.pools[0].monitor.as_mut().unwrap().tags.clear();
    });
    assert_snapshot!(plan, @"
    tag load balancer lb-1: [kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
    update listener listener-6 (TCP:80): tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
    update pool pool-2: tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
    update health monitor monitor-5: tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
    done
    ");
}

#[test]
fn children_in_error_are_sent_again() {
    let shape = Shape::web().with(|shape| shape.monitor_delay = Some(5));
    let plan = drift(&shape, |cloud| {
        let children = cloud.children();
        children.listeners[0].status = ProvisioningStatus::Error;
        let pool = &mut children.pools[0];
        pool.status = ProvisioningStatus::Error;
        pool.members[0].status = ProvisioningStatus::Error;
        pool.monitor.as_mut().unwrap().status = ProvisioningStatus::Error;
    });
    assert_snapshot!(plan, @"
    update listener listener-6 (TCP:80): connection_limit=-1 timeout_client_data=50000 timeout_member_connect=5000 timeout_member_data=50000 timeout_tcp_inspect=0 allowed_cidrs=[0.0.0.0/0]
    update pool pool-2: lb_algorithm=ROUND_ROBIN
    set members of pool pool-2: [n1 10.0.0.11:30080, n2 10.0.0.12:30080]
    update health monitor monitor-5: delay=5 timeout=3 max_retries=1 max_retries_down=3
    done
    ");
    assert!(plan.heals);
    assert_snapshot!(notices(&plan), @"
    LoadBalancerChildFailed: Octavia could not make the last change of listener listener_0_web (listener-6): sending it again
    LoadBalancerChildFailed: Octavia could not make the last change of pool pool_0_web (pool-2): sending it again
    LoadBalancerChildFailed: Octavia could not make the last change of member n1 (member-3): sending it again
    LoadBalancerChildFailed: Octavia could not make the last change of health monitor monitor_0_web (monitor-5): sending it again
    ");
}

#[test]
fn a_member_that_failed_on_another_subnet_is_taken_out_and_comes_back() {
    let plan = drift(&Shape::web(), |cloud| {
        let member = &mut cloud.children().pools[0].members[0];
        member.status = ProvisioningStatus::Error;
        member.member.subnet_id = Some("unknown".to_owned());
    });
    assert_snapshot!(plan, @"
    set members of pool pool-2: [n2 10.0.0.12:30080]
    set members of pool pool-2: [n1 10.0.0.11:30080, n2 10.0.0.12:30080]
    done
    ");
}

#[test]
fn a_listener_that_lost_its_pool_gets_a_complete_one() {
    let plan = drift(&Shape::web(), |cloud| {
        cloud.children().pools.clear();
        cloud.children().listeners[0].default_pool_id = None;
    });
    assert_snapshot!(plan, @"
    create pool pool_0_web: TCP ROUND_ROBIN tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
    set members of pool (new) pool_0_web: [n1 10.0.0.11:30080, n2 10.0.0.12:30080]
    done
    ");
}

#[test]
fn two_own_listeners_on_one_pool_are_told_apart() {
    let shape = Shape::web().with(|shape| shape.ports.push(tcp(443, 30443)));
    let plan = drift(&shape, |cloud| {
        let children = cloud.children();
        let (first, second) = (children.pools[0].id.clone(), children.listeners[1].id.clone());
        cloud.swap(&second, &first);
    });
    assert_snapshot!(plan, @"
    give listener listener-9 (TCP:443) the pool pool-6
    done
    ");
}

#[test]
fn a_port_of_somebody_else_blocks_and_changes_nothing() {
    let mut cloud = Cloud::serving(&Shape::web().desired());
    let children = cloud.children();
    children.listeners[0].ours = false;
    children.listeners[0].protocol = ListenerProtocol::Http;
    children.pools[0].ours = false;
    cloud.load_balancer().ownership = Ownership::Guest;
    cloud.load_balancer().tags.clear();
    assert_snapshot!(serve(&Shape::web().desired(), &cloud.observed), @"blocked (user_input): load balancer kube_service_c1_default_web (lb-1) has listeners of somebody else where the Service wants its own: port TCP:80 by the listener listener_0_web (listener-5, HTTP); choose other ports, or another load balancer");
}

#[test]
fn a_port_of_somebody_else_does_not_stop_the_care_for_the_others() {
    let before = Shape::web();
    let mut cloud = Cloud::serving(&before.desired());
    let mut foreign = cloud.children().listeners[0].clone();
    foreign.id = "listener-x".to_owned();
    foreign.name = "metrics".to_owned();
    foreign.port = 9000;
    foreign.ours = false;
    foreign.default_pool_id = None;
    cloud.children().listeners.push(foreign);
    let after = before.with(|shape| {
        shape.nodes.insert(3);
        shape.ports.push(tcp(9000, 30900));
    });
    assert_snapshot!(serve(&after.desired(), &cloud.observed), @"
    set members of pool pool-2: [n1 10.0.0.11:30080, n2 10.0.0.12:30080, n3 10.0.0.13:30080]
    blocked (user_input): load balancer kube_service_c1_default_web (lb-1) has listeners of somebody else where the Service wants its own: port TCP:9000 by the listener metrics (listener-x, TCP); choose other ports, or another load balancer
    ");
}

#[test]
fn untagged_listeners_of_an_administrator_stay() {
    let plan = drift(&Shape::web(), |cloud| {
        let mut foreign = cloud.children().listeners[0].clone();
        foreign.id = "listener-x".to_owned();
        foreign.port = 9999;
        foreign.ours = false;
        cloud.children().listeners.push(foreign);
    });
    assert_snapshot!(plan, @"nothing to do");
}

#[test]
fn a_pending_load_balancer_is_waited_for_but_its_floating_ip_is_not() {
    let shape = Shape::web();
    let mut cloud = Cloud::default();
    cloud.apply(&serve(&shape.desired(), &cloud.observed).steps[0]);
    assert_snapshot!(serve(&shape.desired(), &cloud.observed), @"
    create floating IP on network EXT1 for port vip-of-lb-1
    wait: load balancer lb-1 is PENDING_CREATE
    ");
    cloud.load_balancer().status = ProvisioningStatus::PendingDelete;
    assert_snapshot!(serve(&shape.desired(), &cloud.observed), @"wait: load balancer lb-1 is PENDING_DELETE");
}

#[test]
fn a_child_at_work_is_waited_for() {
    let plan = drift(&Shape::web(), |cloud| {
        cloud.children().pools[0].members[1].status = ProvisioningStatus::PendingUpdate;
    });
    assert_snapshot!(plan, @"wait: member member-4 is PENDING_UPDATE");
}

#[test]
fn a_broken_load_balancer_is_made_anew_on_its_address() {
    let plan = drift(&Shape::web(), |cloud| {
        cloud.load_balancer().status = ProvisioningStatus::Error;
        cloud.observed.floating_ips[0].tags.clear();
    });
    assert_snapshot!(plan, @"
    tag floating IP fip-6: [kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
    delete load balancer lb-1 with everything below it
    create load balancer kube_service_c1_default_web: provider=amphora vip_subnet_id=SUB1 vip_address=10.0.0.100 tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
      listener listener_0_web: TCP 80 connection_limit=-1 timeout_client_data=50000 timeout_member_connect=5000 timeout_member_data=50000 timeout_tcp_inspect=0 allowed_cidrs=[0.0.0.0/0] tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
        pool pool_0_web: TCP ROUND_ROBIN tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
          member n1 10.0.0.11:30080
          member n2 10.0.0.12:30080
    done
    ");
    assert!(plan.heals);
    assert_snapshot!(notices(&plan), @"LoadBalancerReplaced: load balancer kube_service_c1_default_web (lb-1) is in ERROR: it is deleted and made anew");
}

#[test]
fn a_broken_load_balancer_of_several_is_left_to_an_administrator() {
    let plan = drift(&Shape::web(), |cloud| {
        cloud.load_balancer().status = ProvisioningStatus::Error;
        cloud.load_balancer().ownership = Ownership::Shared;
    });
    assert_snapshot!(plan, @"blocked (unavailable): load balancer kube_service_c1_default_web (lb-1) is in ERROR and other Services use it too, so it is not replaced: have an administrator fail it over (openstack loadbalancer failover lb-1)");
}

#[test]
fn a_broken_load_balancer_with_a_foreign_listener_is_left_to_an_administrator() {
    let plan = drift(&Shape::web(), |cloud| {
        cloud.load_balancer().status = ProvisioningStatus::Error;
        cloud.children().listeners[0].ours = false;
    });
    assert_snapshot!(plan, @"blocked (unavailable): load balancer kube_service_c1_default_web (lb-1) is in ERROR and carries the listener listener_0_web (listener-5), which is not this Service's, so it is not replaced: have an administrator fail it over (openstack loadbalancer failover lb-1)");
}
