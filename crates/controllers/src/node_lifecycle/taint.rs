//! The taint of a node whose machine is shut down.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Taint;
use openstack_ccm_core::instance::{NO_SCHEDULE, SHUT_DOWN_TAINT};
use serde_json::{Value, json};

use crate::nodes::{NodeObject, NodeWriter, is_shutdown_taint, until_accepted};
use openstack_ccm_runtime::call::CallError;

/// Gives a node the taints that are `wanted`, unless it has them already. Returns whether they were written.
pub(super) async fn write(
    writer: &NodeWriter,
    node: &Arc<NodeObject>,
    wanted: fn(&NodeObject) -> Vec<Taint>,
) -> Result<bool, CallError> {
    let written = until_accepted(writer, Arc::clone(node), |node| async move {
        let taints = wanted(&node);
        if taints == node.taints {
            return Ok(None);
        }
        writer.patch(&node.name, &patch(&node, &taints)).await.map(Some)
    })
    .await?;
    Ok(written.is_some())
}

/// The list has to be replaced as a whole, so the version that was read goes with it.
fn patch(node: &NodeObject, taints: &[Taint]) -> Value {
    let taints = if taints.is_empty() { Value::Null } else { json!(taints) };
    json!({"metadata": {"resourceVersion": node.resource_version}, "spec": {"taints": taints}})
}

/// The taints of a node with that of a machine that is shut down.
pub(super) fn with_taint(node: &NodeObject) -> Vec<Taint> {
    let wanted =
        Taint { key: SHUT_DOWN_TAINT.to_owned(), effect: NO_SCHEDULE.to_owned(), ..Taint::default() };
    let mut taints = node.taints.clone();
    match taints.iter_mut().find(|taint| is_shutdown_taint(taint)) {
        Some(present) if present.value.as_deref().unwrap_or_default().is_empty() => {}
        Some(present) => *present = wanted,
        None => taints.push(wanted),
    }
    taints
}

pub(super) fn without_taint(node: &NodeObject) -> Vec<Taint> {
    node.taints.iter().filter(|taint| !is_shutdown_taint(taint)).cloned().collect()
}
