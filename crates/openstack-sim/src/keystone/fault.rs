//! What Keystone says when it refuses.

use http::StatusCode;
use http::header::WWW_AUTHENTICATE;
use serde_json::{Value, json};

use crate::reply::Reply;
use crate::world::World;

/// A refusal of Keystone.
#[derive(Debug, Clone)]
pub(crate) struct KeystoneFault {
    status: StatusCode,
    message: String,
    /// The failed method, in the answer to some failed logins.
    identity: Option<Value>,
}

impl KeystoneFault {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), identity: None }
    }

    /// Wrong user, password, project or token: one text for all, so that nobody learns which.
    pub(crate) fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "The request you have made requires authentication.")
    }

    /// An application credential brings its own scope.
    pub(crate) fn scope_with_application_credential() -> Self {
        Self {
            identity: Some(json!({})),
            ..Self::new(
                StatusCode::UNAUTHORIZED,
                "Error authenticating with application credential: Application credentials cannot request a scope.",
            )
        }
    }

    /// A body that is not as the API wants it.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// A body without a part that the method needs.
    pub(crate) fn missing(part: &str, place: &str) -> Self {
        Self::bad_request(format!(
            "Expecting to find {part} in {place}. The server could not comply with the request since it is either \
             malformed or otherwise incorrect. The client is assumed to be in error."
        ))
    }

    /// An action that the policy does not allow.
    pub(crate) fn forbidden(action: &str) -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            format!("You are not authorized to perform the requested action: {action}."),
        )
    }

    /// Something that does not exist.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// Something that exists already.
    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, message)
    }

    /// The answer.
    pub(crate) fn reply(self, world: &World) -> Reply {
        let title = self.status.canonical_reason().unwrap_or_default();
        let mut error = json!({"code": self.status.as_u16(), "message": self.message, "title": title});
        if let Some(identity) = self.identity {
            error["identity"] = identity;
        }
        let reply = Reply::json(self.status, json!({"error": error}));
        if self.status == StatusCode::UNAUTHORIZED {
            reply.with_header(WWW_AUTHENTICATE, format!("Keystone uri=\"{}\"", world.identity_url()))
        } else {
            reply
        }
    }
}
