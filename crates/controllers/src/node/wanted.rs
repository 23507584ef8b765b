//! What a node gets, from what is known of its machine.

use k8s_openapi::api::core::v1::NodeAddress;
use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::instance::address::{AddressType, ProvidedIpError, of_node};
use openstack_ccm_core::instance::{Instance, UNINITIALIZED_TAINT, label};
use serde_json::{Value, json};

use crate::nodes::NodeObject;

/// The addresses to write; absent when the node has them already, or the cloud knows none.
///
/// # Errors
/// The kubelet asks for an address that the machine does not have.
pub(super) fn addresses(
    node: &NodeObject,
    instance: &Instance,
) -> Result<Option<Vec<NodeAddress>>, ProvidedIpError> {
    if instance.addresses.is_empty() {
        return Ok(None);
    }
    let hostnames = node
        .addresses
        .iter()
        .filter(|address| address.type_ == AddressType::Hostname.as_str())
        .map(|address| address.address.clone());
    let wanted = of_node(instance.addresses.clone(), hostnames, node.provided_ip.as_deref())?;
    let wanted: Vec<NodeAddress> = wanted
        .into_iter()
        .map(|address| NodeAddress { type_: address.kind.as_str().to_owned(), address: address.address })
        .collect();
    Ok((wanted != node.addresses).then_some(wanted))
}

/// The patch of the status that replaces the addresses.
pub(super) fn addresses_patch(addresses: &[NodeAddress]) -> Value {
    json!({"status": {"addresses": addresses}})
}

/// The patch that initialises a node: provider id, labels and the end of the taint in one step, which the API server
/// takes only if the node is still as it was read. And what was left out, in words for the log.
///
/// # Errors
/// Neither the node nor the cloud has a provider id.
pub(super) fn initialisation(
    node: &NodeObject,
    instance: &Instance,
) -> Result<(Value, Vec<String>), Failure> {
    let labels = label::initial(instance, &node.facts.labels);
    let mut patch = json!({
        "metadata": {"resourceVersion": node.resource_version, "labels": labels.set},
        "spec": {},
    });
    match (&node.facts.provider_id, instance.provider_id.as_ref().filter(|id| !id.is_empty())) {
        (Some(_), _) => {}
        (None, Some(id)) => patch["spec"]["providerID"] = json!(id),
        (None, None) => {
            let message = format!("cloud provider does not set node provider ID for node {}", node.name);
            return Err(Failure::user_input(message));
        }
    }
    let others: Vec<_> = node.taints.iter().filter(|taint| taint.key != UNINITIALIZED_TAINT).collect();
    patch["spec"]["taints"] = if others.is_empty() { Value::Null } else { json!(others) };
    Ok((patch, labels.left_out))
}
