//! The simulator on a port.

use std::net::SocketAddr;

use openstack_ccm_openstack_sim::{Fault, Sim};
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
