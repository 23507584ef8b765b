//! Writing the condition `NetworkUnavailable`.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use openstack_ccm_core::route::condition::{NETWORK_UNAVAILABLE, Network};
use serde_json::json;

use openstack_ccm_runtime::call::{CallError, call};

/// Tries to write a condition against other writers.
const TRIES: u32 = 5;
/// Delay between two tries.
const DELAY: Duration = Duration::from_millis(100);

/// Writes conditions of nodes.
#[derive(Clone)]
pub(super) struct ConditionWriter {
    client: Client,
    limit: Duration,
}

impl ConditionWriter {
    /// A writer that gives each call at most `limit`.
    pub(super) fn new(client: Client, limit: Duration) -> Self {
        Self { client, limit }
    }

    /// Writes the condition. A node that is gone needs none.
    pub(super) async fn write(&self, node: &str, network: Network) -> Result<(), CallError> {
        let mut tries = 1;
        loop {
            match self.patch(node, network).await {
                Err(error) if error.is_not_found() => return Ok(()),
                Err(error) if error.is_conflict() && tries < TRIES => {
                    tries += 1;
                    tokio::time::sleep(DELAY).await;
                }
                result => return result,
            }
        }
    }

    /// Conditions are merged by their type: those of others stay.
    async fn patch(&self, node: &str, network: Network) -> Result<(), CallError> {
        let now = Time(jiff::Timestamp::now());
        let patch = json!({"status": {"conditions": [{
            "type": NETWORK_UNAVAILABLE,
            "status": network.status(),
            "reason": network.reason(),
            "message": network.message(),
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }]}});
        let api: Api<Node> = Api::all(self.client.clone());
        let request =
            async { api.patch_status(node, &PatchParams::default(), &Patch::Strategic(&patch)).await };
        call(self.limit, request).await.map(drop)
    }
}
