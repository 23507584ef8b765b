//! Octavia is at work, or failed.

use std::sync::Arc;

use insta::assert_snapshot;
use openstack_ccm_openstack_api::octavia::{OperatingStatus, ProvisioningStatus};
use rstest::rstest;

use super::{drift, notices};
use crate::load_balancer::objects::Ownership;
use crate::load_balancer::objects::step::{MonitorStep, Step};
use crate::load_balancer::plan::serve;
use crate::load_balancer::plan::tests::cloud::Cloud;
use crate::load_balancer::plan::tests::shape::Shape;

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
    set members of pool pool-2: [n1 10.0.0.11:30080, n2 10.0.0.12:30080]
    update listener listener-6 (TCP:80): connection_limit=-1 timeout_client_data=50000 timeout_member_connect=5000 timeout_member_data=50000 timeout_tcp_inspect=0 allowed_cidrs=[0.0.0.0/0]
    update pool pool-2: lb_algorithm=ROUND_ROBIN
    update health monitor monitor-5: delay=5 timeout=3 max_retries=1 max_retries_down=3
    done
    ");
    assert!(plan.heals);
    assert_snapshot!(notices(&plan), @"
    LoadBalancerChildFailed: Octavia failed to apply the last change of member n1 (member-3); the change is sent again
    LoadBalancerChildFailed: Octavia failed to apply the last change of listener listener_0_web (listener-6); the change is sent again
    LoadBalancerChildFailed: Octavia failed to apply the last change of pool pool_0_web (pool-2); the change is sent again
    LoadBalancerChildFailed: Octavia failed to apply the last change of health monitor monitor_0_web (monitor-5); the change is sent again
    ");
}

/// A monitor whose deletion failed still checks the members.
#[rstest]
#[case::an_http_check(Some(32000), false)]
#[case::another_check(None, true)]
fn members_wait_for_the_deletion_of_the_check_that_they_must_not_meet(
    #[case] health_check_port: Option<u16>,
    #[case] sends_members: bool,
) {
    let mut shape = Shape::web().with(|shape| shape.monitor_delay = Some(5));
    shape.ports[0].health_check_port = health_check_port;
    let mut cloud = Cloud::serving(&shape.desired());
    cloud.children().pools[0].monitor.as_mut().unwrap().status = ProvisioningStatus::Error;
    shape.monitor_delay = None;
    shape.ports[0].health_check_port = None;
    shape.nodes.insert(3);
    let plan = serve(&shape.desired(), &cloud.observed);
    assert!(plan.heals);
    assert_eq!(plan.repairs, [0].into(), "the others only wait");
    assert!(matches!(&plan.steps[..], [Step::Monitor(MonitorStep::Delete { .. }), Step::Member(_)]));
    let meanwhile = if sends_members { vec![plan.steps[1].clone()] } else { Vec::new() };
    assert_eq!(plan.without_repairs().steps, meanwhile);
}

/// It is sent again where it is, and meanwhile a pool is made in which it is on the right subnet.
#[test]
fn a_member_that_failed_on_another_subnet_gets_another_pool() {
    let plan = drift(&Shape::web(), |cloud| {
        let member = &mut cloud.children().pools[0].members[0];
        member.status = ProvisioningStatus::Error;
        Arc::make_mut(&mut member.member).subnet_id = Some("unknown".into());
    });
    assert_snapshot!(plan, @"
    set members of pool pool-2: [n1 10.0.0.11:30080, n2 10.0.0.12:30080]
    create pool pool_0_web: TCP ROUND_ROBIN tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
    set members of pool (new) pool_0_web: [n1 10.0.0.11:30080, n2 10.0.0.12:30080]
    set default pool of listener listener-5 (TCP:80): (new) pool_0_web
    delete pool pool-2 (pool_0_web)
    done
    ");
    assert_eq!(plan.repairs, [0].into());
}

/// As OCCM makes members where cloud.conf names a network only: they are on the subnet of the VIP.
#[test]
fn members_that_failed_without_a_subnet_are_sent_again() {
    let plan = drift(&Shape::web(), |cloud| {
        for member in &mut cloud.children().pools[0].members {
            member.status = ProvisioningStatus::Error;
            Arc::make_mut(&mut member.member).subnet_id = None;
        }
    });
    assert_snapshot!(plan, @"
    set members of pool pool-2: [n1 10.0.0.11:30080, n2 10.0.0.12:30080]
    done
    ");
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

/// The driver of ovn leaves it so, and takes further changes.
#[test]
fn a_listener_at_work_is_waited_for_but_not_with_ovn() {
    let pending = |provider: &str| {
        drift(&Shape::web(), |cloud| {
            cloud.load_balancer().made_with.provider = Some(provider.to_owned());
            cloud.children().listeners[0].status = ProvisioningStatus::PendingUpdate;
        })
    };
    assert_snapshot!(pending("amphora"), @"wait: listener listener-5 is PENDING_UPDATE");
    assert_snapshot!(pending("ovn"), @"nothing to do");
}

#[test]
fn a_broken_load_balancer_is_recreated_on_its_address() {
    let plan = drift(&Shape::web(), |cloud| {
        breaks(cloud);
        cloud.observed.floating_ips[0].tags.clear();
    });
    assert_snapshot!(plan, @"
    tag floating IP fip-6: [kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-former-vip=10.0.0.100, openstack-ccm-service=s1]
    delete load balancer lb-1 with its listeners and pools
    create load balancer kube_service_c1_default_web provider=amphora vip_subnet_id=SUB1 vip_address=10.0.0.100 tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
      listener listener_0_web: TCP 80 connection_limit=-1 timeout_client_data=50000 timeout_member_connect=5000 timeout_member_data=50000 timeout_tcp_inspect=0 allowed_cidrs=[0.0.0.0/0] tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
        pool pool_0_web: TCP ROUND_ROBIN tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
          member n1 10.0.0.11:30080
          member n2 10.0.0.12:30080
    done
    ");
    assert!(plan.heals);
    assert_snapshot!(notices(&plan), @"LoadBalancerReplaced: load balancer kube_service_c1_default_web (lb-1) has the provisioning status ERROR and the operating status ERROR; the load balancer is deleted and recreated");
}

#[test]
fn a_broken_load_balancer_of_several_is_left_to_an_administrator() {
    let plan = drift(&Shape::web(), |cloud| {
        breaks(cloud);
        cloud.load_balancer().ownership = Ownership::Shared;
    });
    assert_snapshot!(plan, @"held (load_balancer_in_error): load balancer kube_service_c1_default_web (lb-1) is in ERROR, so changes of the Service or of nodes cannot be applied until the load balancer is repaired or recreated");
    assert_snapshot!(notices(&plan), @"LoadBalancerInError: load balancer kube_service_c1_default_web (lb-1) has the provisioning status ERROR and the operating status ERROR; openstack-ccm takes no action now (other Services use it too): have an administrator fail the load balancer over (openstack loadbalancer failover lb-1)");
}

#[test]
fn a_broken_load_balancer_with_a_foreign_listener_is_left_to_an_administrator() {
    let plan = drift(&Shape::web(), |cloud| {
        breaks(cloud);
        cloud.children().listeners[0].ours = false;
    });
    assert_snapshot!(plan, @"blocked (load_balancer_in_error): load balancer kube_service_c1_default_web (lb-1) is in ERROR, so changes of the Service or of nodes cannot be applied until the load balancer is repaired or recreated");
    assert_snapshot!(notices(&plan), @"LoadBalancerInError: load balancer kube_service_c1_default_web (lb-1) has the provisioning status ERROR and the operating status ERROR; openstack-ccm takes no action now (it has the listener listener_0_web (listener-5), which does not belong to this Service): have an administrator fail the load balancer over (openstack loadbalancer failover lb-1)");
}

#[test]
fn a_broken_load_balancer_with_somebody_elses_floating_ip_is_left_to_an_administrator() {
    let plan = drift(&Shape::web(), |cloud| {
        breaks(cloud);
        cloud.observed.floating_ips[0].ours = false;
    });
    assert_snapshot!(plan, @"held (load_balancer_in_error): load balancer kube_service_c1_default_web (lb-1) is in ERROR, so changes of the Service or of nodes cannot be applied until the load balancer is repaired or recreated");
    assert_snapshot!(notices(&plan), @"LoadBalancerInError: load balancer kube_service_c1_default_web (lb-1) has the provisioning status ERROR and the operating status ERROR; openstack-ccm takes no action now (it has floating IP 203.0.113.6, which does not belong to this Service and would be lost): have an administrator fail the load balancer over (openstack loadbalancer failover lb-1)");
}

#[test]
fn a_broken_load_balancer_that_may_serve_is_left_as_it_is_while_its_floating_ip_follows() {
    let mut cloud = Cloud::serving(&Shape::web().desired());
    breaks(&mut cloud);
    cloud.load_balancer().operating = OperatingStatus::Online;
    cloud.load_balancer().tags.clear();
    cloud.children().listeners[0].status = ProvisioningStatus::Error;
    cloud.observed.floating_ips.clear();
    let as_wanted = serve(&Shape::web().desired(), &cloud.observed);
    assert_snapshot!(as_wanted, @"
    create floating IP on network EXT1 for port vip-of-lb-1
    held (load_balancer_in_error): load balancer kube_service_c1_default_web (lb-1) is in ERROR, so changes of the Service or of nodes cannot be applied until the load balancer is repaired or recreated
    ");
    assert!(!as_wanted.heals);
    assert_snapshot!(notices(&as_wanted), @"LoadBalancerInError: load balancer kube_service_c1_default_web (lb-1) has the provisioning status ERROR and the operating status ONLINE; openstack-ccm takes no action now (its operating status says that it forwards traffic): have an administrator fail the load balancer over (openstack loadbalancer failover lb-1); if no client uses the load balancer, delete it (openstack loadbalancer delete --cascade lb-1), and it is recreated");
    let other = Shape::web().with(|shape| shape.monitor_delay = Some(5));
    assert_snapshot!(serve(&other.desired(), &cloud.observed), @"
    create floating IP on network EXT1 for port vip-of-lb-1
    blocked (load_balancer_in_error): load balancer kube_service_c1_default_web (lb-1) is in ERROR, so changes of the Service or of nodes cannot be applied until the load balancer is repaired or recreated
    ");
}

fn breaks(cloud: &mut Cloud) {
    cloud.load_balancer().status = ProvisioningStatus::Error;
    cloud.load_balancer().operating = OperatingStatus::Error;
}
