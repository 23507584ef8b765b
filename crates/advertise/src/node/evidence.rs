//! What a Node object shows of its service proxy, and the guess that follows.

use super::images::{Images, KubeProxy};
use super::verdict::{Cause, NodeVerdict, Replacement, Source, prevailing};
use super::{Version, virtual_node};

/// The first Kubernetes release whose kube-proxy honours the field by default.
const FIRST_FIT_KUBELET: Version = Version(1, 30, 0);

/// What a Node object shows of its service proxy.
#[derive(Clone, Debug, Default)]
pub struct Shown<'a> {
    /// `status.nodeInfo.kubeletVersion`
    pub kubelet_version: &'a str,
    /// `status.nodeInfo.operatingSystem`
    pub operating_system: &'a str,
    /// `metadata.labels`
    pub labels: Vec<(&'a str, &'a str)>,
    /// The keys of `metadata.annotations`.
    pub annotation_keys: Vec<&'a str>,
    /// The keys of `spec.taints`.
    pub taint_keys: Vec<&'a str>,
    /// All names in `status.images`.
    pub image_names: Vec<&'a str>,
    /// How many images `status.images` has; each may have several names.
    pub image_count: usize,
}

/// Whether a replacement that is on a node is known to replace kube-proxy there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Certainty {
    Certain,
    /// kube-proxy may run beside it without being seen.
    Possible,
}

/// What is held of a node's service proxy by what the node shows. It may be wrong; nothing that serves may hang on it.
pub fn guess(shown: &Shown<'_>) -> NodeVerdict {
    let keys = shown.annotation_keys.iter().chain(&shown.taint_keys).copied();
    if virtual_node::is_virtual(shown.kubelet_version, shown.labels.iter().copied(), keys) {
        return NodeVerdict::fit(Source::Version, Cause::VirtualNode);
    }
    let (by_image, by_version) = (by_image(shown), by_version(shown));
    prevailing(by_image.iter().chain([&by_version])).unwrap_or(&by_version).clone()
}

/// What the kubelet's version and the operating system tell.
fn by_version(shown: &Shown<'_>) -> NodeVerdict {
    let kubelet = || shown.kubelet_version.to_owned();
    let unfit = |cause| NodeVerdict::unfit(Source::Version, cause);
    if shown.operating_system.eq_ignore_ascii_case("windows") {
        return unfit(Cause::Windows);
    }
    match Version::parse(shown.kubelet_version) {
        None if shown.kubelet_version.is_empty() => NodeVerdict::fit(Source::Version, Cause::NotReported),
        None => unfit(Cause::UnknownVersion(kubelet())),
        Some(version) if version < FIRST_FIT_KUBELET => unfit(Cause::OldKubelet(kubelet())),
        Some(_) => NodeVerdict::fit(Source::Version, Cause::NewKubelet(kubelet())),
    }
}

/// What annotations and images tell: a replacement of kube-proxy that ignores the mode, if there is one.
fn by_image(shown: &Shown<'_>) -> Option<NodeVerdict> {
    let images = Images::from_names(shown.image_names.iter().copied());
    let control_plane = shown.labels.iter().any(|(key, _)| is_control_plane_label(key));
    let kube_proxy = images.kube_proxy(shown.kubelet_version, control_plane, shown.image_count);
    let certainty = if kube_proxy == KubeProxy::Unseen { Certainty::Possible } else { Certainty::Certain };
    let by_annotation =
        shown.annotation_keys.iter().find_map(|key| replacement_by_annotation(key, kube_proxy));
    let replacement = by_annotation.or_else(|| images.unfit_replacement(kube_proxy))?;
    let certainty = match replacement {
        // These take the traffic of pods beside kube-proxy too.
        Replacement::OvnKubernetes | Replacement::Antrea(_) => Certainty::Certain,
        _ => certainty,
    };
    let cause = match certainty {
        Certainty::Certain => Cause::Replacement(replacement),
        Certainty::Possible => Cause::PossibleReplacement(replacement),
    };
    Some(NodeVerdict::unfit(Source::Image, cause))
}

/// The guess for a Linux node of which only the kubelet's version is known.
pub fn guess_by_kubelet(version: &str) -> NodeVerdict {
    guess(&Shown { kubelet_version: version, operating_system: "linux", ..Shown::default() })
}

/// Set by kubeadm, k3s and RKE2 on the nodes of the control plane; `master` up to Kubernetes 1.23.
fn is_control_plane_label(key: &str) -> bool {
    matches!(key, "node-role.kubernetes.io/control-plane" | "node-role.kubernetes.io/master")
}

fn replacement_by_annotation(key: &str, kube_proxy: KubeProxy) -> Option<Replacement> {
    match key {
        // Both set it on every node that they manage. OVN-Kubernetes always replaces kube-proxy.
        "k8s.ovn.org/node-subnets" => Some(Replacement::OvnKubernetes),
        "ovn.kubernetes.io/allocated" if kube_proxy != KubeProxy::Seen => Some(Replacement::KubeOvn),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::verdict::Verdict;
    use super::*;

    fn linux<'a>(kubelet_version: &'a str, image_names: &[&'a str]) -> Shown<'a> {
        Shown {
            kubelet_version,
            operating_system: "linux",
            image_names: image_names.to_vec(),
            image_count: image_names.len(),
            ..Shown::default()
        }
    }

    fn cause(shown: &Shown<'_>) -> Option<&'static str> {
        let held = guess(shown);
        (held.verdict == Verdict::Unfit).then(|| held.cause.as_str())
    }

    const REPLACED: Option<&str> = Some("service_proxy_replacement");
    const POSSIBLY: Option<&str> = Some("possible_service_proxy_replacement");

    #[rstest]
    #[case::new_kubelet("v1.30.0", &[], None)]
    #[case::old_kubelet("v1.29.15", &[], Some("old_kubelet"))]
    #[case::odd_kubelet("unknown", &[], Some("unknown_kubelet_version"))]
    #[case::kubelet_not_reported_yet("", &[], None)]
    #[case::virtual_kubelet("v1.15.2-vk-azure-aci-1.5.1", &[], None)]
    #[case::kwok("kwok-v0.6.0", &[], None)]
    #[case::cilium_old("v1.36.0", &["quay.example/cilium/cilium:v1.16.9"], REPLACED)]
    #[case::cilium_regressed("v1.36.0", &["quay.example/cilium/cilium:v1.18.0@sha256:00"], REPLACED)]
    #[case::cilium_fixed("v1.36.0", &["quay.example/cilium/cilium:v1.18.0", "quay.example/cilium/cilium:v1.18.1"], None)]
    #[case::cilium_beside_kube_proxy("v1.36.0", &["quay.example/cilium/cilium:v1.16.0", "registry.example/kube-proxy:v1.36.0"], None)]
    #[case::cilium_operator_says_nothing("v1.36.0", &["quay.example/cilium/operator-generic:v1.16.0"], None)]
    #[case::antrea_beside_kube_proxy("v1.36.0", &["antrea/antrea-agent-ubuntu:v1.15.1", "kube-proxy:v1.36.0"], REPLACED)]
    #[case::registry_port_is_not_a_tag("v1.36.0", &["registry.example:5000/cilium/cilium"], None)]
    #[case::rke2_cilium("v1.36.0+rke2r1", &["docker.io/rancher/mirrored-cilium-cilium:v1.16.5"], POSSIBLY)]
    #[case::rke2_cilium_regressed("v1.36.0+rke2r1", &["docker.io/rancher/mirrored-cilium-cilium:v1.18.0"], POSSIBLY)]
    #[case::rke2_cilium_fit("v1.36.0+rke2r1", &["docker.io/rancher/mirrored-cilium-cilium:v1.18.1"], None)]
    #[case::rke2_kube_proxy("v1.36.0+rke2r1", &["docker.io/rancher/mirrored-cilium-cilium:v1.16.5", "index.docker.io/rancher/hardened-kubernetes:v1.36.0-rke2r1-build20260801"], None)]
    #[case::k3s_has_kube_proxy_in_its_binary("v1.36.0+k3s1", &["quay.example/cilium/cilium:v1.16.9"], POSSIBLY)]
    #[case::k3s_alone("v1.36.0+k3s1", &["docker.io/rancher/klipper-lb:v0.4.9"], None)]
    #[case::calico_ebpf_old("v1.36.0", &["quay.example/calico/node:v3.29.1"], REPLACED)]
    #[case::calico_ebpf_new("v1.36.0", &["quay.example/calico/node:v3.29.2"], None)]
    #[case::calico_beside_kube_proxy("v1.36.0", &["quay.example/calico/node:v3.28.5", "kube-proxy:v1.36.0"], None)]
    #[case::calico_of_rke2("v1.36.0+rke2r1", &["docker.io/rancher/mirrored-calico-node:v3.29.1"], None)]
    fn nodes_are_judged_by_what_they_show(
        #[case] kubelet: &str,
        #[case] images: &[&str],
        #[case] expected: Option<&str>,
    ) {
        assert_eq!(cause(&linux(kubelet, images)), expected);
    }

    #[rstest]
    #[case::ovn("k8s.ovn.org/node-subnets", &[], REPLACED)]
    #[case::kube_ovn("ovn.kubernetes.io/allocated", &[], REPLACED)]
    #[case::kube_ovn_beside_kube_proxy("ovn.kubernetes.io/allocated", &["registry.example/kube-proxy:v1.36.0"], None)]
    fn networks_with_a_service_proxy_of_their_own_are_known_by_annotations(
        #[case] annotation: &'static str,
        #[case] images: &[&str],
        #[case] expected: Option<&str>,
    ) {
        let shown = Shown { annotation_keys: vec![annotation], ..linux("v1.36.0", images) };
        assert_eq!(cause(&shown), expected);
    }

    #[test]
    fn kube_proxy_on_windows_ignores_the_mode() {
        let shown = Shown { operating_system: "windows", ..linux("v1.36.0", &[]) };
        assert_eq!(cause(&shown), Some("windows"));
    }

    #[test]
    fn a_list_of_images_that_may_have_been_cut_proves_no_absence() {
        let full = |images: &[&'static str]| Shown { image_count: 50, ..linux("v1.36.0", images) };
        assert_eq!(cause(&full(&["quay.example/cilium/cilium:v1.16.9"])), POSSIBLY);
        assert_eq!(cause(&full(&["quay.example/calico/node:v3.29.1"])), None);
    }

    #[test]
    fn on_a_control_plane_node_rke2s_image_says_nothing_of_kube_proxy() {
        let images = ["rancher/mirrored-cilium-cilium:v1.16.5", "rancher/hardened-kubernetes:v1.36.0-rke2r1"];
        let labels = vec![("node-role.kubernetes.io/control-plane", "true")];
        assert_eq!(cause(&Shown { labels, ..linux("v1.36.0+rke2r1", &images) }), POSSIBLY);
    }

    #[test]
    fn a_virtual_node_counts_for_nothing() {
        let labels = vec![("type", "virtual-kubelet")];
        assert_eq!(cause(&Shown { labels, ..linux("v1.29.3", &[]) }), None);
    }
}
