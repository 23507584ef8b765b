//! The verdict on the service proxy of a node, and the judgement over all nodes.

use std::fmt;

use super::Version;

/// Whether a node's service proxy honours `ipMode: Proxy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It honours the mode, or no service proxy there could short-circuit.
    Fit,
    /// It ignores the mode.
    Unfit,
}

/// The source of a verdict, the weakest first: of several verdicts on one node that of the strongest counts
/// ([`prevailing`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The kubelet's version and operating system, which stand in for kube-proxy's.
    Version,
    /// The programs that the node shows: its images, and the annotations of network plugins.
    Image,
    /// kube-proxy itself, asked for its feature gates.
    KubeProxy,
    /// The canary, which saw what the service proxy does.
    Canary,
}

impl Source {
    /// Stable label value for metrics and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Version => "version",
            Self::Image => "image",
            Self::KubeProxy => "kube_proxy",
            Self::Canary => "canary",
        }
    }
}

/// The verdict of one source on the service proxy of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeVerdict {
    /// Whether it honours the mode.
    pub verdict: Verdict,
    /// The source of the verdict.
    pub source: Source,
    /// The reason for the verdict.
    pub cause: Cause,
}

impl NodeVerdict {
    /// Creates a verdict that the node honours the mode.
    pub fn fit(source: Source, cause: Cause) -> Self {
        Self { verdict: Verdict::Fit, source, cause }
    }

    /// Creates a verdict that the node ignores it.
    pub fn unfit(source: Source, cause: Cause) -> Self {
        Self { verdict: Verdict::Unfit, source, cause }
    }
}

/// Returns the verdict of the strongest source; of several from one source the first.
pub fn prevailing<'a>(verdicts: impl IntoIterator<Item = &'a NodeVerdict>) -> Option<&'a NodeVerdict> {
    verdicts.into_iter().reduce(|best, other| if other.source > best.source { other } else { best })
}

/// Why a node's service proxy counts as honouring the mode, or as short-circuiting in spite of `Proxy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The kubelet is of 1.30 or newer, and kube-proxy is taken to be of the same release.
    NewKubelet(String),
    /// A virtual node, on which nothing of this cluster runs.
    VirtualNode,
    /// The kubelet has not reported yet, so nothing runs there.
    NotReported,
    /// The kubelet is older than 1.30, and kube-proxy is taken to be of the same release.
    OldKubelet(String),
    /// The kubelet's version is not a version.
    UnknownVersion(String),
    /// kube-proxy on Windows does not evaluate the field.
    Windows,
    /// A replacement of kube-proxy that does not evaluate the field.
    Replacement(Replacement),
    /// A program that does not evaluate the field if it replaces kube-proxy, which this node does not show.
    PossibleReplacement(Replacement),
    /// The canary saw that addresses with `ipMode: Proxy` are not short-circuited.
    SeenToHonour,
    /// The canary saw that such addresses are short-circuited.
    SeenToIgnore,
    /// kube-proxy says that its gate is on.
    GateOn,
    /// kube-proxy says that its gate is off.
    GateOff,
    /// kube-proxy has no such gate, because of its version: older than 1.29, or 1.36 or newer.
    KubeProxyVersion(String),
}

impl Cause {
    /// Stable label value for metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::NewKubelet(_) => "new_kubelet",
            Self::VirtualNode => "virtual_node",
            Self::NotReported => "not_reported",
            Self::OldKubelet(_) => "old_kubelet",
            Self::UnknownVersion(_) => "unknown_kubelet_version",
            Self::Windows => "windows",
            Self::Replacement(_) => "service_proxy_replacement",
            Self::PossibleReplacement(_) => "possible_service_proxy_replacement",
            Self::SeenToHonour => "seen_to_honour",
            Self::SeenToIgnore => "seen_to_ignore",
            Self::GateOn => "kube_proxy_gate_on",
            Self::GateOff => "kube_proxy_gate_off",
            Self::KubeProxyVersion(_) => "kube_proxy_version",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NewKubelet(version) => write!(f, "kubelet {version}"),
            Self::VirtualNode => f.write_str("no service proxy runs on a virtual node"),
            Self::NotReported => f.write_str("its kubelet has not reported yet"),
            Self::OldKubelet(version) => write!(f, "kubelet {version} is older than 1.30"),
            Self::UnknownVersion(version) => write!(f, "its kubelet version {version:?} cannot be parsed"),
            Self::Windows => f.write_str("kube-proxy on Windows ignores ipMode"),
            Self::SeenToHonour => f.write_str(
                "the canary found that its service proxy does not short-circuit addresses with ipMode Proxy",
            ),
            Self::SeenToIgnore => f.write_str(
                "the canary found that its service proxy short-circuits addresses with ipMode Proxy",
            ),
            Self::GateOn => f.write_str("its kube-proxy has the feature gate LoadBalancerIPMode on"),
            Self::GateOff => f.write_str("its kube-proxy has the feature gate LoadBalancerIPMode off"),
            Self::KubeProxyVersion(version) => write!(f, "its kube-proxy is {version}"),
            Self::Replacement(replacement) => write!(f, "{replacement} ignores ipMode"),
            Self::PossibleReplacement(replacement) => {
                write!(
                    f,
                    "{replacement} ignores ipMode if it replaces kube-proxy on this node, which openstack-ccm cannot determine"
                )
            }
        }
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

/// The judgement over all nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Fitness {
    /// Every node honours the field. A cluster without nodes is fit: nothing short-circuits.
    #[default]
    Fit,
    /// At least one node does not honour the field.
    Unfit {
        /// Number of such nodes.
        count: usize,
        /// The first of them by name.
        node: String,
        /// Source of the verdict on that node.
        source: Source,
        /// Reason for the verdict on that node.
        cause: Cause,
    },
}

/// Judges all nodes of the cluster, not only the backends: any node may run a client.
pub fn judge<'a>(nodes: impl IntoIterator<Item = (&'a str, &'a NodeVerdict)>) -> Fitness {
    let unfit = |(_, held): &(&str, &NodeVerdict)| held.verdict == Verdict::Unfit;
    let mut unfit: Vec<(&str, &NodeVerdict)> = nodes.into_iter().filter(unfit).collect();
    unfit.sort_by_key(|(name, _)| *name);
    match unfit.first() {
        None => Fitness::Fit,
        Some((node, held)) => Fitness::Unfit {
            count: unfit.len(),
            node: (*node).to_owned(),
            source: held.source,
            cause: held.cause.clone(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn old(version: &str) -> NodeVerdict {
        NodeVerdict::unfit(Source::Version, Cause::OldKubelet(version.into()))
    }

    fn new(version: &str) -> NodeVerdict {
        NodeVerdict::fit(Source::Version, Cause::NewKubelet(version.into()))
    }

    #[test]
    fn one_old_node_makes_the_cluster_unfit_and_is_named() {
        let (new, old) = (new("v1.36.0"), old("v1.28.4"));
        let fitness = judge([("b", &old), ("a", &new), ("c", &old)]);
        let cause = Cause::OldKubelet("v1.28.4".into());
        assert_eq!(fitness, Fitness::Unfit { count: 2, node: "b".into(), source: Source::Version, cause });
        assert_eq!(judge([("a", &new)]), Fitness::Fit);
        assert_eq!(judge([]), Fitness::Fit);
    }

    #[test]
    fn the_strongest_source_stands_whatever_the_others_say() {
        let by_image = NodeVerdict::unfit(Source::Image, Cause::Replacement(Replacement::KubeOvn));
        let by_version = new("v1.36.0");
        assert_eq!(prevailing([&by_version, &by_image]), Some(&by_image));
        assert_eq!(prevailing([&by_image, &by_version]), Some(&by_image));
        assert_eq!(prevailing([&by_version]), Some(&by_version));
        assert_eq!(prevailing([]), None);
    }
}
