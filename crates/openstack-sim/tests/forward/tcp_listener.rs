//! TCP listeners without a PROXY header.

use openstack_ccm_openstack_sim::forward::{Forwarder, Listener, PoolProtocol, Wanted};
use rstest::rstest;

use crate::backend::{Backend, nobody};
use crate::client::{ask, ask_from, endpoint, forward};
use crate::wanted::{PORT, VIP, ip, listener, only, pool};

#[tokio::test]
async fn a_tcp_pool_gets_what_the_client_sent_and_nothing_more() {
    let mut backend = Backend::start("answer").await;
    let forwarder = forward(only(listener(pool(PoolProtocol::Tcp, &[backend.address]))));
    // The client closes its side before the answer comes: half a connection is still a connection.
    assert_eq!(ask(endpoint(&forwarder), "question").await.unwrap(), "answer");
    assert_eq!(backend.received().await, b"question");
}

#[tokio::test]
async fn members_take_turns_and_are_counted() {
    let (one, two) = (Backend::start("one").await, Backend::start("two").await);
    let forwarder = forward(only(listener(pool(PoolProtocol::Tcp, &[one.address, two.address]))));
    let mut answers = Vec::new();
    for _ in 0..4 {
        answers.push(ask(endpoint(&forwarder), "").await.unwrap());
    }
    assert_eq!(answers, ["one", "two", "one", "two"]);
    let statistics = forwarder.statistics();
    assert_eq!(statistics.members["member-1"], 2);
    assert_eq!(statistics.members["member-2"], 2);
    assert_eq!(statistics.listeners["listener"].total_connections, 4);
}

#[tokio::test]
async fn a_member_that_refuses_is_passed_over() {
    let backend = Backend::start("alive").await;
    let forwarder = forward(only(listener(pool(PoolProtocol::Tcp, &[nobody().await, backend.address]))));
    for _ in 0..3 {
        assert_eq!(ask(endpoint(&forwarder), "").await.unwrap(), "alive");
    }
}

#[rstest]
#[case::all_members_refuse(true)]
#[case::there_is_no_pool(false)]
#[tokio::test]
async fn without_a_member_the_connection_is_closed_without_an_answer(#[case] with_pool: bool) {
    let pool = pool(PoolProtocol::Tcp, &[nobody().await]);
    let wanted = Listener { pool: with_pool.then(|| pool.clone()), ..listener(pool.clone()) };
    let forwarder = forward(only(wanted));
    assert_eq!(ask(endpoint(&forwarder), "").await.unwrap(), "");
    assert_eq!(forwarder.statistics().listeners["listener"].unserved_connections, 1);
}

#[tokio::test]
async fn only_allowed_clients_reach_a_member() {
    let backend = Backend::start("welcome").await;
    let forwarder = Forwarder::new(|member| member).with_source(|peer| match peer.ip() {
        client if client == ip("127.0.1.11") => (ip("198.18.0.30"), peer.port()).into(),
        _ => peer,
    });
    let allowed = Listener {
        allowed_cidrs: vec!["198.18.0.0/24".parse().unwrap()],
        ..listener(pool(PoolProtocol::Tcp, &[backend.address]))
    };
    forwarder.apply(only(allowed)).unwrap();

    let (_, answer) = ask_from("127.0.1.11", endpoint(&forwarder), "").await.unwrap();
    assert_eq!(answer, "welcome");
    ask_from("127.0.1.12", endpoint(&forwarder), "").await.unwrap_err();
    let statistics = forwarder.statistics();
    assert_eq!(statistics.listeners["listener"].denied_connections, 1);
    assert_eq!(statistics.members["member-1"], 1);
}

#[tokio::test]
async fn members_are_dialled_where_the_test_says() {
    let backend = Backend::start("here").await;
    let pod = backend.address;
    let node = "198.18.0.11:30080".parse().unwrap();
    let forwarder = Forwarder::new(move |member| if member == node { pod } else { member });
    forwarder.apply(only(listener(pool(PoolProtocol::Tcp, &[node])))).unwrap();
    assert_eq!(ask(endpoint(&forwarder), "").await.unwrap(), "here");
}

#[tokio::test]
async fn only_what_listens_has_an_endpoint() {
    let forwarder = forward(only(listener(pool(PoolProtocol::Tcp, &[]))));
    assert!(forwarder.endpoint(ip(VIP), PORT).is_some());
    assert!(forwarder.endpoint(ip(VIP), PORT + 1).is_none());
    assert!(forwarder.endpoint(ip("198.18.0.94"), PORT).is_none());
    forwarder.apply(Wanted::default()).unwrap();
    assert!(forwarder.endpoint(ip(VIP), PORT).is_none());
}
