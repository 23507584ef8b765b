//! HTTP listeners.

use openstack_ccm_openstack_sim::forward::{Forwarder, Listener, ListenerProtocol, PoolProtocol};
use rstest::rstest;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::backend::{Backend, nobody};
use crate::client::{ask, endpoint};
use crate::wanted::{ip, listener, only, pool};

const CLIENT: &str = "198.18.0.30";
const RESPONSE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
const REQUEST: &str = "GET /path HTTP/1.1\r\nHost: example.org\r\nConnection: keep-alive\r\n\r\n";

/// A forwarder whose only client is [`CLIENT`].
fn forward(listener: Listener) -> Forwarder {
    let forwarder = Forwarder::new(|member| member).with_source(|peer| (ip(CLIENT), peer.port()).into());
    forwarder.apply(only(listener)).unwrap();
    forwarder
}

fn http(protocol: PoolProtocol, insert: bool, member: std::net::SocketAddr) -> Listener {
    Listener {
        protocol: ListenerProtocol::Http,
        insert_x_forwarded_for: insert,
        ..listener(pool(protocol, &[member]))
    }
}

#[rstest]
#[case::an_http_pool(PoolProtocol::Http, true, true)]
#[case::not_when_not_asked_for(PoolProtocol::Http, false, false)]
#[case::not_in_a_proxy_pool(PoolProtocol::Proxy, true, false)]
#[case::not_in_a_proxy_v2_pool(PoolProtocol::ProxyV2, true, false)]
#[tokio::test]
async fn x_forwarded_for_is_inserted_in(
    #[case] protocol: PoolProtocol,
    #[case] asked_for: bool,
    #[case] expected: bool,
) {
    let mut backend = Backend::http(RESPONSE).await;
    let forwarder = forward(http(protocol, asked_for, backend.address));
    assert_eq!(ask(endpoint(&forwarder), REQUEST).await.unwrap(), RESPONSE);
    let received = String::from_utf8_lossy(&backend.received().await).into_owned();
    assert_eq!(received.contains(&format!("\r\nX-Forwarded-For: {CLIENT}\r\n")), expected, "{received}");
    assert!(received.contains("GET /path HTTP/1.1\r\nHost: example.org\r\n"), "{received}");
}

#[tokio::test]
async fn a_proxy_pool_of_an_http_listener_gets_the_header_before_the_request() {
    let mut backend = Backend::http(RESPONSE).await;
    let forwarder = forward(http(PoolProtocol::Proxy, true, backend.address));
    ask(endpoint(&forwarder), REQUEST).await.unwrap();
    let received = String::from_utf8(backend.received().await).unwrap();
    assert!(received.starts_with(&format!("PROXY TCP4 {CLIENT} 198.18.0.93 ")), "{received}");
    assert_eq!(received.split("\r\n").nth(1), Some("GET /path HTTP/1.1"));
}

#[tokio::test]
async fn a_body_that_comes_after_the_head_is_forwarded() {
    let mut backend = Backend::until(b"body", RESPONSE).await;
    let forwarder = forward(http(PoolProtocol::Http, false, backend.address));
    let mut client = TcpStream::connect(endpoint(&forwarder)).await.unwrap();
    client.write_all(b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nbo").await.unwrap();
    client.write_all(b"dy").await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, RESPONSE);
    let expected = "POST / HTTP/1.1\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody";
    assert_eq!(String::from_utf8(backend.received().await).unwrap(), expected);
}

#[tokio::test]
async fn a_tcp_listener_changes_nothing_in_a_request() {
    let mut backend = Backend::http(RESPONSE).await;
    let wanted =
        Listener { protocol: ListenerProtocol::Tcp, ..http(PoolProtocol::Http, true, backend.address) };
    let forwarder = forward(wanted);
    assert_eq!(ask(endpoint(&forwarder), REQUEST).await.unwrap(), RESPONSE);
    assert_eq!(backend.received().await, REQUEST.as_bytes());
}

#[rstest]
#[case::no_member_is_reached(REQUEST, "503 Service Unavailable")]
#[case::the_request_is_none("nonsense\r\n\r\n", "400 Bad request")]
#[case::the_request_is_cut_off("GET / HTTP/1.1\r\nHost", "400 Bad request")]
#[tokio::test]
async fn the_load_balancer_answers_itself_when(#[case] request: &str, #[case] expected: &str) {
    let forwarder = forward(http(PoolProtocol::Http, true, nobody().await));
    let answer = ask(endpoint(&forwarder), request).await.unwrap();
    assert!(answer.starts_with(&format!("HTTP/1.1 {expected}\r\n")), "{answer}");
}

#[rstest]
#[case::closes_as_nginx_does_when_it_misses_a_proxy_header("")]
#[case::speaks_something_else("SSH-2.0-OpenSSH\r\n")]
#[tokio::test]
async fn the_client_gets_a_502_when_the_member(#[case] response: &'static str) {
    let backend = Backend::http(response).await;
    let forwarder = forward(http(PoolProtocol::Http, true, backend.address));
    let answer = ask(endpoint(&forwarder), REQUEST).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 502 Bad Gateway\r\n"), "{answer}");
}
