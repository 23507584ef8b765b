//! Callers, as the API server describes them, and its reviews of them, each retried while the server has trouble, as
//! upstream does.

use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::kubernetes::CALL_TIMEOUT;

/// Maximum of remembered answers of each kind.
pub(super) const MAX_CACHED_REVIEWS: u64 = 1024;
/// Maximum of tries for one review.
const MAX_TRIES: u32 = 5;
/// Delay after the first try; each further one is half as long again.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(500);

/// The group of all identified users.
const AUTHENTICATED: &str = "system:authenticated";
/// The group that may do everything, without a review.
const MASTERS: &str = "system:masters";

/// Why the API server gave no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReviewError {
    /// The API server was silent.
    #[error("the API server did not answer within {} s", CALL_TIMEOUT.as_secs())]
    Timeout,
    /// The API server refused, or could not be reached.
    #[error("the API server did not check the caller")]
    Failed(#[source] kube::Error),
}

/// Returns the user of callers without credentials.
pub(super) fn anonymous() -> UserInfo {
    UserInfo {
        username: Some("system:anonymous".to_owned()),
        groups: Some(vec!["system:unauthenticated".to_owned()]),
        ..UserInfo::default()
    }
}

pub(super) fn is_master(user: &UserInfo) -> bool {
    user.groups.iter().flatten().any(|group| group == MASTERS)
}

/// Adds the user to the group of identified users.
pub(super) fn authenticated(mut user: UserInfo) -> UserInfo {
    let groups = user.groups.get_or_insert_default();
    if !groups.iter().any(|group| group == AUTHENTICATED) {
        groups.push(AUTHENTICATED.to_owned());
    }
    user
}

/// Asks who the bearer of a token is; `None` if the token is not valid.
pub(super) async fn bearer(client: &Client, token: &str) -> Result<Option<UserInfo>, ReviewError> {
    let spec = TokenReviewSpec { token: token.to_owned(), ..TokenReviewSpec::default() };
    let review = TokenReview { spec, ..TokenReview::default() };
    let status = ask(client, &review).await?.status.unwrap_or_default();
    if status.authenticated != Some(true) {
        tracing::debug!(reason = status.error, "a bearer token is not valid");
        return Ok(None);
    }
    Ok(status.user)
}

/// What the API server says about a permission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) allowed: bool,
    pub(super) reason: String,
}

/// Asks whether a user may do `verb` with `path`.
pub(super) async fn permission(
    client: &Client,
    user: &UserInfo,
    verb: &str,
    path: &str,
) -> Result<Verdict, ReviewError> {
    let attributes = NonResourceAttributes { path: Some(path.to_owned()), verb: Some(verb.to_owned()) };
    let spec = SubjectAccessReviewSpec {
        user: user.username.clone(),
        uid: user.uid.clone(),
        groups: user.groups.clone(),
        extra: user.extra.clone(),
        non_resource_attributes: Some(attributes),
        ..SubjectAccessReviewSpec::default()
    };
    let status = ask(client, &SubjectAccessReview { spec, ..SubjectAccessReview::default() }).await?.status;
    let status = status.unwrap_or_default();
    Ok(Verdict {
        allowed: status.allowed && status.denied != Some(true),
        reason: status.reason.unwrap_or_default(),
    })
}

async fn ask<Review>(client: &Client, review: &Review) -> Result<Review, ReviewError>
where
    Review: kube::Resource<DynamicType = (), Scope = kube::core::ClusterResourceScope>,
    Review: k8s_openapi::Resource + Serialize + DeserializeOwned + Clone + std::fmt::Debug,
{
    let api = Api::<Review>::all(client.clone());
    let asked = async {
        let (mut delay, mut tries) = (FIRST_RETRY_DELAY, 1);
        loop {
            match api.create(&PostParams::default(), review).await {
                Err(error) if tries < MAX_TRIES && is_passing(&error) => {
                    tracing::debug!(%error, "retrying a review of a caller");
                    tokio::time::sleep(delay).await;
                    (delay, tries) = (delay.mul_f64(1.5), tries + 1);
                }
                answer => return answer,
            }
        }
    };
    match tokio::time::timeout(CALL_TIMEOUT, asked).await {
        Ok(answer) => answer.map_err(ReviewError::Failed),
        Err(_elapsed) => Err(ReviewError::Timeout),
    }
}

/// Whether the next try may succeed.
fn is_passing(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.code == 429 || status.code >= 500,
        kube::Error::HyperError(_) | kube::Error::Service(_) => true,
        _ => false,
    }
}
