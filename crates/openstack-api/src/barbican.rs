//! Barbican v1: containers and secrets, never their contents. A load balancer reads certificates itself; the controller only looks
//! whether they exist.

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

/// What a reference such as `https://key-manager.example/v1/containers/<id>` leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// A container, by id.
    Container(String),
    /// A secret, by id.
    Secret(String),
}

impl Reference {
    /// Reads a reference. `None` when it leads to neither a container nor a secret.
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

/// What Barbican shows of a container or a secret that is there. Nothing else of it is of use.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Existing {
    /// `ACTIVE` or `ERROR`.
    pub status: String,
}

impl Barbican {
    /// Calls over `client`.
    pub const fn new(client: Client) -> Self {
        Self { client }
    }

    /// Looks whether there is a container.
    pub async fn get_container(&self, id: &str) -> Result<Existing, ApiError> {
        let call = V1.get("container_get", &["containers", id]);
        self.client.noting(OptionalPart::Certificates, self.client.fetch_all(&call)).await
    }

    /// Looks whether there is a secret.
    pub async fn get_secret(&self, id: &str) -> Result<Existing, ApiError> {
        let call = V1.get("secret_get", &["secrets", id]);
        self.client.noting(OptionalPart::Certificates, self.client.fetch_all(&call)).await
    }
}
