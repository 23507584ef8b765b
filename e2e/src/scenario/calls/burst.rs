//! Many Services at once: when the first of them is served, and when half of them are. Octavia needs minutes for it, so it is
//! looked at only where `E2E_BURST` says how many (`E2E_BURST=1,5,15,30` makes four bursts one after another).

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::meter::{Meter, Rest};
use super::{PLACES, SCENARIO, sketch};
use crate::kubernetes::api::{Kubernetes, NAMESPACE};
use crate::report::say;
use crate::scenario::steps::remove;
use crate::stage::Stage;
use crate::wait::until;

/// Longest time until all of them are served.
const PATIENCE: Duration = Duration::from_secs(600);

/// Makes the bursts that are asked for.
///
/// # Errors
/// `E2E_BURST` is no list of numbers.
pub(super) fn run(stage: &mut Stage, meter: &Meter) -> Result<()> {
    let Ok(counts) = std::env::var("E2E_BURST") else { return Ok(()) };
    for count in counts.split(',') {
        let count: usize = count.trim().parse().with_context(|| format!("E2E_BURST={counts}"))?;
        let names: Vec<String> = (1..=count).map(|number| format!("burst-{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let target = (4 * count).max(8).to_string();
        stage.measure(SCENARIO, &format!("create {count} at once"), |stage| {
            meter.measure(stage, &target, Rest::Calm, |stage| create(&stage.api()?, &names))
        });
        let target = (5 * count).div_ceil(2).max(4).to_string();
        stage.measure(SCENARIO, &format!("delete {count} at once"), |stage| {
            meter.measure(stage, &target, Rest::Calm, |stage| remove(stage, &names))
        });
    }
    Ok(())
}

/// Creates the Services and tells when each of them was published.
fn create(api: &Kubernetes, names: &[&str]) -> Result<()> {
    let began = Instant::now();
    for name in names {
        sketch(name).create(api, &PLACES)?;
    }
    let mut times = Vec::new();
    until("all Services are published", PATIENCE, || {
        let served = served(api)?;
        times.resize(served.max(times.len()), began.elapsed());
        anyhow::ensure!(served >= names.len(), "{served} of {} are", names.len());
        Ok(())
    })?;
    let seconds: Vec<String> = times.iter().map(|time| format!("{:.1}", time.as_secs_f32())).collect();
    say(&format!("     {} Services were served after {} s", names.len(), seconds.join(", ")));
    Ok(())
}

fn served(api: &Kubernetes) -> Result<usize> {
    let list = api.get(&format!("/api/v1/namespaces/{NAMESPACE}/services"))?;
    let all = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    Ok(all.iter().filter(|service| service["status"]["loadBalancer"]["ingress"].is_array()).count())
}
