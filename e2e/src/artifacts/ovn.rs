//! Octavia's driver for OVN.

use std::path::PathBuf;

use anyhow::Result;

use super::Artifacts;
use crate::artifacts::release::Release;
use crate::machine::cache::Key;

/// The version that belongs to [`Release::NEWEST`]; what it needs is in the list of that release.
const PROVIDER: &str = "ovn-octavia-provider==11.0.0";

impl Artifacts {
    /// The folder for `PYTHONPATH` with the driver.
    pub(crate) fn ovn_provider(&self) -> Result<PathBuf> {
        let pip = self.openstack(Release::NEWEST)?.join("bin/pip");
        let (name, key) = provider_entry();
        self.entry(&name, &key, |folder| self.fetch_from_pypi(&pip, PROVIDER, folder))
    }
}

pub(super) fn provider_entry() -> (String, Key) {
    ("ovn-provider".to_owned(), Key::of(&[PROVIDER]))
}
