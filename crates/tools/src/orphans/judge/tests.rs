use std::collections::BTreeMap;

use rstest::rstest;
use serde_json::{Value, from_value, json};

use super::*;

const CLUSTER: &str = "openstack-ccm-cluster=c1";
const GONE: &str = "openstack-ccm-service=gone";
const LIVING: &str = "openstack-ccm-service=living";

fn question() -> Question {
    Question {
        cluster: ClusterIdentity { name: "k".to_owned(), uid: "c1".to_owned() },
        occm_names: false,
        older_than: Duration::ZERO,
        now: "2026-01-02T00:00:00Z".parse().unwrap(),
    }
}

fn owners() -> Owners {
    Owners::Cluster {
        services: BTreeMap::from([(ServiceKey::new("default", "living"), "living".to_owned())]),
        nodes: ["192.0.2.1".parse().unwrap()].into(),
    }
}

fn load_balancer(name: &str, description: &str, tags: &[&str]) -> LoadBalancer {
    from_value(
        json!({"id": "lb", "name": name, "description": description, "tags": tags, "vip_port_id": "vip",
        "provisioning_status": "ACTIVE", "operating_status": "ONLINE", "created_at": "2026-01-01T12:00:00"}),
    )
    .unwrap()
}

fn of(load_balancer: LoadBalancer, owners: &Owners, question: &Question) -> Option<Orphan> {
    let inventory = Inventory { load_balancers: vec![load_balancer], ..Inventory::default() };
    orphans(&inventory, owners, question).pop()
}

const GONE_NAME: &str = "kube_service_k_default_gone";

/// What is named, and what speaks against deleting it.
#[rstest]
#[case::gone(GONE_NAME, "", &[CLUSTER, GONE], Some(None))]
#[case::its_service_is_there(GONE_NAME, "", &[CLUSTER, LIVING], None)]
#[case::one_of_two_is_there(GONE_NAME, "", &[CLUSTER, GONE, LIVING], None)]
#[case::of_another_cluster(GONE_NAME, "", &["openstack-ccm-cluster=c2", GONE], None)]
#[case::of_nobody(GONE_NAME, "", &[], None)]
#[case::made_by_hand("by hand", "", &[CLUSTER, GONE], Some(Some("created by another client")))]
#[case::of_another_name("renamed", "Kubernetes external service default/gone from cluster k", &[CLUSTER, GONE], Some(None))]
#[case::kept(GONE_NAME, "Retained: x", &[CLUSTER, GONE], Some(Some("kept on purpose")))]
#[case::two_clusters(GONE_NAME, "", &[CLUSTER, GONE, "openstack-ccm-cluster=c2"], Some(Some("shared with the cluster c2")))]
#[case::a_guest_that_is_there(GONE_NAME, "", &[CLUSTER, GONE, "kube_service_k_default_living"], Some(Some("uses it")))]
#[case::a_guest_of_elsewhere(GONE_NAME, "", &[CLUSTER, GONE, "kube_service_other_default_x"], Some(Some("uses it")))]
#[case::a_namesake("kube_service_k_default_living", "", &[CLUSTER, GONE], Some(Some("might take it over")))]
fn load_balancers_are_orphaned_by_their_tags(
    #[case] name: &str,
    #[case] description: &str,
    #[case] tags: &[&str],
    #[case] expected: Option<Option<&str>>,
) {
    let found = of(load_balancer(name, description, tags), &owners(), &question());
    match (&found, expected) {
        (None, None) => {}
        (Some(Orphan { refused: None, .. }), Some(None)) => {}
        (Some(Orphan { refused: Some(cause), .. }), Some(Some(part))) => {
            assert!(cause.contains(part), "{cause}");
        }
        _ => panic!("{found:?}"),
    }
}

/// Two clusters may have one name.
#[rstest]
#[case::own_node(&["192.0.2.1", "192.0.2.9"], false)]
#[case::nodes_of_others(&["192.0.2.9"], true)]
#[case::no_member(&[], false)]
fn what_leads_to_nodes_of_others_alone_is_not_deleted(#[case] members: &[&str], #[case] is_refused: bool) {
    let by_name = Question { occm_names: true, ..question() };
    let members = members.iter().map(|one| one.parse().unwrap()).collect();
    let inventory = Inventory {
        load_balancers: vec![load_balancer(GONE_NAME, "", &[])],
        members: BTreeMap::from([("lb".to_owned(), members)]),
        ..Inventory::default()
    };
    let found = orphans(&inventory, &owners(), &by_name).pop().unwrap();
    assert_eq!(found.refused.is_some(), is_refused, "{found:?}");
}

#[test]
fn names_count_only_when_they_are_asked_for_and_only_where_no_tag_says_otherwise() {
    let by_name = Question { occm_names: true, ..question() };
    assert!(of(load_balancer(GONE_NAME, "", &[]), &owners(), &by_name).is_some());
    assert!(of(load_balancer(GONE_NAME, "", &["openstack-ccm-cluster=c2"]), &owners(), &by_name).is_none());
    assert!(of(load_balancer("kube_service_k_default_living", "", &[]), &owners(), &by_name).is_none());
    assert!(of(load_balancer("kube_service_other_default_gone", "", &[]), &owners(), &by_name).is_none());
}

#[test]
fn of_a_cluster_that_is_gone_nothing_has_an_owner() {
    let found = of(
        load_balancer("kube_service_k_default_living", "", &[CLUSTER, LIVING]),
        &Owners::Gone,
        &question(),
    );
    assert_eq!(found.unwrap().refused, None);
}

#[test]
fn what_is_young_is_left_out() {
    let younger = Question { older_than: Duration::from_secs(11 * 3600), ..question() };
    let older = Question { older_than: Duration::from_secs(13 * 3600), ..question() };
    let one = || load_balancer(GONE_NAME, "", &[CLUSTER, GONE]);
    assert!(of(one(), &owners(), &younger).is_some());
    assert!(of(one(), &owners(), &older).is_none());
}

fn floating_ip(port: Option<&str>, tags: &[&str]) -> FloatingIp {
    let description = "Floating IP for Kubernetes external service default/gone from cluster k";
    from_value(
        json!({"id": "fip", "floating_ip_address": "203.0.113.9", "floating_network_id": "n", "port_id": port,
        "description": description, "tags": tags}),
    )
    .unwrap()
}

/// One that the program was killed over has no tags yet, and goes with its load balancer.
#[rstest]
#[case::free(None, &[CLUSTER, GONE], Some(true))]
#[case::with_its_load_balancer(Some("vip"), &[CLUSTER, GONE], Some(true))]
#[case::not_tagged_yet(Some("vip"), &[], Some(true))]
#[case::not_tagged_and_free(None, &[], None)]
#[case::somebody_uses_it(Some("else"), &[CLUSTER, GONE], Some(false))]
#[case::of_another_cluster(Some("vip"), &["openstack-ccm-cluster=c2"], None)]
fn floating_ips_go_with_what_they_were_made_for(
    #[case] port: Option<&str>,
    #[case] tags: &[&str],
    #[case] expected: Option<bool>,
) {
    let inventory = Inventory {
        load_balancers: vec![load_balancer(GONE_NAME, "", &[CLUSTER, GONE])],
        floating_ips: vec![floating_ip(port, tags)],
        ..Inventory::default()
    };
    let found = orphans(&inventory, &owners(), &question());
    let found = found.iter().find(|one| one.kind == OrphanKind::FloatingIp);
    assert_eq!(found.map(|one| one.refused.is_none()), expected, "{found:?}");
}

/// The Service that it was made for is gone, and another one uses the load balancer that it leads to.
#[rstest]
#[case::a_guest("kube_service_k_default_living", false)]
#[case::an_owner(LIVING, false)]
#[case::nobody("something", true)]
fn a_floating_ip_that_serves_another_service_is_no_orphan(#[case] tag: &str, #[case] expected: bool) {
    let inventory = Inventory {
        load_balancers: vec![load_balancer(GONE_NAME, "", &[CLUSTER, GONE, tag])],
        floating_ips: vec![floating_ip(Some("vip"), &[CLUSTER, GONE])],
        ..Inventory::default()
    };
    let found = orphans(&inventory, &owners(), &question());
    assert_eq!(found.iter().any(|one| one.kind == OrphanKind::FloatingIp), expected, "{found:?}");
}

#[test]
fn a_vip_port_is_orphaned_when_no_load_balancer_has_it() {
    let port = |id: &str, name: &str, created: Option<&str>| -> Port {
        let port: Value = json!({"id": id, "name": name, "network_id": "n", "status": "DOWN",
            "device_owner": "Octavia", "created_at": created});
        from_value(port).unwrap()
    };
    let (day, minutes) = (Some("2026-01-01T00:00:00Z"), Some("2026-01-01T23:55:00Z"));
    let inventory = Inventory {
        load_balancers: vec![load_balancer(GONE_NAME, "", &[CLUSTER, LIVING])],
        vip_ports: vec![
            port("vip", "octavia-lb-lb", day),
            port("leaked", "octavia-lb-nothing", day),
            port("under-way", "octavia-lb-under-way", minutes),
            port("ageless", "octavia-lb-ageless", None),
            port("of-ovn", "ovn-lb-vip-lb", day),
            port("left-by-ovn", "ovn-lb-vip-nothing", day),
        ],
        ..Inventory::default()
    };
    let found = orphans(&inventory, &owners(), &question());
    let found: Vec<_> = found.iter().map(|one| (one.id.as_str(), one.refused.is_none())).collect();
    assert_eq!(found, [("ageless", false), ("leaked", true), ("left-by-ovn", true)]);
}
