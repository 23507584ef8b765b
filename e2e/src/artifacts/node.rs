//! What a real node and its operator have: kubelet and scheduler, Helm and kubectl, the image of the program under test.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::{Artifacts, GoBuild, Minor, pinned_version, source, version_flags};
use crate::machine::cache::{Key, beside};
use crate::machine::process::run_logged;

/// What the image is made from, beside the tool chain.
const SOURCES: [&str; 4] = ["../crates", "../Cargo.toml", "../Cargo.lock", "../image"];
/// The folder of the programs of a node; a module of its own, because they need more modules than the control plane does.
const MODULE: &str = "tools/kubelet-1.36";

/// The image as `make image` leaves it.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    folder: PathBuf,
}

impl Image {
    pub(crate) fn program(&self) -> PathBuf {
        self.folder.join("openstack-ccm")
    }

    /// Packs the same program with other certificates of authorities, as docs/guides/build-the-image.md says.
    ///
    /// # Errors
    /// The script fails.
    pub(crate) fn with_authorities(&self, bundle: &Path, archive: &Path) -> Result<()> {
        let mut pack = Command::new(source("../image/build.py"));
        pack.arg("--binary").arg(format!("amd64={}", self.program().display()));
        pack.arg("--bill").arg(self.folder.join("openstack-ccm.amd64.cdx.json"));
        pack.arg("--ca-bundle").arg(bundle).arg("--output").arg(archive);
        run_logged(&beside(archive, "log"), &mut pack)
    }
}

impl Artifacts {
    /// `kubelet` or `kube-scheduler`.
    pub(crate) fn of_node(&self, program: &str) -> Result<PathBuf> {
        let package = format!("k8s.io/kubernetes/cmd/{program}");
        self.go(&node_name(program), &node_build()?, program, &package)
    }

    /// The Helm that the chart's own tests use.
    pub(crate) fn helm(&self) -> Result<PathBuf> {
        self.go("helm", &helm_build(), "helm", "helm.sh/helm/v3/cmd/helm")
    }

    pub(crate) fn kubectl(&self) -> Result<PathBuf> {
        self.go("kubectl", &kubectl_build(), "kubectl", "k8s.io/kubernetes/cmd/kubectl")
    }

    /// The image of `make image`.
    pub(crate) fn image(&self) -> Result<Image> {
        let (name, key) = image_entry()?;
        let folder = self.entry(&name, &key, |folder| {
            let mut build = self.pace.command("make");
            build
                .arg("image")
                .arg(format!("IMAGE_ARGS=--output {}", folder.join("openstack-ccm.tar").display()));
            self.pace.run(&beside(folder, "log"), build.current_dir(source("..")))?;
            let target =
                std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| source("../target"), PathBuf::from);
            let program = target.join("x86_64-unknown-linux-musl/dist/openstack-ccm");
            std::fs::copy(&program, folder.join("openstack-ccm"))
                .with_context(|| format!("make image has left no {}", program.display()))?;
            Ok(())
        })?;
        Ok(Image { folder })
    }
}

pub(super) fn node_entry(program: &str) -> Result<(String, Key)> {
    node_build()?.entry(&node_name(program))
}

fn node_name(program: &str) -> String {
    format!("{program}-{}", Minor::V1_36.text())
}

fn node_build() -> Result<GoBuild> {
    let linker = version_flags(&pinned_version(&source(MODULE), "k8s.io/kubernetes")?);
    Ok(GoBuild::new(source(MODULE), linker))
}

pub(super) fn helm_build() -> GoBuild {
    GoBuild::new(source("../charts/tools/helm"), "-s -w")
}

pub(super) fn kubectl_build() -> GoBuild {
    GoBuild::new(source("../charts/tools/kubectl"), "-s -w")
}

pub(super) fn image_entry() -> Result<(String, Key)> {
    let key = SOURCES.iter().try_fold(Key::of(&["image"]), |key, path| key.file(&source(path)))?;
    Ok(("image".to_owned(), key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubelet_and_api_server_are_of_one_version() {
        let version = pinned_version(&source(MODULE), "k8s.io/kubernetes").unwrap();
        assert_eq!(version, Minor::V1_36.kubelet_version());
    }
}
