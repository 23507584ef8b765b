//! Tokens that end.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use openstack_ccm_openstack_sim::Sim;

async fn read(sim: &Sim, service: &str, path: &str, token: &str) -> u16 {
    let request = Request::builder().uri(path).header("x-auth-token", token);
    sim.call(service, request.body(Bytes::new()).unwrap()).await.unwrap().status().as_u16()
}

async fn lists_networks(sim: &Sim, token: &str) -> u16 {
    read(sim, "network", "/v2.0/networks", token).await
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
    assert_eq!(read(&sim, "identity", "/v3/auth/catalog", &token).await, 401);
}
