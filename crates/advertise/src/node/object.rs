//! What a Node object shows. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Node;

use super::evidence::{Shown, guess};
use super::verdict::NodeVerdict;

/// For how long a node must have been unreachable to count no longer. Kubernetes evicts its pods after 5 minutes
/// (`tolerationSeconds` of the taint `node.kubernetes.io/unreachable`); with as much again for those that tolerate it a
/// little longer, no client is left there.
const UNREACHABLE_FOR_LONG: jiff::SignedDuration = jiff::SignedDuration::from_mins(10);

/// Since when nothing has been heard of a node's kubelet: the transition of the condition `Ready` to `Unknown`.
pub fn unreachable_since(node: &Node) -> Option<jiff::Timestamp> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready")?;
    let since = ready.last_transition_time.as_ref()?;
    (ready.status == "Unknown").then_some(since.0)
}

/// Whether a node has been unreachable for so long that no client is left there.
pub fn is_unreachable_for_long(since: Option<jiff::Timestamp>, now: jiff::Timestamp) -> bool {
    since.is_some_and(|since| now.duration_since(since) >= UNREACHABLE_FOR_LONG)
}

/// What a node's images, annotations and kubelet tell of its service proxy.
pub fn guess_of(node: &Node) -> NodeVerdict {
    let status = node.status.as_ref();
    let info = status.and_then(|status| status.node_info.as_ref());
    let images = status.and_then(|status| status.images.as_deref()).unwrap_or_default();
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    let labels = node.metadata.labels.iter().flatten();
    let annotations = node.metadata.annotations.iter().flat_map(BTreeMap::keys);
    guess(&Shown {
        kubelet_version: info.map_or("", |info| &info.kubelet_version),
        operating_system: info.map_or("", |info| &info.operating_system),
        labels: labels.map(|(key, value)| (key.as_str(), value.as_str())).collect(),
        annotation_keys: annotations.map(String::as_str).collect(),
        taint_keys: taints.iter().map(|taint| taint.key.as_str()).collect(),
        image_names: images
            .iter()
            .flat_map(|image| image.names.iter().flatten())
            .map(String::as_str)
            .collect(),
        image_count: images.len(),
    })
}
