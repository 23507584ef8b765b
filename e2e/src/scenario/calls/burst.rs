//! Many Services at once: when each of them is served. Octavia needs minutes for it, so it is looked at only where that is asked for.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::kubernetes::api::{Kubernetes, NAMESPACE};
use crate::kubernetes::objects::ServiceSketch;
use crate::machine::wait::until;
use crate::network::{NODES, NodePlace};

/// Longest time until all of them are served.
const PATIENCE: Duration = Duration::from_secs(600);

/// Where their pods are.
pub(super) const PLACES: [NodePlace; 2] = [NODES[0], NODES[1]];

/// A Service of two ports.
pub(super) fn sketch(name: &str) -> ServiceSketch {
    let mut sketch = ServiceSketch::proxy(name, "v2", true);
    sketch.ports = vec![80, 443];
    sketch
}

/// How many Services there are in each burst: `E2E_BURST=1,5,15,30` makes four bursts one after another.
pub(super) fn asked_for(default: &str) -> Result<Vec<usize>> {
    let counts = std::env::var("E2E_BURST").unwrap_or_else(|_| default.to_owned());
    let counts = counts.split(',').map(str::trim).filter(|count| !count.is_empty());
    counts.map(|count| count.parse().with_context(|| format!("E2E_BURST has {count}"))).collect()
}

/// Creates the Services at once and returns after which time each of them was published.
pub(super) fn create(api: &Kubernetes, names: &[&str]) -> Result<Vec<Duration>> {
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
    Ok(times)
}

fn served(api: &Kubernetes) -> Result<usize> {
    let list = api.get(&format!("/api/v1/namespaces/{NAMESPACE}/services"))?;
    let all = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    Ok(all.iter().filter(|service| service["status"]["loadBalancer"]["ingress"].is_array()).count())
}
