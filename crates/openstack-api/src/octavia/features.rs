//! The features of an Octavia, by its API version.

use std::sync::{Arc, Mutex, MutexGuard};
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
use openstack_ccm_core::lock::lock;

/// The features of an Octavia. Octavia has no microversion header: it always answers by the newest version that it lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OctaviaFeatures {
    /// The highest listed version, major and minor.
    pub version: (u32, u32),
}

impl OctaviaFeatures {
    /// The oldest supported API, which is assumed where the version is not known.
    pub const OLDEST: Self = Self::of(2, 0);
    /// The newest API whose features are known.
    pub const NEWEST: Self = Self::of(2, 30);

    /// Returns the features of a version.
    pub const fn of(major: u32, minor: u32) -> Self {
        Self { version: (major, minor) }
    }

    /// Returns whether listeners have timeouts.
    pub fn timeouts(self) -> bool {
        self.version >= (2, 1)
    }

    pub fn tags(self) -> bool {
        self.version >= (2, 5)
    }

    pub fn flavors(self) -> bool {
        self.version >= (2, 6)
    }

    /// Returns whether batches of members can only add.
    pub fn additive_batches(self) -> bool {
        self.version >= (2, 11)
    }

    /// Returns whether listeners have `allowed_cidrs`.
    pub fn allowed_cidrs(self) -> bool {
        self.version >= (2, 12)
    }

    /// Returns whether pools have the algorithm `SOURCE_IP_PORT`.
    pub fn source_ip_port(self) -> bool {
        self.version >= (2, 13)
    }

    pub fn availability_zones(self) -> bool {
        self.version >= (2, 14)
    }

    /// Returns whether UDP pools can have HTTP health monitors.
    pub fn http_monitor_on_udp(self) -> bool {
        self.version >= (2, 16)
    }

    /// Returns whether a load balancer can have more than one VIP address.
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

/// The lifetime of a version list. Octavia may be upgraded while this program runs.
const VERSIONS_LIFETIME: Duration = Duration::from_secs(6 * 3600);
/// The longest random extension of the lifetime, so that many processes that started together do not ask at the same time.
const MAX_JITTER: Duration = Duration::from_secs(3600);
/// The pause before a list that is doubted, or could not be read, is requested again.
const REFRESH_DELAY: Duration = Duration::from_secs(60);

/// The pause before a root that is not found is requested once more: gateways answer so while they are set up.
const PAUSE_BEFORE_DOUBT: Duration = Duration::from_secs(5);

/// The known versions.
#[derive(Debug)]
pub(super) struct Versions {
    known: Cache<(), OctaviaFeatures>,
    refresh: Mutex<Refresh>,
}

/// When the known versions are requested again.
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
        lock(&self.refresh)
    }

    /// Returns whether to request the versions again although an answer is `known`. After `true` the caller has to do so.
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
    /// Returns the features of this Octavia. They are requested again every six to seven hours, in the background: the known
    /// answer serves until there is a new one, and a failure never means "no features". If the cloud permanently refuses to list
    /// versions, the oldest API is assumed.
    ///
    /// # Errors
    /// Any [`ApiError`] where nothing is known, shared by all waiting callers; [`crate::ErrorKind::Decode`] if no listed version
    /// can be parsed.
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

    /// Makes the version list be requested again soon, because Octavia refused something that its version should accept.
    pub fn doubt_api_versions(&self) {
        self.versions.refresh().doubted = true;
    }

    async fn discover(&self) -> Result<OctaviaFeatures, ApiError> {
        let call = Paths::new(Service::LoadBalancer, &[]).get("version_list", &[]);
        let mut document = self.client.fetch_all(&call).await;
        if document.as_ref().is_err_and(ApiError::is_not_found) {
            tokio::time::sleep(PAUSE_BEFORE_DOUBT).await;
            document = self.client.fetch_all(&call).await;
        }
        let document: VersionDocument =
            self.client.noting(OptionalPart::Versions, &call, async { document }).await?;
        let versions = document.versions.iter().filter_map(|version| parse(&version.id));
        // The order of the list is not guaranteed.
        let version = versions.max().ok_or_else(|| call.undecodable(DecodeError::NoVersion))?;
        Ok(OctaviaFeatures { version })
    }
}

/// Parses `v2.30` as (2, 30), and `v2` as (2, 0).
fn parse(id: &str) -> Option<(u32, u32)> {
    let numbers = id.strip_prefix('v')?;
    match numbers.split_once('.') {
        Some((major, minor)) => Some((major.parse().ok()?, minor.parse().ok()?)),
        None => Some((numbers.parse().ok()?, 0)),
    }
}
