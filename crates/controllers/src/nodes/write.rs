//! The calls that write Node objects: merge patches of our own fields only, with the resourceVersion that was read where a
//! list is replaced, so that no write of other clients is lost.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::NodeObject;
use crate::names::FIELD_MANAGER;
use openstack_ccm_runtime::call::{CallError, call};

/// How often a write is tried while other clients write to the Node.
pub(crate) const MAX_TRIES: u32 = 20;
/// Pause after a conflict; a random part of up to as much is added.
pub(crate) const CONFLICT_DELAY: Duration = Duration::from_millis(50);

/// Reads and writes Node objects.
#[derive(Clone)]
pub(crate) struct NodeWriter {
    api: Api<Node>,
    limit: Duration,
}

impl NodeWriter {
    /// Creates a writer that gives each call at most `limit`.
    pub(crate) fn new(client: Client, limit: Duration) -> Self {
        Self { api: Api::all(client), limit }
    }

    /// Reads the Node from the API server; `None` if it does not exist.
    pub(crate) async fn get(&self, name: &str) -> Result<Option<Arc<NodeObject>>, CallError> {
        let found = call(self.limit, self.api.get_opt(name)).await?;
        Ok(found.map(|node| Arc::new(node.into())))
    }

    /// Applies a merge patch and returns the new state.
    pub(crate) async fn patch(&self, name: &str, patch: &Value) -> Result<Arc<NodeObject>, CallError> {
        let node = call(self.limit, self.api.patch(name, &parameters(), &Patch::Merge(patch))).await?;
        Ok(Arc::new(node.into()))
    }

    /// Applies a merge patch to the status sub-resource and returns the new state.
    pub(crate) async fn patch_status(&self, name: &str, patch: &Value) -> Result<Arc<NodeObject>, CallError> {
        let node = call(self.limit, self.api.patch_status(name, &parameters(), &Patch::Merge(patch))).await?;
        Ok(Arc::new(node.into()))
    }

    /// Writes a condition. Conditions are merged by type: other types stay.
    pub(crate) async fn patch_condition(&self, name: &str, condition: &Value) -> Result<(), CallError> {
        let patch = Patch::Strategic(json!({"status": {"conditions": [condition]}}));
        call(self.limit, self.api.patch_status(name, &PatchParams::default(), &patch)).await.map(drop)
    }

    /// Deletes this Node, unless it changed or was registered anew under the same name since.
    pub(crate) async fn delete(&self, node: &NodeObject) -> Result<(), CallError> {
        let preconditions = Preconditions {
            uid: Some(node.uid.clone()),
            resource_version: Some(node.resource_version.clone()),
        };
        let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        call(self.limit, self.api.delete(&node.name, &parameters)).await.map(drop)
    }
}

fn parameters() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

/// Tries a write until the API server accepts it: first on the cached Node, and after each conflict on the Node as read
/// anew. Returns `None` if `write` has nothing to write, or if the Node no longer exists.
pub(crate) async fn until_accepted<T, W>(
    writer: &NodeWriter,
    cached: Arc<NodeObject>,
    mut write: impl FnMut(Arc<NodeObject>) -> W,
) -> Result<Option<T>, CallError>
where
    W: Future<Output = Result<Option<T>, CallError>>,
{
    let name = cached.name.clone();
    let mut node = cached;
    let mut left = MAX_TRIES;
    loop {
        left = left.saturating_sub(1);
        match write(node).await {
            Ok(result) => return Ok(result),
            Err(error) if error.is_not_found() => return Ok(None),
            // A change in between can also make the decided patch invalid.
            Err(error) if left > 0 && (error.is_conflict() || error.is_invalid()) => {}
            Err(error) => return Err(error),
        }
        tokio::time::sleep(CONFLICT_DELAY.mul_f64(1.0 + fastrand::f64())).await;
        match writer.get(&name).await? {
            Some(now) => node = now,
            None => return Ok(None),
        }
    }
}
