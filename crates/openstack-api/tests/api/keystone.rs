//! Login, tokens and the catalog, against recorded answers of Keystone over real sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use openstack_ccm_core::permit::{ClusterCheck, Fence, Gate, NotPermitted};
use openstack_ccm_openstack_api::client::{ClientSettings, RetryPolicy};
use openstack_ccm_openstack_api::identity::{
    ApplicationCredentialName, AuthOptions, Catalog, Credentials, DomainRef, InDomain, InterfaceType, Reload,
    Scope,
};
use openstack_ccm_openstack_api::octavia::LoadBalancerFilter;
use openstack_ccm_openstack_api::transport::Service;
use openstack_ccm_openstack_api::{ErrorKind, OpenStack, connect};
use rstest::rstest;
use secrecy::SecretString;
use serde_json::{Value, json};
use wiremock::matchers::{header, method, path};
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate};

use crate::recorded::exchange;

pub(crate) fn domain() -> DomainRef {
    DomainRef::Name("Default".to_owned())
}

pub(crate) fn demo() -> InDomain {
    InDomain::Name { name: "demo".to_owned(), domain: domain() }
}

pub(crate) fn project() -> Scope {
    Scope::Project(InDomain::Name { name: "demo".to_owned(), domain: domain() })
}

pub(crate) fn password(text: &str) -> Credentials {
    Credentials::Password { user: demo(), password: SecretString::from(text) }
}

/// The recorded answer to a login, with every service moved to `cloud`.
pub(crate) fn token_document(cloud: &str) -> Value {
    let mut text = exchange("identity", "token: password, project scope").response.unwrap().to_string();
    let services = ["identity", "network", "load-balancer", "compute", "placement", "image", "key-manager"];
    for (number, service) in services.iter().enumerate() {
        text = text.replace(&format!("http://127.0.0.1:1500{number}"), &format!("{cloud}/{service}"));
    }
    serde_json::from_str(&text).unwrap()
}

/// Answers logins with `TOKEN-1`, `TOKEN-2` and so on, or with a refusal.
#[derive(Clone)]
pub(crate) struct LogIns {
    cloud: String,
    count: Arc<AtomicUsize>,
    refuse_from: usize,
}

impl LogIns {
    fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }
}

impl Respond for LogIns {
    fn respond(&self, _: &Request) -> ResponseTemplate {
        let number = self.count.fetch_add(1, Ordering::SeqCst) + 1;
        if number >= self.refuse_from {
            let refusal = exchange("identity", "token: wrong password");
            return ResponseTemplate::new(401).set_body_json(refusal.response.unwrap());
        }
        ResponseTemplate::new(201)
            .insert_header("X-Subject-Token", format!("TOKEN-{number}"))
            .set_body_json(token_document(&self.cloud))
    }
}

/// A Keystone that gives tokens until the `refuse_from`th login.
pub(crate) async fn keystone(refuse_from: usize) -> (MockServer, LogIns) {
    let server = MockServer::start().await;
    let log_ins = LogIns { cloud: server.uri(), count: Arc::default(), refuse_from };
    Mock::given(method("POST"))
        .and(path("/v3/auth/tokens"))
        .respond_with(log_ins.clone())
        .mount(&server)
        .await;
    (server, log_ins)
}

async fn accept_token(server: &MockServer, token: &str) {
    let empty = json!({ "loadbalancers": [], "loadbalancers_links": [] });
    Mock::given(method("GET"))
        .and(path("/load-balancer/v2.0/lbaas/loadbalancers"))
        .and(header("x-auth-token", token))
        .respond_with(ResponseTemplate::new(200).set_body_json(empty))
        .mount(server)
        .await;
}

async fn refuse_tokens(server: &MockServer) {
    let refusal = exchange("identity", "octavia with a revoked token").response.unwrap();
    Mock::given(path("/load-balancer/v2.0/lbaas/loadbalancers"))
        .respond_with(ResponseTemplate::new(401).set_body_json(refusal))
        .with_priority(10)
        .mount(server)
        .await;
}

pub(crate) async fn connected(server: &MockServer) -> OpenStack {
    let options = AuthOptions::new(server.uri(), password("lab"), project());
    let settings = ClientSettings { retry: RetryPolicy::never(), ..ClientSettings::default() };
    connect(&options, settings).await.unwrap()
}

async fn list(openstack: &OpenStack) -> Result<(), openstack_ccm_openstack_api::ApiError> {
    openstack.octavia.list_load_balancers(&LoadBalancerFilter::default()).await.map(drop)
}

/// Moves the clock without waiting; it runs on afterwards, because real sockets need it to.
async fn later(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

async fn calls(server: &MockServer) -> usize {
    let requests = server.received_requests().await.unwrap();
    requests.iter().filter(|request| request.url.path().starts_with("/load-balancer")).count()
}

#[rstest]
#[case::password(password("lab"), project(),
    exchange("identity", "token: password, project scope").request.unwrap())]
#[case::unscoped(password("lab"), Scope::Unscoped, exchange("identity", "token: password, no scope").request.unwrap())]
#[case::ids(
    Credentials::Password { user: InDomain::Id("u".to_owned()), password: "p".into() },
    Scope::Project(InDomain::Id("p".to_owned())),
    json!({"auth": {"identity": {"methods": ["password"], "password": {"user": {"id": "u", "password": "p"}}},
        "scope": {"project": {"id": "p"}}}}))]
#[case::domain_ids(
    Credentials::Password { user: InDomain::Name { name: "n".to_owned(), domain: DomainRef::Id("d".to_owned()) }, password: "p".into() },
    Scope::Domain(DomainRef::Id("e".to_owned())),
    json!({"auth": {"identity": {"methods": ["password"], "password": {"user": {"name": "n", "domain": {"id": "d"}, "password": "p"}}},
        "scope": {"domain": {"id": "e"}}}}))]
#[case::system(password("p"), Scope::System,
    json!({"auth": {"identity": {"methods": ["password"],
        "password": {"user": {"name": "demo", "domain": {"name": "Default"}, "password": "p"}}}, "scope": {"system": {"all": true}}}}))]
#[case::application_credential(
    Credentials::ApplicationCredential {
        name: ApplicationCredentialName::Id("da5c0b8f838744ffa45e3a4a00b6498d".to_owned()), secret: "fake-secret".into() },
    project(),
    exchange("identity", "token: application credential by id").request.unwrap())]
#[case::application_credential_by_name(
    Credentials::ApplicationCredential {
        name: ApplicationCredentialName::Name { name: "ccm-1795246093".to_owned(), user: demo() }, secret: "fake-secret".into() },
    Scope::Unscoped,
    exchange("identity", "token: application credential by name and user").request.unwrap())]
#[case::token(Credentials::Token { token: "TOKEN-UNSCOPED".into() }, project(),
    exchange("identity", "token: from unscoped token, nocatalog").request.unwrap())]
#[case::trust(
    Credentials::Password { user: InDomain::Id("u".to_owned()), password: "p".into() },
    Scope::Trust { trust_id: "t".to_owned() },
    json!({"auth": {"identity": {"methods": ["password"], "password": {"user": {"id": "u", "password": "p"}}},
        "scope": {"OS-TRUST:trust": {"id": "t"}}}}))]
#[tokio::test]
async fn every_kind_of_credentials_asks_in_keystones_words(
    #[case] credentials: Credentials,
    #[case] scope: Scope,
    #[case] expected: Value,
) {
    let (server, _) = keystone(usize::MAX).await;
    connect(&AuthOptions::new(server.uri(), credentials, scope), ClientSettings::default()).await.unwrap();
    let requests = server.received_requests().await.unwrap();
    assert_eq!(requests.len(), 1, "one login and nothing else");
    assert_eq!(requests[0].body_json::<Value>().unwrap(), expected);
}

#[rstest]
#[case("", "/v3/auth/tokens")]
#[case("/", "/v3/auth/tokens")]
#[case("/v3", "/v3/auth/tokens")]
#[case("/v3/", "/v3/auth/tokens")]
#[case("/v2.0", "/v3/auth/tokens")]
#[case("/identity", "/identity/v3/auth/tokens")]
#[case("/identity/v3/", "/identity/v3/auth/tokens")]
#[tokio::test]
async fn every_form_of_auth_url_leads_to_version_3(#[case] suffix: &str, #[case] expected: &str) {
    let server = MockServer::start().await;
    let answer = ResponseTemplate::new(201)
        .insert_header("X-Subject-Token", "TOKEN")
        .set_body_json(token_document(&server.uri()));
    Mock::given(method("POST")).respond_with(answer).mount(&server).await;
    let options = AuthOptions::new(format!("{}{suffix}", server.uri()), password("lab"), project());
    connect(&options, ClientSettings::default()).await.unwrap();
    let requests = server.received_requests().await.unwrap();
    assert_eq!(requests.iter().map(|request| request.url.path()).collect::<Vec<_>>(), [expected]);
}

#[tokio::test]
async fn an_auth_url_that_is_none_is_named_without_its_password() {
    for url in
        ["keystone.example:5000", "ftp://keystone.example/", "https://user:hidden@keystone.example/", ""]
    {
        let options = AuthOptions::new(url, password("lab"), project());
        let error = connect(&options, ClientSettings::default()).await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains("must be an http or https address") && !text.contains("hidden"), "{text}");
        assert_eq!(error.kind(), ErrorKind::BadRequest);
    }
}

#[tokio::test]
async fn the_cloud_names_its_services_and_project() {
    let (server, _) = keystone(usize::MAX).await;
    let openstack = connected(&server).await;
    assert!(openstack.has(Service::LoadBalancer) && openstack.has(Service::Network));
    assert!(openstack.nova.is_some() && openstack.barbican.is_some());
    assert_eq!(openstack.project_id.as_deref(), Some("9066a578d9e3492696bc3a5e7b65a92a"));
}

#[tokio::test]
async fn a_request_carries_token_and_user_agent() {
    let (server, _) = keystone(usize::MAX).await;
    accept_token(&server, "TOKEN-1").await;
    let mut options = AuthOptions::new(server.uri(), password("lab"), project());
    options.user_agent = vec!["cluster-7".to_owned(), "openstack-ccm/1.2.3".to_owned()];
    let openstack = connect(&options, ClientSettings::default()).await.unwrap();
    list(&openstack).await.unwrap();
    for request in server.received_requests().await.unwrap() {
        let agent = request.headers["user-agent"].to_str().unwrap();
        assert!(agent.starts_with("cluster-7 openstack-ccm/1.2.3 openstack-ccm-openstack-api/"), "{agent}");
    }
}

#[tokio::test]
async fn a_wrong_password_is_refused_in_keystones_words() {
    let (server, _) = keystone(1).await;
    let options = AuthOptions::new(server.uri(), password("wrong"), project());
    let error = connect(&options, ClientSettings::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthorized);
    assert_eq!(
        error.to_string(),
        format!(
            "Keystone at {}/v3/auth/tokens refused the login (401): The request you have made requires authentication.",
            server.uri()
        )
    );
}

#[tokio::test]
async fn a_refusal_that_quotes_the_request_is_cut_to_its_first_line() {
    let server = MockServer::start().await;
    let answer = exchange("identity", "token: malformed request");
    Mock::given(path("/v3/auth/tokens"))
        .respond_with(ResponseTemplate::new(400).set_body_json(answer.response.unwrap()))
        .mount(&server)
        .await;
    let options = AuthOptions::new(server.uri(), password("lab"), project());
    let error = connect(&options, ClientSettings::default()).await.unwrap_err();
    assert!(
        error.to_string().ends_with(" refused the login (400): 'identity' is a required property"),
        "{error}"
    );
}

#[tokio::test]
async fn a_keystone_that_fails_refuses_nothing() {
    let server = MockServer::start().await;
    let answer =
        ResponseTemplate::new(500).set_body_string("<html><body>Internal Server Error</body></html>");
    Mock::given(path("/v3/auth/tokens")).respond_with(answer).mount(&server).await;
    let options = AuthOptions::new(server.uri(), password("lab"), project());
    let error = connect(&options, ClientSettings::default()).await.unwrap_err().to_string();
    assert!(error.ends_with(" failed to answer the login (500): a page of HTML"), "{error}");
}

#[tokio::test]
async fn something_that_is_no_keystone_is_said_to_be_none() {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .respond_with(ResponseTemplate::new(200).set_body_string("hello"))
        .mount(&server)
        .await;
    let options = AuthOptions::new(server.uri(), password("lab"), project());
    let error = connect(&options, ClientSettings::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode);
}

#[tokio::test]
async fn an_auth_url_with_a_wrong_path_is_named() {
    let server = MockServer::start().await;
    let answer = ResponseTemplate::new(404).set_body_string("no such service");
    Mock::given(method("POST")).respond_with(answer).mount(&server).await;
    let options = AuthOptions::new(format!("{}/identty", server.uri()), password("lab"), project());
    let error = connect(&options, ClientSettings::default()).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("/identty/v3/auth/tokens does not answer like Keystone (404)"), "{text}");
    assert!(text.contains("usually ends with /v3"), "{text}");
}

/// A front end that wants https. The password is not sent anywhere else; the cure is named.
#[tokio::test]
async fn field_57_a_redirect_of_keystone_says_where_to() {
    let server = MockServer::start().await;
    let answer = ResponseTemplate::new(301)
        .insert_header("location", "https://cloud.example.org/identity/v3/auth/tokens");
    Mock::given(method("POST")).respond_with(answer).mount(&server).await;
    let options = AuthOptions::new(server.uri(), password("lab"), project());
    let error = connect(&options, ClientSettings::default()).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("redirects to https://cloud.example.org/identity/v3 (301)"), "{text}");
    assert!(text.ends_with("set auth-url to https://cloud.example.org/identity/v3"), "{text}");
    assert_eq!(error.kind(), ErrorKind::NoEndpoint);
}

#[tokio::test]
async fn fifty_calls_without_a_token_cause_one_log_in() {
    let (server, log_ins) = keystone(usize::MAX).await;
    accept_token(&server, "TOKEN-2").await;
    refuse_tokens(&server).await;
    let openstack = connected(&server).await;
    later(Duration::from_secs(3601)).await;
    for result in join_all((0..50).map(|_| list(&openstack))).await {
        result.unwrap();
    }
    assert_eq!(log_ins.count(), 2, "one at the start and one after the end of the first token");
}

#[tokio::test]
async fn a_token_is_renewed_before_its_end_and_not_too_early() {
    let (server, log_ins) = keystone(usize::MAX).await;
    accept_token(&server, "TOKEN-1").await;
    accept_token(&server, "TOKEN-2").await;
    let openstack = connected(&server).await;
    later(Duration::from_secs(3200)).await;
    list(&openstack).await.unwrap();
    assert_eq!(log_ins.count(), 1);
    later(Duration::from_secs(200)).await;
    list(&openstack).await.unwrap();
    assert_eq!(log_ins.count(), 2);
}

#[tokio::test]
async fn a_failed_renewal_leaves_the_old_token_in_use() {
    let (server, log_ins) = keystone(2).await;
    accept_token(&server, "TOKEN-1").await;
    let openstack = connected(&server).await;
    later(Duration::from_secs(3400)).await;
    list(&openstack).await.unwrap();
    list(&openstack).await.unwrap();
    assert_eq!(log_ins.count(), 2, "the renewal is not tried again by every call");
}

/// A token that is no longer good is replaced, and the call that met it is repeated once.
///
/// Contract: U10, better: one login serves all calls that were refused at once.
#[tokio::test]
async fn a_revoked_token_is_replaced_once_for_all_calls_and_each_call_is_repeated_once() {
    let (server, log_ins) = keystone(usize::MAX).await;
    accept_token(&server, "TOKEN-2").await;
    refuse_tokens(&server).await;
    let openstack = connected(&server).await;
    for result in join_all((0..20).map(|_| list(&openstack))).await {
        result.unwrap();
    }
    assert_eq!(log_ins.count(), 2);
    assert_eq!(calls(&server).await, 40);
}

#[tokio::test]
async fn a_call_that_is_refused_with_a_new_token_too_ends() {
    let (server, log_ins) = keystone(usize::MAX).await;
    refuse_tokens(&server).await;
    let openstack = connected(&server).await;
    let error = list(&openstack).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthorized);
    assert_eq!((log_ins.count(), calls(&server).await), (2, 2));
}

#[tokio::test]
async fn a_password_that_was_changed_does_not_hammer_keystone() {
    let (server, log_ins) = keystone(2).await;
    refuse_tokens(&server).await;
    let openstack = connected(&server).await;
    for result in join_all((0..20).map(|_| list(&openstack))).await {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unauthorized);
        assert_eq!(error.to_string(), "loadbalancer_list: could not log in to OpenStack");
    }
    assert_eq!(log_ins.count(), 2, "twenty refused calls share one failed login");
    later(Duration::from_secs(3)).await;
    list(&openstack).await.unwrap_err();
    assert_eq!(log_ins.count(), 3);
}

#[tokio::test]
async fn a_ready_made_token_is_used_as_it_is() {
    let server = MockServer::start().await;
    let mut document = token_document(&server.uri());
    document["token"]["expires_at"] = json!("2999-01-01T00:00:00.000000Z");
    Mock::given(method("GET"))
        .and(path("/v3/auth/tokens"))
        .and(header("x-auth-token", "READY"))
        .and(header("x-subject-token", "READY"))
        .respond_with(ResponseTemplate::new(200).set_body_json(document))
        .mount(&server)
        .await;
    accept_token(&server, "READY").await;
    let credentials = Credentials::Token { token: "READY".into() };
    let options = AuthOptions::new(server.uri(), credentials, Scope::Unscoped);
    let openstack = connect(&options, ClientSettings::default()).await.unwrap();
    list(&openstack).await.unwrap();
}

#[tokio::test]
async fn a_ready_made_token_that_is_no_longer_good_names_the_way_out() {
    let server = MockServer::start().await;
    let refusal = exchange("identity", "keystone with a revoked token").response.unwrap();
    Mock::given(path("/v3/auth/tokens"))
        .respond_with(ResponseTemplate::new(401).set_body_json(refusal))
        .mount(&server)
        .await;
    let credentials = Credentials::Token { token: "OLD".into() };
    let options = AuthOptions::new(server.uri(), credentials, Scope::Unscoped);
    let error = connect(&options, ClientSettings::default()).await.unwrap_err();
    assert!(error.to_string().contains("use a password or an application credential"), "{error}");
    assert_eq!(error.kind(), ErrorKind::Unauthorized);
}

#[tokio::test]
async fn a_service_that_the_region_lacks_is_named_with_region_and_interface() {
    let (server, _) = keystone(usize::MAX).await;
    let mut options = AuthOptions::new(server.uri(), password("lab"), project());
    options.region = Some("Nowhere".to_owned());
    options.interface = InterfaceType::Internal;
    let openstack = connect(&options, ClientSettings::default()).await.unwrap();
    assert!(openstack.nova.is_none() && openstack.services.is_empty());
    let error = list(&openstack).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoEndpoint);
    assert_eq!(
        error.to_string(),
        "loadbalancer_list: the service catalog has no internal endpoint of type load-balancer in region Nowhere; \
         check region and os-endpoint-type"
    );
}

fn recorded_catalog() -> Catalog {
    let document = exchange("identity", "catalog").response.unwrap();
    serde_json::from_value(document["catalog"].clone()).unwrap()
}

/// Endpoints are those of the region; without a region the first one is taken.
///
/// Contract: X8, same.
#[rstest]
#[case::any_region("load-balancer", InterfaceType::Public, None, true)]
#[case::first_region("load-balancer", InterfaceType::Internal, Some("RegionOne"), true)]
#[case::second_region("load-balancer", InterfaceType::Public, Some("RegionTwo"), true)]
#[case::second_region_inside("load-balancer", InterfaceType::Internal, Some("RegionTwo"), false)]
#[case::other_region("load-balancer", InterfaceType::Public, Some("regionone"), false)]
#[case::other_service("volumev3", InterfaceType::Public, None, false)]
fn x8_the_recorded_catalog_is_searched_by_region_and_interface(
    #[case] service: &str,
    #[case] interface: InterfaceType,
    #[case] region: Option<&str>,
    #[case] found: bool,
) {
    assert_eq!(recorded_catalog().endpoint(service, interface, region).is_some(), found);
}

#[test]
fn one_odd_catalog_entry_does_not_hide_the_others() {
    let catalog: Catalog = serde_json::from_value(json!([
        {"type": null, "endpoints": null},
        {"type": "network", "endpoints": [
            {"interface": "public", "region": null, "region_id": null, "url": null},
            {"interface": "public", "region": "R", "url": "no address"},
            {"interface": null, "region": "R", "url": "http://a"},
            {"interface": "publicURL", "region": "R Name", "region_id": "R", "url": "http://net:9696"}
        ]}
    ]))
    .unwrap();
    let found = catalog.endpoint("network", InterfaceType::Public, Some("R")).map(url::Url::as_str);
    assert_eq!(found, Some("http://net:9696/"));
    assert!(catalog.endpoint("network", InterfaceType::Public, Some("R Name")).is_some());
}

fn wrong_password() -> ResponseTemplate {
    let refusal = exchange("identity", "token: wrong password");
    ResponseTemplate::new(401).set_body_json(refusal.response.unwrap())
}

/// As Keystone 2026.2 answers to an application credential that was deleted.
fn deleted_credential() -> ResponseTemplate {
    let message = "Could not find Application Credential: 11bc32a3c97c4bf38ad66c0dbe4e4513.";
    ResponseTemplate::new(404)
        .set_body_json(json!({"error": {"code": 404, "message": message, "title": "Not Found"}}))
}

/// Answers logins with one password only, and refuses all others.
fn only(password: &'static str, refusal: ResponseTemplate, cloud: String) -> impl Respond {
    move |request: &Request| {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        if body["auth"]["identity"]["password"]["user"]["password"] != json!(password) {
            return refusal.clone();
        }
        ResponseTemplate::new(201)
            .insert_header("X-Subject-Token", format!("TOKEN-OF-{password}"))
            .set_body_json(token_document(&cloud))
    }
}

async fn accepts_only(server: &MockServer, password: &'static str) {
    refuses_others(server, password, wrong_password()).await;
}

async fn refuses_others(server: &MockServer, password: &'static str, refusal: ResponseTemplate) {
    server.reset().await;
    Mock::given(method("POST"))
        .and(path("/v3/auth/tokens"))
        .respond_with(only(password, refusal, server.uri()))
        .mount(server)
        .await;
    accept_token(server, &format!("TOKEN-OF-{password}")).await;
    refuse_tokens(server).await;
}

/// The file is read again when Keystone refuses what it said before; until then, everybody gets its error, with the time since when.
#[tokio::test]
async fn rotated_credentials_are_taken_from_the_configuration() {
    rotation(wrong_password()).await;
}

/// It says nothing about what the cloud has: whoever asks is not told that something is absent.
#[tokio::test]
async fn a_deleted_application_credential_is_a_refused_login() {
    rotation(deleted_credential()).await;
}

async fn rotation(refusal: ResponseTemplate) {
    let server = MockServer::start().await;
    accepts_only(&server, "old").await;
    let in_file = Arc::new(std::sync::Mutex::new("old"));
    let uri = server.uri();
    let read = {
        let in_file = Arc::clone(&in_file);
        move || Ok(AuthOptions::new(uri.clone(), password(*in_file.lock().unwrap()), project()))
    };
    let mut options = read().unwrap();
    options.reload = Some(Reload::new(read));
    let settings = ClientSettings { retry: RetryPolicy::never(), ..ClientSettings::default() };
    let openstack = connect(&options, settings).await.unwrap();
    list(&openstack).await.unwrap();
    assert_eq!(openstack.log_in_refused_since(), None);

    refuses_others(&server, "new", refusal).await;
    assert_eq!(list(&openstack).await.unwrap_err().kind(), ErrorKind::Unauthorized);
    let since = openstack.log_in_refused_since().expect("it is refused");
    *in_file.lock().unwrap() = "new";
    later(Duration::from_secs(3)).await;
    list(&openstack).await.unwrap();
    assert_eq!(openstack.log_in_refused_since(), None, "it was since {since}");
}

#[tokio::test]
async fn a_configuration_that_cannot_be_read_again_leaves_the_refusal() {
    let server = MockServer::start().await;
    accepts_only(&server, "old").await;
    let mut options = AuthOptions::new(server.uri(), password("old"), project());
    options.reload = Some(Reload::new(|| Err("half written".to_owned())));
    let settings = ClientSettings { retry: RetryPolicy::never(), ..ClientSettings::default() };
    let openstack = connect(&options, settings).await.unwrap();
    accepts_only(&server, "new").await;
    assert_eq!(list(&openstack).await.unwrap_err().kind(), ErrorKind::Unauthorized);
}

/// A service that moves is found with the next token.
#[tokio::test]
async fn the_catalog_of_the_newest_token_counts() {
    let (server, _) = keystone(usize::MAX).await;
    accept_token(&server, "TOKEN-1").await;
    let openstack = connected(&server).await;
    list(&openstack).await.unwrap();
    let (moved, _) = keystone(usize::MAX).await;
    accept_token(&moved, "TOKEN-2").await;
    server.reset().await;
    let elsewhere = token_document(&moved.uri());
    Mock::given(path("/v3/auth/tokens"))
        .respond_with(
            ResponseTemplate::new(201).insert_header("X-Subject-Token", "TOKEN-2").set_body_json(elsewhere),
        )
        .mount(&server)
        .await;
    later(Duration::from_secs(24 * 3600)).await;
    list(&openstack).await.unwrap();
    assert_eq!((calls(&server).await, calls(&moved).await), (0, 1));
}

/// What is longer than any list is not read: the message names the request and the bound.
#[tokio::test]
async fn an_answer_without_end_is_not_read() {
    let (server, _) = keystone(usize::MAX).await;
    let openstack = connected(&server).await;
    Mock::given(path("/load-balancer/v2.0/lbaas/loadbalancers"))
        .respond_with(ResponseTemplate::new(200).set_body_bytes(vec![b' '; (64 << 20) + 1]))
        .mount(&server)
        .await;
    let error = list(&openstack).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode);
    let text = format!("{error}: {}", std::error::Error::source(&error).unwrap());
    assert!(text.contains("loadbalancer_list") && text.contains("more than 64 MiB"), "{text}");
}

/// The cluster is always the same one.
struct SameCluster;

#[async_trait]
impl ClusterCheck for SameCluster {
    fn another(&self) -> Option<String> {
        None
    }

    async fn confirm(&self) -> Result<(), NotPermitted> {
        Ok(())
    }
}

/// Between the leave to write and the request there may be a login that takes long.
#[tokio::test]
async fn a_write_is_not_sent_when_the_lead_was_lost_on_the_way_to_the_socket() {
    let (server, _) = keystone(usize::MAX).await;
    let asked = AtomicUsize::new(0);
    let fence = Fence::new(move |_| asked.fetch_add(1, Ordering::SeqCst) == 0);
    let openstack = connected(&server).await.behind(&Gate::new(Arc::new(SameCluster), fence));
    let id = "0a000000-0000-4000-8000-00000000000a";
    let error = openstack.octavia.delete_load_balancer(id, true).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("another instance might be the leader"), "{source}");
    let requests = server.received_requests().await.unwrap();
    assert!(requests.iter().all(|request| request.method != "DELETE"), "{requests:?}");
}
