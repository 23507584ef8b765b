//! The Events that the user sees of a reconciliation. Pure.
//!
//! Reasons and texts are those of the framework's service controller, which dashboards and people know. Unlike there
//! an event is only made when something is changing, changed or failed.

use k8s_openapi::api::core::v1::ObjectReference;
use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::node::Node;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::ServiceKey;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::metrics::Operation;

/// Maximum of node names in an Event.
const MAX_NODE_NAMES: usize = 20;

/// The Service as the object of an event.
pub(crate) fn object(key: &ServiceKey, uid: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".into()),
        kind: Some("Service".into()),
        namespace: Some(key.namespace.to_string()),
        name: Some(key.name.to_string()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
    }
}

/// Event: work on a load balancer begins.
pub(crate) fn ensuring() -> Notice {
    Notice::normal("EnsuringLoadBalancer", "Ensuring load balancer")
}

/// Event: the removal of a load balancer begins.
pub(crate) fn deleting() -> Notice {
    Notice::normal("DeletingLoadBalancer", "Deleting load balancer")
}

/// Event: nothing of the load balancer is left.
pub(crate) fn deleted() -> Notice {
    Notice::normal("DeletedLoadBalancer", "Deleted load balancer")
}

/// Event: no node can take traffic.
pub(crate) fn no_nodes(why: &str) -> Notice {
    let message = format!(
        "There are no available nodes for LoadBalancer: {why}. Existing members are kept; to stop the traffic, \
         delete the Service"
    );
    Notice::warning("UnAvailableLoadBalancer", message)
}

/// Event: another controller writes the status, too.
pub(crate) fn contested(writer: &str, most: u32, window: Duration) -> Notice {
    let message = format!(
        "{writer} keeps overwriting the status of this Service. This controller restores it at most {most} times in {} minutes. Let one \
         controller serve the Service: disable {writer} (k3s: --disable=servicelb), or recreate the Service with \
         this controller's class (--load-balancer-class) as spec.loadBalancerClass",
        window.as_secs() / 60
    );
    Notice::warning("LoadBalancerStatusContested", message)
}

/// Event: nodes send packets for the address to the pods of these Services. Those of other namespaces are none of the reader's business.
pub(crate) fn external_ips(own: &ServiceKey, services: &BTreeSet<ServiceKey>) -> Option<Notice> {
    let first = services.iter().find(|key| key.namespace == own.namespace).or(services.first())?;
    let named = if first.namespace == own.namespace {
        format!("the Service {}", first.name)
    } else {
        "a Service of another namespace".to_owned()
    };
    let message = format!(
        "spec.externalIPs of {named} has the address of this load balancer: every node sends packets of pods for it to the pods of \
         that Service, without what the load balancer adds, whatever ipMode says. Remove the address from spec.externalIPs"
    );
    Some(Notice::warning("LoadBalancerAddressInExternalIPs", message))
}

/// Event: a load balancer agrees with its Service; `None` if nothing was going on.
pub(crate) fn concluded(activity: Option<Operation>, backends: usize) -> Option<Notice> {
    Some(match activity? {
        Operation::Ensure | Operation::Release => {
            Notice::normal("EnsuredLoadBalancer", "Ensured load balancer")
        }
        // The lack of nodes was reported at the beginning.
        Operation::UpdateNodes if backends == 0 => return None,
        Operation::UpdateNodes => {
            Notice::normal("UpdatedLoadBalancer", "Updated load balancer with new hosts")
        }
    })
}

/// Event: a reconciliation failed.
pub(crate) fn failed(operation: Operation, failure: &Failure, backends: &[Arc<Node>]) -> Notice {
    match operation {
        Operation::Ensure | Operation::Release => {
            Notice::warning("SyncLoadBalancerFailed", format!("Error syncing load balancer: {failure}"))
        }
        Operation::UpdateNodes => Notice::warning(
            "UpdateLoadBalancerFailed",
            format!(
                "Error updating load balancer with new hosts {} [node names limited, total number of nodes: {}], \
                 error: {failure}",
                node_names(backends),
                backends.len()
            ),
        ),
    }
}

/// Event: the load balancer of a Service that is gone could not be removed.
pub(crate) fn delete_failed(failure: &Failure) -> Notice {
    Notice::warning("DeleteLoadBalancerFailed", format!("Error deleting load balancer: {failure}"))
}

fn node_names(nodes: &[Arc<Node>]) -> String {
    let names: Vec<&str> = nodes.iter().take(MAX_NODE_NAMES).map(|node| node.name.as_str()).collect();
    match nodes.len().checked_sub(MAX_NODE_NAMES) {
        None | Some(0) => names.join(","),
        Some(more) => format!("{},<{more} more>", names.join(",")),
    }
}

#[cfg(test)]
mod tests {
    use openstack_ccm_core::failure::FailureClass;

    use super::*;

    fn nodes(count: usize) -> Vec<Arc<Node>> {
        (0..count)
            .map(|number| {
                Arc::new(Node {
                    name: format!("n{number}"),
                    provider_id: None,
                    addresses: Vec::new(),
                    labels: std::collections::BTreeMap::new(),
                    backend: true,
                })
            })
            .collect()
    }

    #[test]
    fn failures_carry_the_texts_that_people_search_for() {
        let failure = Failure::new(FailureClass::Quota, "quota exceeded");
        let notice = failed(Operation::Ensure, &failure, &[]);
        assert_eq!(
            notice,
            Notice::warning("SyncLoadBalancerFailed", "Error syncing load balancer: quota exceeded")
        );
        let notice = failed(Operation::UpdateNodes, &failure, &nodes(22));
        assert_eq!(notice.reason, "UpdateLoadBalancerFailed");
        assert!(
            notice.message.ends_with(
                "n18,n19,<2 more> [node names limited, total number of nodes: 22], error: quota exceeded"
            ),
            "{}",
            notice.message
        );
        assert!(failed(Operation::UpdateNodes, &failure, &nodes(20)).message.contains("n18,n19 ["));
    }

    #[test]
    fn nothing_is_said_when_nothing_happened() {
        assert_eq!(concluded(None, 2), None);
        assert_eq!(concluded(Some(Operation::Ensure), 0).unwrap().reason, "EnsuredLoadBalancer");
        assert_eq!(concluded(Some(Operation::UpdateNodes), 1).unwrap().reason, "UpdatedLoadBalancer");
        assert_eq!(concluded(Some(Operation::UpdateNodes), 0), None);
    }
}
