//! Nova v2.1: servers and flavors, and microversions, which are opt-in changes of its API.

mod server;

use std::fmt;

use http::{HeaderName, HeaderValue};
use serde::Deserialize;

pub use server::{ComputeFlavor, Server, ServerAddress, ServerFlavor, ServerStatus};

use crate::client::{Call, Client, Paths};
use crate::error::{ApiError, DecodeError};
use crate::transport::Service;

const V2_1: Paths = Paths::new(Service::Compute, &["v2.1"]);

/// A microversion such as 2.47.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Microversion {
    /// The number before the dot.
    pub major: u32,
    /// The number after the dot.
    pub minor: u32,
}

impl Microversion {
    /// The first microversion whose servers carry the name of their flavor.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MicroversionRange {
    pub oldest: Microversion,
    pub newest: Microversion,
}

impl MicroversionRange {
    /// Returns whether a microversion is in the range.
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

/// Calls to Nova. Without a microversion every call has the behaviour of 2.1.
#[derive(Clone, Debug)]
pub struct Nova {
    client: Client,
    microversion: Option<Microversion>,
}

impl Nova {
    /// Creates a Nova client over `client`, at microversion 2.1.
    pub const fn new(client: Client) -> Self {
        Self { client, microversion: None }
    }

    /// Returns the client at another microversion. If the service lacks that microversion, it answers 406 to every call: see
    /// [`Nova::microversions`].
    pub const fn with_microversion(mut self, microversion: Microversion) -> Self {
        self.microversion = Some(microversion);
        self
    }

    fn get(&self, name: &'static str, segments: &[&str]) -> Call {
        let call = V2_1.get(name, segments);
        match self.microversion.map(|version| HeaderValue::from_str(&format!("compute {version}"))) {
            Some(Ok(value)) => call.header(HeaderName::from_static("openstack-api-version"), value),
            // Two numbers always form a valid header value.
            Some(Err(_)) | None => call,
        }
    }

    /// Returns the microversions of this Nova.
    ///
    /// # Errors
    /// Any [`ApiError`]; [`crate::ErrorKind::Decode`] if v2.1 is not listed.
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
