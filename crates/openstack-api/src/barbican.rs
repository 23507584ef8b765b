//! Barbican v1: containers and secrets, never their contents. A load balancer reads certificates itself; the controller only looks
//! whether they exist.

use serde::Deserialize;

use crate::client::{Call, Client};
use crate::decode::null_as_default;
use crate::error::ApiError;
use crate::transport::Service;

const SERVICE: Service = Service::KeyManager;

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

/// A container as Barbican shows it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Container {
    /// Its reference.
    pub container_ref: String,
    /// Name; not unique.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// `certificate`, `rsa` or `generic`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `ACTIVE` or `ERROR`.
    pub status: String,
    /// The secrets in it.
    #[serde(default, deserialize_with = "null_as_default")]
    pub secret_refs: Vec<SecretRef>,
}

/// A secret in a container.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SecretRef {
    /// What the container uses it for: `certificate`, `private_key`, `intermediates`, `private_key_passphrase`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// Its reference.
    pub secret_ref: String,
}

/// A secret's description, without its payload.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Secret {
    /// Its reference.
    pub secret_ref: String,
    /// Name; not unique.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// `ACTIVE` or `ERROR`.
    pub status: String,
    /// `opaque`, `certificate`, `private`, …
    #[serde(default, deserialize_with = "null_as_default")]
    pub secret_type: String,
    /// When it ends, if it does.
    pub expiration: Option<String>,
}

impl Barbican {
    /// Calls over `client`.
    pub const fn new(client: Client) -> Self {
        Self { client }
    }

    /// Reads one container.
    ///
    /// # Errors
    /// Any [`ApiError`].
    pub async fn get_container(&self, id: &str) -> Result<Container, ApiError> {
        self.client.fetch_all(&Call::get("container_get", SERVICE, &["v1", "containers", id])).await
    }

    /// Reads the description of one secret.
    ///
    /// # Errors
    /// Any [`ApiError`].
    pub async fn get_secret(&self, id: &str) -> Result<Secret, ApiError> {
        self.client.fetch_all(&Call::get("secret_get", SERVICE, &["v1", "secrets", id])).await
    }
}
