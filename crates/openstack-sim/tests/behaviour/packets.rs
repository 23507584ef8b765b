//! Packets without sockets: where the objects of the cloud let them end.

use std::net::IpAddr;

use openstack_ccm_openstack_sim::{Loss, Packet, Sim, Transport};
use rstest::rstest;
use serde_json::{Value, json};

use crate::client::{create_tree, listener, neutron, octavia};

const MEMBERS: [(&str, u16); 2] = [("198.18.0.50", 30080), ("198.18.0.51", 30080)];
const OUTSIDE: &str = "203.0.113.7";
const NODE: &str = "198.18.0.50";
const FLOATING: &str = "198.19.0.11";

/// A load balancer for TCP 80 and UDP 53 behind a floating IP, and nodes whose security group is open.
async fn cloud() -> Sim {
    let sim = Sim::builder().nodes(2).build();
    let listeners = json!([listener("TCP", 80, "PROXYV2", &MEMBERS), listener("UDP", 53, "UDP", &MEMBERS)]);
    create_tree(&sim, "a", listeners).await;
    sim.settle();
    let port = sim.load_balancer("a").unwrap()["vip_port_id"].clone();
    let body = json!({"floatingip": {"floating_network_id": sim.seed().public_network_id, "port_id": port}});
    let (status, made) = neutron(&sim, "POST", "/floatingips", body).await;
    assert_eq!((status, &made["floatingip"]["floating_ip_address"]), (201, &json!(FLOATING)));
    guard(&sim, &json!({"protocol": null})).await;
    sim
}

/// Gives the nodes a security group with one rule for what comes in.
async fn guard(sim: &Sim, rule: &Value) {
    let (_, group) =
        neutron(sim, "POST", "/security-groups", json!({"security_group": {"name": "nodes"}})).await;
    let group = &group["security_group"]["id"];
    let mut rule = rule.clone();
    rule["security_group_id"] = group.clone();
    rule["direction"] = json!("ingress");
    if rule["remote_group_id"] == "itself" {
        rule["remote_group_id"] = group.clone();
    }
    let (status, answer) =
        neutron(sim, "POST", "/security-group-rules", json!({"security_group_rule": rule})).await;
    assert_eq!(status, 201, "{answer}");
    for node in sim.nodes() {
        let path = format!("/v2.0/ports/{}", node.port_id);
        sim.admin().put("network", &path, &json!({"port": {"security_groups": [group]}}));
    }
}

async fn change(sim: &Sim, path: &str, body: Value) {
    let (status, answer) = octavia(sim, "PUT", path, body).await;
    assert!(status < 300, "{path}: {status} {answer}");
    sim.settle();
}

fn send(sim: &Sim, from: &str, to: &str, transport: Transport, port: u16) -> Result<usize, Loss> {
    let [from, to]: [IpAddr; 2] = [from, to].map(|address| address.parse().unwrap());
    let results = sim.send(&Packet { from, to, port, transport });
    let arrived = results.iter().filter(|one| one.is_ok()).count();
    if arrived > 0 { Ok(arrived) } else { Err(*results[0].as_ref().unwrap_err()) }
}

fn tcp(sim: &Sim) -> Result<usize, Loss> {
    send(sim, OUTSIDE, FLOATING, Transport::Tcp, 80)
}

fn udp(sim: &Sim) -> Result<usize, Loss> {
    send(sim, OUTSIDE, FLOATING, Transport::Udp, 53)
}

fn id(object: &Value) -> String {
    object["id"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn packets_of_both_protocols_come_to_every_member_from_an_address_of_the_amphora() {
    let sim = cloud().await;
    assert_eq!((tcp(&sim), udp(&sim)), (Ok(2), Ok(2)));
    assert_eq!(send(&sim, OUTSIDE, FLOATING, Transport::Udp, 80), Err(Loss::Listener));
    let [from, to] = [OUTSIDE, FLOATING].map(|address| address.parse().unwrap());
    let deliveries = sim.send(&Packet { from, to, port: 80, transport: Transport::Tcp });
    let vip: IpAddr = sim.load_balancer("a").unwrap()["vip_address"].as_str().unwrap().parse().unwrap();
    assert!(deliveries.iter().flatten().all(|one| one.header && one.from != vip && one.from != from));
}

#[tokio::test(start_paused = true)]
async fn a_private_address_is_reached_from_inside_only_and_a_floating_one_by_whom_it_belongs_to() {
    let sim = cloud().await;
    let vip = sim.load_balancer("a").unwrap()["vip_address"].as_str().unwrap().to_owned();
    assert_eq!(send(&sim, OUTSIDE, &vip, Transport::Tcp, 80), Err(Loss::Address));
    assert_eq!(send(&sim, NODE, &vip, Transport::Tcp, 80), Ok(2));
    assert_eq!(send(&sim, NODE, FLOATING, Transport::Tcp, 80), Ok(2));
    let path = format!("/floatingips/{}", id(&sim.floating_ips()[0]));
    neutron(&sim, "PUT", &path, json!({"floatingip": {"port_id": null}})).await;
    assert_eq!(tcp(&sim), Err(Loss::Address), "it is detached");
    neutron(&sim, "DELETE", &path, Value::Null).await;
    assert_eq!(tcp(&sim), Err(Loss::Address));
}

/// What comes from inside to a floating IP has the address of the router when it comes back in.
#[rstest]
#[case::the_client("203.0.113.0/24", true, false)]
#[case::nodes("198.18.0.0/24", false, false)]
#[case::the_router("198.19.0.0/24", false, true)]
#[tokio::test(start_paused = true)]
async fn allowed_cidrs_meet_the_client_as_the_router_shows_it(
    #[case] range: &str,
    #[case] outside: bool,
    #[case] inside: bool,
) {
    let sim = cloud().await;
    for listener in sim.listeners() {
        let path = format!("/listeners/{}", id(&listener));
        change(&sim, &path, json!({"listener": {"allowed_cidrs": [range]}})).await;
    }
    let expected = |in_range| if in_range { Ok(2) } else { Err(Loss::Client) };
    assert_eq!(tcp(&sim), expected(outside));
    assert_eq!(udp(&sim), expected(outside));
    assert_eq!(send(&sim, NODE, FLOATING, Transport::Tcp, 80), expected(inside));
}

#[tokio::test(start_paused = true)]
async fn what_is_disabled_or_weighs_nothing_takes_no_packets() {
    let sim = cloud().await;
    let down = json!({"admin_state_up": false});
    let whole = sim.snapshot();
    change(
        &sim,
        &format!("/loadbalancers/{}", id(&sim.load_balancer("a").unwrap())),
        json!({"loadbalancer": down}),
    )
    .await;
    assert_eq!((tcp(&sim), udp(&sim)), (Err(Loss::Listener), Err(Loss::Listener)));
    sim.restore(whole.clone());
    for listener in sim.listeners() {
        change(&sim, &format!("/listeners/{}", id(&listener)), json!({"listener": down})).await;
    }
    assert_eq!((tcp(&sim), udp(&sim)), (Err(Loss::Listener), Err(Loss::Listener)));
    sim.restore(whole.clone());
    for pool in sim.pools() {
        change(&sim, &format!("/pools/{}", id(&pool)), json!({"pool": down})).await;
    }
    assert_eq!((tcp(&sim), udp(&sim)), (Err(Loss::Pool), Err(Loss::Pool)));
    for (body, left) in [(json!({"member": down}), 1), (json!({"member": {"weight": 0}}), 1)] {
        sim.restore(whole.clone());
        for pool in sim.pools() {
            let member = &sim.members(&id(&pool))[0];
            change(&sim, &format!("/pools/{}/members/{}", id(&pool), id(member)), body.clone()).await;
        }
        assert_eq!((tcp(&sim), udp(&sim)), (Ok(left), Ok(left)));
    }
}

#[rstest]
#[case::everything(json!({"protocol": null}), true, true)]
#[case::tcp(json!({"protocol": "tcp"}), true, false)]
#[case::udp_by_number(json!({"protocol": "17"}), false, true)]
#[case::ports(json!({"protocol": "tcp", "port_range_min": 30000, "port_range_max": 32767}), true, false)]
#[case::other_ports(json!({"protocol": "tcp", "port_range_min": 22, "port_range_max": 22}), false, false)]
#[case::other_family(json!({"protocol": "tcp", "ethertype": "IPv6"}), false, false)]
#[case::the_network(json!({"remote_ip_prefix": "198.18.0.0/24"}), true, true)]
#[case::another_network(json!({"remote_ip_prefix": "10.0.0.0/8"}), false, false)]
#[case::the_group_itself(json!({"remote_group_id": "itself"}), false, false)]
#[tokio::test(start_paused = true)]
async fn security_groups_of_the_members_count(
    #[case] rule: Value,
    #[case] open_tcp: bool,
    #[case] open_udp: bool,
) {
    let sim = cloud().await;
    guard(&sim, &rule).await;
    let expected = |open| if open { Ok(2) } else { Err(Loss::SecurityGroup) };
    assert_eq!((tcp(&sim), udp(&sim)), (expected(open_tcp), expected(open_udp)));
}

#[tokio::test(start_paused = true)]
async fn members_that_are_no_running_machines_get_nothing() {
    let sim = cloud().await;
    sim.set_server_status("node-1", "SHUTOFF");
    assert_eq!(tcp(&sim), Ok(1));
    sim.set_server_status("node-2", "SHUTOFF");
    assert_eq!(tcp(&sim), Err(Loss::Machine));
}

#[tokio::test(start_paused = true)]
async fn members_that_a_monitor_finds_down_get_nothing() {
    let sim = cloud().await;
    let pool = id(sim.pools().iter().find(|pool| pool["protocol"] == "PROXYV2").unwrap());
    let body = json!({"healthmonitor": {"pool_id": pool, "type": "TCP", "delay": 5, "timeout": 3, "max_retries": 1}});
    let (status, answer) = octavia(&sim, "POST", "/healthmonitors", body).await;
    assert_eq!(status, 201, "{answer}");
    sim.settle();
    sim.check_health(|address, _| address.to_string() == NODE);
    assert_eq!((tcp(&sim), udp(&sim)), (Ok(1), Ok(2)));
    sim.check_health(|_, _| false);
    assert_eq!(tcp(&sim), Err(Loss::Member));
}
