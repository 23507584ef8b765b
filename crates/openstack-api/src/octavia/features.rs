//! What an Octavia can do, by its API version.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use tokio::time::Instant;
use tracing::{debug, info};

use super::Octavia;
use crate::cache::{Cache, CachedAnswer, Moment};
use crate::client::Paths;
use crate::error::{ApiError, DecodeError};
use crate::optional::OptionalPart;
use crate::transport::Service;

/// What an Octavia can do. Octavia has no microversion header: the newest version it lists is the one that answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OctaviaFeatures {
    /// Highest version listed, major and minor.
    pub version: (u32, u32),
}

impl OctaviaFeatures {
    /// The oldest API that is supported: what counts where nobody can say which it is.
    pub const OLDEST: Self = Self::of(2, 0);
    /// The newest one of which it is known what it can do.
    pub const NEWEST: Self = Self::of(2, 30);

    /// Features of a version.
    pub const fn of(major: u32, minor: u32) -> Self {
        Self { version: (major, minor) }
    }

    /// Timeouts of listeners.
    pub fn timeouts(self) -> bool {
        self.version >= (2, 1)
    }

    pub fn tags(self) -> bool {
        self.version >= (2, 5)
    }

    pub fn flavors(self) -> bool {
        self.version >= (2, 6)
    }

    /// Batches of members that only add.
    pub fn additive_batches(self) -> bool {
        self.version >= (2, 11)
    }

    /// `allowed_cidrs` of listeners.
    pub fn allowed_cidrs(self) -> bool {
        self.version >= (2, 12)
    }

    /// The algorithm `SOURCE_IP_PORT`.
    pub fn source_ip_port(self) -> bool {
        self.version >= (2, 13)
    }

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
const VERSIONS_LIFETIME: Duration = Duration::from_secs(6 * 3600);
/// Up to so much longer, by chance: many processes that began together ask apart.
const MAX_JITTER: Duration = Duration::from_secs(3600);
/// A list that is doubted is asked for again after so long, and so is one that could not be had.
const REFRESH_DELAY: Duration = Duration::from_secs(60);

/// What is known of the versions.
#[derive(Debug)]
pub(super) struct Versions {
    known: Cache<(), OctaviaFeatures>,
    refresh: Mutex<Refresh>,
}

/// When what is known is asked for again.
#[derive(Clone, Copy, Debug, Default)]
struct Refresh {
    tried: Option<Instant>,
    doubted: bool,
}

impl Default for Versions {
    fn default() -> Self {
        let lifetime = VERSIONS_LIFETIME + MAX_JITTER.mul_f64(fastrand::f64());
        Self { known: Cache::new(lifetime), refresh: Mutex::default() }
    }
}

impl Versions {
    fn refresh(&self) -> MutexGuard<'_, Refresh> {
        self.refresh.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is time to ask again although there is a `known` answer. Who gets a yes has to ask.
    fn takes_refresh(&self, known: &CachedAnswer<OctaviaFeatures>) -> bool {
        let mut refresh = self.refresh();
        let rests = refresh.tried.is_some_and(|tried| tried.elapsed() < REFRESH_DELAY);
        let due = !rests && (refresh.doubted || !known.is_alive());
        if due {
            *refresh = Refresh { tried: Some(Instant::now()), doubted: false };
        }
        due
    }
}

impl Octavia {
    /// What this Octavia can do. Asked for again every six to seven hours, alongside the work: what is known serves until there is an
    /// answer, and a failure never means "can do nothing". Where the cloud refuses to say it for good, the oldest API counts.
    ///
    /// # Errors
    /// Any [`ApiError`] where nothing is known, shared by all who waited; [`crate::ErrorKind::Decode`] when no listed version can be
    /// understood.
    pub async fn api_versions(&self) -> Result<OctaviaFeatures, Arc<ApiError>> {
        if let Some(version) = self.client.octavia_api_version() {
            return Ok(OctaviaFeatures { version });
        }
        let Some(known) = self.versions.known.last(&()) else {
            if self.client.lacks(OptionalPart::Versions) {
                return Ok(OctaviaFeatures::OLDEST);
            }
            let features = match self.versions.known.get_or_fetch(&(), self.discover()).await {
                Err(_) if self.client.lacks(OptionalPart::Versions) => return Ok(OctaviaFeatures::OLDEST),
                features => features?,
            };
            self.versions.refresh().tried = Some(Instant::now());
            return Ok(features);
        };
        if self.versions.takes_refresh(&known) {
            tokio::spawn(self.clone().refresh_versions(known.value));
        }
        Ok(known.value)
    }

    async fn refresh_versions(self, before: OctaviaFeatures) {
        let asked = Moment::now();
        match self.versions.known.get_or_fetch_since(&(), asked, self.discover()).await {
            Ok(features) if features != before => {
                info!(version = ?features.version, "the API version of Octavia has changed");
            }
            Ok(_) => {}
            Err(error) => {
                debug!(%error, "the API versions of Octavia could not be read; still using the versions read before");
            }
        }
    }

    /// Has the version list asked for again soon: Octavia refused what its version should take.
    pub fn doubt_api_versions(&self) {
        self.versions.refresh().doubted = true;
    }

    async fn discover(&self) -> Result<OctaviaFeatures, ApiError> {
        let call = Paths::new(Service::LoadBalancer, &[]).get("version_list", &[]);
        let document: VersionDocument =
            self.client.noting(OptionalPart::Versions, self.client.fetch_all(&call)).await?;
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
