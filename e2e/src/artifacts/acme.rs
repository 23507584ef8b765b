//! cert-manager and Pebble, the ACME server of Let's Encrypt for tests.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::{Artifacts, GoBuild, pinned_version, source};
use crate::machine::process::run;

/// The module with what cert-manager's programs are made of.
const MODULE: &str = "github.com/cert-manager/cert-manager";
/// Manifests in it: its types, and the rights of its controller.
const MANIFESTS: [&str; 2] = ["deploy/crds", "deploy/charts/cert-manager/templates"];

/// cert-manager as it is built.
#[derive(Clone, Debug)]
pub(crate) struct CertManager {
    folder: PathBuf,
    /// Such as `v1.21.2`.
    pub version: String,
}

impl CertManager {
    /// The program that runs its controllers.
    pub(crate) fn controller(&self) -> PathBuf {
        self.folder.join("controller")
    }

    /// The program that answers challenges.
    pub(crate) fn solver(&self) -> PathBuf {
        self.folder.join("acmesolver")
    }

    /// A file or folder of its sources.
    pub(crate) fn manifest(&self, path: &str) -> PathBuf {
        self.folder.join(path)
    }
}

impl Artifacts {
    /// cert-manager, with the manifests of the same sources.
    pub(crate) fn cert_manager(&self) -> Result<CertManager> {
        let (how, version) = cert_manager_build()?;
        let folder = self.entry("cert-manager", &how.key()?, |folder| {
            how.build("cert-manager", folder, folder, &["./controller", "./acmesolver"], self.pace)?;
            copy_manifests(&how.module, folder)
        })?;
        Ok(CertManager { folder, version })
    }

    pub(crate) fn pebble(&self) -> Result<PathBuf> {
        self.go("pebble", &pebble_build(), "pebble", "github.com/letsencrypt/pebble/v2/cmd/pebble")
    }
}

/// What cert-manager is made from, and its version, which it reports as the released one does.
pub(super) fn cert_manager_build() -> Result<(GoBuild, String)> {
    let module = source("tools/cert-manager");
    let version = pinned_version(&module, MODULE)?;
    let new = GoBuild::new(module, format!("-s -w -X {MODULE}/pkg/util.AppVersion={version}"));
    Ok((GoBuild { sources: &["controller/main.go", "acmesolver/main.go"], ..new }, version))
}

pub(super) fn pebble_build() -> GoBuild {
    GoBuild::new(source("tools/pebble"), "-s -w")
}

/// Takes the manifests from the sources that were built, whose sum is in `go.sum`.
fn copy_manifests(module: &Path, entry: &Path) -> Result<()> {
    let mut list = Command::new("go");
    let sources = run(list.current_dir(module).args(["list", "-m", "-f", "{{.Dir}}", MODULE]))?;
    for path in MANIFESTS {
        let to = entry.join(path);
        std::fs::create_dir_all(&to)?;
        for file in std::fs::read_dir(Path::new(sources.trim()).join(path))? {
            let file = file?;
            std::fs::copy(file.path(), to.join(file.file_name()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_programs_are_made_from_is_there() {
        let (cert_manager, version) = cert_manager_build().unwrap();
        assert!(version.starts_with("v1."), "{version}");
        assert!(cert_manager.key().is_ok() && pebble_build().key().is_ok());
    }
}
