//! A token, with its expiry and the catalog of services.

use std::collections::BTreeSet;
use std::time::Duration;

use http::HeaderValue;
use jiff::Timestamp;
use openstack::InterfaceType;
use serde::{Deserialize, Deserializer};
use tokio::time::Instant;
use url::Url;

use crate::decode::null_as_default;
use crate::error::AuthError;

/// A token is renewed this long before it expires, or in the last quarter of a shorter lifetime.
const MAX_RENEWAL_PERIOD: Duration = Duration::from_secs(300);

/// A token. `Debug` does not show it.
#[derive(Clone, Debug)]
pub struct Token {
    /// The token, marked as sensitive.
    pub(super) header: HeaderValue,
    pub(super) renew_from: Instant,
    pub(super) expires: Instant,
    /// The services and their addresses. Empty for a token without a scope.
    pub catalog: Catalog,
    /// The project of the token, if it has one.
    pub project_id: Option<String>,
}

/// The answer to a login.
#[derive(Deserialize)]
struct TokenDocument {
    token: TokenBody,
}

#[derive(Deserialize)]
struct TokenBody {
    expires_at: Timestamp,
    issued_at: Option<Timestamp>,
    #[serde(default)]
    catalog: Catalog,
    project: Option<Project>,
}

#[derive(Deserialize)]
struct Project {
    id: String,
}

/// When the lifetime of a token began.
#[derive(Clone, Copy)]
pub(super) enum Age {
    /// Just now: Keystone's clock alone determines the lifetime, so that a wrong local clock does no harm.
    New,
    /// Some time ago: the local clock determines the remaining lifetime.
    Unknown,
}

impl Token {
    pub(super) fn read(mut header: HeaderValue, body: &[u8], age: Age) -> Result<Self, AuthError> {
        header.set_sensitive(true);
        let TokenDocument { token } =
            serde_json::from_slice(body).map_err(|source| AuthError::Decode { source })?;
        let begin = match age {
            Age::New => token.issued_at.unwrap_or_else(Timestamp::now),
            Age::Unknown => Timestamp::now(),
        };
        let life = Duration::try_from(token.expires_at.duration_since(begin)).unwrap_or_default();
        let now = Instant::now();
        let expires = now + life;
        let renew_from = expires - MAX_RENEWAL_PERIOD.min(life / 4);
        let project_id = token.project.map(|project| project.id);
        Ok(Self { header, renew_from, expires, catalog: token.catalog, project_id })
    }

    /// Returns whether the token is valid and need not be renewed yet.
    pub(super) fn is_fresh(&self) -> bool {
        Instant::now() < self.renew_from
    }

    /// Returns whether the token has not expired.
    pub(super) fn is_alive(&self) -> bool {
        Instant::now() < self.expires
    }

    /// Returns the value for `X-Auth-Token`, marked as sensitive.
    pub(crate) fn header(&self) -> HeaderValue {
        self.header.clone()
    }
}

/// The services and their addresses. Unusable entries, such as one without an address, are ignored: they must not keep a
/// controller from the services that it needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Catalog {
    #[serde(deserialize_with = "null_as_default")]
    services: Vec<CatalogService>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
struct CatalogService {
    #[serde(rename = "type", default, deserialize_with = "null_as_default")]
    kind: String,
    #[serde(default, deserialize_with = "null_as_default")]
    endpoints: Vec<Endpoint>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
struct Endpoint {
    #[serde(default, deserialize_with = "null_as_default")]
    interface: String,
    #[serde(default)]
    region: Option<String>,
    #[serde(default)]
    region_id: Option<String>,
    #[serde(default, deserialize_with = "usable_url")]
    url: Option<Url>,
}

fn usable_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Url>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.and_then(|text| Url::parse(text.trim()).ok()).filter(Url::has_host))
}

impl Endpoint {
    fn is_in(&self, region: &str) -> bool {
        self.region.as_deref() == Some(region) || self.region_id.as_deref() == Some(region)
    }

    /// Compares interface types; catalogs migrated from identity v2 write `publicURL`.
    fn is_for(&self, interface: InterfaceType) -> bool {
        interface == self.interface
    }
}

impl Catalog {
    /// Returns the address of a service: the first endpoint with this interface, in this region if one is given. A region matches
    /// by id or by name.
    pub fn endpoint(
        &self,
        service_type: &str,
        interface: InterfaceType,
        region: Option<&str>,
    ) -> Option<&Url> {
        self.services
            .iter()
            .filter(|service| service.kind == service_type)
            .flat_map(|service| &service.endpoints)
            .filter(|endpoint| endpoint.is_for(interface))
            .filter(|endpoint| region.is_none_or(|region| endpoint.is_in(region)))
            .find_map(|endpoint| endpoint.url.as_ref())
    }

    /// Returns all regions with an endpoint, in alphabetical order.
    pub fn regions(&self) -> Vec<String> {
        let endpoints = self.services.iter().flat_map(|service| &service.endpoints);
        let regions: BTreeSet<&String> = endpoints
            .filter_map(|endpoint| endpoint.region_id.as_ref().or(endpoint.region.as_ref()))
            .collect();
        regions.into_iter().cloned().collect()
    }
}
