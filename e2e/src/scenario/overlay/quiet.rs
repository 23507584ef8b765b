//! Nobody writes a status as long as nobody changes anything.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::owned::{NAMES, Owned, start};
use crate::artifacts::Framework;
use crate::kubernetes::owner::Owner;
use crate::machine::wait::soon;
use crate::network::NODES;
use crate::stage::Stage;

/// Two resyncs of the service controller, which come every 30 s whatever its settings. `E2E_QUIET` replaces it, in seconds.
const LONG: u64 = 65;
/// How long everybody takes to come to rest after the owners have started.
const SETTLES: Duration = Duration::from_secs(5);
/// A label that takes a node out of load balancers.
const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// Owners of all versions run at the same time, and nodes change for them.
pub(super) fn quiet(stage: &mut Stage, owned: &mut Owned) -> Result<String> {
    owned.end()?;
    let mut owners: Vec<Owner> = Vec::new();
    for framework in Framework::ALL {
        let mut owner = start(stage, framework)?;
        owner.looked(&NAMES, 1)?;
        owners.push(owner);
    }
    for name in NAMES {
        owned.published(name, "Proxy")?;
    }
    std::thread::sleep(SETTLES);
    let revisions = || -> Result<Vec<String>> {
        let revision = |name: &&str| {
            let service = owned.api.service(name)?;
            Ok(service["metadata"]["resourceVersion"].as_str().context("no version")?.to_owned())
        };
        NAMES.iter().map(revision).collect()
    };
    let (before, since) = (revisions()?, Instant::now());
    exclude(stage, true)?;
    for (owner, framework) in owners.iter().zip(Framework::ALL) {
        soon("the owner follows the nodes", || {
            ensure!(owner.node_updates()? > 0, "the owner of {} has not noticed", framework.text());
            Ok(())
        })?;
    }
    exclude(stage, false)?;
    let long = Duration::from_secs(seconds()?);
    // The length of the measure, not a wait for readiness.
    std::thread::sleep(long.saturating_sub(since.elapsed()));
    let versions = owned.history.since(since);
    ensure!(versions.is_empty(), "{} versions, for example {:?}", versions.len(), versions.first());
    ensure!(revisions()? == before, "the versions of the Services are others");
    owners.into_iter().try_for_each(Owner::stop)?;
    let versions = Framework::ALL.map(Framework::text).join(", ");
    Ok(format!(
        "{} s with owners of {versions} and a change of the nodes: no write by anybody",
        long.as_secs()
    ))
}

fn seconds() -> Result<u64> {
    let Some(given) = std::env::var_os("E2E_QUIET") else { return Ok(LONG) };
    given.to_str().and_then(|text| text.parse().ok()).context("E2E_QUIET is no number of seconds")
}

fn exclude(stage: &Stage, excluded: bool) -> Result<()> {
    let value = if excluded { json!("true") } else { json!(null) };
    let change = json!({"metadata": {"labels": {EXCLUDED: value}}});
    stage.api()?.patch(&format!("/api/v1/nodes/{}", NODES[1].name()), &change).map(drop)
}
