//! What groups of scenarios are made of, as one list: what of it is missing, how long that takes, and how far a run is with it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use super::release::Release;
use super::{Artifacts, Framework, Minor, OccmRelease};
use crate::machine::cache::{Key, beside};

/// Something that is built or installed before a world needs it, because worlds have no way to a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    OpenStack(Release),
    /// The drivers of Octavia that make amphorae local processes.
    Drivers(Release),
    Etcd,
    /// A program of Kubernetes by the name of its folder in `cmd`.
    Kubernetes(Minor, &'static str),
    /// The load balancer controller of another cloud.
    Owner(Framework),
    Occm(OccmRelease),
    Mermaid,
    Envoy,
    Traefik,
    OvnProvider,
    Pebble,
    CertManager,
    /// `kubelet` or `kube-scheduler`.
    Node(&'static str),
    Helm,
    Kubectl,
    /// The image of `make image`.
    Image,
    LastRelease,
}

impl Part {
    /// The longest time that it takes on two busy cores with nothing in the compiler's cache.
    pub(crate) fn longest(self) -> Duration {
        let seconds = match self {
            Self::OpenStack(_) => 450,
            Self::Image => 1500,
            Self::LastRelease => 900,
            Self::Kubernetes(..) | Self::Node(_) | Self::Occm(_) | Self::Traefik => 600,
            Self::Owner(_) | Self::CertManager | Self::Helm | Self::Kubectl => 300,
            Self::Etcd => 180,
            Self::Drivers(_) | Self::Mermaid | Self::Envoy | Self::OvnProvider | Self::Pebble => 30,
        };
        Duration::from_secs(seconds)
    }

    /// Whether both are compiled from one module, so that the second takes little more.
    pub(crate) fn shares_build_with(self, other: Self) -> bool {
        match (self, other) {
            (Self::Kubernetes(one, _), Self::Kubernetes(another, _)) => one == another,
            (Self::Node(_), Self::Node(_)) => true,
            _ => false,
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OpenStack(release) => write!(formatter, "OpenStack {}", release.name()),
            Self::Drivers(release) => write!(formatter, "Octavia's drivers for {}", release.name()),
            Self::Etcd => formatter.write_str("etcd"),
            Self::Kubernetes(minor, program) => write!(formatter, "{program} {}", minor.text()),
            Self::Owner(framework) => write!(formatter, "cloud-provider {}", framework.text()),
            Self::Occm(release) => write!(formatter, "OCCM {}", release.text()),
            Self::Mermaid => formatter.write_str("mermaid"),
            Self::Envoy => formatter.write_str("Envoy"),
            Self::Traefik => formatter.write_str("Traefik"),
            Self::OvnProvider => formatter.write_str("Octavia's driver for OVN"),
            Self::Pebble => formatter.write_str("Pebble"),
            Self::CertManager => formatter.write_str("cert-manager"),
            Self::Node(program) => write!(formatter, "{program} {}", Minor::V1_36.text()),
            Self::Helm => formatter.write_str("Helm"),
            Self::Kubectl => formatter.write_str("kubectl"),
            Self::Image => formatter.write_str("the image"),
            Self::LastRelease => write!(formatter, "openstack-ccm {}", super::last_release::VERSION),
        }
    }
}

impl Artifacts {
    /// Builds or installs a part, if it is missing.
    ///
    /// # Errors
    /// It cannot be built; the text names the log.
    pub(crate) fn make(&self, part: Part) -> Result<()> {
        match part {
            Part::OpenStack(release) => self.openstack(release).map(drop),
            Part::Drivers(release) => self.drivers(release).map(drop),
            Part::Etcd => self.etcd().map(drop),
            Part::Kubernetes(minor, program) => self.kubernetes(minor, program).map(drop),
            Part::Owner(framework) => self.owner(framework).map(drop),
            Part::Occm(release) => self.occm(release).map(drop),
            Part::Mermaid => self.mermaid().map(drop),
            Part::Envoy => self.envoy().map(drop),
            Part::Traefik => self.traefik().map(drop),
            Part::OvnProvider => self.ovn_provider().map(drop),
            Part::Pebble => self.pebble().map(drop),
            Part::CertManager => self.cert_manager().map(drop),
            Part::Node(program) => self.of_node(program).map(drop),
            Part::Helm => self.helm().map(drop),
            Part::Kubectl => self.kubectl().map(drop),
            Part::Image => self.image().map(drop),
            Part::LastRelease => self.last_release().map(drop),
        }
    }

    /// Whether there is nothing to build for a part.
    ///
    /// # Errors
    /// A file that the part is made from cannot be read.
    pub(crate) fn is_made(&self, part: Part) -> Result<bool> {
        if part == Part::Mermaid && !Self::has_npm() {
            return Ok(true);
        }
        let (name, key) = entry(part)?;
        Ok(self.cache.has(&name, &key))
    }

    /// Where the build of a part is logged.
    ///
    /// # Errors
    /// A file that the part is made from cannot be read.
    pub(crate) fn log(&self, part: Part) -> Result<PathBuf> {
        let (name, key) = entry(part)?;
        Ok(beside(&self.cache.path(&name, &key), "log"))
    }
}

/// Name and key of a part in the cache.
fn entry(part: Part) -> Result<(String, Key)> {
    match part {
        Part::OpenStack(release) => super::environment(release).map(|(name, key, _)| (name, key)),
        Part::Drivers(release) => super::drivers_entry(release),
        Part::Etcd => super::etcd_build().entry("etcd"),
        Part::Kubernetes(minor, program) => super::kubernetes_entry(minor, program),
        Part::Owner(framework) => super::owner_build(framework).entry(&super::owner_name(framework)),
        Part::Occm(release) => super::occm_build(release).entry(&super::occm_name(release)),
        Part::Mermaid => super::mermaid_entry(),
        Part::Envoy => Ok(super::gateways::envoy_entry()),
        Part::Traefik => super::gateways::traefik_build().entry("traefik"),
        Part::OvnProvider => Ok(super::ovn::provider_entry()),
        Part::Pebble => super::acme::pebble_build().entry("pebble"),
        Part::CertManager => super::acme::cert_manager_build()?.0.entry("cert-manager"),
        Part::Node(program) => super::node::node_entry(program),
        Part::Helm => super::node::helm_build().entry("helm"),
        Part::Kubectl => super::node::kubectl_build().entry("kubectl"),
        Part::Image => super::node::image_entry(),
        Part::LastRelease => Ok(super::last_release::last_release_entry()),
    }
}
