//! Whether nothing is written of Services: not in the cloud, not in their objects, and no Event about them.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::kubernetes::api::Kubernetes;
use crate::openstack::writes::Writes;
use crate::stage::Stage;

/// What there is at a moment.
pub(crate) struct Untouched {
    api: Kubernetes,
    writes: Writes,
    versions: BTreeSet<String>,
    events: BTreeSet<String>,
}

impl Untouched {
    /// From now on.
    ///
    /// # Errors
    /// Cloud or cluster cannot be looked at.
    pub(crate) fn from_now(stage: &Stage) -> Result<Self> {
        let api = stage.api()?;
        let (versions, events) = (versions(&api)?, events(&api)?);
        Ok(Self { api, writes: Writes::from_now(&stage.cloud.folders)?, versions, events })
    }

    /// Until now.
    ///
    /// # Errors
    /// It names what was written.
    pub(crate) fn until_now(&self) -> Result<()> {
        self.writes.none()?;
        let versions = versions(&self.api)?;
        let written: Vec<_> = versions.difference(&self.versions).collect();
        ensure!(written.is_empty(), "written in Services: {written:?}");
        let events = events(&self.api)?;
        let told: Vec<_> = events.difference(&self.events).collect();
        ensure!(told.is_empty(), "Events of Services: {told:?}");
        Ok(())
    }
}

/// All Services, each with its version and its status.
fn versions(api: &Kubernetes) -> Result<BTreeSet<String>> {
    let line = |service: &Value| {
        let about = &service["metadata"];
        format!("{} {} {}", about["name"], about["resourceVersion"], service["status"])
    };
    Ok(items(api, "/api/v1/services")?.iter().map(line).collect())
}

/// The Events about Services, with how often each was told.
fn events(api: &Kubernetes) -> Result<BTreeSet<String>> {
    let about = |event: &&Value| event["regarding"]["kind"] == "Service";
    let line = |event: &Value| {
        format!("{} {} {}", event["reason"], event["note"], event["metadata"]["resourceVersion"])
    };
    Ok(items(api, "/apis/events.k8s.io/v1/events")?.iter().filter(about).map(line).collect())
}

fn items(api: &Kubernetes, path: &str) -> Result<Vec<Value>> {
    Ok(api.get(path)?["items"].as_array().cloned().unwrap_or_default())
}
