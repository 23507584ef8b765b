//! Real connections through simulated load balancers.

use std::net::SocketAddr;
use std::time::Duration;

use openstack_ccm_openstack_sim::Sim;
use rstest::rstest;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::client::{create_tree, listener, neutron, octavia};

/// A backend that answers each connection with its name and what it got until the client stopped sending.
async fn backend(name: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut got = Vec::new();
                let mut buffer = [0; 1024];
                while !got.ends_with(b"\r\n\r\n") && !got.ends_with(b"end") {
                    match stream.read(&mut buffer).await {
                        Ok(0) | Err(_) => return,
                        Ok(read) => got.extend_from_slice(&buffer[..read]),
                    }
                }
                let answer = format!("{name}|{}", got.escape_ascii());
                let _gone = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    address
}

/// Sends and reads everything until the other side closes.
async fn talk(mut stream: TcpStream, text: &str) -> String {
    if stream.write_all(text.as_bytes()).await.is_err() {
        return String::new();
    }
    let mut answer = Vec::new();
    let _closed = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).unwrap()
}

async fn connect_from(source: &str, target: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{source}:0").parse().unwrap()).unwrap();
    socket.connect(target).await.unwrap()
}

/// Waits until something is there; real sockets need real time to open.
async fn eventually<T>(mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..1000 {
        if let Some(found) = look() {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it never came");
}

/// A simulator whose members 198.18.0.50 and 198.18.0.51 are the given backends, whatever their port.
fn forwarding_sim(backends: [SocketAddr; 2]) -> Sim {
    let sim = Sim::new();
    sim.set_member_resolver(move |address, _| match address {
        "198.18.0.50" => Some(backends[0]),
        "198.18.0.51" => Some(backends[1]),
        _ => None,
    });
    sim.start_forwarding();
    sim
}

const MEMBERS: [(&str, u16); 2] = [("198.18.0.50", 30080), ("198.18.0.51", 30080)];

async fn endpoint(sim: &Sim, name: &str, port: u16) -> SocketAddr {
    let vip = sim.load_balancer(name).unwrap()["vip_address"].as_str().unwrap().to_owned();
    eventually(|| sim.endpoint(&vip, port)).await
}

#[rstest]
#[case::plain("TCP", "")]
#[case::version_1("PROXY", "PROXY TCP4 127.0.0.7 198.18.0.2 ")]
#[case::version_2("PROXYV2", r"\r\n\r\n\x00\r\nQUIT\n!\x11\x00\x0c\x7f\x00\x00\x07\xc6\x12\x00\x02")]
#[tokio::test]
async fn members_see_the_clients_address_as_the_pool_says(#[case] pool: &str, #[case] expected: &str) {
    let sim = forwarding_sim([backend("one").await, backend("two").await]);
    create_tree(&sim, "a", json!([listener("TCP", 80, pool, &MEMBERS[..1])])).await;
    let stream = connect_from("127.0.0.7", endpoint(&sim, "a", 80).await).await;
    let answer = talk(stream, "hello end").await;
    assert!(answer.starts_with(&format!("one|{expected}")), "{answer}");
    assert!(answer.ends_with("hello end"), "{answer}");
}

#[tokio::test]
async fn connections_go_round_and_leave_out_a_member_that_is_gone() {
    let sim = forwarding_sim([backend("one").await, backend("two").await]);
    create_tree(&sim, "a", json!([listener("TCP", 80, "TCP", &MEMBERS)])).await;
    let target = endpoint(&sim, "a", 80).await;
    let mut names = Vec::new();
    for _ in 0..4 {
        let answer = talk(TcpStream::connect(target).await.unwrap(), "end").await;
        names.push(answer.split('|').next().unwrap().to_owned());
    }
    names.sort();
    assert_eq!(names, ["one", "one", "two", "two"]);
    let pool = sim.pools()[0]["id"].as_str().unwrap().to_owned();
    let body = json!({"members": [{"address": "198.18.0.51", "protocol_port": 30080}]});
    octavia(&sim, "PUT", &format!("/pools/{pool}/members"), body).await;
    for _ in 0..3 {
        assert!(talk(TcpStream::connect(target).await.unwrap(), "end").await.starts_with("two|"));
    }
}

#[tokio::test]
async fn allowed_cidrs_decide_who_may_connect() {
    let sim = forwarding_sim([backend("one").await, backend("two").await]);
    let mut tree = listener("TCP", 80, "TCP", &MEMBERS[..1]);
    tree["allowed_cidrs"] = json!(["127.0.0.7/32"]);
    create_tree(&sim, "a", json!([tree])).await;
    let target = endpoint(&sim, "a", 80).await;
    assert_eq!(talk(connect_from("127.0.0.8", target).await, "end").await, "");
    assert_eq!(talk(connect_from("127.0.0.7", target).await, "end").await, "one|end");
}

#[tokio::test]
async fn a_client_can_play_another_address() {
    let sim = forwarding_sim([backend("one").await, backend("two").await]);
    sim.set_client_identity(|peer| SocketAddr::new("198.18.0.30".parse().unwrap(), peer.port()));
    create_tree(&sim, "a", json!([listener("TCP", 80, "PROXY", &MEMBERS[..1])])).await;
    let target = endpoint(&sim, "a", 80).await;
    let answer = talk(TcpStream::connect(target).await.unwrap(), "end").await;
    assert!(answer.starts_with("one|PROXY TCP4 198.18.0.30 198.18.0.2 "), "{answer}");
}

#[rstest]
#[case::http_pool("HTTP", "X-Forwarded-For: 127.0.0.7", true)]
#[case::proxy_pool("PROXY", "X-Forwarded-For", false)]
#[case::proxy_pool_keeps_proto("PROXY", "X-Forwarded-Proto: http", true)]
#[tokio::test]
async fn forwarded_headers_are_inserted_unless_the_pool_speaks_proxy(
    #[case] pool: &str,
    #[case] header: &str,
    #[case] inserted: bool,
) {
    let sim = forwarding_sim([backend("one").await, backend("two").await]);
    let mut tree = listener("HTTP", 80, pool, &MEMBERS[..1]);
    tree["insert_headers"] = json!({"X-Forwarded-For": "true", "X-Forwarded-Proto": "true"});
    create_tree(&sim, "a", json!([tree])).await;
    let stream = connect_from("127.0.0.7", endpoint(&sim, "a", 80).await).await;
    let answer = talk(stream, "GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(answer.contains(header), inserted, "{answer}");
}

#[tokio::test]
async fn an_http_listener_without_members_answers_503() {
    let sim = forwarding_sim([backend("one").await, backend("two").await]);
    create_tree(&sim, "a", json!([listener("HTTP", 80, "HTTP", &[])])).await;
    let stream = TcpStream::connect(endpoint(&sim, "a", 80).await).await.unwrap();
    let answer = talk(stream, "GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
}

#[tokio::test]
async fn a_floating_ip_leads_to_the_listener_and_a_deleted_listener_is_closed() {
    let sim = forwarding_sim([backend("one").await, backend("two").await]);
    let id = create_tree(&sim, "a", json!([listener("TCP", 80, "TCP", &MEMBERS[..1])])).await;
    let target = endpoint(&sim, "a", 80).await;
    let port = sim.load_balancer("a").unwrap()["vip_port_id"].clone();
    let body = json!({"floatingip": {"floating_network_id": sim.seed().public_network_id, "port_id": port}});
    let (_, created) = neutron(&sim, "POST", "/floatingips", body).await;
    let floating = created["floatingip"]["floating_ip_address"].as_str().unwrap();
    assert_eq!(sim.endpoint(floating, 80), Some(target));
    octavia(&sim, "DELETE", &format!("/loadbalancers/{id}?cascade=true"), json!(null)).await;
    eventually(|| sim.endpoint("198.18.0.2", 80).is_none().then_some(())).await;
    while TcpStream::connect(target).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[rstest]
#[case::tcp(json!({"type": "TCP", "delay": 0, "timeout": 1, "max_retries": 1, "max_retries_down": 1}))]
#[case::http(json!({"type": "HTTP", "delay": 0, "timeout": 1, "max_retries": 1, "max_retries_down": 1}))]
#[tokio::test]
async fn health_checks_are_real(#[case] monitor: serde_json::Value) {
    let healthy = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = healthy.local_addr().unwrap();
    let answering = tokio::spawn(async move {
        while let Ok((mut stream, _)) = healthy.accept().await {
            let _gone = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
        }
    });
    let sim = Sim::new();
    sim.set_member_resolver(move |member, port| {
        (member == "198.18.0.50" && port == 32000).then_some(address)
    });
    sim.start_forwarding();
    let mut tree = listener("TCP", 80, "PROXY", &[]);
    tree["default_pool"]["healthmonitor"] = monitor;
    tree["default_pool"]["members"] = json!([
        {"address": "198.18.0.50", "protocol_port": 30080, "monitor_port": 32000},
        {"address": "198.18.0.51", "protocol_port": 30080, "monitor_port": 32000},
    ]);
    create_tree(&sim, "a", json!([tree])).await;
    let pool = sim.pools()[0]["id"].as_str().unwrap().to_owned();
    let statuses = || -> Vec<String> {
        let mut statuses: Vec<(String, String)> = sim
            .members(&pool)
            .iter()
            .map(|member| {
                (member["address"].to_string(), member["operating_status"].as_str().unwrap().to_owned())
            })
            .collect();
        statuses.sort();
        statuses.into_iter().map(|(_, status)| status).collect()
    };
    eventually(|| (statuses() == ["ONLINE", "ERROR"]).then_some(())).await;
    assert_eq!(sim.load_balancer("a").unwrap()["operating_status"], "DEGRADED");
    answering.abort();
    eventually(|| (statuses() == ["ERROR", "ERROR"]).then_some(())).await;
}
