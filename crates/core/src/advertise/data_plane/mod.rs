//! Whether the service proxies on the nodes honour `ipMode: Proxy`.
//!
//! kube-proxy tells its features (`kubernetes_feature_enabled{name="LoadBalancerIPMode"}`), its mode (`/proxyMode`) and its
//! configuration (`/configz`), but by default to processes on its own node only (127.0.0.1:10249), and the API server knows
//! none of it (KEP-4004 removed even the version from the node). So from outside this is judged by what a node shows: the
//! kubelet's version stands in for kube-proxy's, and replacements of kube-proxy are recognised by their node annotations
//! and by the images that the node reports. That judgement may be wrong; nothing that serves may hang on it.

mod images;
mod virtual_node;

use std::fmt;

use images::{Images, KubeProxy};

/// The first Kubernetes release whose kube-proxy honours the field by default.
const FIRST_FIT_KUBELET: Version = Version(1, 30, 0);

/// A version, reduced to three numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u32, pub u32, pub u32);

impl Version {
    /// Reads `v1.30.5+k3s1`, `1.31`, `v1.29.0-eks-1234` and the like: leading numbers, the rest is ignored.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.strip_prefix('v').unwrap_or(text).splitn(3, '.').map(leading_number);
        Some(Self(parts.next()??, parts.next()??, parts.next().flatten().unwrap_or(0)))
    }
}

fn leading_number(text: &str) -> Option<u32> {
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    text[..digits].parse().ok()
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// A replacement of kube-proxy that is known not to honour the field in the version seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Replacement {
    /// Cilium before 1.17.0, and 1.18.0, where it is the kube-proxy replacement.
    Cilium(Version),
    /// Antrea before 2.0.
    Antrea(Version),
    /// kube-router before 2.9 as the service proxy.
    KubeRouter(Version),
    /// OVN-Kubernetes, any version known.
    OvnKubernetes,
    /// kube-ovn without kube-proxy, any version known.
    KubeOvn,
    /// Calico's eBPF data plane before 3.29.2, which has the service proxy of Kubernetes 1.29 compiled in.
    CalicoEbpf(Version),
}

impl fmt::Display for Replacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cilium(version) => write!(f, "Cilium {version}"),
            Self::Antrea(version) => write!(f, "Antrea {version}"),
            Self::KubeRouter(version) => write!(f, "kube-router {version}"),
            Self::OvnKubernetes => f.write_str("OVN-Kubernetes"),
            Self::KubeOvn => f.write_str("kube-ovn"),
            Self::CalicoEbpf(version) => write!(f, "the eBPF data plane of Calico {version}"),
        }
    }
}

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

/// What one node tells about its service proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    kubelet: String,
    windows: bool,
    /// Nothing of this cluster runs there.
    is_virtual: bool,
    replacement: Option<(Replacement, Certainty)>,
}

/// Whether a replacement that is on a node is known to replace kube-proxy there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Certainty {
    Certain,
    /// kube-proxy may run beside it without being seen.
    Possible,
}

impl Evidence {
    /// Reduces what a node shows to what is judged.
    pub fn new(shown: &Shown<'_>) -> Self {
        let images = Images::from_names(shown.image_names.iter().copied());
        let control_plane = shown.labels.iter().any(|(key, _)| is_control_plane_label(key));
        let kube_proxy = images.kube_proxy(shown.kubelet_version, control_plane, shown.image_count);
        let certainty =
            if kube_proxy == KubeProxy::Unseen { Certainty::Possible } else { Certainty::Certain };
        let by_annotation =
            shown.annotation_keys.iter().find_map(|key| replacement_by_annotation(key, kube_proxy));
        let replacement = by_annotation.or_else(|| images.unfit_replacement(kube_proxy)).map(|replacement| {
            match replacement {
                // These take the traffic of pods beside kube-proxy too.
                Replacement::OvnKubernetes | Replacement::Antrea(_) => (replacement, Certainty::Certain),
                _ => (replacement, certainty),
            }
        });
        let keys = shown.annotation_keys.iter().chain(&shown.taint_keys).copied();
        Self {
            kubelet: shown.kubelet_version.to_owned(),
            windows: shown.operating_system.eq_ignore_ascii_case("windows"),
            is_virtual: virtual_node::is_virtual(shown.kubelet_version, shown.labels.iter().copied(), keys),
            replacement,
        }
    }

    /// A Linux node of which only the kubelet's version matters.
    pub fn kubelet(version: &str) -> Self {
        Self::new(&Shown { kubelet_version: version, operating_system: "linux", ..Shown::default() })
    }

    /// Why this node does not honour the field, if it does not.
    fn unfit(&self) -> Option<Cause> {
        // A virtual node runs nothing, nor does one whose kubelet has not reported yet.
        if self.is_virtual || (self.kubelet.is_empty() && self.replacement.is_none() && !self.windows) {
            return None;
        }
        if let Some((replacement, certainty)) = self.replacement {
            return Some(match certainty {
                Certainty::Certain => Cause::Replacement(replacement),
                Certainty::Possible => Cause::PossibleReplacement(replacement),
            });
        }
        if self.windows {
            return Some(Cause::Windows);
        }
        match Version::parse(&self.kubelet) {
            None => Some(Cause::UnknownVersion(self.kubelet.clone())),
            Some(version) if version < FIRST_FIT_KUBELET => Some(Cause::OldKubelet(self.kubelet.clone())),
            Some(_) => None,
        }
    }
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

/// Why a node's service proxy short-circuits traffic although the status says `Proxy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The kubelet is older than 1.30, and kube-proxy is taken to be of the same release.
    OldKubelet(String),
    /// The kubelet's version is not a version.
    UnknownVersion(String),
    /// kube-proxy on Windows does not evaluate the field.
    Windows,
    /// A replacement of kube-proxy that does not evaluate it.
    Replacement(Replacement),
    /// A program that does not evaluate it where it replaces kube-proxy; whether it does cannot be seen on this node.
    PossibleReplacement(Replacement),
}

impl Cause {
    /// Stable label value for metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::OldKubelet(_) => "old_kubelet",
            Self::UnknownVersion(_) => "unknown_kubelet_version",
            Self::Windows => "windows",
            Self::Replacement(_) => "service_proxy_replacement",
            Self::PossibleReplacement(_) => "possible_service_proxy_replacement",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OldKubelet(version) => write!(f, "kubelet {version} is older than 1.30"),
            Self::UnknownVersion(version) => write!(f, "its kubelet version {version:?} is not understood"),
            Self::Windows => f.write_str("kube-proxy on Windows ignores ipMode"),
            Self::Replacement(replacement) => write!(f, "{replacement} ignores ipMode"),
            Self::PossibleReplacement(replacement) => {
                write!(
                    f,
                    "{replacement} ignores ipMode if it replaces kube-proxy there, which cannot be seen"
                )
            }
        }
    }
}

/// The judgement over all nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fitness {
    /// Every node honours the field. A cluster without nodes is fit: nobody short-circuits.
    Fit,
    /// At least one node does not.
    Unfit {
        /// How many.
        count: usize,
        /// One of them: the first by name.
        node: String,
        /// Why that one.
        cause: Cause,
    },
}

/// Judges all nodes of the cluster, not only the backends: any node may run a client.
pub fn judge<'a>(nodes: impl IntoIterator<Item = (&'a str, &'a Evidence)>) -> Fitness {
    let mut unfit: Vec<(&str, Cause)> = nodes
        .into_iter()
        .filter_map(|(name, evidence)| evidence.unfit().map(|cause| (name, cause)))
        .collect();
    unfit.sort_by(|one, other| one.0.cmp(other.0));
    let count = unfit.len();
    match unfit.into_iter().next() {
        None => Fitness::Fit,
        Some((node, cause)) => Fitness::Unfit { count, node: node.to_owned(), cause },
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("v1.36.3", Some(Version(1, 36, 3)))]
    #[case("v1.30.5+k3s1", Some(Version(1, 30, 5)))]
    #[case("1.31", Some(Version(1, 31, 0)))]
    #[case("v1.29.0-eks-1de2ab1", Some(Version(1, 29, 0)))]
    #[case("latest", None)]
    #[case("v1", None)]
    #[case("", None)]
    fn versions_of_vendors_are_read(#[case] text: &str, #[case] expected: Option<Version>) {
        assert_eq!(Version::parse(text), expected);
    }

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
        Evidence::new(shown).unfit().map(|cause| cause.as_str())
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

    #[test]
    fn one_old_node_makes_the_cluster_unfit_and_is_named() {
        let (new, old) = (Evidence::kubelet("v1.36.0"), Evidence::kubelet("v1.28.4"));
        let Fitness::Unfit { count, node, cause } = judge([("b", &old), ("a", &new), ("c", &old)]) else {
            panic!("fit")
        };
        assert_eq!((count, node.as_str(), cause.as_str()), (2, "b", "old_kubelet"));
        assert_eq!(judge([("a", &new)]), Fitness::Fit);
        assert_eq!(judge([]), Fitness::Fit);
    }
}
