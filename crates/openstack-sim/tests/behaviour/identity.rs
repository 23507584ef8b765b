//! Tokens that end, trusts, application credentials.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use openstack_ccm_openstack_sim::{PASSWORD, Sim};
use serde_json::{Value, json};

async fn with_token(
    sim: &Sim,
    service: &str,
    method: &str,
    path: &str,
    token: &str,
    body: Value,
) -> Response<Bytes> {
    let request = Request::builder().method(method).uri(path).header("x-auth-token", token);
    sim.call(service, request.body(Bytes::from(body.to_string())).unwrap()).await.unwrap()
}

async fn lists_networks(sim: &Sim, token: &str) -> u16 {
    with_token(sim, "network", "GET", "/v2.0/networks", token, Value::Null).await.status().as_u16()
}

fn password(user: &str) -> Value {
    json!({"methods": ["password"],
           "password": {"user": {"name": user, "password": PASSWORD, "domain": {"id": "default"}}}})
}

async fn log_in(sim: &Sim, auth: Value) -> Response<Bytes> {
    with_token(sim, "identity", "POST", "/v3/auth/tokens", "", json!({"auth": auth})).await
}

fn token_of(response: &Response<Bytes>) -> String {
    response.headers()["x-subject-token"].to_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_token_ends_after_its_lifetime() {
    let sim = Sim::builder().token_lifetime(Duration::from_secs(60)).build();
    let token = sim.token();
    tokio::time::advance(Duration::from_secs(59)).await;
    assert_eq!(lists_networks(&sim, &token).await, 200);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(lists_networks(&sim, &token).await, 401);
    assert_eq!(lists_networks(&sim, &sim.token()).await, 200);
}

#[tokio::test(start_paused = true)]
async fn revoked_tokens_are_refused_everywhere() {
    let sim = Sim::new();
    let token = sim.token();
    sim.revoke_tokens();
    assert_eq!(lists_networks(&sim, &token).await, 401);
    let catalog = with_token(&sim, "identity", "GET", "/v3/auth/catalog", &token, Value::Null).await;
    assert_eq!(catalog.status(), 401);
}

#[tokio::test(start_paused = true)]
async fn a_trustee_acts_for_the_trustor_with_the_trusted_roles() {
    let sim = Sim::new();
    let unscoped = log_in(&sim, json!({"identity": password("stranger")})).await;
    let body: Value = serde_json::from_slice(unscoped.body()).unwrap();
    let trustee = &body["token"]["user"]["id"];
    let trust = json!({"trust": {
        "trustor_user_id": sim.seed().user_id, "trustee_user_id": trustee, "project_id": sim.seed().project_id,
        "impersonation": true, "roles": [{"name": "member"}, {"name": "load-balancer_member"}],
    }});
    let (status, created) = sim.user().post("identity", "/v3/OS-TRUST/trusts", &trust);
    assert_eq!(status, 201);
    let scope = json!({"OS-TRUST:trust": {"id": created["trust"]["id"]}});
    let scoped = log_in(&sim, json!({"identity": password("stranger"), "scope": scope})).await;
    let body: Value = serde_json::from_slice(scoped.body()).unwrap();
    assert_eq!(body["token"]["project"]["id"], json!(sim.seed().project_id));
    let path = "/v2.0/networks?name=cluster";
    let list = with_token(&sim, "network", "GET", path, &token_of(&scoped), Value::Null).await;
    let list: Value = serde_json::from_slice(list.body()).unwrap();
    assert_eq!(list["networks"][0]["id"], json!(sim.seed().network_id));
}

#[tokio::test(start_paused = true)]
async fn deleting_an_application_credential_ends_its_tokens() {
    let sim = Sim::new();
    let path = format!("/v3/users/{}/application_credentials", sim.seed().user_id);
    let body = json!({"application_credential": {"name": "ccm", "secret": "s"}});
    let (_, created) = sim.user().post("identity", &path, &body);
    let id = created["application_credential"]["id"].as_str().unwrap().to_owned();
    let identity = json!({"methods": ["application_credential"],
                          "application_credential": {"id": id, "secret": "s"}});
    let token = token_of(&log_in(&sim, json!({"identity": identity})).await);
    assert_eq!(lists_networks(&sim, &token).await, 200);
    assert_eq!(sim.user().delete("identity", &format!("{path}/{id}")).0, 204);
    assert_eq!(lists_networks(&sim, &token).await, 401);
}
