//! Writing the condition `NetworkUnavailable`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use openstack_ccm_core::route::condition::{NETWORK_UNAVAILABLE, Network};
use openstack_ccm_runtime::call::CallError;
use serde_json::json;

use crate::nodes::{CONFLICT_DELAY, MAX_TRIES, NodeWriter};

/// Writes the condition of a node. A deleted node needs none.
pub(super) async fn write(writer: &NodeWriter, node: &str, network: Network) -> Result<(), CallError> {
    let mut tries = 1;
    loop {
        let ([status, reason, message], now) = (network.texts(), Time(jiff::Timestamp::now()));
        let condition = json!({"type": NETWORK_UNAVAILABLE, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": now, "lastTransitionTime": now});
        match writer.patch_condition(node, &condition).await {
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) if error.is_conflict() && tries < MAX_TRIES => {
                tries += 1;
                tokio::time::sleep(CONFLICT_DELAY).await;
            }
            result => return result,
        }
    }
}
