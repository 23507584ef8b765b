//! Nodes on which nothing of this cluster runs: they have no service proxy, whatever version their kubelet claims.

/// `type`, as Virtual Kubelet (`node/nodeutil`, the charts of its providers) and the examples of KWOK set it.
const TYPE_LABEL: (&str, [&str; 2]) = ("type", ["virtual-kubelet", "kwok"]);

/// Taints with which Virtual Kubelet and KWOK keep ordinary pods away, and the annotation by which KWOK finds its nodes.
pub(super) const KEYS: [&str; 2] = ["virtual-kubelet.io/provider", "kwok.x-k8s.io/node"];

/// Whether a node is virtual: it stands for no machine.
///
/// The kubelet's version shows that as well: Virtual Kubelet reports `v1.15.2-vk-azure-aci-1.5.1`, KWOK `kwok-v0.6.0`, and nodes
/// made from KWOK's examples `fake`.
pub(super) fn is_virtual<'a>(
    kubelet_version: &str,
    mut labels: impl Iterator<Item = (&'a str, &'a str)>,
    mut annotations_and_taints: impl Iterator<Item = &'a str>,
) -> bool {
    let (label, types) = TYPE_LABEL;
    kubelet_version == "fake"
        || kubelet_version.starts_with("kwok-")
        || kubelet_version.contains("-vk-")
        || labels.any(|(key, value)| key == label && types.contains(&value))
        || annotations_and_taints.any(|key| KEYS.contains(&key))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::kwok_version("kwok-v0.6.0", &[], &[], true)]
    #[case::kwok_example("fake", &[], &[], true)]
    #[case::azure("v1.15.2-vk-azure-aci-1.5.1", &[], &[], true)]
    #[case::label("v1.29.3", &[("type", "virtual-kubelet")], &[], true)]
    #[case::taint("v1.29.3", &[], &["virtual-kubelet.io/provider"], true)]
    #[case::annotation("v1.29.3", &[], &["kwok.x-k8s.io/node"], true)]
    #[case::other_type("v1.29.3", &[("type", "gpu")], &["dedicated"], false)]
    #[case::vendor("v1.29.0-eks-1de2ab1", &[], &[], false)]
    fn virtual_nodes_are_recognised_by_what_their_makers_set(
        #[case] version: &str,
        #[case] labels: &[(&str, &str)],
        #[case] keys: &[&str],
        #[case] expected: bool,
    ) {
        assert_eq!(is_virtual(version, labels.iter().copied(), keys.iter().copied()), expected);
    }
}
