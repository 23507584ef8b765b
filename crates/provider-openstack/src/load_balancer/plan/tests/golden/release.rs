//! The plan for a Service that goes.

use insta::assert_snapshot;
use openstack_ccm_openstack_api::octavia::ProvisioningStatus;

use crate::load_balancer::objects::{Observed, Ownership, ReleaseTerms};
use crate::load_balancer::plan::release;
use crate::load_balancer::plan::tests::cloud::Cloud;
use crate::load_balancer::plan::tests::shape::{CLUSTER_TAG, Shape, tcp};

fn served() -> Cloud {
    Cloud::serving(&Shape::web().with(|shape| shape.monitor_delay = Some(5)).desired())
}

fn terms() -> ReleaseTerms {
    Shape::release_terms()
}

fn foreign_listener(cloud: &mut Cloud) {
    let mut foreign = cloud.children().listeners[0].clone();
    foreign.id = "listener-x".to_owned();
    foreign.name = "metrics".to_owned();
    foreign.port = 9000;
    foreign.ours = false;
    foreign.default_pool_id = None;
    cloud.children().listeners.push(foreign);
}

/// Defect: 57, better: the address is given up last.
#[test]
fn an_own_load_balancer_goes_before_its_floating_ip() {
    let mut cloud = served();
    assert_snapshot!(release(&terms(), &cloud.observed), @"
    delete load balancer lb-1 with its listeners and pools
    delete floating IP fip-7 (203.0.113.7)
    done
    ");
    cloud.release(&terms());
    assert_eq!(cloud.observed, Observed::default());
}

#[test]
fn a_floating_ip_is_marked_before_it_could_get_lost() {
    let mut cloud = served();
    cloud.observed.floating_ips[0].tags.clear();
    assert_snapshot!(release(&terms(), &cloud.observed), @"
    tag floating IP fip-7: [kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
    delete load balancer lb-1 with its listeners and pools
    delete floating IP fip-7 (203.0.113.7)
    done
    ");
}

#[test]
fn a_floating_ip_to_be_kept_stays() {
    let mut cloud = served();
    let terms = ReleaseTerms { keep_floating_ip: true, ..terms() };
    assert_snapshot!(release(&terms, &cloud.observed), @"
    delete load balancer lb-1 with its listeners and pools
    tag floating IP fip-7: [kube_service_c1_default_web]
    done
    ");
    cloud.release(&terms);
    assert_eq!(cloud.observed.floating_ips.len(), 1);
    assert!(!cloud.observed.floating_ips[0].tags.iter().any(|tag| tag.starts_with("openstack-ccm-")));
}

#[test]
fn a_foreign_floating_ip_stays() {
    let mut cloud = served();
    cloud.observed.floating_ips[0].ours = false;
    cloud.release(&terms());
    assert_eq!(cloud.observed.floating_ips.len(), 1);
}

/// Defect: 55, better: the clean-up is whole, whatever is gone already.
#[test]
fn the_floating_ip_goes_when_the_load_balancer_is_gone_already() {
    let mut cloud = served();
    cloud.observed.load_balancer = None;
    cloud.observed.floating_ips[0].port_id = None;
    assert_snapshot!(release(&terms(), &cloud.observed), @"
    delete floating IP fip-7 (203.0.113.7)
    done
    ");
}

#[test]
fn a_floating_ip_that_leads_elsewhere_stays_with_a_word() {
    let mut cloud = served();
    cloud.observed.load_balancer = None;
    cloud.observed.floating_ips[0].port_id = Some("port-of-a-server".to_owned());
    let plan = release(&terms(), &cloud.observed);
    assert!(plan.is_converged());
    assert_eq!(plan.notices[0].reason, "FloatingIPLeftInUse");
}

#[test]
fn the_floating_ip_on_the_users_own_vip_port_goes_too() {
    let mut cloud = served();
    cloud.observed.load_balancer = None;
    cloud.observed.floating_ips[0].port_id = Some("P1".to_owned());
    let terms = ReleaseTerms { vip_port_id: Some("P1".to_owned()), ..terms() };
    assert_snapshot!(release(&terms, &cloud.observed), @"
    delete floating IP fip-7 (203.0.113.7)
    done
    ");
}

#[test]
fn a_pending_load_balancer_is_waited_for() {
    let mut cloud = served();
    cloud.load_balancer().status = ProvisioningStatus::PendingUpdate;
    assert_snapshot!(release(&terms(), &cloud.observed), @"wait: load balancer lb-1 is PENDING_UPDATE");
}

#[test]
fn a_broken_load_balancer_is_deleted() {
    let mut cloud = served();
    cloud.load_balancer().status = ProvisioningStatus::Error;
    let terms = ReleaseTerms { cascade: false, ..terms() };
    assert_snapshot!(release(&terms, &cloud.observed), @"
    delete load balancer lb-1 with its listeners and pools
    delete floating IP fip-7 (203.0.113.7)
    done
    ");
}

#[test]
fn without_cascade_the_children_go_one_by_one() {
    let mut cloud = served();
    let terms = ReleaseTerms { cascade: false, ..terms() };
    assert_snapshot!(release(&terms, &cloud.observed), @"
    delete health monitor monitor-5
    delete listener listener-6 (TCP:80)
    delete pool pool-2 (pool_0_web)
    delete load balancer lb-1
    delete floating IP fip-7 (203.0.113.7)
    done
    ");
    cloud.release(&terms);
    assert_eq!(cloud.observed, Observed::default());
}

#[test]
fn a_shared_load_balancer_keeps_everything_of_the_others() {
    let mut cloud = served();
    cloud.load_balancer().ownership = Ownership::Shared;
    cloud.load_balancer().tags.insert("kube_service_c1_default_web2".to_owned());
    foreign_listener(&mut cloud);
    assert_snapshot!(release(&terms(), &cloud.observed), @"
    delete listener listener-6 (TCP:80)
    delete pool pool-2 (pool_0_web)
    update load balancer lb-1: tags=[kube_service_c1_default_web2, openstack-ccm-cluster=c1]
    done
    ");
    cloud.release(&terms());
    let tags: Vec<String> = cloud.load_balancer().tags.iter().cloned().collect();
    assert_eq!(tags, ["kube_service_c1_default_web2", CLUSTER_TAG]);
    assert_eq!(cloud.children().listeners.len(), 1);
    assert_eq!(cloud.observed.floating_ips.len(), 1);
}

#[test]
fn an_own_load_balancer_with_a_foreign_listener_is_left_with_a_notice() {
    let mut cloud = served();
    foreign_listener(&mut cloud);
    let plan = release(&terms(), &cloud.observed);
    assert_snapshot!(plan, @"
    delete listener listener-6 (TCP:80)
    delete pool pool-2 (pool_0_web)
    update load balancer lb-1: tags=[]
    done
    ");
    assert_snapshot!(plan.notices[0].message, @"load balancer kube_service_c1_default_web (lb-1) has the listener metrics (listener-x), which does not belong to this Service: the load balancer is kept, and only the Service's own objects are deleted");
}

#[test]
fn a_pool_that_somebody_elses_listener_uses_stays() {
    let mut cloud = Cloud::serving(&Shape::web().with(|shape| shape.ports.push(tcp(443, 30443))).desired());
    cloud.load_balancer().ownership = Ownership::Guest;
    foreign_listener(&mut cloud);
    let pool = cloud.children().pools[0].id.clone();
    cloud.children().pools[0].used_by.insert("listener-x".to_owned());
    cloud.children().listeners[2].default_pool_id = Some(pool.clone());
    cloud.release(&terms());
    let left: Vec<&String> = cloud.children().pools.iter().map(|pool| &pool.id).collect();
    assert_eq!(left, [&pool]);
}

#[test]
fn a_broken_load_balancer_of_several_blocks_the_release() {
    let mut cloud = served();
    cloud.load_balancer().ownership = Ownership::Guest;
    cloud.load_balancer().status = ProvisioningStatus::Error;
    assert_snapshot!(release(&terms(), &cloud.observed), @"blocked (unavailable): load balancer kube_service_c1_default_web (lb-1) is in ERROR, so its listeners and pools cannot be deleted: have an administrator fail it over (openstack loadbalancer failover lb-1)");
}

#[test]
fn nothing_there_is_released() {
    assert!(release(&terms(), &Observed::default()).is_converged());
}
