//! Admits requests to the pages: some paths are open to all, about the others the API server decides.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use k8s_openapi::api::authentication::v1::UserInfo;
use kube::Client;
use moka::future::Cache;
use serde_json::json;

use super::authentication::Authentication;
use super::review::{self, MAX_CACHED_REVIEWS, ReviewError, Verdict};

/// The access control of the pages.
pub(super) struct Gate {
    pub(super) authentication: Authentication,
    pub(super) authorization: Authorization,
}

/// Decides which users may read which paths.
pub(super) struct Authorization {
    client: Client,
    open: Vec<String>,
    allowed: Cache<String, Verdict>,
    refused: Cache<String, Verdict>,
}

impl Authorization {
    /// `open` are paths that are served to all callers; a `*` at the end matches everything that begins with the rest. The
    /// times say how long a permission and a refusal are remembered.
    pub(super) fn new(client: Client, open: Vec<String>, allowed: Duration, refused: Duration) -> Self {
        let cache = |time| Cache::builder().max_capacity(MAX_CACHED_REVIEWS).time_to_live(time).build();
        Self { client, open, allowed: cache(allowed), refused: cache(refused) }
    }

    /// Whether the path is served to all callers.
    pub(super) fn is_open(&self, path: &str) -> bool {
        let path = path.trim_start_matches('/');
        self.open
            .iter()
            .map(|open| open.trim_start_matches('/'))
            .any(|open| open.strip_suffix('*').map_or(open == path, |beginning| path.starts_with(beginning)))
    }

    /// Whether the user may do `verb` (a method in small letters) with the path.
    ///
    /// # Errors
    /// The API server could not be asked; then nothing is allowed.
    pub(super) async fn decide(
        &self,
        user: &UserInfo,
        verb: &str,
        path: &str,
    ) -> Result<Verdict, ReviewError> {
        if review::is_master(user) {
            return Ok(Verdict { allowed: true, reason: String::new() });
        }
        let question = format!("{user:?} {verb} {path}");
        for answers in [&self.allowed, &self.refused] {
            if let Some(verdict) = answers.get(&question).await {
                return Ok(verdict);
            }
        }
        let verdict = review::permission(&self.client, user, verb, path).await?;
        let answers = if verdict.allowed { &self.allowed } else { &self.refused };
        answers.insert(question, verdict.clone()).await;
        Ok(verdict)
    }
}

/// Checks the requests to all pages.
pub(super) async fn pass(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    // Probes must be answered even while the API server cannot be asked about callers.
    if gate.authorization.is_open(path) {
        return next.run(request).await;
    }
    let user = match gate.authentication.identify(request.headers()).await {
        Ok(user) => user,
        Err(error) => {
            let error = anyhow::Error::new(error);
            tracing::warn!(path, "a caller of the endpoints could not be authenticated: {error:#}");
            return refuse(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized");
        }
    };
    let name = user.username.as_deref().unwrap_or_default();
    let verb = request.method().as_str().to_ascii_lowercase();
    match gate.authorization.decide(&user, &verb, path).await {
        Ok(verdict) if verdict.allowed => next.run(request).await,
        Ok(verdict) => {
            let mut message = format!("forbidden: User {name:?} cannot {verb} path {path:?}");
            if !verdict.reason.is_empty() {
                message = format!("{message}: {}", verdict.reason);
            }
            refuse(StatusCode::FORBIDDEN, "Forbidden", &message)
        }
        Err(error) => {
            let error = anyhow::Error::new(error);
            tracing::warn!(path, user = name, "a caller of the endpoints could not be authorized: {error:#}");
            let message = format!("Internal Server Error: {path:?}: {error:#}");
            refuse(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", &message)
        }
    }
}

/// A refusal in the API server's form.
fn refuse(code: StatusCode, reason: &str, message: &str) -> Response {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code.as_u16(),
    });
    (code, Json(status)).into_response()
}
