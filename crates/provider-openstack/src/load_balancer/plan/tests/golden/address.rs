//! The plan for the floating IP of a Service, and the address that follows.

use std::net::IpAddr;

use insta::assert_snapshot;
use rstest::rstest;

use crate::load_balancer::objects::{
    FloatingIpGoal, FloatingIpSpec, ObservedFloatingIp, Ownership, SubnetChoice,
};
use crate::load_balancer::plan::tests::cloud::Cloud;
use crate::load_balancer::plan::tests::shape::{Shape, tags};
use crate::load_balancer::plan::{Plan, serve};

fn spec(shape: &mut Shape) -> &mut FloatingIpSpec {
    match &mut shape.floating_ip {
        FloatingIpGoal::External(spec) => spec,
        FloatingIpGoal::Internal { .. } | FloatingIpGoal::NotNeeded | FloatingIpGoal::Unknown { .. } => {
            panic!("the base is external")
        }
    }
}

fn internal() -> Shape {
    Shape::web()
        .with(|shape| shape.floating_ip = FloatingIpGoal::Internal { keep: false, takes_off_others: true })
}

fn floating_ip(id: &str, last: u8, port: Option<&str>, ours: bool) -> ObservedFloatingIp {
    ObservedFloatingIp {
        in_use: false,
        claimed_by: None,
        user: None,
        device: None,
        fixed_address: None,
        id: id.to_owned(),
        address: [203, 0, 113, last].into(),
        network_id: Some("EXT1".to_owned()),
        port_id: port.map(str::to_owned),
        ours,
        description: String::new(),
        tags: if ours { tags() } else { [].into() },
    }
}

/// The plan for a Service whose load balancer stands, with these floating IPs around.
fn plan(shape: &Shape, floating_ips: Vec<ObservedFloatingIp>) -> Plan {
    let mut cloud = Cloud::serving(&internal().desired());
    cloud.load_balancer().vip_port_id = Some("VIP".to_owned());
    cloud.observed.floating_ips = floating_ips;
    serve(&shape.desired(), &cloud.observed)
}

fn address(plan: &Plan) -> String {
    plan.address.map_or_else(|| "not known yet".to_owned(), |address| address.to_string())
}

fn asked(last: u8) -> Shape {
    Shape::web().with(|shape| spec(shape).address = Some(IpAddr::from([203, 0, 113, last])))
}

#[test]
fn internal_to_external_creates_one() {
    let plan = plan(&Shape::web(), Vec::new());
    assert_snapshot!(plan, @"
    create floating IP on network EXT1 for port VIP
    done
    ");
    assert_eq!(address(&plan), "not known yet");
}

#[rstest]
#[case::any(SubnetChoice::Any, "")]
#[case::id(SubnetChoice::Id("FS1".to_owned()), " subnet FS1")]
#[case::pattern(SubnetChoice::FirstFree(vec!["FS1".to_owned(), "FS2".to_owned()]), " first free subnet of [FS1, FS2]")]
fn the_configured_subnet_is_used(#[case] subnet: SubnetChoice, #[case] words: &str) {
    let plan = plan(&Shape::web().with(|shape| spec(shape).subnet = subnet), Vec::new());
    assert_eq!(plan.steps[0].to_string(), format!("create floating IP on network EXT1{words} for port VIP"));
}

#[test]
fn an_attached_one_is_used_whoever_made_it() {
    let plan = plan(&Shape::web(), vec![floating_ip("fip-9", 9, Some("VIP"), false)]);
    assert_snapshot!(plan, @"nothing to do");
    assert_eq!(address(&plan), "203.0.113.9");
}

#[test]
fn an_own_one_from_before_is_attached_again() {
    let around = vec![
        floating_ip("fip-7", 7, None, false),
        floating_ip("fip-8", 8, Some("other"), true),
        floating_ip("fip-9", 9, None, true),
    ];
    assert_snapshot!(plan(&Shape::web(), around), @"
    attach floating IP fip-9 (203.0.113.9) to port VIP
    done
    ");
}

#[test]
fn a_free_one_of_the_asked_address_is_attached_and_not_marked_as_ours() {
    let plan = plan(&asked(77), vec![floating_ip("fip-7", 77, None, false)]);
    assert_snapshot!(plan, @"
    attach floating IP fip-7 (203.0.113.77) to port VIP
    done
    ");
    assert_eq!(address(&plan), "203.0.113.77");
}

#[test]
fn an_asked_address_in_use_elsewhere_blocks() {
    assert_snapshot!(plan(&asked(77), vec![floating_ip("fip-7", 77, Some("other"), false)]), @"blocked (user_input): spec.loadBalancerIP 203.0.113.77 is a floating IP that is already attached to port other: detach the floating IP, or choose another address");
}

#[test]
fn an_asked_address_without_floating_ip_is_created() {
    assert_snapshot!(plan(&asked(77), Vec::new()), @"
    create floating IP 203.0.113.77 on network EXT1 for port VIP
    done
    ");
}

#[test]
fn an_own_one_gives_way_to_the_asked_address() {
    let around = vec![floating_ip("fip-9", 9, Some("VIP"), true), floating_ip("fip-7", 77, None, false)];
    assert_snapshot!(plan(&asked(77), around), @"
    attach floating IP fip-7 (203.0.113.77) to port VIP in place of fip-9 (203.0.113.9)
    delete floating IP fip-9 (203.0.113.9)
    done
    ");
}

#[test]
fn one_to_be_kept_is_only_detached_for_the_asked_address() {
    let around = vec![floating_ip("fip-9", 9, Some("VIP"), true), floating_ip("fip-7", 77, None, false)];
    assert_snapshot!(plan(&asked(77).with(|shape| spec(shape).keep = true), around), @"
    attach floating IP fip-7 (203.0.113.77) to port VIP in place of fip-9 (203.0.113.9)
    done
    ");
}

#[test]
fn an_asked_address_that_is_not_sure_to_be_had_changes_nothing() {
    let plan = plan(&asked(77), vec![floating_ip("fip-9", 9, Some("VIP"), true)]);
    assert_snapshot!(plan, @"nothing to do");
    assert_snapshot!(plan.notices[0].message, @"spec.loadBalancerIP is 203.0.113.77, but the load balancer keeps floating IP 203.0.113.9: to change the address, create floating IP 203.0.113.77 in the project, on the same network, or detach 203.0.113.9");
    assert_eq!(address(&plan), "203.0.113.9");
}

/// The network of the one that serves has a router that leads to the load balancer; another one may have none.
#[test]
fn an_own_one_does_not_give_way_to_one_of_another_network() {
    let mut asked_for = floating_ip("fip-7", 77, None, false);
    asked_for.network_id = Some("EXT2".to_owned());
    let plan = plan(&asked(77), vec![floating_ip("fip-9", 9, Some("VIP"), true), asked_for]);
    assert_snapshot!(plan, @"nothing to do");
    assert_eq!(plan.notices[0].reason, "LoadBalancerIPIgnored");
}

/// As a program leaves them that died while it put one in the place of the other.
#[rstest]
#[case::the_asked_one_is_free(
    None,
    "attach floating IP fip-7 (203.0.113.77) to port VIP in place of fip-9 (203.0.113.9)"
)]
#[case::it_was_taken(Some("other"), "attach floating IP fip-9 (203.0.113.9) to port VIP")]
fn an_own_one_that_was_taken_off_is_not_lost(#[case] port: Option<&str>, #[case] step: &str) {
    let around = vec![floating_ip("fip-9", 9, None, true), floating_ip("fip-7", 77, port, false)];
    assert_eq!(plan(&asked(77), around).to_string(), format!("{step}\ndone"));
}

#[test]
fn without_external_network_the_vip_is_published_with_a_notice() {
    let plan = plan(&Shape::web().with(|shape| spec(shape).network_id = None), Vec::new());
    assert_snapshot!(plan, @"nothing to do");
    assert_eq!(plan.notices[0].reason, "LoadBalancerForcedInternal");
    assert_eq!(address(&plan), "10.0.0.100");
}

#[rstest]
#[case::ours(true, false, "delete floating IP fip-9 (203.0.113.9)")]
#[case::ours_kept(true, true, "detach floating IP fip-9 (203.0.113.9)")]
#[case::foreign(false, false, "detach floating IP fip-9 (203.0.113.9)")]
fn external_to_internal_takes_it_off(#[case] ours: bool, #[case] keep: bool, #[case] step: &str) {
    let shape = Shape::web()
        .with(|shape| shape.floating_ip = FloatingIpGoal::Internal { keep, takes_off_others: true });
    let plan = plan(&shape, vec![floating_ip("fip-9", 9, Some("VIP"), ours)]);
    assert_eq!(plan.to_string(), format!("{step}\ndone"));
    assert_eq!(address(&plan), "10.0.0.100");
}

/// Other Services on the load balancer are published by it, and have not asked for anything.
#[rstest]
#[case::internal(Shape::web().with(|shape| shape.floating_ip = FloatingIpGoal::Internal { keep: false, takes_off_others: true }), "10.0.0.100", "FloatingIPLeftInUse")]
#[case::another_address(asked(77), "203.0.113.9", "LoadBalancerIPIgnored")]
fn the_floating_ip_of_a_load_balancer_that_others_use_stays(
    #[case] shape: Shape,
    #[case] published: &str,
    #[case] reason: &str,
) {
    let mut cloud = Cloud::serving(&internal().desired());
    cloud.load_balancer().vip_port_id = Some("VIP".to_owned());
    cloud.load_balancer().ownership = Ownership::Shared;
    cloud.observed.floating_ips =
        vec![floating_ip("fip-9", 9, Some("VIP"), true), floating_ip("fip-7", 77, None, false)];
    let plan = serve(&shape.desired(), &cloud.observed);
    assert!(plan.is_converged(), "{plan}");
    assert_eq!(address(&plan), published);
    let reasons: Vec<&str> = plan.notices.iter().map(|notice| notice.reason).collect();
    assert_eq!(reasons, [reason]);
}

#[test]
fn an_ipv6_vip_is_published_as_it_is() {
    let plan = plan(&Shape::web().with(|shape| shape.floating_ip = FloatingIpGoal::NotNeeded), Vec::new());
    assert!(plan.is_converged());
    assert_eq!(address(&plan), "10.0.0.100");
}

#[test]
fn the_floating_ip_of_a_new_load_balancer_is_taken_over_from_the_former() {
    let mut cloud = Cloud::default();
    cloud.observed.floating_ips = vec![floating_ip("fip-9", 9, None, true)];
    let plan = serve(&Shape::web().desired(), &cloud.observed);
    assert_snapshot!(plan.steps[1], @"attach floating IP fip-9 (203.0.113.9) to port (new) VIP of kube_service_c1_default_web");
}

#[test]
fn a_guest_without_floating_ip_is_blocked_before_anything_is_changed() {
    let mut cloud = Cloud::serving(&internal().desired());
    cloud.load_balancer().ownership = Ownership::Guest;
    cloud.load_balancer().tags.clear();
    cloud.children().listeners.clear();
    cloud.children().pools.clear();
    assert_snapshot!(serve(&Shape::web().desired(), &cloud.observed), @"blocked (user_input): the load balancer was not created for this Service and has no floating IP: make the Service internal with the annotation service.beta.kubernetes.io/openstack-internal-load-balancer, or attach a floating IP to the load balancer");
}

#[test]
fn an_internal_guest_leaves_the_floating_ip_alone() {
    let mut cloud = Cloud::serving(&Shape::web().desired());
    cloud.load_balancer().ownership = Ownership::Guest;
    let plan = serve(&internal().desired(), &cloud.observed);
    assert!(plan.is_converged(), "{plan}");
}
