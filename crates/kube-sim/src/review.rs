//! Questions about users: who the bearer of a token is, and what somebody may do. They are answered and not stored.

use serde_json::{Map, Value, json};

use crate::access::{Access, Attributes, Token, User};
use crate::failure::{Failure, FieldError, Subject};
use crate::go_text::quote;
use crate::object::{list, text, texts};
use crate::route::Review;
use crate::token::AUDIENCE;
use crate::version::ApiVersion;

/// Answers a question of `asking`.
///
/// # Errors
/// The question makes no sense.
pub(crate) fn answer(
    access: &Access,
    review: Review,
    asking: &User,
    sent: &Value,
    version: ApiVersion,
) -> Result<Value, Failure> {
    let spec = &sent["spec"];
    let status = match review {
        Review::Token => bearer(access, spec)?,
        Review::SubjectAccess => {
            let groups: Vec<String> = texts(spec, "/groups").into_iter().map(str::to_owned).collect();
            let user = User::member(text(spec, "/user"), groups);
            check(spec, Some(&user), version)?;
            json!({"allowed": access.is_allowed(&user, &Attributes::from_review(spec))})
        }
        Review::SelfSubjectAccess => {
            check(spec, None, version)?;
            json!({"allowed": access.is_allowed(asking, &Attributes::from_review(spec))})
        }
    };
    let kind = Review::ALL.iter().find(|(one, ..)| *one == review).map_or("", |(.., kind)| *kind);
    let mut metadata = Map::new();
    if !version.omits_empty_times() {
        metadata.insert("creationTimestamp".to_owned(), Value::Null);
    }
    Ok(json!({
        "kind": kind, "apiVersion": review.api_version(), "metadata": metadata, "spec": spec, "status": status,
    }))
}

/// The status of a TokenReview.
fn bearer(access: &Access, spec: &Value) -> Result<Value, Failure> {
    let sent = text(spec, "/token");
    if sent.is_empty() {
        return Err(Failure::bad_request("token is required for TokenReview in authentication"));
    }
    let unknown = |reason: String| json!({"user": {}, "error": reason});
    let Some(token) = access.token(sent) else { return Ok(unknown("invalid bearer token".to_owned())) };
    let wanted = match list(spec, "/audiences") {
        [] => vec![AUDIENCE],
        _ => texts(spec, "/audiences"),
    };
    let met: Vec<&str> =
        wanted.iter().copied().filter(|one| token.audiences.iter().any(|own| own == one)).collect();
    if met.is_empty() {
        let own: Vec<&str> = token.audiences.iter().map(String::as_str).collect();
        return Ok(unknown(format!(
            "[invalid bearer token, token audiences {} is invalid for the target audiences {}]",
            quoted(&own),
            quoted(&wanted)
        )));
    }
    Ok(json!({"authenticated": true, "user": described(token), "audiences": met}))
}

/// A list as Go's `%q` writes it.
fn quoted(texts: &[&str]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| quote(text)).collect();
    format!("[{}]", quoted.join(" "))
}

fn described(token: &Token) -> Value {
    let mut user = json!({"username": token.user.name, "groups": token.user.groups});
    if let Some(uid) = &token.user.uid {
        user["uid"] = json!(uid);
    }
    if !token.user.extra.is_empty() {
        user["extra"] = json!(token.user.extra);
    }
    user
}

/// Refuses a question that is not about one thing, or about nobody; who asks about itself names nobody.
fn check(spec: &Value, user: Option<&User>, version: ApiVersion) -> Result<(), Failure> {
    let (objects, other) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    let mut errors = Vec::new();
    if objects.is_object() && other.is_object() {
        errors.push(FieldError::invalid_as_written(
            "spec.nonResourceAttributes",
            &written(other, version),
            "cannot be specified in combination with resourceAttributes",
        ));
    }
    if !objects.is_object() && !other.is_object() {
        let nothing = if version.writes_objects_as_json() { "null" } else { "\"null\"" };
        errors.push(FieldError::invalid_as_written(
            "spec.resourceAttributes",
            nothing,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        ));
    }
    if user.is_some_and(|user| user.name.is_empty() && user.groups.is_empty()) {
        let rule = "at least one of user or group must be specified";
        errors.push(FieldError::invalid("spec.user", &json!(""), rule));
    }
    if errors.is_empty() {
        return Ok(());
    }
    // The server knows the kind of a question only by the path that it came by.
    Err(Failure::invalid(Subject { group: "authorization.k8s.io", kind: "", name: "" }, &errors))
}

/// Attributes in the notation of the release: Go's fields as JSON, or Go itself.
fn written(attributes: &Value, version: ApiVersion) -> String {
    let (path, verb) = (quote(text(attributes, "/path")), quote(text(attributes, "/verb")));
    if version.writes_objects_as_json() {
        format!("{{\"Path\":{path},\"Verb\":{verb}}}")
    } else {
        format!("authorization.NonResourceAttributes{{Path:{path}, Verb:{verb}}}")
    }
}
