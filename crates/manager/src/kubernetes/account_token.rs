//! `--use-service-account-credentials`: tokens of the controllers' own ServiceAccounts.

use std::time::Duration;

use anyhow::Context as _;
use http::HeaderValue;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::CALL_TIMEOUT;

/// Namespace of the accounts.
const NAMESPACE: &str = "kube-system";
/// The requested lifetime of a token, as in the framework.
const TOKEN_LIFETIME: Duration = Duration::from_secs(3600);
/// A token is renewed when this part of its life is left, as in the framework.
const RENEWAL_FRACTION: f64 = 0.2;
/// Time to the next try after a renewal failed while the old token is still good.
const RENEWAL_RETRY_DELAY: Duration = Duration::from_secs(10);

pub(super) struct AccountToken {
    accounts: Api<ServiceAccount>,
    account: String,
    held: Mutex<Option<Held>>,
}

#[derive(Clone)]
struct Held {
    header: HeaderValue,
    renew_from: Instant,
    expires: Instant,
}

impl AccountToken {
    /// Creates the token of an account, requested with the rights of `client` once it is needed.
    pub(super) fn new(client: Client, account: &str) -> Self {
        let accounts = Api::namespaced(client, NAMESPACE);
        Self { accounts, account: account.to_owned(), held: Mutex::default() }
    }

    /// Returns the value for `Authorization`, marked as sensitive. Concurrent callers wait for one token.
    ///
    /// # Errors
    /// There is no valid token, and none can be obtained.
    pub(super) async fn header(&self) -> anyhow::Result<HeaderValue> {
        let mut held = self.held.lock().await;
        if let Some(fresh) = held.as_ref().filter(|held| Instant::now() < held.renew_from) {
            return Ok(fresh.header.clone());
        }
        let problem = || format!("could not get a token for the ServiceAccount {NAMESPACE}/{}", self.account);
        let asked = timeout(CALL_TIMEOUT, self.ask()).await.context("the API server did not answer in time");
        match asked.and_then(|answer| answer).with_context(problem) {
            Ok(new) => Ok(held.insert(new).header.clone()),
            Err(error) => match held.as_mut().filter(|held| Instant::now() < held.expires) {
                Some(old) => {
                    tracing::warn!("{error:#}; the previous token is still used");
                    old.renew_from = Instant::now() + RENEWAL_RETRY_DELAY;
                    Ok(old.header.clone())
                }
                None => Err(error),
            },
        }
    }

    /// Drops a token that the API server refused: the next request has a new one.
    pub(super) async fn refused(&self, header: &HeaderValue) {
        let mut held = self.held.lock().await;
        if held.as_ref().is_some_and(|held| held.header == header) {
            *held = None;
        }
    }

    async fn ask(&self) -> anyhow::Result<Held> {
        let spec = TokenRequestSpec {
            expiration_seconds: i64::try_from(TOKEN_LIFETIME.as_secs()).ok(),
            ..TokenRequestSpec::default()
        };
        let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
        let asked = Instant::now();
        let parameters = PostParams::default();
        let ask = || self.accounts.create_token_request(&self.account, &parameters, &request);
        let answer = match ask().await {
            Err(kube::Error::Api(status)) if status.is_not_found() => {
                self.create().await?;
                ask().await?
            }
            answer => answer?,
        };
        // The server may grant less. Its clock is never compared with the one of this machine.
        let granted = answer.spec.and_then(|spec| u64::try_from(spec.expiration_seconds?).ok());
        let life = granted.map_or(TOKEN_LIFETIME, Duration::from_secs);
        let token = answer.status.and_then(|status| status.token).context("the answer has no token")?;
        let mut header =
            HeaderValue::try_from(format!("Bearer {token}")).context("the token is not valid")?;
        header.set_sensitive(true);
        Ok(Held { header, renew_from: asked + life.mul_f64(1.0 - RENEWAL_FRACTION), expires: asked + life })
    }

    async fn create(&self) -> anyhow::Result<()> {
        let metadata = ObjectMeta { name: Some(self.account.clone()), ..ObjectMeta::default() };
        let account = ServiceAccount { metadata, ..ServiceAccount::default() };
        match self.accounts.create(&PostParams::default(), &account).await {
            Ok(_) => tracing::info!(account = self.account, "created the ServiceAccount of a controller"),
            // Another client was faster.
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            Err(error) => {
                return Err(error).context("the ServiceAccount does not exist and could not be created");
            }
        }
        Ok(())
    }
}
