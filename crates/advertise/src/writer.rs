//! The calls by which Service objects are read and their status is written: merge patches of the status sub-resource, and
//! a get.
//!
//! A merge patch of the status sub-resource writes metadata as well and ignores `spec`, so that one permission,
//! `patch` on `services/status`, is enough, and nothing that a user specified can be damaged. Only the keys that are
//! ours are sent: what others wrote stays.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_runtime::call::{CallError, call};
use openstack_ccm_runtime::listed::{self, Interest};
use serde_json::Value;

/// Reads and writes Service objects.
#[derive(Clone)]
pub struct StatusWriter {
    client: Client,
    limit: Duration,
    manager: &'static str,
    interest: Interest,
}

impl StatusWriter {
    /// Creates a writer that gives each call at most `limit`. The API server records `manager` as the field manager of the
    /// writes (`metadata.managedFields`).
    pub fn new(client: Client, limit: Duration, manager: &'static str) -> Self {
        Self { client, limit, manager, interest: Interest::in_none() }
    }

    /// Returns the writer with answers to patches that keep the metadata of `interest`.
    #[must_use]
    pub fn interested(self, interest: Interest) -> Self {
        Self { interest, ..self }
    }

    fn api(&self, key: &ServiceKey) -> Api<Service> {
        Api::namespaced(self.client.clone(), &key.namespace)
    }

    /// Returns the field manager of the writes.
    pub(crate) fn manager(&self) -> &'static str {
        self.manager
    }

    /// Returns the last writer of a Service's status, of the managers that `counts` accepts.
    pub async fn last_status_writer(
        &self,
        key: &ServiceKey,
        counts: fn(&str) -> bool,
    ) -> Result<Option<String>, CallError> {
        let found = call(self.limit, self.api(key).get_opt(&key.name)).await?;
        Ok(found.and_then(|service| last_status_writer(&service, counts)))
    }

    /// Reads the Service from the API server, not from a cache; `None` if it does not exist.
    pub async fn get(&self, key: &ServiceKey) -> Result<Option<Arc<Service>>, CallError> {
        let found = call(self.limit, self.api(key).get_opt(&key.name)).await?;
        Ok(found.map(stripped))
    }

    /// Applies a merge patch to the status sub-resource and returns the new state, as it would be listed.
    pub async fn patch_status(&self, key: &ServiceKey, patch: &Value) -> Result<Arc<Service>, CallError> {
        let parameters = self.parameters(false);
        let api = Api::<listed::Service>::namespaced(self.client.clone(), &key.namespace);
        let patch = Patch::Merge(patch);
        let patching = self.interest.clone().during(api.patch_status(&key.name, &parameters, &patch));
        call(self.limit, patching).await.map(|answer| Arc::new(answer.into()))
    }

    /// Applies a JSON patch to the status sub-resource and returns the new state. A patch whose test fails is refused as
    /// invalid ([`CallError::is_invalid`]).
    pub async fn json_patch_status(
        &self,
        key: &ServiceKey,
        patch: json_patch::Patch,
    ) -> Result<Service, CallError> {
        let parameters = self.parameters(false);
        let api = self.api(key);
        call(self.limit, api.patch_status(&key.name, &parameters, &Patch::<()>::Json(patch))).await
    }

    /// Returns the result of a merge patch of the status sub-resource, without storing it. Waits at most `limit`.
    pub(crate) async fn dry_run_status(
        &self,
        key: &ServiceKey,
        patch: &Value,
        limit: Duration,
    ) -> Result<Service, CallError> {
        let parameters = self.parameters(true);
        let api = self.api(key);
        call(limit, api.patch_status(&key.name, &parameters, &Patch::Merge(patch))).await
    }

    fn parameters(&self, dry_run: bool) -> PatchParams {
        PatchParams { dry_run, field_manager: Some(self.manager.to_owned()), ..PatchParams::default() }
    }
}

fn last_status_writer(service: &Service, counts: fn(&str) -> bool) -> Option<String> {
    let entries = service.metadata.managed_fields.as_deref().unwrap_or_default();
    let of_status = entries.iter().filter(|entry| entry.subresource.as_deref() == Some("status"));
    of_status
        .filter(|entry| entry.manager.as_deref().is_some_and(counts))
        .max_by_key(|entry| entry.time.as_ref().map(|time| time.0))
        .and_then(|entry| entry.manager.clone())
}

/// Drops the two largest parts of metadata that are never read.
fn stripped(mut service: Service) -> Arc<Service> {
    service.metadata.managed_fields = None;
    if let Some(annotations) = &mut service.metadata.annotations {
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
    Arc::new(service)
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn the_last_writer_of_a_status_is_named() {
        let service: Service = from_value(json!({"metadata": {"managedFields": [
            {"manager": "ours", "operation": "Update", "subresource": "status", "time": "2026-01-02T00:00:00Z"},
            {"manager": "other", "operation": "Update", "subresource": "status", "time": "2026-01-01T00:00:00Z"},
            {"manager": "helm", "operation": "Update", "time": "2026-01-03T00:00:00Z"},
        ]}}))
        .unwrap();
        assert_eq!(last_status_writer(&service, |_| true).as_deref(), Some("ours"));
        assert_eq!(last_status_writer(&service, |manager| manager != "ours").as_deref(), Some("other"));
        assert_eq!(last_status_writer(&Service::default(), |_| true), None);
    }
}
