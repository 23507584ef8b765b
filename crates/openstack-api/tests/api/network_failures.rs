//! Servers that do not answer, answer half or are not there.

use std::net::SocketAddr;
use std::time::Duration;

use openstack_ccm_openstack_api::client::{ClientSettings, RetryPolicy};
use openstack_ccm_openstack_api::identity::{AuthError, AuthOptions};
use openstack_ccm_openstack_api::octavia::CreateLoadBalancer;
use openstack_ccm_openstack_api::{ApiError, ErrorKind, OpenStack, connect};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::keystone::{password, project, token_document};

/// Long enough to connect, short enough to wait for.
const SHORT: Duration = Duration::from_millis(1500);

/// A server that reads a request, sends `answer` and then does `end`.
async fn server(answer: &'static str, end: End) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            stream.write_all(answer.as_bytes()).await.unwrap();
            match end {
                End::Close => {}
                End::Silence => open.push(stream),
            }
        }
    });
    address
}

#[derive(Clone, Copy)]
enum End {
    Close,
    Silence,
}

/// A cloud whose Keystone works and whose Octavia is at `octavia`.
async fn cloud(octavia: SocketAddr) -> (MockServer, OpenStack) {
    let keystone = MockServer::start().await;
    let text = token_document(&keystone.uri()).to_string();
    let text = text.replace(&format!("{}/load-balancer", keystone.uri()), &format!("http://{octavia}"));
    let answer = ResponseTemplate::new(201)
        .insert_header("X-Subject-Token", "TOKEN")
        .set_body_raw(text.into_bytes(), "application/json");
    Mock::given(method("POST")).respond_with(answer).mount(&keystone).await;
    let mut options = AuthOptions::new(keystone.uri(), password("lab"), project());
    options.request_timeout = SHORT;
    let settings = ClientSettings { retry: RetryPolicy::never(), ..ClientSettings::default() };
    let openstack = connect(&options, settings).await.unwrap();
    (keystone, openstack)
}

async fn create(openstack: &OpenStack) -> ApiError {
    let new = CreateLoadBalancer { name: "a".to_owned(), ..CreateLoadBalancer::default() };
    openstack.octavia.create_load_balancer(new).await.unwrap_err()
}

#[tokio::test]
async fn a_service_that_never_answers_is_given_up_as_a_lost_answer() {
    let (_keystone, openstack) = cloud(server("", End::Silence).await).await;
    let error = create(&openstack).await;
    assert_eq!(error.kind(), ErrorKind::LostAnswer, "{error:?}");
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.ends_with("sent no complete answer in time"), "{source}");
}

#[tokio::test]
async fn half_an_answer_is_a_lost_answer() {
    let half = "HTTP/1.1 201 Created\r\ncontent-length: 100\r\n\r\n{\"loadbalancer\":";
    let (_keystone, openstack) = cloud(server(half, End::Close).await).await;
    assert_eq!(create(&openstack).await.kind(), ErrorKind::LostAnswer);
}

#[tokio::test]
async fn half_an_answer_and_then_silence_is_a_lost_answer() {
    let half = "HTTP/1.1 201 Created\r\ncontent-length: 100\r\n\r\n{\"loadbalancer\":";
    let (_keystone, openstack) = cloud(server(half, End::Silence).await).await;
    assert_eq!(create(&openstack).await.kind(), ErrorKind::LostAnswer);
}

#[tokio::test]
async fn a_connection_closed_without_an_answer_is_a_lost_answer() {
    let (_keystone, openstack) = cloud(server("", End::Close).await).await;
    assert_eq!(create(&openstack).await.kind(), ErrorKind::LostAnswer);
}

#[tokio::test]
async fn a_service_that_is_not_there_is_unavailable_and_named() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let (_keystone, openstack) = cloud(address).await;
    let error = create(&openstack).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(source, format!("could not connect to the load-balancer service at {address}"));
}

#[tokio::test]
async fn a_keystone_that_never_answers_is_unavailable() {
    let address = server("", End::Silence).await;
    let mut options = AuthOptions::new(format!("http://{address}/v3"), password("lab"), project());
    options.request_timeout = SHORT;
    let error = connect(&options, ClientSettings::default()).await.unwrap_err();
    assert!(matches!(*error, AuthError::Unreachable { .. }), "{error:?}");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(error.to_string(), format!("keystone at {address} cannot be reached"));
}
