//! A token and what Keystone says about it.

use std::time::Duration;

use http::HeaderValue;
use jiff::Timestamp;
use serde::Deserialize;
use tokio::time::Instant;

use super::Catalog;
use crate::error::AuthError;

/// A token is renewed this long before its end, or for the last quarter of a short life.
const LONGEST_RENEWAL_PERIOD: Duration = Duration::from_secs(300);

/// A token. `Debug` does not show it.
#[derive(Clone, Debug)]
pub struct Token {
    /// The token, marked as sensitive.
    pub(super) header: HeaderValue,
    pub(super) renew_from: Instant,
    pub(super) expires: Instant,
    /// Services and their addresses. Empty for a token without a scope.
    pub catalog: Catalog,
    /// Project of the token, if it has one.
    pub project_id: Option<String>,
}

/// The answer to a log-in.
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

/// When the life of a token began.
#[derive(Clone, Copy)]
pub(super) enum Age {
    /// Just now: its life is measured by Keystone's clock alone, so that a wrong local clock does no harm.
    New,
    /// Some time ago: what remains is measured by the local clock.
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
        let renew_from = expires - LONGEST_RENEWAL_PERIOD.min(life / 4);
        let project_id = token.project.map(|project| project.id);
        Ok(Self { header, renew_from, expires, catalog: token.catalog, project_id })
    }

    /// Whether it can be used without a thought.
    pub(super) fn is_fresh(&self) -> bool {
        Instant::now() < self.renew_from
    }

    /// Whether it is still accepted by the clock.
    pub(super) fn is_alive(&self) -> bool {
        Instant::now() < self.expires
    }

    /// The value for `X-Auth-Token`, marked as sensitive.
    pub(crate) fn header(&self) -> HeaderValue {
        self.header.clone()
    }
}
