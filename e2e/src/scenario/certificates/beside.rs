//! The Service belongs to the controller of another cloud, which knows no `ipMode`: a policy of the API server helps.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::SCENARIO;
use super::issuance::Issuance;
use super::own::released;
use crate::artifacts::Framework;
use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::manifests;
use crate::kubernetes::overlay::policy;
use crate::network::NODES;
use crate::scenario::overlay::owned::{DIGITAL_OCEAN, start};
use crate::scenario::steps::{Reach, client_outside, clients_inside, green, published_through, red};
use crate::stage::Stage;
use crate::wait::soon;

const SERVICE: &str = DIGITAL_OCEAN.name;
/// Names of which the first is asked for without the policy, and the second with it.
const NAMES: [&str; 2] = ["shop.e2e.test", "fresh.e2e.test"];

/// All cases.
///
/// # Errors
/// A part cannot be set up.
pub(super) fn run(stage: &mut Stage, issuance: &mut Issuance) -> Result<()> {
    let api = stage.api()?;
    DIGITAL_OCEAN.service(false).create(&api, &[NODES[0], NODES[1]])?;
    stage.start_controller()?;
    let address = published_through(&api, SERVICE)?;
    stage.stop_controller()?;
    let mut owner = start(stage, Framework::V0_36)?;
    owner.looked(&[SERVICE], 1)?;
    stage.check(SCENARIO, "digitalocean, its controller alone", |stage| {
        published(&api, &address, "VIP")?;
        let pods = red(stage, &address, &clients_inside(stage, Reach::Floating))?;
        green(&address, &[client_outside(Reach::Floating)]).context("the client outside")?;
        let seen = issuance.is_red(stage, NAMES[0], &address)?;
        Ok(format!("{SERVICE} {}: {seen}; other pods: {pods}; outside is well", api.ingress(SERVICE)?))
    });
    for object in policy(stage.program(), &["--cloud=digitalocean"])? {
        manifests::apply(&api, &object)?;
    }
    stage.check(SCENARIO, "digitalocean, the same Certificate with the policy", |stage| {
        soon("an empty write gives the Service the mode", || {
            api.patch(&format!("{}/status", Kubernetes::service_path(SERVICE)), &json!({}))?;
            published(&api, &address, "Proxy")
        })?;
        let since = Instant::now();
        Ok(format!("GREEN: {}: {}", api.ingress(SERVICE)?, issuance.is_green(stage, NAMES[0], since)?))
    });
    stage.check(SCENARIO, "digitalocean, a fresh Certificate with the policy", |stage| {
        let before = stage.ingress.broken_headers();
        let since = Instant::now();
        issuance.request(stage, NAMES[1], &address)?;
        let seen = issuance.is_green(stage, NAMES[1], since)?;
        let broken = stage.ingress.broken_headers() - before;
        ensure!(broken == 0, "nginx logs `broken header` {broken} times");
        Ok(format!("GREEN: {seen}; no `broken header`"))
    });
    owner.stop()?;
    stage.start_controller()?;
    stage.check(SCENARIO, "digitalocean, clean-up", |stage| released(stage, SERVICE));
    stage.stop_controller()
}

fn published(api: &Kubernetes, address: &str, mode: &str) -> Result<()> {
    let ingress = api.ingress(SERVICE)?;
    ensure!(ingress == json!([{"ip": address, "ipMode": mode}]), "{ingress}");
    Ok(())
}
