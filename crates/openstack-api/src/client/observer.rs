//! Observes calls: by metrics, and by trace logs of requests and answers, with secrets masked.

use std::error::Error;
use std::time::Duration;

use openstack_ccm_core::cloud::CallObserver;
use serde_json::Value;
use tracing::{Level, debug, enabled, trace};

use crate::error::ApiError;
use crate::transport::{Request, Response};

/// The text in place of a secret.
const MASK: &str = "***";

/// Ignores all exchanges.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl CallObserver for NoObserver {
    fn observe(&self, _call: &'static str, _duration: Duration, _succeeded: bool) {}
}

pub(super) fn request(call: &'static str, request: &Request) {
    if enabled!(Level::TRACE) {
        let body = request.body.as_deref().map(masked).unwrap_or_default();
        let path = request.path_and_query();
        trace!(call, service = %request.service, method = %request.method, path, body, "openstack request");
    }
}

pub(super) fn answer(call: &'static str, duration: Duration, result: &Result<Response, ApiError>) {
    let milliseconds = duration.as_millis();
    match result {
        Ok(response) if enabled!(Level::TRACE) => {
            let body = masked(&response.body);
            trace!(call, status = response.status.as_u16(), milliseconds, body, "openstack response");
        }
        Ok(response) => debug!(call, status = response.status.as_u16(), milliseconds, "openstack response"),
        Err(error) => {
            debug!(call, error = error as &(dyn Error + 'static), milliseconds, "openstack error");
        }
    }
}

/// Returns the body as text without secrets. A body that is not JSON cannot be searched for secrets, so only its size is shown.
fn masked(body: &[u8]) -> String {
    if body.is_empty() {
        return String::new();
    }
    match serde_json::from_slice::<Value>(body) {
        Ok(mut value) => {
            mask(&mut value);
            value.to_string()
        }
        Err(_) => format!("({} bytes that are not JSON)", body.len()),
    }
}

fn mask(value: &mut Value) {
    match value {
        Value::Object(object) => {
            for (key, value) in object.iter_mut() {
                if is_secret(key) && !value.is_null() {
                    *value = Value::String(MASK.to_owned());
                } else {
                    mask(value);
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(mask),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns whether the values of this key are secret, by words in the key. References to secrets (`secret_ref`) are addresses and shown.
fn is_secret(key: &str) -> bool {
    const WORDS: [&str; 8] =
        ["pass", "secret", "token", "private_key", "privatekey", "payload", "user_data", "credential"];
    let key = key.to_ascii_lowercase();
    let is_reference = key.ends_with("_ref") || key.ends_with("_refs") || key == "secrets";
    !is_reference && WORDS.iter().any(|word| key.contains(word))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::password(r#"{"auth":{"password":{"user":{"name":"demo"}}}}"#, r#"{"auth":{"password":"***"}}"#)]
    #[case::admin(
        r#"{"server":{"adminPass":"x","name":"n"}}"#,
        r#"{"server":{"adminPass":"***","name":"n"}}"#
    )]
    #[case::key(
        r#"[{"private_key":"PEM"},{"payload":"PEM"}]"#,
        r#"[{"private_key":"***"},{"payload":"***"}]"#
    )]
    #[case::token(r#"{"token":{"id":"x"}}"#, r#"{"token":"***"}"#)]
    #[case::reference(
        r#"{"secret_refs":[{"secret_ref":"http://k/1"}]}"#,
        r#"{"secret_refs":[{"secret_ref":"http://k/1"}]}"#
    )]
    #[case::absent(r#"{"secret":null}"#, r#"{"secret":null}"#)]
    #[case::nested_in_a_list(r#"{"secrets":[{"passphrase":"p"}]}"#, r#"{"secrets":[{"passphrase":"***"}]}"#)]
    #[case::not_json("password=abc", "(12 bytes that are not JSON)")]
    #[case::empty("", "")]
    fn secrets_are_masked_by_their_key(#[case] body: &str, #[case] expected: &str) {
        assert_eq!(masked(body.as_bytes()), expected);
    }
}
