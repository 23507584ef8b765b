//! Whether the service proxies on the nodes honour `ipMode: Proxy`.
//!
//! Kubernetes has no way to ask a service proxy for its features (KEP-4004 removed the version from the node), so
//! this is judged by what a node shows: the kubelet's version stands in for kube-proxy's, and replacements of
//! kube-proxy are recognised by their node annotations and by the images that the node holds.

use std::fmt;

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
}

impl fmt::Display for Replacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cilium(version) => write!(f, "Cilium {version}"),
            Self::Antrea(version) => write!(f, "Antrea {version}"),
            Self::KubeRouter(version) => write!(f, "kube-router {version}"),
            Self::OvnKubernetes => f.write_str("OVN-Kubernetes"),
            Self::KubeOvn => f.write_str("kube-ovn"),
        }
    }
}

/// What one node tells about its service proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    kubelet: String,
    windows: bool,
    replacement: Option<Replacement>,
}

impl Evidence {
    /// Reduces the raw facts of a node: `status.nodeInfo.kubeletVersion`, `status.nodeInfo.operatingSystem`, the keys
    /// of `metadata.annotations` and the names in `status.images`.
    pub fn new<'a>(
        kubelet_version: &str,
        operating_system: &str,
        annotation_keys: impl IntoIterator<Item = &'a str>,
        image_names: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let images = Images::from_names(image_names);
        let replacement = annotation_keys
            .into_iter()
            .find_map(|key| replacement_by_annotation(key, images.kube_proxy))
            .or_else(|| images.unfit_replacement());
        Self {
            kubelet: kubelet_version.to_owned(),
            windows: operating_system.eq_ignore_ascii_case("windows"),
            replacement,
        }
    }

    /// A node of which only the kubelet's version matters.
    pub fn kubelet(version: &str) -> Self {
        Self::new(version, "linux", [], [])
    }

    /// Why this node does not honour the field, if it does not.
    fn unfit(&self) -> Option<Cause> {
        if let Some(replacement) = self.replacement {
            return Some(Cause::Replacement(replacement));
        }
        if self.windows {
            return Some(Cause::Windows);
        }
        // Nothing runs on a node whose kubelet has not reported yet.
        if self.kubelet.is_empty() {
            return None;
        }
        match Version::parse(&self.kubelet) {
            None => Some(Cause::UnknownVersion(self.kubelet.clone())),
            Some(version) if version < FIRST_FIT_KUBELET => Some(Cause::OldKubelet(self.kubelet.clone())),
            Some(_) => None,
        }
    }
}

fn replacement_by_annotation(key: &str, kube_proxy: bool) -> Option<Replacement> {
    match key {
        // Both set it on every node that they manage. OVN-Kubernetes always replaces kube-proxy.
        "k8s.ovn.org/node-subnets" => Some(Replacement::OvnKubernetes),
        "ovn.kubernetes.io/allocated" if !kube_proxy => Some(Replacement::KubeOvn),
        _ => None,
    }
}

/// The newest version of each known image on a node; older ones are left-overs of upgrades.
#[derive(Default)]
struct Images {
    kube_proxy: bool,
    cilium: Option<Version>,
    antrea: Option<Version>,
    kube_router: Option<Version>,
}

impl Images {
    fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut images = Self::default();
        for name in names {
            let Some((repository, version)) = repository_and_version(name) else { continue };
            let (namespace, image) = match repository.rsplit_once('/') {
                Some((path, image)) => (path.rsplit('/').next().unwrap_or(path), image),
                None => ("", repository),
            };
            match (namespace, image) {
                (_, "kube-proxy") => images.kube_proxy = true,
                ("cilium", "cilium") => images.cilium = images.cilium.max(Some(version)),
                ("antrea", _) if image.starts_with("antrea-") => {
                    images.antrea = images.antrea.max(Some(version));
                }
                (_, "kube-router") => images.kube_router = images.kube_router.max(Some(version)),
                _ => {}
            }
        }
        images
    }

    fn unfit_replacement(&self) -> Option<Replacement> {
        // Antrea takes pods' traffic to load balancers also beside kube-proxy; the others only instead of it.
        if let Some(version) = self.antrea.filter(|version| *version < Version(2, 0, 0)) {
            return Some(Replacement::Antrea(version));
        }
        if self.kube_proxy {
            return None;
        }
        let cilium =
            self.cilium.filter(|version| *version < Version(1, 17, 0) || *version == Version(1, 18, 0));
        let kube_router = self.kube_router.filter(|version| *version < Version(2, 9, 0));
        cilium.map(Replacement::Cilium).or(kube_router.map(Replacement::KubeRouter))
    }
}

/// Splits `registry/path/image:v1.2.3@sha256:...` into path and version; images without a version tell nothing.
fn repository_and_version(name: &str) -> Option<(&str, Version)> {
    let tagged = name.split('@').next().unwrap_or(name);
    let (repository, tag) = tagged.rsplit_once(':')?;
    Version::parse(tag).map(|version| (repository, version))
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
}

impl Cause {
    /// Stable label value for metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::OldKubelet(_) => "old_kubelet",
            Self::UnknownVersion(_) => "unknown_kubelet_version",
            Self::Windows => "windows",
            Self::Replacement(_) => "service_proxy_replacement",
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

    #[rstest]
    #[case::new_kubelet("v1.30.0", "linux", &[], &[], None)]
    #[case::old_kubelet("v1.29.15", "linux", &[], &[], Some("old_kubelet"))]
    #[case::odd_kubelet("unknown", "linux", &[], &[], Some("unknown_kubelet_version"))]
    #[case::kubelet_not_reported_yet("", "", &[], &[], None)]
    #[case::windows("v1.36.0", "windows", &[], &[], Some("windows"))]
    #[case::ovn("v1.36.0", "linux", &["k8s.ovn.org/node-subnets"], &[], Some("service_proxy_replacement"))]
    #[case::kube_ovn("v1.36.0", "linux", &["ovn.kubernetes.io/allocated"], &[], Some("service_proxy_replacement"))]
    #[case::kube_ovn_beside_kube_proxy("v1.36.0", "linux", &["ovn.kubernetes.io/allocated"],
        &["registry.example/kube-proxy:v1.36.0"], None)]
    #[case::cilium_old("v1.36.0", "linux", &[], &["quay.example/cilium/cilium:v1.16.9"], Some("service_proxy_replacement"))]
    #[case::cilium_regressed("v1.36.0", "linux", &[], &["quay.example/cilium/cilium:v1.18.0@sha256:00"],
        Some("service_proxy_replacement"))]
    #[case::cilium_fixed("v1.36.0", "linux", &[],
        &["quay.example/cilium/cilium:v1.18.0", "quay.example/cilium/cilium:v1.18.1"], None)]
    #[case::cilium_beside_kube_proxy("v1.36.0", "linux", &[],
        &["quay.example/cilium/cilium:v1.16.0", "registry.example/kube-proxy:v1.36.0"], None)]
    #[case::cilium_operator_says_nothing("v1.36.0", "linux", &[],
        &["quay.example/cilium/operator-generic:v1.16.0"], None)]
    #[case::antrea_beside_kube_proxy("v1.36.0", "linux", &[],
        &["antrea/antrea-agent-ubuntu:v1.15.1", "kube-proxy:v1.36.0"], Some("service_proxy_replacement"))]
    #[case::registry_port_is_not_a_tag("v1.36.0", "linux", &[], &["registry.example:5000/cilium/cilium"], None)]
    fn nodes_are_judged_by_what_they_show(
        #[case] kubelet: &str,
        #[case] operating_system: &str,
        #[case] annotations: &[&str],
        #[case] images: &[&str],
        #[case] expected: Option<&str>,
    ) {
        let evidence =
            Evidence::new(kubelet, operating_system, annotations.iter().copied(), images.iter().copied());
        assert_eq!(evidence.unfit().map(|cause| cause.as_str()), expected);
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
