//! Older Octavias: what they do not know, they refuse or do not show.

use openstack_ccm_openstack_sim::OctaviaRelease::{self, V10, V12, V14, V16, V19};
use openstack_ccm_openstack_sim::Sim;
use rstest::rstest;
use serde_json::{Value, json};

use crate::client::{create_tree, listener, octavia, send};

#[rstest]
#[case::tags(4, json!({"tags": ["x"]}), "tags")]
#[case::flavors(5, json!({"flavor_id": "00000000-0000-0000-0000-000000000000"}), "flavor_id")]
#[case::availability_zones(13, json!({"availability_zone": "nova"}), "availability_zone")]
#[case::additional_vips(25, json!({"additional_vips": []}), "additional_vips")]
#[case::vip_security_groups(28, json!({"vip_sg_ids": []}), "vip_sg_ids")]
#[tokio::test(start_paused = true)]
async fn attributes_are_unknown_before_their_version(
    #[case] minor: u8,
    #[case] extra: Value,
    #[case] name: &str,
) {
    let sim = Sim::builder().octavia_api(minor).build();
    let mut body = json!({"vip_subnet_id": sim.seed().subnet_id});
    body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    let (status, answer) = octavia(&sim, "POST", "/loadbalancers", json!({"loadbalancer": body})).await;
    assert_eq!(status, 400);
    let text = format!("Unknown attribute for argument load_balancer.loadbalancer: {name}");
    assert_eq!(answer["faultstring"], json!(text));
    let (_, created) = octavia(
        &sim,
        "POST",
        "/loadbalancers",
        json!({"loadbalancer": {"vip_subnet_id": sim.seed().subnet_id}}),
    )
    .await;
    assert!(created["loadbalancer"].get(name).is_none());
}

#[rstest]
#[case::allowed_cidrs(11, "TCP", "PROXY", json!({"allowed_cidrs": ["10.0.0.0/8"]}))]
#[case::timeouts(0, "TCP", "PROXY", json!({"timeout_client_data": 1000}))]
#[case::proxy_v2(21, "TCP", "PROXYV2", json!({}))]
#[case::sctp(22, "SCTP", "SCTP", json!({}))]
#[tokio::test(start_paused = true)]
async fn listeners_and_pools_of_newer_versions_are_refused(
    #[case] minor: u8,
    #[case] protocol: &str,
    #[case] pool: &str,
    #[case] extra: Value,
) {
    let mut tree = listener(protocol, 80, pool, &[]);
    tree.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    let old = Sim::builder().octavia_api(minor).build();
    let body = json!({"loadbalancer": {"vip_subnet_id": old.seed().subnet_id, "listeners": [tree.clone()]}});
    assert_eq!(octavia(&old, "POST", "/loadbalancers", body).await.0, 400);
    assert!(old.leaked_ports().is_empty());
    old.set_octavia_api(minor + 1);
    create_tree(&old, "a", json!([tree])).await;
}

#[tokio::test(start_paused = true)]
async fn the_version_document_ends_with_the_newest() {
    let sim = Sim::builder().octavia_api(13).build();
    let response = send(&sim, "load-balancer", "GET", "/", Value::Null).await.unwrap();
    let document: Value = serde_json::from_slice(response.body()).unwrap();
    let versions = document["versions"].as_array().unwrap();
    assert_eq!(versions.len(), 14);
    assert_eq!((&versions[13]["id"], &versions[13]["status"]), (&json!("v2.13"), &json!("CURRENT")));
}

#[tokio::test(start_paused = true)]
async fn filters_by_tag_and_additive_batches_need_their_version() {
    let sim = Sim::builder().octavia_api(4).build();
    assert_eq!(octavia(&sim, "GET", "/loadbalancers?tags=x", Value::Null).await.0, 400);
    create_tree(&sim, "a", json!([listener("TCP", 80, "PROXY", &[])])).await;
    let pool = sim.pools()[0]["id"].as_str().unwrap().to_owned();
    let path = format!("/pools/{pool}/members?additive_only=true");
    assert_eq!(octavia(&sim, "PUT", &path, json!({"members": []})).await.0, 400);
}

/// Release 19 as recorded, the others as seen of real services.
#[rstest]
#[case::v10(
    V10,
    500,
    "Provider 'amphora' reports error: IP address 198.18.0.200 already allocated in subnet"
)]
#[case::v12(
    V12,
    500,
    "Provider 'amphora' reports error: IP address 198.18.0.200 already allocated in subnet"
)]
#[case::v14(V14, 500, "Provider 'amphora' reports error: ConflictException: 409")]
#[case::v16(V16, 500, "Provider 'amphora' reports error: ConflictException: 409")]
#[case::v19(
    V19,
    409,
    "The VIP IP address is already in use: IP address 198.18.0.200 already allocated in subnet"
)]
#[tokio::test(start_paused = true)]
async fn each_release_has_its_words_for_an_address_in_use(
    #[case] release: OctaviaRelease,
    #[case] status: u16,
    #[case] text: &str,
) {
    let sim = Sim::builder().octavia(release).build();
    let body =
        json!({"loadbalancer": {"vip_subnet_id": sim.seed().subnet_id, "vip_address": "198.18.0.200"}});
    assert_eq!(octavia(&sim, "POST", "/loadbalancers", body.clone()).await.0, 201);
    let (found, answer) = octavia(&sim, "POST", "/loadbalancers", body).await;
    assert_eq!(found, status);
    assert!(answer["faultstring"].as_str().unwrap().starts_with(text), "{answer}");
}

/// The worker of Octavia 10 ends with `taskflow.exceptions.Duplicate`.
#[rstest]
#[case::v10(V10, 202, "PENDING_UPDATE")]
#[case::v12(V12, 400, "ACTIVE")]
#[tokio::test(start_paused = true)]
async fn a_batch_that_names_a_member_twice_locks_the_oldest_for_ever(
    #[case] release: OctaviaRelease,
    #[case] status: u16,
    #[case] ends: &str,
) {
    let sim = Sim::builder().octavia(release).build();
    let id = create_tree(&sim, "a", json!([listener("TCP", 80, "TCP", &[])])).await;
    sim.settle();
    let pool = sim.pools()[0]["id"].as_str().unwrap().to_owned();
    let member = json!({"address": "198.18.0.9", "protocol_port": 80});
    let body = json!({"members": [member, member]});
    assert_eq!(octavia(&sim, "PUT", &format!("/pools/{pool}/members"), body).await.0, status);
    sim.settle();
    let (_, found) = octavia(&sim, "GET", &format!("/loadbalancers/{id}"), Value::Null).await;
    assert_eq!(found["loadbalancer"]["provisioning_status"], ends);
}
