//! Health monitors.

use std::net::SocketAddr;
use std::time::Duration;

use openstack_ccm_openstack_sim::forward::{
    ExpectedCodes, Forwarder, Listener, MemberStatus, MonitorKind, Pool, PoolProtocol,
};
use rstest::rstest;

use crate::backend::{Backend, nobody};
use crate::client::{ask, endpoint, forward};
use crate::wanted::{listener, monitor, only, pool};

/// Longer than any check here takes.
const LIMIT: Duration = Duration::from_secs(20);

async fn wait_for(forwarder: &Forwarder, member: &str, status: MemberStatus) {
    let mut statuses = forwarder.watch_status();
    let waiting = statuses.wait_for(|statuses| statuses.get(member) == Some(&status));
    tokio::time::timeout(LIMIT, waiting).await.unwrap().unwrap();
}

fn http_check() -> MonitorKind {
    MonitorKind::Http { path: "/healthz".to_owned(), codes: ExpectedCodes::parse("200-204").unwrap() }
}

fn monitored(kind: MonitorKind, pool: Pool) -> Listener {
    listener(Pool { monitor: Some(monitor(kind)), ..pool })
}

#[tokio::test]
async fn a_member_that_is_down_is_skipped() {
    let (down, alive) = (nobody().await, Backend::start("alive").await);
    let pool = pool(PoolProtocol::Tcp, &[down, alive.address]);
    let forwarder = forward(only(monitored(MonitorKind::Tcp, pool)));
    wait_for(&forwarder, "member-1", MemberStatus::Error).await;
    assert_eq!(forwarder.status()["member-2"], MemberStatus::Online);
    for _ in 0..3 {
        assert_eq!(ask(endpoint(&forwarder), "").await.unwrap(), "alive");
    }
}

#[tokio::test]
async fn without_a_monitor_nobody_knows() {
    let forwarder = forward(only(listener(pool(PoolProtocol::Tcp, &[nobody().await]))));
    assert_eq!(forwarder.status()["member-1"], MemberStatus::NoMonitor);
}

#[tokio::test]
async fn with_no_healthy_member_connections_are_closed_even_if_one_would_answer() {
    let backend = Backend::http("HTTP/1.1 503 Unavailable\r\n\r\n").await;
    let pool = pool(PoolProtocol::Tcp, &[backend.address]);
    let forwarder = forward(only(monitored(http_check(), pool)));
    wait_for(&forwarder, "member-1", MemberStatus::Error).await;
    assert_eq!(ask(endpoint(&forwarder), "").await.unwrap(), "");
    assert_eq!(forwarder.statistics().members.get("member-1"), None);
}

#[tokio::test]
async fn a_member_comes_back_when_its_checks_pass() {
    let (dead, health) = (nobody().await, Backend::http("HTTP/1.1 204 No Content\r\n\r\n").await);
    let wanted = |health: SocketAddr| {
        let mut pool = pool(PoolProtocol::Tcp, &[dead]);
        pool.members[0].monitor_port = Some(health.port());
        only(monitored(http_check(), pool))
    };
    let forwarder = forward(wanted(dead));
    wait_for(&forwarder, "member-1", MemberStatus::Error).await;
    forwarder.apply(wanted(health.address)).unwrap();
    wait_for(&forwarder, "member-1", MemberStatus::Online).await;
}

#[tokio::test]
async fn a_check_asks_for_the_path() {
    let mut backend = Backend::http("HTTP/1.1 200 OK\r\n\r\n").await;
    let _forwarder = forward(only(monitored(http_check(), pool(PoolProtocol::Tcp, &[backend.address]))));
    assert_eq!(backend.received().await, b"GET /healthz HTTP/1.0\r\n\r\n");
}

/// The checks of version 1 are not announced as such: HAProxy names its own address and the member's.
#[tokio::test]
async fn checks_of_a_proxy_pool_carry_a_header_with_the_load_balancers_own_address() {
    let mut backend = Backend::start("").await;
    let pool = pool(PoolProtocol::Proxy, &[backend.address]);
    let _forwarder = forward(only(monitored(MonitorKind::Tcp, pool)));
    let received = String::from_utf8(backend.received().await).unwrap();
    assert!(received.starts_with("PROXY TCP4 127.0.0.1 127.0.0.1 "), "{received}");
    assert!(received.ends_with(&format!(" {}\r\n", backend.address.port())), "{received}");
}

#[tokio::test]
async fn checks_of_a_proxy_v2_pool_are_local() {
    let mut backend = Backend::start("").await;
    let pool = pool(PoolProtocol::ProxyV2, &[backend.address]);
    let _forwarder = forward(only(monitored(MonitorKind::Tcp, pool)));
    assert_eq!(backend.received().await, b"\r\n\r\n\0\r\nQUIT\n\x20\x00\x00\x00");
}

#[tokio::test]
async fn http_checks_of_a_proxy_pool_ask_after_the_header() {
    let mut backend = Backend::http("HTTP/1.1 200 OK\r\n\r\n").await;
    let pool = pool(PoolProtocol::Proxy, &[backend.address]);
    let _forwarder = forward(only(monitored(http_check(), pool)));
    let received = String::from_utf8(backend.received().await).unwrap();
    assert!(received.starts_with("PROXY TCP4 127.0.0.1 127.0.0.1 "), "{received}");
    assert!(received.ends_with("\r\nGET /healthz HTTP/1.0\r\n\r\n"), "{received}");
}

/// As for healthCheckNodePort, which speaks plain HTTP.
#[rstest]
#[case(PoolProtocol::Proxy)]
#[case(PoolProtocol::ProxyV2)]
#[tokio::test]
async fn checks_on_a_monitor_port_carry_no_header(#[case] protocol: PoolProtocol) {
    let mut health = Backend::http("HTTP/1.1 200 OK\r\n\r\n").await;
    let mut pool = pool(protocol, &[nobody().await]);
    pool.members[0].monitor_port = Some(health.address.port());
    let _forwarder = forward(only(monitored(http_check(), pool)));
    assert_eq!(health.received().await, b"GET /healthz HTTP/1.0\r\n\r\n");
}
