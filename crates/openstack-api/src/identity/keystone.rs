//! The authentication plugin: one cached token for all callers.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::header::LOCATION;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use jiff::Timestamp;
use openstack::auth::AuthType;
use openstack::{EndpointFilters, Error, ErrorKind};
use reqwest::{Client, RequestBuilder};
use secrecy::ExposeSecret as _;
use tokio::sync::Mutex;
use tokio::time::Instant;
use url::Url;

use super::token::Age;
use super::{AuthOptions, Credentials, Reload, Scope, Token, login, network_cause};
use crate::body::{BodyError, whole_body};
use crate::client::retry_after;
use crate::endpoint;
use crate::error::{AuthError, Fault};

/// For this time after a failed login all callers get the same failure, so that a wrong password does not lock the account and
/// calls do not query a dead Keystone one after the other.
const FAILED_LOGIN_LIFETIME: Duration = Duration::from_secs(2);

/// The pause after a failed renewal of a token that is still valid.
const RENEWAL_RETRY_DELAY: Duration = Duration::from_secs(30);

const AUTH_TOKEN: HeaderName = HeaderName::from_static("x-auth-token");
const SUBJECT_TOKEN: HeaderName = HeaderName::from_static("x-subject-token");

/// Logs in to Keystone and caches the token. Clones share it. `Debug` shows no secret.
#[derive(Clone)]
pub struct Keystone {
    cache: Arc<TokenCache>,
}

/// The address and credentials of a login.
struct Login {
    tokens_url: Url,
    credentials: Credentials,
    scope: Scope,
}

impl Login {
    fn new(options: &AuthOptions) -> Result<Self, AuthError> {
        let tokens_url = tokens_url(&options.auth_url)
            .ok_or_else(|| AuthError::InvalidAuthUrl { url: without_user_info(&options.auth_url) })?;
        let (credentials, scope) = (options.credentials.clone(), options.scope.clone());
        Ok(Self { tokens_url, credentials, scope })
    }

    fn is_same(&self, other: &Self) -> bool {
        let body = |login: &Self| login::body(&login.credentials, &login.scope);
        self.tokens_url == other.tokens_url && body(self) == body(other)
    }
}

struct TokenCache {
    http: Client,
    login: RwLock<Arc<Login>>,
    reload: Option<Reload>,
    /// Since when Keystone refuses the login.
    refused_since: RwLock<Option<Timestamp>>,
    current: RwLock<Option<Arc<Token>>>,
    /// Locked during a login; holds the last failure.
    log_in: Mutex<Option<(Instant, Arc<AuthError>)>>,
}

impl fmt::Debug for Keystone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let login = self.cache.login();
        formatter
            .debug_struct("Keystone")
            .field("url", &login.tokens_url.as_str())
            .field("scope", &login.scope)
            .finish_non_exhaustive()
    }
}

impl Keystone {
    /// Creates a plugin without logging in.
    ///
    /// # Errors
    /// [`AuthError::InvalidAuthUrl`].
    pub(crate) fn new(http: Client, options: &AuthOptions) -> Result<Self, AuthError> {
        let login = Login::new(options)?;
        Ok(Self {
            cache: Arc::new(TokenCache {
                http,
                login: RwLock::new(Arc::new(login)),
                reload: options.reload.clone(),
                refused_since: RwLock::default(),
                current: RwLock::new(None),
                log_in: Mutex::new(None),
            }),
        })
    }

    /// Returns a valid token. Concurrent callers cause only one login. Near its end one caller renews the token, while all others
    /// go on using it.
    ///
    /// # Errors
    /// There is no valid token and the login fails.
    pub async fn token(&self) -> Result<Arc<Token>, Arc<AuthError>> {
        match self.cache.current() {
            Some(token) if token.is_fresh() => Ok(token),
            Some(token) if token.is_alive() => Ok(self.cache.renew(token).await),
            Some(_) | None => self.cache.replace(Token::is_alive).await,
        }
    }

    /// Returns since when Keystone refuses the login; absent where it does not.
    pub fn refused_since(&self) -> Option<Timestamp> {
        *self.cache.refused_since.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a token other than `stale`, which a service has refused. Without a login, if another caller has replaced it already.
    ///
    /// # Errors
    /// The login fails.
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

    /// Returns the current token if it is `good`, otherwise a new one.
    async fn replace(&self, good: impl Fn(&Token) -> bool) -> Result<Arc<Token>, Arc<AuthError>> {
        let mut failure = self.log_in.lock().await;
        if let Some(token) = self.current().filter(|token| good(token)) {
            return Ok(token);
        }
        if let Some((at, error)) = failure.as_ref()
            && at.elapsed() < FAILED_LOGIN_LIFETIME
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

    /// Renews a token that is still valid; if another login is in progress, or the renewal fails, returns the old token.
    async fn renew(&self, token: Arc<Token>) -> Arc<Token> {
        let Ok(_log_in) = self.log_in.try_lock() else { return token };
        if let Some(renewed) = self.current().filter(|current| current.is_fresh()) {
            return renewed;
        }
        match self.request_token().await {
            Ok(renewed) => self.keep(renewed),
            Err(error) => {
                let error = &error as &(dyn std::error::Error + 'static);
                tracing::warn!(
                    error,
                    "the OpenStack token could not be renewed; the previous token is still used"
                );
                let renew_from = Instant::now() + RENEWAL_RETRY_DELAY;
                self.keep(Token { renew_from, ..Token::clone(&token) })
            }
        }
    }

    fn login(&self) -> Arc<Login> {
        Arc::clone(&self.login.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Logs in; if that is refused, reads the configuration again and logs in with it.
    async fn request_token(&self) -> Result<Token, AuthError> {
        let result = self.request_token_again().await;
        let mut since = self.refused_since.write().unwrap_or_else(PoisonError::into_inner);
        match &result {
            Ok(_) => *since = None,
            Err(error) if error.kind() == crate::ErrorKind::Unauthorized => {
                since.get_or_insert_with(Timestamp::now);
            }
            // It is not known whether the login would be refused.
            Err(_) => {}
        }
        result
    }

    async fn request_token_again(&self) -> Result<Token, AuthError> {
        let login = self.login();
        let refused = match self.request_token_as(&login).await {
            Err(error) if error.kind() == crate::ErrorKind::Unauthorized => error,
            result => return result,
        };
        let Some(newer) = self.reread(&login).await else { return Err(refused) };
        tracing::info!(
            "Keystone refused the login, but the configuration now contains other credentials: logging in with these credentials"
        );
        let token = self.request_token_as(&newer).await?;
        *self.login.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(newer);
        Ok(token)
    }

    /// Reads the configuration again; absent where the login in it has not changed.
    async fn reread(&self, login: &Login) -> Option<Login> {
        let reload = self.reload.clone()?;
        let read = tokio::task::spawn_blocking(move || reload.read()).await;
        let read = read.unwrap_or_else(|error| Err(error.to_string()));
        let newer = read.and_then(|options| Login::new(&options).map_err(|error| error.to_string()));
        match newer {
            Ok(newer) => (!newer.is_same(login)).then_some(newer),
            Err(error) => {
                tracing::warn!(
                    error,
                    "Keystone refused the login, and the configuration cannot be read again"
                );
                None
            }
        }
    }

    async fn request_token_as(&self, login: &Login) -> Result<Token, AuthError> {
        match (&login.credentials, &login.scope) {
            (Credentials::Token { token }, Scope::Unscoped) => {
                self.inspect(login, token.expose_secret()).await
            }
            _ => self.log_in(login).await,
        }
        .map_err(|error| without_way_back(login, error))
    }

    async fn log_in(&self, login: &Login) -> Result<Token, AuthError> {
        let Login { tokens_url, credentials, scope } = login;
        let request = self.http.post(tokens_url.clone()).json(&login::body(credentials, scope));
        let (headers, body) = exchange(login, request).await?;
        let header = headers.get(SUBJECT_TOKEN).cloned().ok_or(AuthError::NoSubjectToken)?;
        Token::read(header, &body, Age::New)
    }

    /// Requests the catalog and the expiry of a ready-made token.
    async fn inspect(&self, login: &Login, token: &str) -> Result<Token, AuthError> {
        let mut header = HeaderValue::from_str(token).map_err(|_| AuthError::Expired)?;
        header.set_sensitive(true);
        let request = self
            .http
            .get(login.tokens_url.clone())
            .header(AUTH_TOKEN, header.clone())
            .header(SUBJECT_TOKEN, header.clone());
        let (_, body) = exchange(login, request).await?;
        Token::read(header, &body, Age::Unknown)
    }
}

async fn exchange(login: &Login, request: RequestBuilder) -> Result<(HeaderMap, Bytes), AuthError> {
    let host = || endpoint::host(&login.tokens_url);
    let unreachable =
        |error: reqwest::Error| AuthError::Unreachable { host: host(), source: network_cause(error) };
    let response = request.send().await.map_err(unreachable)?;
    let (status, headers) = (response.status(), response.headers().clone());
    let body = whole_body(response).await.map_err(|error| match error {
        BodyError::TooLong => AuthError::TooLong { host: host() },
        BodyError::Network(error) => unreachable(error),
    })?;
    tracing::debug!(status = status.as_u16(), "keystone login");
    if status.is_success() {
        return Ok((headers, body));
    }
    if status == StatusCode::NOT_FOUND && !is_keystones(&body) {
        return Err(AuthError::NotKeystone { url: login.tokens_url.to_string(), status });
    }
    let url = login.tokens_url.to_string();
    if status.is_redirection() {
        let target =
            headers.get(LOCATION).and_then(|target| target.to_str().ok()).unwrap_or("an unnamed place");
        // Without the path of the tokens the target is a suitable auth-url.
        let to = target.trim_end_matches('/').trim_end_matches("/auth/tokens").to_owned();
        return Err(AuthError::Redirected { url, status, to });
    }
    Err(AuthError::Refused { url, status, fault: refusal(&body), retry_after: retry_after(&headers) })
}

/// Returns whether a refusal is from Keystone: an object with a code. A proxy, or another service, answers with a page.
fn is_keystones(body: &[u8]) -> bool {
    serde_json::from_slice(body).is_ok_and(|body: serde_json::Value| body["error"]["code"].is_number())
}

/// Returns `AuthError::Expired` for a refused ready-made token, which cannot be renewed.
fn without_way_back(login: &Login, error: AuthError) -> AuthError {
    match (&login.credentials, &error) {
        (
            Credentials::Token { .. },
            AuthError::Refused { status: StatusCode::UNAUTHORIZED | StatusCode::NOT_FOUND, .. },
        ) => AuthError::Expired,
        _ => error,
    }
}

/// Returns Keystone's text, first line only: for a malformed request it also quotes the request, including the password.
fn refusal(body: &[u8]) -> Fault {
    let fault = Fault::from_body(body);
    let first = fault.message.lines().next().unwrap_or_default();
    Fault { message: if fault.is_html() { "a page of HTML" } else { first }.to_owned(), name: fault.name }
}

/// Returns the address for logins. Identity v3 is the only version there is, so version discovery is not used: Keystone's root
/// answers 300, often with links that bypass the proxy in front of it.
fn tokens_url(auth_url: &str) -> Option<Url> {
    let url = Url::parse(auth_url.trim()).ok()?;
    let names_user = !url.username().is_empty() || url.password().is_some();
    if names_user || !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    endpoint::with_path(&endpoint::without_version(&url), "/v3/auth/tokens")
}

/// Returns the text of an address without user and password.
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

    /// Ensures that there is a valid token. The transport replaces a refused token, since it knows which one was refused.
    async fn refresh(&self, _client: &Client) -> Result<(), Error> {
        self.token().await.map(drop).map_err(|error| openstack_error(&error))
    }
}
