//! What an Octavia can do, by its API version.

use std::time::Duration;

use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tracing::{debug, info};

use super::Octavia;
use crate::client::Paths;
use crate::error::{ApiError, DecodeError};
use crate::transport::Service;

/// What an Octavia can do. Octavia has no microversion header: the newest version it lists is the one that answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OctaviaFeatures {
    /// Highest version listed, major and minor.
    pub version: (u32, u32),
}

impl OctaviaFeatures {
    /// Features of a version.
    pub const fn of(major: u32, minor: u32) -> Self {
        Self { version: (major, minor) }
    }

    /// Timeouts of listeners.
    pub fn timeouts(self) -> bool {
        self.version >= (2, 1)
    }

    /// Tags.
    pub fn tags(self) -> bool {
        self.version >= (2, 5)
    }

    /// Flavors.
    pub fn flavors(self) -> bool {
        self.version >= (2, 6)
    }

    /// `allowed_cidrs` of listeners.
    pub fn allowed_cidrs(self) -> bool {
        self.version >= (2, 12)
    }

    /// Availability zones.
    pub fn availability_zones(self) -> bool {
        self.version >= (2, 14)
    }

    /// HTTP health monitors on UDP pools.
    pub fn http_monitor_on_udp(self) -> bool {
        self.version >= (2, 16)
    }

    /// More than one VIP address.
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

/// For how long a version list is good. Octavia is upgraded while this program runs.
const GOOD_FOR: Duration = Duration::from_secs(6 * 3600);
/// Up to so much longer, by chance: many processes that began together ask apart.
const JITTER: Duration = Duration::from_secs(3600);
/// A list that is doubted is asked for again after so long, and so is one that could not be had.
const AGAIN: Duration = Duration::from_secs(60);

/// What is known of the versions, and until when.
#[derive(Debug, Default)]
pub(super) struct Versions {
    known: Mutex<Option<Known>>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    features: OctaviaFeatures,
    asked: Instant,
    good_for: Duration,
}

impl Known {
    fn new(features: OctaviaFeatures) -> Self {
        let good_for = GOOD_FOR + JITTER.mul_f64(fastrand::f64());
        Self { features, asked: Instant::now(), good_for }
    }

    fn is_good(&self) -> bool {
        self.asked.elapsed() < self.good_for
    }
}

impl Octavia {
    /// What this Octavia can do. Asked for again every six to seven hours; a failure never means "can do nothing": what
    /// was known before stays.
    ///
    /// # Errors
    /// Any [`ApiError`] where nothing is known; [`crate::ErrorKind::Decode`] when no listed version can be understood.
    pub async fn api_versions(&self) -> Result<OctaviaFeatures, ApiError> {
        let mut known = self.versions.known.lock().await;
        let before = *known;
        if let Some(before) = before.filter(Known::is_good) {
            return Ok(before.features);
        }
        match (self.discover().await, before) {
            (Ok(features), before) => {
                if before.is_some_and(|before| before.features != features) {
                    info!(version = ?features.version, "the API version of Octavia has changed");
                }
                *known = Some(Known::new(features));
                Ok(features)
            }
            (Err(error), Some(before)) => {
                debug!(%error, "the API versions of Octavia could not be read: keeping what was known");
                *known = Some(Known { asked: Instant::now(), good_for: AGAIN, ..before });
                Ok(before.features)
            }
            (Err(error), None) => Err(error),
        }
    }

    /// Has the version list asked for again soon: Octavia refused what its version should take.
    pub async fn doubt_api_versions(&self) {
        if let Some(known) = self.versions.known.lock().await.as_mut() {
            known.good_for = known.good_for.min(AGAIN);
        }
    }

    async fn discover(&self) -> Result<OctaviaFeatures, ApiError> {
        let call = Paths::new(Service::LoadBalancer, &[]).get("version_list", &[]);
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
