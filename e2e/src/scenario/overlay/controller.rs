//! The overlay on an API server that has no such policies: it writes the mode after the owner.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::owned::{CLOUDS, DIGITAL_OCEAN, NAMES, Owned, clean_up, green_with, red_alone};
use super::quiet::quiet;
use super::{SCENARIO, blink, canary};
use crate::artifacts::Framework;
use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::overlay::{OverlayLaunch, Replica};
use crate::kubernetes::owner::INGRESS;
use crate::machine::wait::soon;
use crate::scenario::steps::{self, published_through};
use crate::stage::Stage;

/// All cases, on a cluster of 1.29 with the alpha feature.
pub(super) fn run(stage: &mut Stage) -> Result<()> {
    let mut owned = Owned::prepare(stage)?;
    red_alone(stage, &owned);
    let binary = stage.program().to_owned();
    let launch = OverlayLaunch::prepare(&stage.cluster()?.plane, &binary)?;
    let flags = [CLOUDS.to_owned()];
    let mut replicas = vec![launch.start(0, &flags)?];
    green_with(stage, &owned, "overlay");
    for framework in Framework::ALL {
        let case = format!("overlay: an owner of {} is restarted under a stream of dials", framework.text());
        stage.check(SCENARIO, &case, |stage| blink::measured(stage, &mut owned, framework));
    }
    stage.check(SCENARIO, "overlay: two replicas, SIGTERM to the one that leads", |stage| {
        replaced(stage, &mut owned, &launch, &mut replicas, &flags)
    });
    stage.check(SCENARIO, "overlay: quiet beside owners of all versions", |stage| quiet(stage, &mut owned));
    stage.check(SCENARIO, "overlay: the annotation goes, and VIP comes back", |stage| {
        let (key, value) = DIGITAL_OCEAN.annotation;
        owned.annotate(DIGITAL_OCEAN.name, key, &json!("false"))?;
        let seen = owned.is_red(stage, DIGITAL_OCEAN.name)?;
        owned.annotate(DIGITAL_OCEAN.name, key, &json!(value))?;
        owned.published(DIGITAL_OCEAN.name, "Proxy")?;
        Ok(format!("RED as it is wanted: {seen}; with the annotation Proxy again"))
    });
    replicas.into_iter().try_for_each(Replica::stop)?;
    canary::run(stage, &owned, &launch)?;
    stage.check(SCENARIO, "overlay: cleanup gives back what the overlay set", |stage| {
        given_back(stage, &mut owned, &launch)
    });
    clean_up(stage, &mut owned, &NAMES);
    Ok(())
}

fn holder(api: &Kubernetes) -> Result<String> {
    let lease = api.get("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/ip-mode-overlay")?;
    let holder = lease["spec"]["holderIdentity"].as_str().filter(|holder| !holder.is_empty());
    Ok(holder.context("nobody holds the lease")?.to_owned())
}

/// The second replica takes over at once, and does the work.
fn replaced(
    stage: &mut Stage,
    owned: &mut Owned,
    launch: &OverlayLaunch,
    replicas: &mut Vec<Replica>,
    flags: &[String],
) -> Result<String> {
    replicas.push(launch.start(1, flags)?);
    let first = holder(&owned.api)?;
    let began = Instant::now();
    replicas.remove(0).stop()?;
    soon("the other replica holds the lease", || {
        let now = holder(&owned.api)?;
        ensure!(now != first, "{first} holds it");
        Ok(())
    })?;
    let took = began.elapsed();
    let since = Instant::now();
    owned.begin(stage, Framework::V0_36)?;
    for name in NAMES {
        owned.published(name, "Proxy")?;
        soon(&format!("a rewrite of {name} was seen and mended"), || {
            ensure!(!owned.history.blinks(name, since)?.is_empty(), "none so far");
            Ok(())
        })?;
    }
    Ok(format!("the other one leads after {} ms, and mends what the owner writes", took.as_millis()))
}

/// What an owner wrote itself, with the mode, stays.
fn given_back(stage: &mut Stage, owned: &mut Owned, launch: &OverlayLaunch) -> Result<String> {
    let other = NAMES[1];
    let own = r#"[{"ip": "{address}", "ipMode": "Proxy"}]"#;
    owned.begin(stage, Framework::V0_36)?;
    owned.annotate(other, INGRESS, &json!(own))?;
    soon("the owner has written the mode itself", || {
        let ingress = owned.api.ingress(other)?;
        ensure!(ingress[0]["hostname"].is_null() && ingress[0]["ipMode"] == "Proxy", "{ingress}");
        Ok(())
    })?;
    let replica = launch.start(0, &[CLOUDS.to_owned()])?;
    owned.published(DIGITAL_OCEAN.name, "Proxy")?;
    replica.stop()?;
    let said = launch.command(&["cleanup"])?;
    let restored = format!("default/{}: ipMode VIP again\n1 Service restored, 0 failed", DIGITAL_OCEAN.name);
    ensure!(said.trim() == restored, "it says {said}");
    owned.published(DIGITAL_OCEAN.name, "VIP")?;
    let address = published_through(&owned.api, other)?;
    ensure!(address == steps::address(&owned.api, other)?, "{address}");
    let again = launch.command(&["cleanup"])?;
    // A second run restores nothing, and says what it cannot see: what an admission policy wrote.
    let (counted, advice) = again.split_once('\n').unwrap_or((&again, ""));
    ensure!(counted == "0 Services restored, 0 failed", "once more it says {again}");
    ensure!(advice.starts_with("What an admission policy set is not undone here."), "it advises {advice}");
    Ok(format!("{}; {other} keeps the mode that its owner wrote", said.trim()))
}
