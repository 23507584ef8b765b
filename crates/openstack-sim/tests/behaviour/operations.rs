//! Octavia beyond the recordings.

use openstack_ccm_openstack_sim::Sim;
use rstest::rstest;
use serde_json::{Value, json};

use crate::client::{create_tree, listener, octavia, status};

#[tokio::test(start_paused = true)]
async fn deleting_a_monitor_leaves_members_without_one() {
    let sim = Sim::new();
    let mut tree = listener("TCP", 80, "TCP", &[("198.18.0.50", 1)]);
    tree["default_pool"]["healthmonitor"] =
        json!({"type": "TCP", "delay": 5, "timeout": 3, "max_retries": 1});
    create_tree(&sim, "a", json!([tree])).await;
    let pool = sim.pools()[0]["id"].as_str().unwrap().to_owned();
    let monitor = sim.health_monitors()[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(sim.members(&pool)[0]["operating_status"], "ONLINE");
    assert_eq!(octavia(&sim, "DELETE", &format!("/healthmonitors/{monitor}"), Value::Null).await.0, 204);
    assert_eq!(sim.members(&pool)[0]["operating_status"], "NO_MONITOR");
    assert!(sim.pools()[0].get("healthmonitor_id").is_none());
}

#[tokio::test(start_paused = true)]
async fn two_runs_of_the_same_calls_give_the_same_ids() {
    let (one, other) = (Sim::new(), Sim::new());
    let first = create_tree(&one, "a", json!([])).await;
    let second = create_tree(&other, "a", json!([])).await;
    assert_eq!(first, second);
}

#[tokio::test(start_paused = true)]
async fn strangers_neither_see_nor_change_what_is_ours() {
    let sim = Sim::new();
    let id = create_tree(&sim, "a", json!([])).await;
    let path = format!("/v2.0/lbaas/loadbalancers/{id}");
    let (_, list) = sim.stranger().get("load-balancer", "/v2.0/lbaas/loadbalancers");
    assert_eq!(list["loadbalancers"], json!([]));
    assert_eq!(sim.stranger().get("load-balancer", &path).0, 403);
    assert_eq!(sim.stranger().delete("load-balancer", &path).0, 403);
    assert_eq!(sim.admin().get("load-balancer", &path).0, 200);
}

#[tokio::test(start_paused = true)]
async fn end_states_are_equal_when_only_ids_and_addresses_differ() {
    let tree =
        json!([listener("TCP", 80, "PROXY", &[("198.18.0.50", 1)]), listener("TCP", 443, "PROXYV2", &[])]);
    let (straight, crooked) = (Sim::new(), Sim::new());
    create_tree(&straight, "a", tree.clone()).await;
    let detour = create_tree(&crooked, "detour", json!([])).await;
    create_tree(&crooked, "a", tree).await;
    assert_ne!(straight.end_state(), crooked.end_state());
    octavia(&crooked, "DELETE", &format!("/loadbalancers/{detour}"), Value::Null).await;
    assert_ne!(straight.load_balancers()[0]["id"], crooked.load_balancers()[0]["id"]);
    assert_eq!(straight.end_state(), crooked.end_state());
    octavia(
        &crooked,
        "PUT",
        &format!("/pools/{}", crooked.pools()[0]["id"].as_str().unwrap()),
        json!({"pool": {"lb_algorithm": "SOURCE_IP"}}),
    )
    .await;
    assert_ne!(straight.end_state(), crooked.end_state());
}

#[tokio::test(start_paused = true)]
async fn the_users_security_groups_are_on_the_vip_port_beside_octavias() {
    let sim = Sim::new();
    let id = create_tree(&sim, "a", json!([])).await;
    let group = json!({"security_group": {"name": "mine"}});
    let (_, group) = sim.user().post("network", "/v2.0/security-groups", &group);
    let group = &group["security_group"]["id"];
    let body = json!({"loadbalancer": {"vip_sg_ids": [group]}});
    assert_eq!(octavia(&sim, "PUT", &format!("/loadbalancers/{id}"), body).await.0, 200);
    assert_eq!(status(&sim, "a"), "ACTIVE");
    let port = sim.ports().into_iter().find(|port| port["device_owner"] == "Octavia").unwrap();
    let groups = port["security_groups"].as_array().unwrap();
    assert_eq!((groups.len(), groups.contains(group)), (2, true));
}

/// Against the quota an additive batch counts its new members, a full one the difference.
#[rstest]
#[case::the_same_number(&["198.18.0.51", "198.18.0.52"], "", 202)]
#[case::one_more(&["198.18.0.50", "198.18.0.51", "198.18.0.52"], "", 403)]
#[case::those_that_are_there(&["198.18.0.50", "198.18.0.51"], "?additive_only=true", 202)]
#[case::another_beside_them(&["198.18.0.52"], "?additive_only=true", 403)]
#[tokio::test(start_paused = true)]
async fn a_batch_that_replaces_members_needs_no_room_for_both(
    #[case] addresses: &[&str],
    #[case] query: &str,
    #[case] expected: u16,
) {
    let sim = Sim::new();
    let members = [("198.18.0.50", 30080), ("198.18.0.51", 30080)];
    create_tree(&sim, "a", json!([listener("TCP", 80, "PROXY", &members)])).await;
    sim.set_octavia_quota("member", 2);
    let pool = sim.pools()[0]["id"].as_str().unwrap().to_owned();
    let wanted: Vec<Value> =
        addresses.iter().map(|address| json!({"address": address, "protocol_port": 30080})).collect();
    let path = format!("/pools/{pool}/members{query}");
    assert_eq!(octavia(&sim, "PUT", &path, json!({"members": wanted})).await.0, expected);
}
