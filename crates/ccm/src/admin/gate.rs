//! Lets requests through to the pages, or not.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde_json::json;

use super::authentication::Authentication;
use super::authorization::Authorization;
use super::client_certificate::PeerCertificates;

/// Who may see what.
pub(super) struct Gate {
    pub(super) authentication: Authentication,
    pub(super) authorization: Authorization,
}

/// The layer over all pages.
pub(super) async fn pass(
    State(gate): State<Arc<Gate>>,
    peer: Option<Extension<PeerCertificates>>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path();
    // Probes must be answered also while nobody can be asked about callers.
    if gate.authorization.is_open(path) {
        return next.run(request).await;
    }
    let peer = peer.map(|Extension(peer)| peer).unwrap_or_default();
    let user = match gate.authentication.identify(request.headers(), &peer).await {
        Ok(user) => user,
        Err(error) => {
            let error = anyhow::Error::new(error);
            tracing::warn!(path, "a caller of the endpoints could not be authenticated: {error:#}");
            return refuse(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized");
        }
    };
    let verb = verb(request.method());
    match gate.authorization.decide(&user, &verb, path).await {
        Ok(verdict) if verdict.allowed => next.run(request).await,
        Ok(verdict) => {
            let mut message = format!("forbidden: User {:?} cannot {verb} path {path:?}", user.name);
            if !verdict.reason.is_empty() {
                message = format!("{message}: {}", verdict.reason);
            }
            refuse(StatusCode::FORBIDDEN, "Forbidden", &message)
        }
        Err(error) => {
            let error = anyhow::Error::new(error);
            tracing::warn!(
                path,
                user = user.name,
                "a caller of the endpoints could not be authorized: {error:#}"
            );
            let message = format!("Internal Server Error: {path:?}: {error:#}");
            refuse(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", &message)
        }
    }
}

/// The verb of a request that is not about objects.
fn verb(method: &Method) -> String {
    method.as_str().to_ascii_lowercase()
}

/// A refusal in the API server's form.
fn refuse(code: StatusCode, reason: &str, message: &str) -> Response {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code.as_u16(),
    });
    (code, Json(status)).into_response()
}
