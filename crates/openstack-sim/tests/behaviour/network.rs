//! Neutron and Nova beyond the recordings.

use openstack_ccm_openstack_sim::Sim;
use rstest::rstest;
use serde_json::{Value, json};

use crate::client::{create_tree, neutron};

#[tokio::test(start_paused = true)]
async fn a_put_without_port_id_takes_a_floating_ip_off_its_port() {
    let sim = Sim::new();
    create_tree(&sim, "a", json!([])).await;
    let port = sim.load_balancer("a").unwrap()["vip_port_id"].clone();
    let body = json!({"floatingip": {"floating_network_id": sim.seed().public_network_id, "port_id": port}});
    let (_, created) = neutron(&sim, "POST", "/floatingips", body).await;
    assert_eq!(created["floatingip"]["port_id"], port);
    let path = format!("/floatingips/{}", created["floatingip"]["id"].as_str().unwrap());
    let (_, updated) = neutron(&sim, "PUT", &path, json!({"floatingip": {}})).await;
    assert_eq!(updated["floatingip"]["port_id"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn deleting_the_port_takes_the_floating_ip_off_it() {
    let sim = Sim::new();
    let node = sim.nodes().remove(0);
    let body =
        json!({"floatingip": {"floating_network_id": sim.seed().public_network_id, "port_id": node.port_id}});
    assert_eq!(neutron(&sim, "POST", "/floatingips", body).await.0, 201);
    assert!(sim.remove_node(&node.name));
    assert_eq!(sim.floating_ips()[0]["port_id"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn addresses_run_out() {
    let sim = Sim::new();
    let subnet =
        json!({"subnet": {"network_id": sim.seed().network_id, "ip_version": 4, "cidr": "10.9.0.0/30"}});
    let (_, subnet) = neutron(&sim, "POST", "/subnets", subnet).await;
    let fixed = json!([{"subnet_id": subnet["subnet"]["id"]}]);
    let body = json!({"port": {"network_id": sim.seed().network_id, "fixed_ips": fixed}});
    assert_eq!(neutron(&sim, "POST", "/ports", body.clone()).await.0, 201);
    let (status, answer) = neutron(&sim, "POST", "/ports", body).await;
    assert_eq!((status, &answer["NeutronError"]["type"]), (409, &json!("IpAddressGenerationFailure")));
}

#[rstest]
#[case("device_id=SERVER", 1)]
#[case("fixed_ips=ip_address%3D198.18.0.50&network_id=NETWORK", 1)]
#[case("fixed_ips=ip_address%3D198.18.0.250", 0)]
#[case("device_owner=compute:nova", 3)]
#[case("device_owner=compute:nova&device_owner=network:router_interface", 4)]
#[case("tags=blue", 1)]
#[case("not-tags=blue&device_owner=compute:nova", 2)]
#[tokio::test(start_paused = true)]
async fn ports_are_found_by_any_attribute(#[case] query: &str, #[case] expected: usize) {
    let sim = Sim::new();
    let node = sim.nodes().remove(0);
    neutron(&sim, "PUT", &format!("/ports/{}/tags/blue", node.port_id), Value::Null).await;
    let query = query.replace("SERVER", &node.server_id).replace("NETWORK", &sim.seed().network_id);
    let (_, list) = neutron(&sim, "GET", &format!("/ports?{query}"), Value::Null).await;
    assert_eq!(list["ports"].as_array().unwrap().len(), expected, "{list}");
}

#[tokio::test(start_paused = true)]
async fn pages_follow_the_links() {
    let sim = Sim::builder().nodes(5).build();
    let (mut seen, mut path) = (0, "/ports?limit=2&device_owner=compute:nova".to_owned());
    loop {
        let (_, page) = neutron(&sim, "GET", &path, Value::Null).await;
        seen += page["ports"].as_array().unwrap().len();
        let links = page["ports_links"].as_array().cloned().unwrap_or_default();
        let Some(next) = links.iter().find(|link| link["rel"] == "next") else { break };
        path = next["href"].as_str().unwrap().split("/v2.0").nth(1).unwrap().to_owned();
    }
    assert_eq!(seen, 5);
}
