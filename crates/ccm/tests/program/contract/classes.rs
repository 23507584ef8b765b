//! Classes.

use rstest::rstest;
use serde_json::{Value, json};

use super::setup::{
    INTERNAL, annotated, cluster_subnet, configured, external_network, load_balancer, member_subnets,
    only_floating_ip, subnet,
};
use crate::support::{World, service};

/// The floating IP's network and subnet by its address.
fn floating_place(world: &World) -> (Value, String) {
    let floating_ip = only_floating_ip(world);
    let address = floating_ip["floating_ip_address"].as_str().unwrap().to_owned();
    (floating_ip["floating_network_id"].clone(), address)
}

/// Another external network, with the router of the cluster in front of it.
fn second_external_network(world: &World) -> (String, String) {
    let (network, subnet) = external_network(&world.cloud, "ext2", "198.51.100.0/24");
    let router = world.cloud.seed().router_id.clone();
    let gateway = json!({"router": {"external_gateway_info": {"network_id": network}}});
    world.cloud.user().change("network", &format!("/v2.0/routers/{router}"), &gateway);
    (network, subnet)
}

/// The class has the last word on network and subnet of the floating IP.
///
/// Contract: L1, same.
#[tokio::test(start_paused = true)]
async fn l1_the_class_wins_over_annotations_for_the_floating_ip() {
    let mut network = String::new();
    let world = configured(|world| {
        let (ext2, subnet2) = second_external_network(world);
        network.clone_from(&ext2);
        format!("[LoadBalancerClass \"dmz\"]\nfloating-network-id={ext2}\nfloating-subnet-id={subnet2}\n")
    })
    .await;
    let seed = world.cloud.seed().clone();
    let annotations = [
        ("class", "dmz"),
        ("floating-network-id", seed.public_network_id.as_str()),
        ("floating-subnet-id", seed.public_subnet_id.as_str()),
    ];
    world.serve(&annotated(&annotations)).await;
    let (on, address) = floating_place(&world);
    assert_eq!(on, json!(network));
    assert!(address.starts_with("198.51.100."), "{address}");
}

/// A class that says anything about the floating subnet hides what annotations say about it.
///
/// Contract: L2, same.
#[tokio::test(start_paused = true)]
async fn l2_a_class_with_tags_hides_the_subnet_of_the_annotation() {
    let world = configured(|world| {
        let seed = world.cloud.seed();
        let tagged = subnet(&world.cloud, &seed.public_network_id, "tagged", "203.0.113.0/24");
        let path = format!("/v2.0/subnets/{tagged}/tags/dmz");
        world.cloud.admin().change("network", &path, &json!({}));
        "[LoadBalancerClass \"dmz\"]\nfloating-subnet-tags=dmz\n".to_owned()
    })
    .await;
    let subnet = world.cloud.seed().public_subnet_id.clone();
    world.serve(&annotated(&[("class", "dmz"), ("floating-subnet-id", &subnet)])).await;
    assert!(floating_place(&world).1.starts_with("203.0.113."));
}

/// A class that says nothing about the floating IP leaves it to annotations, then to `[LoadBalancer]`.
///
/// Contract: L3, same.
#[rstest]
#[case::annotation(true, "203.0.113.")]
#[case::cloud_conf(false, "198.19.0.")]
#[tokio::test(start_paused = true)]
async fn l3_a_class_without_floating_keys_leaves_it_to_the_others(
    #[case] annotation: bool,
    #[case] expected: &str,
) {
    let mut other = String::new();
    let world = configured(|world| {
        let seed = world.cloud.seed();
        other = subnet(&world.cloud, &seed.public_network_id, "other", "203.0.113.0/24");
        format!(
            "floating-subnet-id={}\n[LoadBalancerClass \"plain\"]\nsubnet-id={}\n",
            seed.public_subnet_id, seed.subnet_id
        )
    })
    .await;
    let mut annotations = vec![("class", "plain")];
    if annotation {
        annotations.push(("floating-subnet-id", other.as_str()));
    }
    world.serve(&annotated(&annotations)).await;
    assert!(floating_place(&world).1.starts_with(expected));
}

/// The class wins over the annotation for the VIP of an external Service; for an internal one the annotation wins.
///
/// Contract: L4, same.
/// Defect: 25, same: both orders are written down with the annotation; one order for all would put new load balancers of
/// OCCM's users elsewhere.
#[rstest]
#[case::external("false", "class")]
#[case::internal("true", "annotation")]
#[tokio::test(start_paused = true)]
async fn l4_class_and_annotation_change_places_with_the_kind_of_service(
    #[case] internal: &str,
    #[case] winner: &str,
) {
    let (mut of_class, mut of_annotation) = (String::new(), String::new());
    let world = configured(|world| {
        of_class = cluster_subnet(&world.cloud, "class", "198.18.1.0/24");
        of_annotation = cluster_subnet(&world.cloud, "annotation", "198.18.2.0/24");
        format!("[LoadBalancerClass \"dmz\"]\nsubnet-id={of_class}\n")
    })
    .await;
    world.serve(&annotated(&[("class", "dmz"), ("subnet-id", &of_annotation), (INTERNAL, internal)])).await;
    let expected = if winner == "class" { of_class } else { of_annotation };
    assert_eq!(load_balancer(&world)["vip_subnet_id"], json!(expected));
}

/// Members are on the subnet that the annotation names, else the class, else `[LoadBalancer]`.
///
/// Contract: L5, same.
#[rstest]
#[case::annotation("A")]
#[case::class("M")]
#[case::cloud_conf("C")]
#[tokio::test(start_paused = true)]
async fn l5_members_are_on_the_subnet_that_is_named_nearest(#[case] expected: &str) {
    let mut ids = std::collections::BTreeMap::new();
    let world = configured(|world| {
        for (name, cidr) in [("A", "198.18.1.0/24"), ("M", "198.18.2.0/24"), ("C", "198.18.3.0/24")] {
            ids.insert(name, cluster_subnet(&world.cloud, name, cidr));
        }
        let class = if expected == "C" { String::new() } else { format!("member-subnet-id={}\n", ids["M"]) };
        format!("member-subnet-id={}\n[LoadBalancerClass \"dmz\"]\n{class}", ids["C"])
    })
    .await;
    let mut annotations = vec![("class", "dmz")];
    if expected == "A" {
        annotations.push(("member-subnet-id", ids["A"].as_str()));
    }
    world.serve(&annotated(&annotations)).await;
    let wanted = json!(ids[expected]);
    assert_eq!(member_subnets(&world), [wanted.clone(), wanted]);
}

/// A class that is not there is named, with those that are, whether the Service is external or internal, new or served.
///
/// Contract: L6, better: on a load balancer that exists, nodes are followed all the same.
#[rstest]
#[case::external("false")]
#[case::internal("true")]
#[tokio::test(start_paused = true)]
async fn l6_an_unknown_class_is_an_error(#[case] internal: &str) {
    let world = configured(|_| "[LoadBalancerClass \"dmz\"]\n".to_owned()).await;
    world.create(&annotated(&[("class", "dmy"), (INTERNAL, internal)]));
    world.until_warned("web", "\"dmy\" is not a class in cloud.conf; use one of \"dmz\"").await;
    assert!(world.cloud.load_balancers().is_empty());
    world.annotate("web", "loadbalancer.openstack.org/class", Some("dmz"));
    world.until_published("web").await;
    world.annotate("web", "loadbalancer.openstack.org/class", Some("gone"));
    world.until_warned_at_rest("web", "\"gone\"").await;
    world.take_calls();
    world.third_node_joins().await;
    assert_eq!(world.take_cloud_writes(), ["PUT pools/ID/members"], "nodes are followed");
}

/// A class section without a name is refused when cloud.conf is read.
///
/// Contract: L7, better: OCCM silently takes it for the class of every new load balancer without one.
/// Defect: 26, better: it is an error of cloud.conf, with its line.
#[test]
fn l7_a_class_without_a_name_is_refused_at_the_start() {
    use openstack_ccm_provider_openstack::config;
    let text = "[Global]\nauth-url=http://k\nusername=u\npassword=p\ntenant-name=t\ndomain-name=d\n\
                [LoadBalancerClass]\nsubnet-id=x\n";
    let environment = crate::support::OneFile(text.to_owned());
    let refused = config::load(&["cloud.conf".into()], &environment).unwrap_err();
    let message = format!("{refused}");
    assert!(message.contains("LoadBalancerClass") && message.contains("name"), "{message}");
}

/// A node that joins later is on the same subnet as those that were there, whatever the subnet was found by.
///
/// Defect: 24, better: one rule for creations and node changes.
#[rstest]
#[case::subnet_of_a_class("subnet-id")]
#[case::network_of_a_class("network-id")]
#[tokio::test(start_paused = true)]
async fn a_node_that_joins_later_is_on_the_subnet_of_the_others(#[case] key: &str) {
    let world = configured(|world| {
        let seed = world.cloud.seed();
        let id = if key == "subnet-id" { &seed.subnet_id } else { &seed.network_id };
        format!("[LoadBalancerClass \"dmz\"]\n{key}={id}\n")
    })
    .await;
    world.serve(&annotated(&[("class", "dmz")])).await;
    let before = member_subnets(&world);
    world.third_node_joins().await;
    let after = member_subnets(&world);
    assert_eq!((before.len(), after.len()), (2, 3));
    assert!(after.iter().all(|subnet| *subnet == before[0]), "{before:?} {after:?}");
}

/// Members of a Service without any class stay where they were.
#[tokio::test(start_paused = true)]
async fn a_class_that_is_added_later_changes_new_members_only() {
    let mut other = String::new();
    let world = configured(|world| {
        other = cluster_subnet(&world.cloud, "other", "198.18.1.0/24");
        format!("[LoadBalancerClass \"dmz\"]\nmember-subnet-id={other}\n")
    })
    .await;
    world.serve(&service("web", json!({}))).await;
    world.annotate_to_rest("web", "loadbalancer.openstack.org/class", Some("dmz")).await;
    let old = json!(world.cloud.seed().subnet_id);
    assert_eq!(member_subnets(&world), [old.clone(), old.clone()]);
    world.third_node_joins().await;
    let mut subnets = member_subnets(&world);
    subnets.retain(|subnet| *subnet != old);
    assert_eq!(subnets, [json!(other)]);
}
