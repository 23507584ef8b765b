//! What members of PROXY pools see first.

use std::net::SocketAddr;

use openstack_ccm_openstack_sim::forward::{Address, Forwarder, Listener, PoolProtocol};
use ppp::{v1, v2};
use rstest::rstest;

use crate::backend::Backend;
use crate::client::{ask_from, endpoint};
use crate::wanted::{PORT, VIP, ip, listener, only, pool};

/// Where the client is on this machine, and in the world.
const LOOPBACK: &str = "127.0.1.11";
const CLIENT: &str = "198.18.0.30";
const FLOATING_IP: &str = "198.19.0.93";
const CLIENT_V6: &str = "2001:db8::30";
const VIP_V6: &str = "2001:db8::93";

/// A forwarder for whom [`LOOPBACK`] is `client`.
fn forwarder(client: &'static str) -> Forwarder {
    Forwarder::new(|member| member).with_source(move |peer| match peer.ip() {
        address if address == ip(LOOPBACK) => SocketAddr::new(ip(client), peer.port()),
        _ => peer,
    })
}

#[tokio::test]
async fn a_proxy_pool_begins_with_one_line_of_text() {
    let mut backend = Backend::start("answer").await;
    let forwarder = forwarder(CLIENT);
    forwarder.apply(only(listener(pool(PoolProtocol::Proxy, &[backend.address])))).unwrap();
    let (port, answer) = ask_from(LOOPBACK, endpoint(&forwarder), "question").await.unwrap();
    assert_eq!(answer, "answer");
    let expected = format!("PROXY TCP4 {CLIENT} {VIP} {port} {PORT}\r\nquestion");
    assert_eq!(String::from_utf8(backend.received().await).unwrap(), expected);
}

#[tokio::test]
async fn a_proxy_v2_pool_begins_with_the_binary_header() {
    let mut backend = Backend::start("answer").await;
    let forwarder = forwarder(CLIENT);
    forwarder.apply(only(listener(pool(PoolProtocol::ProxyV2, &[backend.address])))).unwrap();
    let (port, _) = ask_from(LOOPBACK, endpoint(&forwarder), "question").await.unwrap();
    let received = backend.received().await;
    let mut expected = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c\xc6\x12\x00\x1e\xc6\x12\x00\x5d".to_vec();
    expected.extend(port.to_be_bytes());
    expected.extend(PORT.to_be_bytes());
    expected.extend(b"question");
    assert_eq!(received, expected);
}

/// The router translates a floating IP before the load balancer sees the connection.
#[tokio::test]
async fn the_destination_behind_a_floating_ip_is_the_vip() {
    let mut backend = Backend::start("answer").await;
    let forwarder = forwarder(CLIENT);
    let wanted = Listener {
        addresses: vec![Address::vip(ip(VIP)), Address::floating(ip(FLOATING_IP), ip(VIP))],
        ..listener(pool(PoolProtocol::Proxy, &[backend.address]))
    };
    forwarder.apply(only(wanted)).unwrap();
    let reached_at = forwarder.endpoint(ip(FLOATING_IP), PORT).unwrap();
    let (port, _) = ask_from(LOOPBACK, reached_at, "").await.unwrap();
    let expected = format!("PROXY TCP4 {CLIENT} {VIP} {port} {PORT}\r\n");
    assert_eq!(String::from_utf8(backend.received().await).unwrap(), expected);
}

#[rstest]
#[case(PoolProtocol::Proxy)]
#[case(PoolProtocol::ProxyV2)]
#[tokio::test]
async fn an_ipv6_client_of_an_ipv6_vip_is_announced_as_such(#[case] protocol: PoolProtocol) {
    let mut backend = Backend::start("answer").await;
    let forwarder = Forwarder::new(|member| member).with_source(|peer| (ip(CLIENT_V6), peer.port()).into());
    let wanted = Listener {
        addresses: vec![Address::vip(ip(VIP_V6))],
        ..listener(pool(protocol, &[backend.address]))
    };
    forwarder.apply(only(wanted)).unwrap();
    let reached_at = forwarder.endpoint(ip(VIP_V6), PORT).unwrap();
    crate::client::ask(reached_at, "").await.unwrap();
    let received = backend.received().await;
    let addresses = match protocol {
        PoolProtocol::Proxy => match v1::Header::try_from(received.as_slice()).unwrap().addresses {
            v1::Addresses::Tcp6(seen) => {
                (seen.source_address, seen.destination_address, seen.destination_port)
            }
            other => panic!("{other:?}"),
        },
        PoolProtocol::ProxyV2 => match v2::Header::try_from(received.as_slice()).unwrap().addresses {
            v2::Addresses::IPv6(seen) => {
                (seen.source_address, seen.destination_address, seen.destination_port)
            }
            other => panic!("{other:?}"),
        },
        PoolProtocol::Tcp | PoolProtocol::Http => unreachable!("no case has it"),
    };
    assert_eq!(addresses, (CLIENT_V6.parse().unwrap(), VIP_V6.parse().unwrap(), PORT));
}
