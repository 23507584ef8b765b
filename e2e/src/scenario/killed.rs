//! The controller is killed at random moments, twenty times, while Services come, change and go.

use std::time::Duration;

use anyhow::{Result, ensure};
use fastrand::Rng;
use serde_json::json;

use super::steps::{self, Reach, clients_inside, green, published_through};
use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::objects::{ServiceSketch, delete_service};
use crate::machine::say;
use crate::machine::wait::until;
use crate::network::{NODES, NodePlace};
use crate::openstack::tree::Tree;
use crate::stage::Stage;

const SCENARIO: &str = "9 killed";
const SERVICES: [&str; 2] = ["shaken-a", "shaken-b"];
const ROUNDS: u32 = 20;
const PLACES: [NodePlace; 2] = [NODES[0], NODES[1]];
/// Longest life of a controller.
const LIFE_MILLISECONDS: u64 = 4000;

/// The whole scenario on the present cluster.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    stage.stop_controller()?;
    // Without the lease a new controller works at once, so that each round has something to interrupt.
    stage.cluster()?.launch.flags = vec!["--leader-elect=false".into()];
    let seed = std::env::var("E2E_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| fastrand::u64(..));
    say(&format!("     seed of the kills: E2E_SEED={seed}"));
    stage.check(SCENARIO, &format!("{ROUNDS} kills, seed {seed}"), |stage| {
        shake(stage, &mut Rng::with_seed(seed))
    });
    stage.check(SCENARIO, "clean-up", |stage| steps::release(stage, &SERVICES));
    stage.stop_controller()?;
    stage.cluster()?.launch.flags.clear();
    Ok(())
}

fn shake(stage: &mut Stage, random: &mut Rng) -> Result<String> {
    let api = stage.api()?;
    for _ in 0..ROUNDS {
        change(&api, random)?;
        let controller = stage.cluster()?.launch.start_at_once()?;
        // The moment of the kill is what this scenario varies.
        std::thread::sleep(Duration::from_millis(random.u64(0..LIFE_MILLISECONDS)));
        controller.kill()?;
    }
    stage.start_controller()?;
    let mut seen = Vec::new();
    for service in SERVICES {
        seen.push(agrees(stage, service)?);
    }
    Ok(format!("after {ROUNDS} kills: {}", seen.join("; ")))
}

/// One change by a user: a Service comes or goes, gets other ports or another version of the PROXY protocol.
fn change(api: &Kubernetes, random: &mut Rng) -> Result<()> {
    let service = SERVICES[random.usize(..SERVICES.len())];
    let answer = api.raw(&Kubernetes::service_path(service))?;
    if answer.status == 404 {
        return ServiceSketch::proxy(service, "v1", true).create(api, &PLACES);
    }
    if answer.body["metadata"]["deletionTimestamp"].is_string() {
        return Ok(());
    }
    match random.u8(..4) {
        0 => delete_service(api, service),
        1 => {
            let mut sketch = ServiceSketch::proxy(service, "v1", true);
            sketch.ports = if random.bool() { vec![80, 8080] } else { vec![80] };
            sketch.update(api, &PLACES)
        }
        _ => {
            let version = if random.bool() { "v1" } else { "v2" };
            let annotations = json!({"loadbalancer.openstack.org/proxy-protocol": version});
            api.patch(&Kubernetes::service_path(service), &json!({"metadata": {"annotations": annotations}}))
                .map(drop)
        }
    }
}

/// One load balancer for the Service, with its ports, and pods reach it.
fn agrees(stage: &Stage, service: &str) -> Result<String> {
    let api = stage.api()?;
    until(&format!("{service} is as it should be"), Duration::from_secs(180), || {
        let answer = api.raw(&Kubernetes::service_path(service))?;
        if answer.status == 404 {
            // Its deletion has come to its end, or it never was: from here on it is wanted.
            ServiceSketch::proxy(service, "v1", true).create(&api, &PLACES)?;
        }
        let object = answer.success()?;
        ensure!(object["metadata"]["deletionTimestamp"].is_null(), "it is about to go");
        let ports = object["spec"]["ports"].as_array().cloned().unwrap_or_default();
        let mut wanted: Vec<u64> = ports.iter().filter_map(|port| port["port"].as_u64()).collect();
        wanted.sort_unstable();
        let tree = Tree::of(&stage.cloud.user, service)?;
        ensure!(tree.ports() == wanted, "listeners {:?} in place of {wanted:?}", tree.ports());
        tree.settled()
    })?;
    let address = published_through(&api, service)?;
    Ok(format!("{service} {}", green(&address, &clients_inside(stage, Reach::Internal))?))
}
