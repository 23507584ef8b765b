//! What outlives a change, and what does not.

use openstack_ccm_openstack_sim::forward::{Address, Listener, PoolProtocol, Wanted};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::backend::{Backend, start_echo};
use crate::client::{ask, endpoint, forward};
use crate::wanted::{PORT, VIP, ip, listener, only, pool};

async fn say(client: &mut TcpStream, word: &[u8; 4]) -> [u8; 4] {
    client.write_all(word).await.unwrap();
    let mut heard = [0; 4];
    client.read_exact(&mut heard).await.unwrap();
    heard
}

/// Whether the other side has ended the connection, in whichever way.
async fn is_over(client: &mut TcpStream) -> bool {
    client.read(&mut [0; 1]).await.map_or(true, |count| count == 0)
}

#[tokio::test]
async fn changing_the_pool_under_a_stream_of_connections_loses_none() {
    let (plain, proxy) = (Backend::start("plain").await, Backend::start("proxy").await);
    let plain_pool = only(listener(pool(PoolProtocol::Tcp, &[plain.address])));
    let proxy_pool = only(listener(pool(PoolProtocol::Proxy, &[proxy.address])));
    let forwarder = forward(plain_pool.clone());
    let endpoint = endpoint(&forwarder);
    let clients: Vec<_> = (0..4)
        .map(|_| {
            tokio::spawn(async move {
                for _ in 0..50 {
                    let answer = ask(endpoint, "question").await.unwrap();
                    assert!(["plain", "proxy"].contains(&answer.as_str()), "{answer}");
                }
            })
        })
        .collect();
    for _ in 0..20 {
        forwarder.apply(proxy_pool.clone()).unwrap();
        assert_eq!(ask(endpoint, "").await.unwrap(), "proxy");
        forwarder.apply(plain_pool.clone()).unwrap();
        assert_eq!(ask(endpoint, "").await.unwrap(), "plain");
    }
    for client in clients {
        client.await.unwrap();
    }
    assert_eq!(forwarder.statistics().listeners["listener"].unserved_connections, 0);
}

#[tokio::test]
async fn an_open_connection_outlives_its_pool() {
    let other = Backend::start("other").await;
    let forwarder = forward(only(listener(pool(PoolProtocol::Tcp, &[start_echo().await]))));
    let before = endpoint(&forwarder);
    let mut client = TcpStream::connect(before).await.unwrap();
    assert_eq!(&say(&mut client, b"ping").await, b"ping");

    forwarder.apply(only(listener(pool(PoolProtocol::Proxy, &[other.address])))).unwrap();
    assert_eq!(endpoint(&forwarder), before, "the socket stays");
    assert_eq!(&say(&mut client, b"pong").await, b"pong");
    assert_eq!(ask(before, "").await.unwrap(), "other");
    assert_eq!(forwarder.statistics().listeners["listener"].active_connections, 1);
}

#[tokio::test]
async fn a_removed_listener_ends_its_connections_and_listens_no_more() {
    let forwarder = forward(only(listener(pool(PoolProtocol::Tcp, &[start_echo().await]))));
    let endpoint = endpoint(&forwarder);
    let mut client = TcpStream::connect(endpoint).await.unwrap();
    say(&mut client, b"ping").await;
    forwarder.apply(Wanted::default()).unwrap();
    assert!(is_over(&mut client).await);
    TcpStream::connect(endpoint).await.unwrap_err();
}

#[tokio::test]
async fn a_removed_floating_ip_leaves_the_vip_alone() {
    let wanted = listener(pool(PoolProtocol::Tcp, &[start_echo().await]));
    let floating_ip = ip("198.19.0.93");
    let addresses = vec![Address::vip(ip(VIP)), Address::floating(floating_ip, ip(VIP))];
    let forwarder = forward(only(Listener { addresses, ..wanted.clone() }));
    let mut by_vip = TcpStream::connect(endpoint(&forwarder)).await.unwrap();
    let mut by_floating_ip =
        TcpStream::connect(forwarder.endpoint(floating_ip, PORT).unwrap()).await.unwrap();
    say(&mut by_floating_ip, b"ping").await;

    forwarder.apply(only(wanted)).unwrap();
    assert!(is_over(&mut by_floating_ip).await);
    assert_eq!(&say(&mut by_vip, b"ping").await, b"ping");
    assert_eq!(forwarder.endpoint(floating_ip, PORT), None);
}

#[tokio::test]
async fn everything_ends_with_the_forwarder() {
    let forwarder = forward(only(listener(pool(PoolProtocol::Tcp, &[start_echo().await]))));
    let endpoint = endpoint(&forwarder);
    let mut client = TcpStream::connect(endpoint).await.unwrap();
    say(&mut client, b"ping").await;
    drop(forwarder);
    assert!(is_over(&mut client).await);
    TcpStream::connect(endpoint).await.unwrap_err();
}
