//! What is known of a node, and the rule which nodes are backends of load balancers.

use std::collections::BTreeMap;

/// Label that keeps a node out of load balancers
/// (<https://kubernetes.io/docs/reference/labels-annotations-taints/#node-kubernetes-io-exclude-from-external-load-balancers>).
pub const EXCLUDE_LABEL: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// Taint that the cluster autoscaler sets on a node that it is about to remove.
pub const AUTOSCALER_TAINT: &str = "ToBeDeletedByClusterAutoscaler";

/// Kind of a node address (`status.addresses[].type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressKind {
    /// `InternalIP`
    InternalIp,
    /// `ExternalIP`
    ExternalIp,
    /// `Hostname`, `InternalDNS`, `ExternalDNS` and whatever else is not an address to send packets to.
    Name,
}

/// One entry of `status.addresses`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeAddress {
    /// `type`
    pub kind: AddressKind,
    /// `address`
    pub address: String,
}

/// What a load balancer needs to know of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// `metadata.name`
    pub name: String,
    /// `spec.providerID`; absent until the node is initialised.
    pub provider_id: Option<String>,
    /// `status.addresses`, in order.
    pub addresses: Vec<NodeAddress>,
    /// `metadata.labels`, for node selectors.
    pub labels: BTreeMap<String, String>,
    /// Whether the node takes traffic of load balancers at all.
    pub backend: bool,
}

/// The facts that decide whether a node is a backend.
#[derive(Clone, Copy, Debug)]
pub struct Eligibility<'a> {
    /// `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// Value of [`EXCLUDE_LABEL`], if the label is there.
    pub exclude_label: Option<&'a str>,
    /// A taint with the key [`AUTOSCALER_TAINT`] is there, whatever its effect.
    pub autoscaler_taint: bool,
}

/// Why a node takes no traffic of load balancers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftOut {
    /// The node is being deleted.
    Deleting,
    /// The node has the label [`EXCLUDE_LABEL`].
    Excluded,
    /// The node has the taint [`AUTOSCALER_TAINT`].
    Autoscaler,
}

/// Returns why a node is no backend, or `None` for a backend. A backend is not being deleted, not excluded by label and not
/// tainted by the cluster autoscaler.
///
/// A label value that parses as false (`0`, `f`, `F`, `false`, `False`, `FALSE`) does not exclude; any other value does,
/// even an empty one. Readiness does not matter (KEP-3458): the load balancer's health checks stop the traffic.
pub fn left_out(facts: Eligibility<'_>) -> Option<LeftOut> {
    let excluded = facts
        .exclude_label
        .is_some_and(|value| !matches!(value, "0" | "f" | "F" | "false" | "False" | "FALSE"));
    if facts.deleting {
        Some(LeftOut::Deleting)
    } else if excluded {
        Some(LeftOut::Excluded)
    } else if facts.autoscaler_taint {
        Some(LeftOut::Autoscaler)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// A node is a backend unless its label, the autoscaler or its deletion takes it out.
    ///
    /// Framework: P17, same.
    /// Framework: P18, same.
    #[rstest]
    #[case::plain(None, false, false, None)]
    #[case::label_false(Some("false"), false, false, None)]
    #[case::label_zero(Some("0"), false, false, None)]
    #[case::label_empty(Some(""), false, false, Some(LeftOut::Excluded))]
    #[case::label_true(Some("true"), false, false, Some(LeftOut::Excluded))]
    #[case::label_word(Some("foo"), false, false, Some(LeftOut::Excluded))]
    #[case::autoscaler(None, true, false, Some(LeftOut::Autoscaler))]
    #[case::deleting(None, false, true, Some(LeftOut::Deleting))]
    fn framework_p17_p18_backends_are_nodes_that_stay(
        #[case] exclude_label: Option<&str>,
        #[case] autoscaler_taint: bool,
        #[case] deleting: bool,
        #[case] expected: Option<LeftOut>,
    ) {
        assert_eq!(left_out(Eligibility { deleting, exclude_label, autoscaler_taint }), expected);
    }
}
