//! All statuses that Services have had, as a watch shows them: what a reader of the last one misses.

use std::io::BufRead as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::api::{Kubernetes, NAMESPACE};

/// One version of a Service.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    /// When it was received.
    pub at: Instant,
    /// The name of the Service.
    pub service: String,
    /// What its status lists.
    pub ingress: Value,
}

impl Version {
    /// Whether nodes short-circuit an address of it.
    pub(crate) fn is_short_circuited(&self) -> bool {
        let entries = self.ingress.as_array().map(Vec::as_slice).unwrap_or_default();
        entries.iter().any(|entry| entry["ip"].is_string() && entry["ipMode"] != "Proxy")
    }
}

/// The versions since it was begun. The watch goes on as long as the server lets it.
pub(crate) struct History {
    versions: Arc<Mutex<Vec<Version>>>,
}

impl History {
    /// Begins with what there is now, which counts as the first version of each.
    pub(crate) fn begin(api: &Kubernetes) -> Result<Self> {
        let path = format!("/api/v1/namespaces/{NAMESPACE}/services");
        let list = api.get(&path)?;
        let now = list["metadata"]["resourceVersion"].as_str().context("the list has no version")?.to_owned();
        let services = list["items"].as_array().context("the list has no items")?;
        let versions = Arc::new(Mutex::new(services.iter().map(version).collect::<Vec<_>>()));
        let changes = api.watch(&format!("{path}?watch=1&resourceVersion={now}"))?;
        let received = Arc::clone(&versions);
        std::thread::spawn(move || {
            for line in changes.lines().map_while(Result::ok) {
                let event: Value = serde_json::from_str(&line).unwrap_or_default();
                received.lock().unwrap_or_else(PoisonError::into_inner).push(version(&event["object"]));
            }
        });
        Ok(Self { versions })
    }

    /// The versions that came since a moment.
    pub(crate) fn since(&self, moment: Instant) -> Vec<Version> {
        let versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        versions.iter().filter(|version| version.at >= moment).cloned().collect()
    }

    /// How long each short circuit of a Service lasted that began since a moment.
    pub(crate) fn blinks(&self, service: &str, moment: Instant) -> Result<Vec<Duration>> {
        let (mut began, mut blinks) = (None, Vec::new());
        for version in self.since(moment).iter().filter(|version| version.service == service) {
            if version.is_short_circuited() {
                began = began.or(Some(version.at));
            } else if let Some(began) = began.take() {
                blinks.push(version.at.duration_since(began));
            }
        }
        ensure!(began.is_none(), "{service} is still short-circuited");
        Ok(blinks)
    }
}

fn version(service: &Value) -> Version {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Version {
        at: Instant::now(),
        service: text(&service["metadata"]["name"]),
        ingress: service["status"]["loadBalancer"]["ingress"].clone(),
    }
}
