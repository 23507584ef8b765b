//! The authentication plugin: one cached token for everybody.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use openstack::auth::AuthType;
use openstack::{EndpointFilters, Error, ErrorKind};
use reqwest::{Client, RequestBuilder};
use secrecy::ExposeSecret as _;
use tokio::sync::Mutex;
use tokio::time::Instant;
use url::Url;

use super::token::Age;
use super::{AuthOptions, Credentials, Scope, Token, log_in, network_cause};
use crate::client::retry_after;
use crate::endpoint;
use crate::error::{AuthError, Fault};

/// Everybody who asks for a token within this time after a failed log-in gets the same failure, so that a wrong password does not
/// lock the account and a dead Keystone is not asked by each call in turn.
const FAILURE_HOLDS: Duration = Duration::from_secs(2);

/// Pause after a failed renewal of a token that is still good.
const RENEWAL_PAUSE: Duration = Duration::from_secs(30);

const AUTH_TOKEN: HeaderName = HeaderName::from_static("x-auth-token");
const SUBJECT_TOKEN: HeaderName = HeaderName::from_static("x-subject-token");

/// Logs in to Keystone, and keeps the token. Clones share it. `Debug` shows no secret.
#[derive(Clone)]
pub struct Keystone {
    cache: Arc<TokenCache>,
}

struct TokenCache {
    http: Client,
    tokens_url: Url,
    credentials: Credentials,
    scope: Scope,
    current: RwLock<Option<Arc<Token>>>,
    /// Held by the one who logs in; keeps the last failure.
    log_in: Mutex<Option<(Instant, Arc<AuthError>)>>,
}

impl fmt::Debug for Keystone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Keystone")
            .field("url", &self.cache.tokens_url.as_str())
            .field("scope", &self.cache.scope)
            .finish_non_exhaustive()
    }
}

impl Keystone {
    /// A plugin that has not logged in yet.
    ///
    /// # Errors
    /// [`AuthError::InvalidAuthUrl`].
    pub(crate) fn new(http: Client, options: &AuthOptions) -> Result<Self, AuthError> {
        let tokens_url = tokens_url(&options.auth_url)
            .ok_or_else(|| AuthError::InvalidAuthUrl { url: without_user_info(&options.auth_url) })?;
        Ok(Self {
            cache: Arc::new(TokenCache {
                http,
                tokens_url,
                credentials: options.credentials.clone(),
                scope: options.scope.clone(),
                current: RwLock::new(None),
                log_in: Mutex::new(None),
            }),
        })
    }

    /// A token that is good now. Many callers at once cause one log-in. A token near its end is renewed by one caller, while all
    /// others go on with it.
    ///
    /// # Errors
    /// When there is no good token and the log-in fails.
    pub async fn token(&self) -> Result<Arc<Token>, Arc<AuthError>> {
        match self.cache.current() {
            Some(token) if token.is_fresh() => Ok(token),
            Some(token) if token.is_alive() => Ok(self.cache.renew(token).await),
            Some(_) | None => self.cache.replace(Token::is_alive).await,
        }
    }

    /// A token other than `stale`, which a service has refused. If somebody has replaced it already there is no log-in.
    ///
    /// # Errors
    /// When the log-in fails.
    pub(crate) async fn reauthenticate(&self, stale: &Token) -> Result<Arc<Token>, Arc<AuthError>> {
        self.cache.replace(|token| token.header != stale.header && token.is_alive()).await
    }
}

impl TokenCache {
    fn current(&self) -> Option<Arc<Token>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn keep(&self, token: Token) -> Arc<Token> {
        let token = Arc::new(token);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&token));
        token
    }

    /// Gives the current token if it is `good`, else a new one.
    async fn replace(&self, good: impl Fn(&Token) -> bool) -> Result<Arc<Token>, Arc<AuthError>> {
        let mut failure = self.log_in.lock().await;
        if let Some(token) = self.current().filter(|token| good(token)) {
            return Ok(token);
        }
        if let Some((at, error)) = failure.as_ref()
            && at.elapsed() < FAILURE_HOLDS
        {
            return Err(Arc::clone(error));
        }
        match self.request_token().await {
            Ok(token) => {
                *failure = None;
                Ok(self.keep(token))
            }
            Err(error) => {
                let error = Arc::new(error);
                *failure = Some((Instant::now(), Arc::clone(&error)));
                Err(error)
            }
        }
    }

    /// Renews a token that is still good; whoever finds a log-in under way, or fails, goes on with it.
    async fn renew(&self, token: Arc<Token>) -> Arc<Token> {
        let Ok(_log_in) = self.log_in.try_lock() else { return token };
        if let Some(renewed) = self.current().filter(|current| current.is_fresh()) {
            return renewed;
        }
        match self.request_token().await {
            Ok(renewed) => self.keep(renewed),
            Err(error) => {
                let error = &error as &(dyn std::error::Error + 'static);
                tracing::warn!(error, "the OpenStack token could not be renewed; the old one is still used");
                let renew_from = Instant::now() + RENEWAL_PAUSE;
                self.keep(Token { renew_from, ..Token::clone(&token) })
            }
        }
    }

    async fn request_token(&self) -> Result<Token, AuthError> {
        match (&self.credentials, &self.scope) {
            (Credentials::Token { token }, Scope::Unscoped) => self.inspect(token.expose_secret()).await,
            (credentials, scope) => self.log_in(credentials, scope).await,
        }
        .map_err(|error| self.without_way_back(error))
    }

    async fn log_in(&self, credentials: &Credentials, scope: &Scope) -> Result<Token, AuthError> {
        let request = self.http.post(self.tokens_url.clone()).json(&log_in::body(credentials, scope));
        let (headers, body) = self.exchange(request).await?;
        let header = headers.get(SUBJECT_TOKEN).cloned().ok_or(AuthError::NoSubjectToken)?;
        Token::read(header, &body, Age::New)
    }

    /// Asks for the catalog and the end of a ready-made token.
    async fn inspect(&self, token: &str) -> Result<Token, AuthError> {
        let mut header = HeaderValue::from_str(token).map_err(|_| AuthError::Expired)?;
        header.set_sensitive(true);
        let request = self
            .http
            .get(self.tokens_url.clone())
            .header(AUTH_TOKEN, header.clone())
            .header(SUBJECT_TOKEN, header.clone());
        let (_, body) = self.exchange(request).await?;
        Token::read(header, &body, Age::Unknown)
    }

    async fn exchange(&self, request: RequestBuilder) -> Result<(HeaderMap, Vec<u8>), AuthError> {
        let unreachable = |error: reqwest::Error| AuthError::Unreachable {
            host: endpoint::host(&self.tokens_url),
            source: network_cause(error),
        };
        let response = request.send().await.map_err(unreachable)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.bytes().await.map_err(unreachable)?;
        tracing::debug!(status = status.as_u16(), "keystone log-in");
        if status.is_success() {
            return Ok((headers, body.to_vec()));
        }
        Err(AuthError::Refused { status, fault: refusal(&body), retry_after: retry_after(&headers) })
    }

    /// A ready-made token that is refused cannot be renewed.
    fn without_way_back(&self, error: AuthError) -> AuthError {
        match (&self.credentials, &error) {
            (
                Credentials::Token { .. },
                AuthError::Refused { status: StatusCode::UNAUTHORIZED | StatusCode::NOT_FOUND, .. },
            ) => AuthError::Expired,
            _ => error,
        }
    }
}

/// Keystone's words, first line only: for a malformed request it goes on to quote the request, password and all.
fn refusal(body: &[u8]) -> Fault {
    let Fault { name, message } = Fault::from_body(body);
    Fault { name, message: message.lines().next().unwrap_or_default().to_owned() }
}

/// The address to log in at. Identity v3 is the only version there is, so it is not asked for: Keystone's root answers 300, often
/// with links that lead past the proxy in front of it.
fn tokens_url(auth_url: &str) -> Option<Url> {
    let url = Url::parse(auth_url.trim()).ok()?;
    let names_user = !url.username().is_empty() || url.password().is_some();
    if names_user || !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    endpoint::with_path(&endpoint::without_version(&url), "/v3/auth/tokens")
}

/// The text of an address as far as it may be shown.
fn without_user_info(url: &str) -> String {
    url.rsplit_once('@').map_or(url, |(_, rest)| rest).to_owned()
}

fn openstack_error(error: &AuthError) -> Error {
    Error::new(ErrorKind::AuthenticationFailed, error.to_string())
}

#[async_trait]
impl AuthType for Keystone {
    async fn authenticate(&self, _client: &Client, request: RequestBuilder) -> Result<RequestBuilder, Error> {
        let token = self.token().await.map_err(|error| openstack_error(&error))?;
        Ok(request.header(AUTH_TOKEN, token.header()))
    }

    async fn get_endpoint(
        &self,
        _client: &Client,
        service_type: &str,
        filters: &EndpointFilters,
    ) -> Result<Url, Error> {
        let token = self.token().await.map_err(|error| openstack_error(&error))?;
        let region = filters.region.as_deref();
        filters
            .interfaces
            .iter()
            .find_map(|interface| token.catalog.endpoint(service_type, *interface, region))
            .cloned()
            .ok_or_else(|| {
                Error::new(
                    ErrorKind::EndpointNotFound,
                    format!("no endpoint of type {service_type} in the catalog"),
                )
            })
    }

    /// Makes sure that there is a good token. A refused one is replaced by the transport, which knows which one it was.
    async fn refresh(&self, _client: &Client) -> Result<(), Error> {
        self.token().await.map(drop).map_err(|error| openstack_error(&error))
    }
}
