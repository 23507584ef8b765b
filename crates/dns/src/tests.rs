//! Name servers that disagree, and answers for AAAA of each bad kind.

use std::net::Ipv4Addr;
use std::time::Duration;

use hickory_resolver::config::{ConnectionConfig, NameServerConfig};
use hickory_resolver::proto::op::{Message, ResponseCode};
use hickory_resolver::proto::rr::{RData, Record, RecordType};
use rstest::rstest;
use tokio::net::UdpSocket;

use super::*;

/// What a name server does with a question.
#[derive(Clone, Copy, Debug)]
enum Does {
    Says(ResponseCode),
    Knows(Ipv4Addr),
    Nothing,
}

const KEYSTONE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);
const UNKNOWN: Does = Does::Says(ResponseCode::NXDomain);

/// A name server that answers questions for A and for AAAA so.
async fn server(a: Does, aaaa: Does) -> NameServerConfig {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut bytes = [0; 1500];
        loop {
            let (length, client) = socket.recv_from(&mut bytes).await.unwrap();
            let question = Message::from_vec(&bytes[..length]).unwrap();
            if let Some(answer) = answer(&question, a, aaaa) {
                socket.send_to(&answer.to_vec().unwrap(), client).await.unwrap();
            }
        }
    });
    let mut connection = ConnectionConfig::udp();
    connection.port = address.port();
    NameServerConfig::new(address.ip(), true, vec![connection])
}

fn answer(question: &Message, a: Does, aaaa: Does) -> Option<Message> {
    let query = question.queries.first()?.clone();
    let does = if query.query_type() == RecordType::AAAA { aaaa } else { a };
    let mut answer = question.clone().into_response();
    match does {
        Does::Nothing => return None,
        Does::Says(code) => answer.metadata.response_code = code,
        Does::Knows(address) => {
            answer.answers.push(Record::from_rdata(query.name().clone(), 60, RData::A(address.into())));
        }
    }
    Some(answer)
}

async fn asked(servers: Vec<NameServerConfig>) -> Result<Vec<IpAddr>, ResolveError> {
    let mut options = ResolverOpts::default();
    options.timeout = Duration::from_millis(200);
    options.attempts = 2;
    let config = ResolverConfig::from_parts(None, Vec::new(), servers);
    Servers::new(&config, options)?.addresses("keystone.cloud.internal.").await
}

#[rstest]
#[case::the_second_does_not_know_it(Does::Knows(KEYSTONE), UNKNOWN)]
#[case::the_first_does_not_know_it(UNKNOWN, Does::Knows(KEYSTONE))]
#[case::the_first_fails(Does::Says(ResponseCode::ServFail), Does::Knows(KEYSTONE))]
#[case::the_first_refuses(Does::Says(ResponseCode::Refused), Does::Knows(KEYSTONE))]
#[case::the_first_is_silent(Does::Nothing, Does::Knows(KEYSTONE))]
#[tokio::test]
async fn a_name_that_one_of_two_name_servers_knows_is_resolved(#[case] first: Does, #[case] second: Does) {
    let servers = vec![server(first, UNKNOWN).await, server(second, UNKNOWN).await];
    assert_eq!(asked(servers).await.unwrap(), [IpAddr::V4(KEYSTONE)]);
}

#[rstest]
#[case::unknown(UNKNOWN)]
#[case::no_such_records(Does::Says(ResponseCode::NoError))]
#[case::server_failure(Does::Says(ResponseCode::ServFail))]
#[case::refused(Does::Says(ResponseCode::Refused))]
#[case::silence(Does::Nothing)]
#[tokio::test]
async fn a_bad_answer_for_ipv6_does_not_lose_the_address_of_ipv4(#[case] aaaa: Does) {
    let servers = vec![server(Does::Knows(KEYSTONE), aaaa).await];
    assert_eq!(asked(servers).await.unwrap(), [IpAddr::V4(KEYSTONE)]);
}

#[tokio::test]
async fn a_name_that_nobody_knows_is_named() {
    let error = asked(vec![server(UNKNOWN, UNKNOWN).await]).await.unwrap_err();
    assert!(error.to_string().starts_with("keystone.cloud.internal. cannot be resolved: "), "{error}");
}

#[tokio::test]
async fn a_file_without_a_name_server_is_named() {
    let error = asked(Vec::new()).await.unwrap_err();
    assert!(error.to_string().contains("/etc/resolv.conf: it names no server"), "{error}");
}
