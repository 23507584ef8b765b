//! The simulator on a port.

use std::net::SocketAddr;

use openstack_ccm_openstack_sim::{Fault, Sim};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// One request by hand; the whole answer as text, empty when the connection was closed.
async fn raw(address: SocketAddr, method: &str, path: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn a_client_logs_in_finds_the_catalog_and_uses_it() {
    let sim = Sim::new();
    let server = sim.serve("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let auth = json!({"auth": {
        "identity": {"methods": ["password"], "password": {"user":
            {"name": "demo", "password": "lab", "domain": {"name": "Default"}}}},
        "scope": {"project": {"name": "demo", "domain": {"name": "Default"}}},
    }});
    let answer = raw(server.address(), "POST", "/identity/v3/auth/tokens", "", &auth.to_string()).await;
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    let token = answer.lines().find_map(|line| line.strip_prefix("x-subject-token: ")).unwrap().to_owned();
    let body: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let catalog = body["token"]["catalog"].as_array().unwrap();
    let octavia = catalog.iter().find(|service| service["type"] == "load-balancer").unwrap();
    let url = octavia["endpoints"][0]["url"].as_str().unwrap();
    assert_eq!(url, format!("http://{}/load-balancer", server.address()));
    let path = "/load-balancer/v2.0/lbaas/loadbalancers";
    let answer = raw(server.address(), "GET", path, &format!("X-Auth-Token: {token}\r\n"), "").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(sim.cloud_conf().contains(&format!("auth-url=\"http://{}/identity/v3\"", server.address())));
}

#[tokio::test]
async fn a_dropped_connection_is_closed_without_an_answer() {
    let sim = Sim::new();
    let server = sim.serve("127.0.0.1:0".parse().unwrap()).await.unwrap();
    sim.faults().add(Fault::new().once().drop_before());
    assert_eq!(raw(server.address(), "GET", "/network/", "", "").await, "");
    assert!(raw(server.address(), "GET", "/network/", "", "").await.starts_with("HTTP/1.1 200"));
    assert!(raw(server.address(), "GET", "/image/", "", "").await.starts_with("HTTP/1.1 404"));
}

#[tokio::test]
async fn the_port_is_closed_when_the_server_is_dropped() {
    let sim = Sim::new();
    let server = sim.serve("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = server.address();
    drop(server);
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
}
