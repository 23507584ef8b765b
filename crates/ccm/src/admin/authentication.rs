//! Who calls: by the headers of a proxy, a client certificate, a bearer token, or nobody that is known.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, header};
use k8s_openapi::api::authentication::v1::UserInfo;
use kube::Client;
use moka::future::Cache;

use super::client_certificate::PeerCertificates;
use super::review::{self, ReviewError};
use super::trust::Trust;

/// Tokens that are remembered at most.
const MOST_TOKENS: u64 = 1024;

/// Credentials that name nobody.
#[derive(Debug, thiserror::Error)]
pub(super) enum AuthenticationError {
    #[error("{0}")]
    Certificate(#[from] super::client_certificate::CertificateError),
    #[error("the bearer token is not valid")]
    Token,
    #[error("the bearer token could not be checked")]
    Review(#[source] Arc<ReviewError>),
    #[error("the proxy {0:?} is not allowed to name the caller")]
    Proxy(String),
}

/// Finds out who calls.
pub(super) struct Authentication {
    trust: Arc<Trust>,
    client: Client,
    bearers: Cache<String, UserInfo>,
}

impl Authentication {
    /// `remembered` is how long a token is known after the API server was asked.
    pub(super) fn new(trust: Arc<Trust>, client: Client, remembered: Duration) -> Self {
        let bearers = Cache::builder().max_capacity(MOST_TOKENS).time_to_live(remembered).build();
        Self { trust, client, bearers }
    }

    /// The caller; anonymous without credentials.
    ///
    /// # Errors
    /// There are credentials, and none of them names anybody.
    pub(super) async fn identify(
        &self,
        headers: &HeaderMap,
        peer: &PeerCertificates,
    ) -> Result<UserInfo, AuthenticationError> {
        let mut problem = None;
        for attempt in [self.by_proxy(headers, peer), self.by_certificate(peer)] {
            match attempt {
                Ok(Some(user)) => return Ok(review::authenticated(user)),
                Ok(None) => {}
                Err(error) => problem = Some(error),
            }
        }
        match self.by_token(headers).await {
            Ok(Some(user)) => return Ok(review::authenticated(user)),
            Ok(None) => {}
            Err(error) => problem = Some(error),
        }
        problem.map_or_else(|| Ok(review::anonymous()), Err)
    }

    fn by_proxy(
        &self,
        headers: &HeaderMap,
        peer: &PeerCertificates,
    ) -> Result<Option<UserInfo>, AuthenticationError> {
        let trusted = self.trust.current();
        let Some((authorities, names)) = &trusted.proxies else { return Ok(None) };
        let Some(user) = names.user(headers) else { return Ok(None) };
        let Some(proxy) = authorities.identify(peer)? else { return Ok(None) };
        let proxy = proxy.username.unwrap_or_default();
        if names.believes(&proxy) { Ok(Some(user)) } else { Err(AuthenticationError::Proxy(proxy)) }
    }

    fn by_certificate(&self, peer: &PeerCertificates) -> Result<Option<UserInfo>, AuthenticationError> {
        let trusted = self.trust.current();
        trusted.clients.as_ref().map_or(Ok(None), |clients| Ok(clients.identify(peer)?))
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
