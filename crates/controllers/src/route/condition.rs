//! Writing the condition `NetworkUnavailable`.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use openstack_ccm_core::route::condition::{NETWORK_UNAVAILABLE, Network};
use openstack_ccm_runtime::call::CallError;
use serde_json::json;

use crate::nodes::NodeWriter;

/// Tries to write a condition against other writers.
const TRIES: u32 = 5;
/// Delay between two tries.
const DELAY: Duration = Duration::from_millis(100);

/// Writes the condition of a node. A node that is gone needs none.
pub(super) async fn write(writer: &NodeWriter, node: &str, network: Network) -> Result<(), CallError> {
    let mut tries = 1;
    loop {
        let ([status, reason, message], now) = (network.texts(), Time(jiff::Timestamp::now()));
        let condition = json!({"type": NETWORK_UNAVAILABLE, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": now, "lastTransitionTime": now});
        match writer.patch_condition(node, &condition).await {
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) if error.is_conflict() && tries < TRIES => {
                tries += 1;
                tokio::time::sleep(DELAY).await;
            }
            result => return result,
        }
    }
}
