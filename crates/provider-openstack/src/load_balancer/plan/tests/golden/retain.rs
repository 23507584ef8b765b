//! A load balancer that outlives its Service, and is taken over by the next one of the name.

use insta::assert_snapshot;
use openstack_ccm_openstack_api::octavia::ProvisioningStatus;

use super::drift;
use crate::load_balancer::names;
use crate::load_balancer::objects::Ownership;
use crate::load_balancer::plan::tests::cloud::Cloud;
use crate::load_balancer::plan::tests::shape::Shape;
use crate::load_balancer::plan::{Plan, retain, serve};

fn retain_it(change: impl FnOnce(&mut Cloud)) -> Plan {
    let mut cloud = Cloud::serving(&Shape::web().desired());
    change(&mut cloud);
    retain(cloud.load_balancer())
}

fn mark(cloud: &mut Cloud) {
    let load_balancer = cloud.load_balancer();
    load_balancer.description = names::retained_description(&load_balancer.description);
}

#[test]
fn what_stays_is_marked_once_with_a_notice() {
    let mut cloud = Cloud::serving(&Shape::web().desired());
    let plan = retain(cloud.load_balancer());
    assert_snapshot!(plan, @r#"
    remove member member-3 (n1) from pool pool-2
    remove member member-4 (n2) from pool pool-2
    update load balancer lb-1: description="Retained: Kubernetes external service default/web from cluster c1"
    done
    "#);
    assert_snapshot!(plan.notices[0].message, @"load balancer kube_service_c1_default_web (lb-1, 10.0.0.100) is kept with everything except its members, as loadbalancer.openstack.org/reclaim-policy requests");
    for step in &plan.steps {
        cloud.finish_pending();
        cloud.apply(step);
    }
    assert!(retain(cloud.load_balancer()).is_converged(), "marked is marked, also while Octavia is at work");
}

#[test]
fn what_cannot_be_marked_yet_is_waited_for() {
    let plan = retain_it(|cloud| cloud.load_balancer().status = ProvisioningStatus::PendingUpdate);
    assert_snapshot!(plan, @"wait: load balancer lb-1 is PENDING_UPDATE");
}

#[test]
fn what_is_broken_cannot_be_marked_and_is_not_let_go() {
    let plan = retain_it(|cloud| cloud.load_balancer().status = ProvisioningStatus::Error);
    assert_snapshot!(plan, @r#"blocked (unavailable): load balancer kube_service_c1_default_web (lb-1) is in ERROR, so it cannot be marked as retained: have an administrator fail it over (openstack loadbalancer failover lb-1), or set loadbalancer.openstack.org/reclaim-policy to "delete""#);
}

#[test]
fn who_takes_it_over_removes_the_mark_first() {
    let mut shape = Shape::web();
    let mut cloud = Cloud::serving(&shape.desired());
    mark(&mut cloud);
    shape.ports[0].node_port = 31000;
    assert_snapshot!(serve(&shape.desired(), &cloud.observed), @r#"
    update load balancer lb-1: description="Kubernetes external service default/web from cluster c1"
    set members of pool pool-2: [n1 10.0.0.11:31000, n2 10.0.0.12:31000]
    done
    "#);
    cloud.converge(&shape.desired(), |_| {});
    assert!(!cloud.load_balancer().is_retained());
}

#[test]
fn a_guest_leaves_the_mark() {
    let plan = drift(&Shape::web(), |cloud| {
        mark(cloud);
        cloud.load_balancer().ownership = Ownership::Guest;
    });
    assert_snapshot!(plan, @"nothing to do");
}

#[test]
fn a_broken_one_is_not_deleted_by_who_would_take_it_over() {
    let plan = drift(&Shape::web(), |cloud| {
        mark(cloud);
        cloud.load_balancer().status = ProvisioningStatus::Error;
    });
    assert_snapshot!(plan, @"held (load_balancer_in_error): load balancer kube_service_c1_default_web (lb-1) is in ERROR, so changes of the Service or of nodes cannot be applied until the load balancer is repaired or recreated");
}
