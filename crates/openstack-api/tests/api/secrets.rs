//! Passwords and tokens appear in no log, no error and no `Debug`, whatever happens.

use std::io::Write;
use std::sync::{Arc, Mutex};

use openstack_ccm_openstack_api::client::{ClientSettings, RetryPolicy};
use openstack_ccm_openstack_api::identity::{
    ApplicationCredentialName, AuthOptions, Credentials, InDomain, Scope,
};
use openstack_ccm_openstack_api::octavia::{CreateLoadBalancer, LoadBalancerFilter};
use openstack_ccm_openstack_api::{SessionTransport, connect};
use serde_json::json;
use tracing_subscriber::EnvFilter;
use wiremock::matchers::{method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::keystone::{demo, project, token_document};
use crate::recorded::exchange;

const PASSWORD: &str = "pass-phrase-of-gold";
const TOKEN: &str = "gAAAAAB-token-of-silver";

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

fn assert_clean(what: &str, text: &str) {
    for secret in [PASSWORD, TOKEN] {
        assert!(!text.contains(secret), "{what} shows a secret:\n{text}");
    }
}

/// Everything of a whole run at the finest level, of this crate and of those below it. The stand-in server in the same process
/// is left out: it is not part of the product and logs what it receives.
#[tokio::test]
async fn no_secret_is_logged_in_a_whole_run() {
    let log = Log::default();
    let writer = log.clone();
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new("trace,wiremock=off"))
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .init();
    let server = MockServer::start().await;
    let answer = ResponseTemplate::new(201)
        .insert_header("X-Subject-Token", TOKEN)
        .set_body_json(token_document(&server.uri()));
    Mock::given(method("POST")).and(path("/v3/auth/tokens")).respond_with(answer).mount(&server).await;
    let refusal = exchange("identity", "octavia with a revoked token").response.unwrap();
    Mock::given(method("GET"))
        .respond_with(ResponseTemplate::new(401).set_body_json(refusal))
        .mount(&server)
        .await;
    let created =
        json!({ "loadbalancer": {"id": "l", "provisioning_status": "ACTIVE", "operating_status": "ONLINE"} });
    Mock::given(method("POST"))
        .respond_with(ResponseTemplate::new(201).set_body_json(created))
        .with_priority(10)
        .mount(&server)
        .await;

    let credentials = Credentials::Password { user: demo(), password: PASSWORD.into() };
    let options = AuthOptions::new(server.uri(), credentials, project());
    let settings = ClientSettings { retry: RetryPolicy::never(), ..ClientSettings::default() };
    let openstack = connect(&options, settings).await.unwrap();
    let new = CreateLoadBalancer { name: "visible-name".to_owned(), ..CreateLoadBalancer::default() };
    openstack.octavia.create_load_balancer(new).await.unwrap();
    let error = openstack.octavia.list_load_balancers(&LoadBalancerFilter::default()).await.unwrap_err();

    let text = log.text();
    assert!(
        text.contains("visible-name") && text.contains("loadbalancer_create"),
        "nothing was logged:\n{text}"
    );
    assert_clean("the log", &text);
    assert_clean("the error", &format!("{error} {error:?}"));
    assert_clean("the facade", &format!("{openstack:?}"));
    let transport = SessionTransport::connect(&options).await.unwrap();
    assert_clean("the transport", &format!("{transport:?} {:?}", transport.keystone()));
    assert_clean("the session", &format!("{:?}", transport.session()));
    let token = transport.keystone().token().await.unwrap();
    assert_clean("the token", &format!("{token:?}"));
}

#[test]
fn options_show_no_secret() {
    let credentials = [
        Credentials::Password { user: InDomain::Id("u".to_owned()), password: PASSWORD.into() },
        Credentials::ApplicationCredential {
            name: ApplicationCredentialName::Id("a".to_owned()),
            secret: PASSWORD.into(),
        },
        Credentials::Token { token: TOKEN.into() },
    ];
    for credentials in credentials {
        let options = AuthOptions::new("https://keystone.example", credentials, Scope::Unscoped);
        assert_clean("the options", &format!("{options:?} {options:#?}"));
    }
}

#[tokio::test]
async fn a_refused_log_in_shows_no_secret() {
    let server = MockServer::start().await;
    let quoting = json!({ "error": {"code": 400, "title": "Bad Request",
        "message": format!("5 is not of type 'string'\n\nOn instance['password']:\n    '{PASSWORD}'")} });
    Mock::given(method("POST"))
        .respond_with(ResponseTemplate::new(400).set_body_json(quoting))
        .mount(&server)
        .await;
    let credentials = Credentials::Password { user: demo(), password: PASSWORD.into() };
    let options = AuthOptions::new(server.uri(), credentials, project());
    let error = connect(&options, ClientSettings::default()).await.unwrap_err();
    assert_clean("the error", &format!("{error} {error:?}"));
}
