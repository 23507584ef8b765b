//! What the images that a node reports show about its service proxy.
//!
//! A kubelet reports the 50 largest images only (`nodeStatusMaxImages`), and distributions have names of their own for the
//! same programs, or none at all: k3s has kube-proxy in its binary. So a present image says something, a missing image
//! next to nothing.

use super::{Replacement, Version};

/// How many images a kubelet reports by default (`nodeStatusMaxImages`); a list of that length may have been cut.
const REPORTED_IMAGES: usize = 50;

/// Whether kube-proxy runs on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KubeProxy {
    /// Its image is reported.
    Seen,
    /// Its image would be reported, and is not.
    Absent,
    /// Its image might not be reported.
    Unseen,
}

/// The newest version of each known image on a node; older ones are left-overs of upgrades.
#[derive(Debug, Default)]
pub(super) struct Images {
    kube_proxy: Option<Version>,
    /// RKE2's image of all control plane components and of kube-proxy.
    hardened_kubernetes: bool,
    cilium: Option<Version>,
    antrea: Option<Version>,
    kube_router: Option<Version>,
    calico: Option<Version>,
}

impl Images {
    pub(super) fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut images = Self::default();
        for name in names {
            let Some((repository, version)) = repository_and_version(name) else { continue };
            let (namespace, image) = match repository.rsplit_once('/') {
                Some((path, image)) => (path.rsplit('/').next().unwrap_or(path), image),
                None => ("", repository),
            };
            let newest = |known: Option<Version>| known.max(Some(version));
            match (namespace, image) {
                (_, "kube-proxy") => images.kube_proxy = newest(images.kube_proxy),
                // RKE2: scripts/build-images and Dockerfile of rancher/rke2.
                ("rancher", "hardened-kubernetes") => images.hardened_kubernetes = true,
                // Mirrors have names of their own.
                (_, "cilium" | "cilium-agent") | ("rancher", "mirrored-cilium-cilium") => {
                    images.cilium = newest(images.cilium);
                }
                ("antrea", _) if image.starts_with("antrea-") => images.antrea = newest(images.antrea),
                (_, "kube-router") => images.kube_router = newest(images.kube_router),
                ("calico", "node") | ("rancher", "mirrored-calico-node") => {
                    images.calico = newest(images.calico);
                }
                _ => {}
            }
        }
        images
    }

    /// Whether kube-proxy runs on the node, as far as its images show. `reported` is their number.
    pub(super) fn kube_proxy(
        &self,
        kubelet_version: &str,
        control_plane: bool,
        reported: usize,
    ) -> KubeProxy {
        // On a control plane node the same image is there for the API server.
        if self.kube_proxy.is_some() || (self.hardened_kubernetes && !control_plane) {
            return KubeProxy::Seen;
        }
        let of_rancher = ["+k3s", "+rke2"].iter().any(|vendor| kubelet_version.contains(vendor));
        if of_rancher || reported >= REPORTED_IMAGES { KubeProxy::Unseen } else { KubeProxy::Absent }
    }

    /// Returns the version of kube-proxy, if its image is reported.
    pub(super) fn kube_proxy_version(&self) -> Option<Version> {
        self.kube_proxy
    }

    /// Returns a replacement of kube-proxy that ignores the mode in the version on the node.
    pub(super) fn unfit_replacement(&self, kube_proxy: KubeProxy) -> Option<Replacement> {
        // Antrea takes pods' traffic to load balancers also alongside kube-proxy; the others only instead of it.
        if let Some(version) = self.antrea.filter(|version| *version < Version(2, 0, 0)) {
            return Some(Replacement::Antrea(version));
        }
        if kube_proxy == KubeProxy::Seen {
            return None;
        }
        let cilium =
            self.cilium.filter(|version| *version < Version(1, 17, 0) || *version == Version(1, 18, 0));
        let kube_router = self.kube_router.filter(|version| *version < Version(2, 9, 0));
        // A node does not show whether Calico is its service proxy (eBPF). If kube-proxy may run there, Calico is taken for
        // what it mostly is, a network without a service proxy.
        let calico =
            self.calico.filter(|version| *version < Version(3, 29, 2) && kube_proxy == KubeProxy::Absent);
        cilium
            .map(Replacement::Cilium)
            .or(kube_router.map(Replacement::KubeRouter))
            .or(calico.map(Replacement::CalicoEbpf))
    }
}

/// Splits `registry/path/image:v1.2.3@sha256:...` into path and version; images without a version show nothing.
fn repository_and_version(name: &str) -> Option<(&str, Version)> {
    let tagged = name.split('@').next().unwrap_or(name);
    let (repository, tag) = tagged.rsplit_once(':')?;
    Version::parse(tag).map(|version| (repository, version))
}
