//! What the cloud has refused, and what is left out for it.

use insta::assert_snapshot;
use openstack_ccm_core::failure::Failure;

use crate::load_balancer::objects::step::{ListenerStep, MemberStep, Refused, Step};
use crate::load_balancer::objects::{FormerListener, tls};
use crate::load_balancer::plan::refusals::{Predecessor, Refusals, listener_tag};
use crate::load_balancer::plan::tests::cloud::Cloud;
use crate::load_balancer::plan::tests::shape::{Kind, Shape, tcp};
use crate::load_balancer::plan::{Plan, serve, serve_beside};

/// The plan for a Service when these steps of it were refused.
fn beside(cloud: &Cloud, shape: &Shape, is_refused: impl Fn(&Step) -> bool) -> Plan {
    let desired = shape.desired();
    let steps = serve(&desired, &cloud.observed).steps.into_iter().filter(is_refused);
    let steps = steps.map(|step| Refused { step, failure: Failure::user_input("the cloud says no") });
    let refusals = Refusals { steps: steps.collect(), ..Refusals::default() };
    serve_beside(&desired, &cloud.observed, &refusals)
}

#[test]
fn a_port_that_moves_is_closed_in_the_old_place_also_where_the_new_one_is_refused() {
    let cloud = Cloud::serving(&Shape::web().desired());
    let moved = Shape::web().with(|shape| shape.ports[0].key.port = 8080);
    let plan = beside(&cloud, &moved, |step| {
        matches!(step, Step::Pool(_)) && step.to_string().starts_with("create")
    });
    assert_snapshot!(plan, @"
    delete listener listener-5 (TCP:80)
    delete pool pool-2 (pool_0_web)
    left out: create pool pool_0_web: TCP ROUND_ROBIN tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
    left out: set members of pool (new) pool_0_web: [n1 10.0.0.11:30080, n2 10.0.0.12:30080]
    left out: create listener listener_0_web: TCP 8080 connection_limit=-1 timeout_client_data=50000 timeout_member_connect=5000 timeout_member_data=50000 timeout_tcp_inspect=0 allowed_cidrs=[0.0.0.0/0] tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1] with pool (new) pool_0_web
    done
    ");
    assert_eq!(plan.refusal().map(|failure| failure.message).as_deref(), Some("the cloud says no"));
}

/// What goes asks neither for an address nor for quota, and what comes is added beside what stays.
#[test]
fn a_batch_that_is_refused_is_sent_in_parts() {
    let cloud = Cloud::serving(&Shape::web().desired());
    let after = |nodes: &[u8]| Shape::web().with(|shape| shape.nodes = nodes.iter().copied().collect());
    let is_batch = |step: &Step| matches!(step, Step::Member(MemberStep::ReplaceAll { .. }));
    assert_snapshot!(beside(&cloud, &after(&[2, 3, 4]), is_batch), @"
    remove member member-3 (n1) from pool pool-2
    add members to pool pool-2: [n3 10.0.0.13:30080, n4 10.0.0.14:30080]
    done
    ");
    // The last one goes with one that comes.
    assert_snapshot!(beside(&cloud, &after(&[3, 4]), is_batch), @"
    remove member member-4 (n2) from pool pool-2
    set members of pool pool-2: [n3 10.0.0.13:30080]
    left out: set members of pool pool-2: [n3 10.0.0.13:30080, n4 10.0.0.14:30080]
    done
    ");
}

#[test]
fn a_pool_stays_until_something_takes_its_place() {
    let cloud = Cloud::serving(&Shape::web().desired());
    let proxy = Shape::web().with(|shape| {
        shape.ports[0].kind = Kind::Proxy;
        shape.ports.push(tcp(443, 30443));
        shape.nodes.insert(3);
    });
    let plan = beside(&cloud, &proxy, |step| step.to_string().contains("create pool pool_0_web"));
    let sent: Vec<String> =
        plan.steps.iter().map(|step| step.to_string().chars().take(40).collect()).collect();
    assert_eq!(
        sent,
        [
            "add members to pool pool-2: [n3 10.0.0.1",
            "create pool pool_1_web: TCP ROUND_ROBIN ",
            "set members of pool (new) pool_1_web: [n",
            "create listener listener_1_web: TCP 443 ",
        ]
    );
    assert!(plan.keeps_protocols() && plan.closed.is_empty());
}

/// Octavia refused the new listener when the old one was gone.
#[test]
fn a_listener_that_made_way_for_nothing_comes_back_on_its_pool() {
    let mut cloud = Cloud::serving(&Shape::web().desired());
    let http = Shape::web().with(|shape| {
        shape.ports[0].kind = Kind::Http;
        shape.connection_limit = 100;
    });
    let there = cloud.children().listeners[0].clone();
    let before =
        Predecessor { pool: cloud.children().pools[0].clone(), listener: FormerListener::of(&there) };
    let step = serve(&http.desired(), &cloud.observed)
        .steps
        .into_iter()
        .find(|step| matches!(step, Step::Listener(ListenerStep::Create { .. })));
    let refused = Refused { step: step.unwrap(), failure: Failure::user_input("the cloud says no") };
    cloud.children().listeners.clear();
    cloud.children().pools[0].used_by.clear();
    let refusals = Refusals {
        steps: vec![refused],
        predecessors: [(there.key(), before)].into(),
        ..Refusals::default()
    };
    let desired = http.desired();
    let tag = listener_tag(&desired.listeners[&there.key()].listener);
    let plan = serve_beside(&desired, &cloud.observed, &refusals).to_string();
    assert_snapshot!(plan.replace(&tag, "openstack-ccm-refused=HASH"), @"
    create listener listener_0_web: TCP 80 connection_limit=100 timeout_client_data=50000 timeout_member_connect=5000 timeout_member_data=50000 timeout_tcp_inspect=0 allowed_cidrs=[0.0.0.0/0] tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-refused=HASH, openstack-ccm-service=s1] with pool pool-2
    left out: create listener listener_0_web: HTTP 80 connection_limit=100 timeout_client_data=50000 timeout_member_connect=5000 timeout_member_data=50000 timeout_tcp_inspect=0 insert_headers=[X-Forwarded-For] allowed_cidrs=[0.0.0.0/0] tags=[kube_service_c1_default_web, openstack-ccm-cluster=c1, openstack-ccm-service=s1]
    done
    ");
}

#[test]
fn a_listener_with_policies_keeps_its_protocol_and_follows_in_everything_else() {
    let mut cloud = Cloud::serving(&Shape::web().desired());
    cloud.children().listeners[0].has_policies = true;
    let http = Shape::web().with(|shape| {
        shape.ports[0].kind = Kind::Http;
        shape.connection_limit = 100;
    });
    let plan = serve(&http.desired(), &cloud.observed);
    let sent: Vec<String> = plan.steps.iter().map(ToString::to_string).collect();
    assert_eq!(sent, ["update listener listener-5 (TCP:80): connection_limit=100"]);
    let refusal = plan.refusal().unwrap().message;
    assert!(refusal.contains("L7 policies") && refusal.contains("listener-5"), "{refusal}");
}

/// The tag says at which revision the references to certificates were sent.
#[test]
fn a_listener_that_keeps_its_protocol_keeps_what_is_noted_of_its_certificates() {
    let mut cloud = Cloud::serving(&Shape::web().desired());
    let there = &mut cloud.children().listeners[0];
    there.has_policies = true;
    there.tags.insert(tls::revision_tag("7"));
    let http = Shape::web().with(|shape| shape.ports[0].kind = Kind::Http);
    let plan = serve(&http.desired(), &cloud.observed);
    assert!(plan.steps.is_empty(), "{plan}");
}
