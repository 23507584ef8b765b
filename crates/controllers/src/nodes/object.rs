//! A Node, reduced to the fields on which the controllers decide.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, NodeAddress, ObjectReference, Taint};
use openstack_ccm_advertise::node::{NodeVerdict, guess_of, is_evidence, unreachable_since};
use openstack_ccm_core::instance::address::PROVIDED_NODE_IP;
use openstack_ccm_core::instance::{NO_SCHEDULE, NodeIdentity, SHUT_DOWN_TAINT, UNINITIALIZED_TAINT};
use openstack_ccm_core::node::{self, AUTOSCALER_TAINT, AddressKind, EXCLUDE_LABEL, Eligibility, LeftOut};
use openstack_ccm_core::provider::AnnotationUse;
use openstack_ccm_core::route::condition::NETWORK_UNAVAILABLE;
use openstack_ccm_runtime::listed::Interest;
use openstack_ccm_runtime::watch::Reading;

use crate::PAGE_SIZE;

/// Returns the settings for reading Nodes.
pub(crate) fn reading() -> Reading {
    let interest = Interest::in_annotations(|key| match key {
        PROVIDED_NODE_IP => AnnotationUse::Meaning,
        _ if is_evidence(key) => AnnotationUse::Meaning,
        _ => AnnotationUse::None,
    });
    Reading { page: PAGE_SIZE, interest }
}

/// A reduced Node. Images, most conditions and other fields are dropped: they are most of its size.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NodeObject {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    pub(crate) created: Option<jiff::Timestamp>,
    /// The annotation in which the kubelet passes on its `--node-ip`.
    pub(crate) provided_ip: Option<String>,
    /// The machine id that the kubelet reports; kept while nothing else identifies the machine.
    pub(crate) system_uuid: Option<String>,
    pub(crate) taints: Vec<Taint>,
    pub(crate) addresses: Vec<NodeAddress>,
    /// Whether the condition `Ready` is true: not false, unknown or missing.
    pub(crate) is_ready: bool,
    /// Since when its kubelet has been silent: the transition of the condition `Ready` to `Unknown`.
    pub(crate) unreachable_since: Option<jiff::Timestamp>,
    /// `spec.podCIDRs`
    pub(crate) pod_cidrs: Vec<String>,
    /// Status and reason of the condition `NetworkUnavailable`.
    pub(crate) network: Option<(String, String)>,
    /// The verdict on its service proxy by what the node shows.
    pub(crate) service_proxy: NodeVerdict,
    /// Why the node takes no traffic of load balancers, if so.
    pub(crate) left_out: Option<LeftOut>,
    /// The facts on which load balancers depend, with labels and provider id. Heartbeats keep the same allocation.
    pub(crate) facts: Arc<node::Node>,
}

impl From<Node> for NodeObject {
    fn from(node: Node) -> Self {
        let left_out = left_out(&node);
        let facts = Arc::new(facts(&node, left_out.is_none()));
        let (service_proxy, unreachable_since) = (guess_of(&node), unreachable_since(&node));
        let Node { metadata, spec, status } = node;
        let (spec, status) = (spec.unwrap_or_default(), status.unwrap_or_default());
        let conditions = status.conditions.unwrap_or_default();
        let system_uuid = status.node_info.map(|info| info.system_uuid).filter(|id| !id.is_empty());
        let condition = |kind: &str| conditions.iter().find(|condition| condition.type_ == kind);
        Self {
            name: metadata.name.unwrap_or_default(),
            uid: metadata.uid.unwrap_or_default(),
            resource_version: metadata.resource_version.unwrap_or_default(),
            created: metadata.creation_timestamp.map(|time| time.0),
            provided_ip: metadata.annotations.unwrap_or_default().remove(PROVIDED_NODE_IP),
            system_uuid: system_uuid.filter(|_| facts.provider_id.is_none()),
            taints: spec.taints.unwrap_or_default(),
            addresses: status.addresses.unwrap_or_default(),
            is_ready: condition("Ready").is_some_and(|ready| ready.status == "True"),
            unreachable_since,
            pod_cidrs: spec.pod_cidrs.unwrap_or_default(),
            network: condition(NETWORK_UNAVAILABLE)
                .map(|network| (network.status.clone(), network.reason.clone().unwrap_or_default())),
            service_proxy,
            left_out,
            facts,
        }
    }
}

impl NodeObject {
    /// Whether the kubelet still waits for a cloud provider.
    pub(crate) fn is_uninitialized(&self) -> bool {
        self.taints.iter().any(|taint| taint.key == UNINITIALIZED_TAINT)
    }

    /// Whether the taint of a shut-down machine is set.
    pub(crate) fn has_shutdown_taint(&self) -> bool {
        self.taints.iter().any(is_shutdown_taint)
    }

    /// Returns the attributes by which its machine is found.
    pub(crate) fn identity(&self) -> NodeIdentity {
        let provided = self.provided_ip.iter().flat_map(|list| list.split(','));
        let shown = self.addresses.iter().map(|address| address.address.as_str());
        NodeIdentity {
            name: self.name.clone(),
            provider_id: self.facts.provider_id.clone(),
            system_uuid: self.system_uuid.clone(),
            addresses: provided.chain(shown).filter_map(|text| text.trim().parse().ok()).collect(),
        }
    }

    /// Returns the reference for Events.
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

/// Whether this is the shut-down taint, by key and effect.
pub(crate) fn is_shutdown_taint(taint: &Taint) -> bool {
    taint.key == SHUT_DOWN_TAINT && taint.effect == NO_SCHEDULE
}

fn left_out(node: &Node) -> Option<LeftOut> {
    let labels = node.metadata.labels.as_ref();
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    node::left_out(Eligibility {
        deleting: node.metadata.deletion_timestamp.is_some(),
        exclude_label: labels.and_then(|labels| labels.get(EXCLUDE_LABEL)).map(String::as_str),
        autoscaler_taint: taints.iter().any(|taint| taint.key == AUTOSCALER_TAINT),
    })
}

/// Returns the facts on which load balancers depend.
fn facts(node: &Node, backend: bool) -> node::Node {
    let provider_id = node.spec.as_ref().and_then(|spec| spec.provider_id.clone());
    node::Node {
        name: node.metadata.name.clone().unwrap_or_default(),
        provider_id: provider_id.filter(|id| !id.is_empty()),
        addresses: addresses(node),
        labels: node.metadata.labels.clone().unwrap_or_default(),
        backend,
    }
}

fn addresses(node: &Node) -> Vec<node::NodeAddress> {
    let addresses = node.status.as_ref().and_then(|status| status.addresses.as_deref()).unwrap_or_default();
    addresses
        .iter()
        .map(|address| node::NodeAddress {
            kind: match address.type_.as_str() {
                "InternalIP" => AddressKind::InternalIp,
                "ExternalIP" => AddressKind::ExternalIp,
                _ => AddressKind::Name,
            },
            address: address.address.clone(),
        })
        .collect()
}
