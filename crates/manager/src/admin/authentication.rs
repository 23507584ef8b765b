//! Identifies callers: the bearer of a token, or an anonymous user.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, header};
use k8s_openapi::api::authentication::v1::UserInfo;
use kube::Client;
use moka::future::Cache;

use super::review::{self, MAX_CACHED_REVIEWS, ReviewError};

/// Credentials that identify no user.
#[derive(Debug, thiserror::Error)]
pub(super) enum AuthenticationError {
    #[error("the bearer token is not valid")]
    Token,
    #[error("the bearer token could not be checked")]
    Review(#[source] Arc<ReviewError>),
}

/// Identifies callers.
pub(super) struct Authentication {
    client: Client,
    bearers: Cache<String, UserInfo>,
}

impl Authentication {
    /// `remembered` is how long an answer of the API server about a token is cached.
    pub(super) fn new(client: Client, remembered: Duration) -> Self {
        let bearers = Cache::builder().max_capacity(MAX_CACHED_REVIEWS).time_to_live(remembered).build();
        Self { client, bearers }
    }

    /// Returns the caller; anonymous without a token.
    ///
    /// # Errors
    /// There is a token, and it identifies no user.
    pub(super) async fn identify(&self, headers: &HeaderMap) -> Result<UserInfo, AuthenticationError> {
        let user = self.by_token(headers).await?;
        Ok(user.map_or_else(review::anonymous, review::authenticated))
    }

    async fn by_token(&self, headers: &HeaderMap) -> Result<Option<UserInfo>, AuthenticationError> {
        let Some(token) = bearer_token(headers) else { return Ok(None) };
        if let Some(user) = self.bearers.get(token).await {
            return Ok(Some(user));
        }
        let answer = review::bearer(&self.client, token).await;
        let user = answer.map_err(|error| AuthenticationError::Review(Arc::new(error)))?;
        let user = user.ok_or(AuthenticationError::Token)?;
        self.bearers.insert(token.to_owned(), user.clone()).await;
        Ok(Some(user))
    }
}

fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    Some(token.trim()).filter(|token| scheme.eq_ignore_ascii_case("bearer") && !token.is_empty())
}
