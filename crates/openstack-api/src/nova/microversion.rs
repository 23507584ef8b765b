//! Microversions: opt-in changes of Nova's API.

use std::fmt;

use serde::Deserialize;

use super::Nova;
use crate::client::Paths;
use crate::error::{ApiError, DecodeError};
use crate::transport::Service;

/// A microversion such as 2.47.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Microversion {
    /// Before the dot.
    pub major: u32,
    /// After the dot.
    pub minor: u32,
}

impl Microversion {
    /// The first one whose servers carry the name of their flavor.
    pub const FLAVOR_NAME_IN_SERVER: Self = Self { major: 2, minor: 47 };

    fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once('.')?;
        Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }
}

impl fmt::Display for Microversion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.major, self.minor)
    }
}

/// Microversions that a Nova has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MicroversionRange {
    /// Oldest.
    pub oldest: Microversion,
    /// Newest.
    pub newest: Microversion,
}

impl MicroversionRange {
    /// Whether a microversion is among them.
    pub fn contains(&self, version: Microversion) -> bool {
        (self.oldest..=self.newest).contains(&version)
    }
}

#[derive(Deserialize)]
struct MicroversionDocument {
    versions: Vec<ListedMicroversion>,
}

#[derive(Deserialize)]
struct ListedMicroversion {
    id: String,
    #[serde(default)]
    min_version: String,
    #[serde(default)]
    version: String,
}

impl Nova {
    /// Asks which microversions this Nova has.
    ///
    /// # Errors
    /// Any [`ApiError`]; [`crate::ErrorKind::Decode`] when v2.1 is not listed.
    pub async fn microversions(&self) -> Result<MicroversionRange, ApiError> {
        let call = Paths::new(Service::Compute, &[]).get("compute_version_list", &[]);
        let document: MicroversionDocument = self.client.fetch_all(&call).await?;
        let range = |version: &ListedMicroversion| {
            let oldest = Microversion::parse(&version.min_version)?;
            Some(MicroversionRange { oldest, newest: Microversion::parse(&version.version)? })
        };
        let current = document.versions.iter().find(|version| version.id == "v2.1");
        current.and_then(range).ok_or_else(|| call.undecodable(DecodeError::NoVersion))
    }
}
