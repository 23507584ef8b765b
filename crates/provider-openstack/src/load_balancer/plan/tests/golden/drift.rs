//! The cloud changes behind the back of the program.

use std::sync::Arc;

use insta::assert_snapshot;
use openstack_ccm_openstack_api::octavia::{ListenerProtocol, SessionPersistence, SessionPersistenceType};

use super::drift;
use crate::load_balancer::objects::{Ownership, Tags};
use crate::load_balancer::plan::serve;
use crate::load_balancer::plan::tests::cloud::Cloud;
use crate::load_balancer::plan::tests::shape::{GENERATED_NAME, Kind, Shape, tcp};

#[test]
fn what_an_administrator_set_stays() {
    let plan = drift(&Shape::web(), |cloud| {
        let children = cloud.children();
        children.listeners[0].attributes.insert_headers.insert("X-Foo".to_owned(), "true".to_owned());
        children.listeners[0].tags.insert("team-a".to_owned());
        let cookie =
            SessionPersistence { kind: SessionPersistenceType::HttpCookie, persistence_timeout: None };
        children.pools[0].attributes.session_persistence = Some(cookie);
        let member = Arc::make_mut(&mut children.pools[0].members[0].member);
        member.weight = 5;
        member.subnet_id = Some("SUB9".into());
        cloud.load_balancer().tags.insert("team-a".to_owned());
    });
    assert_snapshot!(plan, @"nothing to do");
}

/// Without the tag that says otherwise, persistence by address is an administrator's too.
#[test]
fn persistence_by_address_that_an_administrator_set_stays() {
    let plan = drift(&Shape::web(), |cloud| {
        let by_address =
            SessionPersistence { kind: SessionPersistenceType::SourceIp, persistence_timeout: None };
        cloud.children().pools[0].attributes.session_persistence = Some(by_address);
    });
    assert_snapshot!(plan, @"nothing to do");
}

#[test]
fn a_batch_keeps_weight_and_subnet_of_members_that_stay() {
    let mut cloud = Cloud::serving(&Shape::web().desired());
    let member = Arc::make_mut(&mut cloud.children().pools[0].members[0].member);
    member.weight = 5;
    member.backup = true;
    member.subnet_id = Some("SUB9".into());
    let kept = member.clone();
    let after = Shape::web()
        .with(|shape| {
            shape.nodes.remove(&2);
            shape.nodes.insert(3);
        })
        .desired();
    assert_snapshot!(serve(&after, &cloud.observed), @"
    set members of pool pool-2: [n1 10.0.0.11:30080 (weight=5 backup=true), n3 10.0.0.13:30080]
    done
    ");
    cloud.converge(&after, |_| {});
    assert_eq!(*cloud.children().pools[0].members[0].member, kept);
}

#[test]
fn a_changed_limit_is_reset() {
    let plan = drift(&Shape::web(), |cloud| {
        cloud.children().listeners[0].attributes.limits.connection_limit = Some(7);
    });
    assert_snapshot!(plan, @"
    update listener listener-5 (TCP:80): connection_limit=-1
    done
    ");
}

#[test]
fn an_occm_load_balancer_is_adopted_by_its_own_tags_alone() {
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
    update load balancer lb-1: tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
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
fn of_two_own_listeners_on_one_pool_each_gets_its_own() {
    let shape = Shape::web().with(|shape| shape.ports.push(tcp(443, 30443)));
    let plan = drift(&shape, |cloud| {
        let children = cloud.children();
        let (first, second) = (children.pools[0].id.clone(), children.listeners[1].id.clone());
        cloud.swap(&second, &first);
    });
    assert_snapshot!(plan, @"
    set default pool of listener listener-9 (TCP:443): pool-6
    done
    ");
}

/// Defect: 4, better: ports are compared by their transport, whatever protocol a listener speaks, and a
/// listener of somebody else is never changed.
#[test]
fn a_port_of_somebody_else_blocks_and_changes_nothing() {
    let mut cloud = Cloud::serving(&Shape::web().desired());
    let children = cloud.children();
    children.listeners[0].ours = false;
    children.listeners[0].protocol = ListenerProtocol::Http;
    children.pools[0].ours = false;
    cloud.load_balancer().ownership = Ownership::Guest;
    cloud.load_balancer().tags.clear();
    assert_snapshot!(serve(&Shape::web().desired(), &cloud.observed), @"blocked (user_input): port TCP:80 is already used by listener listener_0_web (listener-5, HTTP), on load balancer kube_service_c1_default_web (lb-1); choose another port, or another load balancer");
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
    add members to pool pool-2: [n3 10.0.0.13:30080]
    blocked (user_input): port TCP:9000 is already used by listener metrics (listener-x, TCP), on load balancer kube_service_c1_default_web (lb-1); choose another port, or another load balancer
    ");
}

/// Defect: 33, better: only listeners with the tag of the Service are touched.
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
fn what_is_taken_over_no_longer_says_that_it_is_somebody_elses() {
    let plan = drift(&Shape::web(), |cloud| {
        let foreign: Tags =
            ["openstack-ccm-cluster=c0", "openstack-ccm-service=s0", "team-a"].map(str::to_owned).into();
        cloud.load_balancer().tags = foreign.clone();
        cloud.children().listeners[0].tags = foreign.clone();
        cloud.children().pools[0].tags = foreign.clone();
        cloud.observed.floating_ips[0].tags = foreign;
    });
    assert_snapshot!(plan, @"
    tag floating IP fip-6: [kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1, team-a]
    update load balancer lb-1: tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1, team-a]
    update listener listener-5 (TCP:80): tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1, team-a]
    update pool pool-2: tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1, team-a]
    done
    ");
}

/// Defect: 7, better: tags of others are kept.
#[test]
fn the_tags_of_other_services_on_a_shared_load_balancer_stay() {
    let plan = drift(&Shape::web(), |cloud| {
        cloud.load_balancer().ownership = Ownership::Shared;
        cloud.load_balancer().tags =
            ["kube_service_c1_default_web2", "openstack-ccm-service=s2"].map(str::to_owned).into();
    });
    assert_snapshot!(plan, @"
    update load balancer lb-1: tags=[kube_service_c1_default_web, kube_service_c1_default_web2, openstack-ccm-cluster=c1, openstack-ccm-service=s1, openstack-ccm-service=s2]
    done
    ");
}

/// Defect: 62, better: a listener's own pool is its default pool.
#[test]
fn a_pool_to_which_a_policy_redirects_is_left_when_it_is_replaced() {
    let mut cloud = Cloud::serving(&Shape::web().desired());
    let proxy = Shape::web().with(|shape| shape.ports[0].kind = Kind::Proxy).desired();
    let old = cloud.children().pools[0].id.clone();
    let listener = cloud.children().listeners[0].id.clone();
    for _ in 0..3 {
        cloud.apply(&serve(&proxy, &cloud.observed).steps[0]);
        cloud.finish_pending();
    }
    // The policy shows as a use of the pool by a listener that has another default pool.
    let pool = cloud.children().pools.iter_mut().find(|pool| pool.id == old).unwrap();
    pool.used_by.insert(listener);
    assert_snapshot!(serve(&proxy, &cloud.observed), @"nothing to do");
}
