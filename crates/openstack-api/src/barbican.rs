//! Barbican v1: containers and secrets, but never their contents. Octavia reads the certificates itself; the controller only
//! checks that they exist.

use serde::Deserialize;

use crate::client::{Client, Paths};
use crate::error::ApiError;
use crate::optional::OptionalPart;
use crate::transport::Service;

const V1: Paths = Paths::new(Service::KeyManager, &["v1"]);

/// Calls to Barbican.
#[derive(Clone, Debug)]
pub struct Barbican {
    client: Client,
}

/// The object to which a reference such as `https://key-manager.example/v1/containers/<id>` leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// A container, by id.
    Container(String),
    /// A secret, by id.
    Secret(String),
}

impl Reference {
    /// Parses a reference. `None` if it leads to neither a container nor a secret.
    pub fn parse(text: &str) -> Option<Self> {
        let url = url::Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
        let segments: Vec<&str> = url.path_segments()?.filter(|segment| !segment.is_empty()).collect();
        match segments.as_slice() {
            [.., "containers", id] => Some(Self::Container((*id).to_owned())),
            [.., "secrets", id] => Some(Self::Secret((*id).to_owned())),
            _ => None,
        }
    }
}

/// An existing container or secret; its other attributes are not needed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Existing {
    /// `ACTIVE` or `ERROR`.
    pub status: String,
}

impl Barbican {
    /// Creates a Barbican client over `client`.
    pub const fn new(client: Client) -> Self {
        Self { client }
    }

    /// Reads a container, to check that it exists.
    pub async fn get_container(&self, id: &str) -> Result<Existing, ApiError> {
        let call = V1.get("container_get", &["containers", id]);
        self.client.noting(OptionalPart::Certificates, &call, self.client.fetch_all(&call)).await
    }

    /// Reads a secret, to check that it exists.
    pub async fn get_secret(&self, id: &str) -> Result<Existing, ApiError> {
        let call = V1.get("secret_get", &["secrets", id]);
        self.client.noting(OptionalPart::Certificates, &call, self.client.fetch_all(&call)).await
    }
}
