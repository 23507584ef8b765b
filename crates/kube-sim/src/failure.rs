//! Refusals as the API server words them: a `Status` object with reason, details and causes.

use serde_json::{Map, Value, json};

/// One field that a request got wrong, the API's `StatusCause`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// Machine-readable reason, for example `FieldValueInvalid`.
    pub reason: &'static str,
    /// What is wrong, without the field's path.
    pub message: String,
    /// Path of the field, for example `spec.ports[0].port`.
    pub field: String,
}

impl FieldError {
    /// A value that breaks a rule. `value` is written as JSON.
    pub(crate) fn invalid(field: impl Into<String>, value: &Value, rule: &str) -> Self {
        Self::invalid_as_written(field, &value.to_string(), rule)
    }

    /// A value that a rule does not allow, in the notation of the release.
    pub(crate) fn invalid_as_written(field: impl Into<String>, value: &str, rule: &str) -> Self {
        Self {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {value}: {rule}"),
            field: field.into(),
        }
    }

    /// A value that is missing.
    pub(crate) fn required(field: impl Into<String>, detail: &str) -> Self {
        let message =
            if detail.is_empty() { "Required value".to_owned() } else { format!("Required value: {detail}") };
        Self { reason: "FieldValueRequired", message, field: field.into() }
    }

    /// A field that may not be set like this.
    pub(crate) fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self { reason: "FieldValueForbidden", message: format!("Forbidden: {detail}"), field: field.into() }
    }

    /// A value outside of a closed set. `value` is written as it is, `supported` sorted and quoted.
    pub(crate) fn not_supported(field: impl Into<String>, value: &str, supported: &[&str]) -> Self {
        let supported: Vec<String> = supported.iter().map(|known| format!("\"{known}\"")).collect();
        Self {
            reason: "FieldValueNotSupported",
            message: format!("Unsupported value: {value}: supported values: {}", supported.join(", ")),
            field: field.into(),
        }
    }

    /// A value that may occur only once.
    pub(crate) fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self {
            reason: "FieldValueDuplicate",
            message: format!("Duplicate value: {value}"),
            field: field.into(),
        }
    }

    fn as_cause(&self) -> Value {
        json!({"reason": self.reason, "message": self.message, "field": self.field})
    }
}

/// A refused request: HTTP code and the `Status` object that goes with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code} {reason}: {message}")]
pub struct Failure {
    /// HTTP status code.
    pub code: u16,
    /// `Status.reason`, empty where the server gives none.
    pub reason: &'static str,
    /// `Status.message`.
    pub message: String,
    /// `Status.details`, absent when `None`.
    pub details: Option<Map<String, Value>>,
    /// `Status.metadata.continue`: a token to go on with an expired list.
    pub continue_token: Option<String>,
}

/// What a request is about, for the texts and details of a refusal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    /// API group, empty for the core group.
    pub(crate) group: &'a str,
    /// Plural for most refusals, kind for validation.
    pub(crate) kind: &'a str,
    /// Name of the object.
    pub(crate) name: &'a str,
}

impl Subject<'_> {
    /// `leases.coordination.k8s.io`, or `services` in the core group.
    fn qualified(self) -> String {
        if self.group.is_empty() { self.kind.to_owned() } else { format!("{}.{}", self.kind, self.group) }
    }

    fn details(self) -> Map<String, Value> {
        let mut details = Map::new();
        for (key, value) in [("name", self.name), ("group", self.group), ("kind", self.kind)] {
            if !value.is_empty() {
                details.insert(key.to_owned(), value.into());
            }
        }
        details
    }
}

impl Failure {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None, continue_token: None }
    }

    fn about(subject: Subject<'_>, code: u16, reason: &'static str, message: String) -> Self {
        Self { details: Some(subject.details()), ..Self::new(code, reason, message) }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 500 without a reason, as the server wraps an error it has no category for.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    pub(crate) fn forbidden(subject: Subject<'_>, detail: &str) -> Self {
        let object = subject.qualified();
        let message = if subject.name.is_empty() {
            format!("{object} is forbidden: {detail}")
        } else {
            format!("{object} \"{}\" is forbidden: {detail}", subject.name)
        };
        Self::about(subject, 403, "Forbidden", message)
    }

    pub(crate) fn not_found(subject: Subject<'_>) -> Self {
        let message = format!("{} \"{}\" not found", subject.qualified(), subject.name);
        Self::about(subject, 404, "NotFound", message)
    }

    /// A resource that a known group does not have.
    pub(crate) fn unknown_resource() -> Self {
        let message = "the server could not find the requested resource";
        Self { details: Some(Map::new()), ..Self::new(404, "NotFound", message) }
    }

    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self { details: Some(Map::new()), ..Self::new(405, "MethodNotAllowed", message) }
    }

    pub(crate) fn not_acceptable() -> Self {
        let message =
            "only the following media types are accepted: application/json, application/json;stream=watch";
        Self::new(406, "NotAcceptable", message)
    }

    pub(crate) fn already_exists(subject: Subject<'_>) -> Self {
        let message = format!("{} \"{}\" already exists", subject.qualified(), subject.name);
        Self::about(subject, 409, "AlreadyExists", message)
    }

    pub(crate) fn conflict(subject: Subject<'_>, detail: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{}\": {detail}",
            subject.qualified(),
            subject.name
        );
        Self::about(subject, 409, "Conflict", message)
    }

    /// 409 by resourceVersion.
    pub(crate) fn modified(subject: Subject<'_>) -> Self {
        let detail =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(subject, detail)
    }

    /// 410: the resourceVersion or the continue token is older than what is kept.
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    pub(crate) fn unsupported_media_type() -> Self {
        Self {
            details: Some(Map::new()),
            ..Self::new(415, "UnsupportedMediaType", "415: Unsupported Media Type")
        }
    }

    /// 422 with one cause for each wrong field. In the message each distinct error is named once.
    pub(crate) fn invalid(subject: Subject<'_>, errors: &[FieldError]) -> Self {
        let mut texts: Vec<String> = Vec::new();
        for error in errors {
            let text = if error.field.is_empty() {
                error.message.clone()
            } else {
                format!("{}: {}", error.field, error.message)
            };
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let listed = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let object = subject.qualified();
        let message = format!("{object} \"{}\" is invalid: {listed}", subject.name);
        let mut details = subject.details();
        if !errors.is_empty() {
            details.insert("causes".to_owned(), errors.iter().map(FieldError::as_cause).collect());
        }
        Self { details: Some(details), ..Self::new(422, "Invalid", message) }
    }

    /// 422 without causes: a JSON patch that cannot be applied.
    pub(crate) fn unprocessable() -> Self {
        let message = "the server rejected our request due to an error in our request";
        Self { details: Some(Map::new()), ..Self::new(422, "Invalid", message) }
    }

    /// 504: the resourceVersion is one that the server does not have yet.
    pub(crate) fn too_large_resource_version(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let cause = json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
        let mut details = Map::new();
        details.insert("causes".to_owned(), json!([cause]));
        details.insert("retryAfterSeconds".to_owned(), 1.into());
        Self { details: Some(details), ..Self::new(504, "Timeout", message) }
    }

    /// The body of the answer.
    pub fn to_status(&self) -> Value {
        let mut metadata = Map::new();
        if let Some(token) = &self.continue_token {
            metadata.insert("continue".to_owned(), token.as_str().into());
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if let Some(details) = &self.details {
            status["details"] = Value::Object(details.clone());
        }
        status
    }

    /// Seconds for the header `Retry-After`, where the server sends one.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        self.details.as_ref()?.get("retryAfterSeconds")?.as_u64()
    }
}
