//! What an Octavia can do, by its API version.

use serde::Deserialize;

use super::{Octavia, SERVICE};
use crate::client::Call;
use crate::error::{ApiError, DecodeError};

/// What an Octavia can do. Octavia has no microversion header: the newest version it lists is the one that answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OctaviaFeatures {
    /// Highest version listed, major and minor.
    pub version: (u32, u32),
}

impl OctaviaFeatures {
    /// Features of a version.
    #[must_use]
    pub const fn of(major: u32, minor: u32) -> Self {
        Self { version: (major, minor) }
    }

    /// Timeouts of listeners.
    #[must_use]
    pub fn timeouts(self) -> bool {
        self.version >= (2, 1)
    }

    /// Tags.
    #[must_use]
    pub fn tags(self) -> bool {
        self.version >= (2, 5)
    }

    /// Flavors.
    #[must_use]
    pub fn flavors(self) -> bool {
        self.version >= (2, 6)
    }

    /// `allowed_cidrs` of listeners.
    #[must_use]
    pub fn allowed_cidrs(self) -> bool {
        self.version >= (2, 12)
    }

    /// Availability zones.
    #[must_use]
    pub fn availability_zones(self) -> bool {
        self.version >= (2, 14)
    }

    /// HTTP health monitors on UDP pools.
    #[must_use]
    pub fn http_monitor_on_udp(self) -> bool {
        self.version >= (2, 16)
    }

    /// More than one VIP address.
    #[must_use]
    pub fn additional_vips(self) -> bool {
        self.version >= (2, 26)
    }
}

#[derive(Deserialize)]
struct VersionDocument {
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Version {
    id: String,
}

impl Octavia {
    /// What this Octavia can do. Asked once; a failure is not remembered, and never means "can do nothing".
    ///
    /// # Errors
    /// Any [`ApiError`]; [`crate::ErrorKind::Decode`] when no listed version can be understood.
    pub async fn api_versions(&self) -> Result<OctaviaFeatures, ApiError> {
        self.features.get_or_try_init(|| self.discover()).await.copied()
    }

    async fn discover(&self) -> Result<OctaviaFeatures, ApiError> {
        let call = Call::get("version_list", SERVICE, &[]);
        let document: VersionDocument = self.client.fetch_all(&call).await?;
        let versions = document.versions.iter().filter_map(|version| parse(&version.id));
        // The list has no promised order.
        let version = versions.max().ok_or_else(|| call.undecodable(DecodeError::NoVersion))?;
        Ok(OctaviaFeatures { version })
    }
}

/// `v2.30` is (2, 30); `v2` is (2, 0).
fn parse(id: &str) -> Option<(u32, u32)> {
    let numbers = id.strip_prefix('v')?;
    match numbers.split_once('.') {
        Some((major, minor)) => Some((major.parse().ok()?, minor.parse().ok()?)),
        None => Some((numbers.parse().ok()?, 0)),
    }
}
