//! Tokens that end.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use openstack_ccm_openstack_sim::Sim;

async fn lists_networks(sim: &Sim, token: &str) -> u16 {
    let request = Request::builder().uri("/v2.0/networks").header("x-auth-token", token);
    sim.call("network", request.body(Bytes::new()).unwrap()).await.unwrap().status().as_u16()
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
