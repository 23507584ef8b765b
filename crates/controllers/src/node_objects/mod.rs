//! Node objects as the node controllers see them: reduced to what they decide by, cached from a watch, and written with
//! patches.

mod store;
mod write;

pub(crate) use store::{NodeChange, NodeStore, follow};
pub(crate) use write::{NodeWriter, WriteEnd, until_accepted};

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, NodeAddress, ObjectReference, Taint};
use openstack_ccm_core::instance::NodeIdentity;
use openstack_ccm_core::instance::address::PROVIDED_NODE_IP;
use openstack_ccm_core::instance::lifecycle::Readiness;
use openstack_ccm_core::instance::taint::{NO_SCHEDULE, SHUT_DOWN, UNINITIALIZED};

/// A Node, reduced. Images, conditions and the rest are forgotten: they are most of its size.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NodeObject {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    pub(crate) created: Option<jiff::Timestamp>,
    pub(crate) labels: BTreeMap<String, String>,
    /// The annotation in which the kubelet passes on its `--node-ip`.
    pub(crate) provided_ip: Option<String>,
    /// `spec.providerID`; absent instead of empty.
    pub(crate) provider_id: Option<String>,
    pub(crate) taints: Vec<Taint>,
    pub(crate) addresses: Vec<NodeAddress>,
    pub(crate) readiness: Readiness,
}

impl From<Node> for NodeObject {
    fn from(node: Node) -> Self {
        let Node { metadata, spec, status } = node;
        let (spec, status) = (spec.unwrap_or_default(), status.unwrap_or_default());
        let conditions = status.conditions.unwrap_or_default();
        let ready = conditions.iter().find(|condition| condition.type_ == "Ready");
        Self {
            name: metadata.name.unwrap_or_default(),
            uid: metadata.uid.unwrap_or_default(),
            resource_version: metadata.resource_version.unwrap_or_default(),
            created: metadata.creation_timestamp.map(|time| time.0),
            labels: metadata.labels.unwrap_or_default(),
            provided_ip: metadata.annotations.unwrap_or_default().remove(PROVIDED_NODE_IP),
            provider_id: spec.provider_id.filter(|id| !id.is_empty()),
            taints: spec.taints.unwrap_or_default(),
            addresses: status.addresses.unwrap_or_default(),
            readiness: Readiness::of_condition(ready.map(|condition| condition.status.as_str())),
        }
    }
}

impl NodeObject {
    /// Whether the kubelet still waits for a cloud provider.
    pub(crate) fn is_uninitialized(&self) -> bool {
        self.taints.iter().any(|taint| taint.key == UNINITIALIZED)
    }

    /// Whether the taint of a shut-down machine is set.
    pub(crate) fn has_shutdown_taint(&self) -> bool {
        self.taints.iter().any(is_shutdown_taint)
    }

    /// By what its machine is found.
    pub(crate) fn identity(&self) -> NodeIdentity {
        NodeIdentity { name: self.name.clone(), provider_id: self.provider_id.clone() }
    }

    /// What events are about.
    pub(crate) fn reference(&self) -> ObjectReference {
        ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Node".to_owned()),
            name: Some(self.name.clone()),
            uid: Some(self.uid.clone()),
            ..ObjectReference::default()
        }
    }
}

/// Taints are the same by key and effect.
pub(crate) fn is_shutdown_taint(taint: &Taint) -> bool {
    taint.key == SHUT_DOWN && taint.effect == NO_SCHEDULE
}
