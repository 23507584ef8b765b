//! Nodes, as they are listed and watched.

use k8s_openapi::api::core::v1::{
    self as k8s, ContainerImage, NodeAddress, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo, Taint,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use super::at_most::{AtMost, kept};
use super::limits::{MAX_FAMILIES, MAX_IMAGE_NAMES, MAX_LONG_LIST, MAX_SHORT_LIST};
use super::metadata;

/// A Node with the fields that any program here reads.
#[derive(Clone, Debug, Deserialize)]
pub struct Node {
    #[serde(deserialize_with = "metadata", default)]
    metadata: ObjectMeta,
    spec: Option<ListedNodeSpec>,
    status: Option<ListedNodeStatus>,
}

crate::listed_as!(Node, k8s::Node);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ListedNodeSpec {
    #[serde(rename = "providerID")]
    provider_id: Option<String>,
    #[serde(rename = "podCIDRs")]
    pod_cidrs: Option<AtMost<MAX_FAMILIES, String>>,
    taints: Option<AtMost<MAX_LONG_LIST, Taint>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ListedNodeStatus {
    addresses: Option<AtMost<MAX_SHORT_LIST, NodeAddress>>,
    conditions: Option<AtMost<MAX_SHORT_LIST, NodeCondition>>,
    images: Option<AtMost<MAX_LONG_LIST, Image>>,
    node_info: Option<NodeSystemInfo>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Image {
    names: Option<AtMost<MAX_IMAGE_NAMES, String>>,
}

impl From<Node> for k8s::Node {
    fn from(node: Node) -> Self {
        let spec = |spec: ListedNodeSpec| NodeSpec {
            provider_id: spec.provider_id,
            pod_cidrs: kept(spec.pod_cidrs),
            taints: kept(spec.taints),
            ..NodeSpec::default()
        };
        let image = |image: Image| ContainerImage { names: kept(image.names), size_bytes: None };
        let status = |status: ListedNodeStatus| NodeStatus {
            addresses: kept(status.addresses),
            conditions: kept(status.conditions),
            images: kept(status.images).map(|images| images.into_iter().map(image).collect()),
            node_info: status.node_info,
            ..NodeStatus::default()
        };
        Self { metadata: node.metadata, spec: node.spec.map(spec), status: node.status.map(status) }
    }
}
