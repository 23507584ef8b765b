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

/// Whether a node is a backend: not being deleted, not excluded by label, not tainted by the cluster autoscaler.
///
/// A label value that parses as false (`0`, `f`, `F`, `false`, `False`, `FALSE`) does not exclude; any other does,
/// the empty one included. Readiness does not matter (KEP-3458): health checks take nodes out, not membership.
pub fn is_backend(facts: Eligibility<'_>) -> bool {
    let excluded = facts
        .exclude_label
        .is_some_and(|value| !matches!(value, "0" | "f" | "F" | "false" | "False" | "FALSE"));
    !facts.deleting && !excluded && !facts.autoscaler_taint
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
    #[case::plain(None, false, false, true)]
    #[case::label_false(Some("false"), false, false, true)]
    #[case::label_zero(Some("0"), false, false, true)]
    #[case::label_empty(Some(""), false, false, false)]
    #[case::label_true(Some("true"), false, false, false)]
    #[case::label_word(Some("foo"), false, false, false)]
    #[case::autoscaler(None, true, false, false)]
    #[case::deleting(None, false, true, false)]
    fn framework_p17_p18_backends_are_nodes_that_stay(
        #[case] exclude_label: Option<&str>,
        #[case] autoscaler_taint: bool,
        #[case] deleting: bool,
        #[case] expected: bool,
    ) {
        assert_eq!(is_backend(Eligibility { deleting, exclude_label, autoscaler_taint }), expected);
    }
}
