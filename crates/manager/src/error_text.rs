//! One line for people from an error and its causes.

use openstack_ccm_core::text::printable_lines;

/// Prefix of the client library for Kubernetes before the error of a connection.
const NOISE: &str = "ServiceError: ";

/// The library's text for an answer that it cannot parse.
const NO_STATUS: &str = ": Failed to parse error data";
const API_ERROR: &str = "ApiError: ";
/// Start of the rest of an answer, which the library shows after the message.
const STATUS: &str = " (Status {";

/// Joins the error and its causes, each once: some libraries repeat their cause in their own text.
pub fn said_once(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        let cause = cause.strip_prefix(NOISE).unwrap_or(&cause);
        // If an answer is no Kubernetes Status, only its text is useful. Of a Status, the message is.
        let cause =
            cause.split_once(NO_STATUS).or_else(|| cause.split_once(STATUS)).map_or(cause, |(text, _)| text);
        let cause = cause.trim_start_matches(API_ERROR);
        if !text.contains(cause) {
            text.push_str(if text.is_empty() { "" } else { ": " });
            text.push_str(cause);
        }
    }
    // A cause may be text from a server.
    printable_lines(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_the_library_cannot_read_is_shown_as_it_came() {
        let status = kube::core::Status {
            message: "404 page not found".to_owned(),
            reason: "Failed to parse error data".to_owned(),
            code: 404,
            ..kube::core::Status::default()
        };
        let error =
            anyhow::Error::new(kube::Error::Api(status.boxed())).context("the policy cannot be created");
        assert_eq!(said_once(&error), "the policy cannot be created: 404 page not found");
    }

    #[test]
    fn an_answer_is_shown_by_its_message() {
        let status = kube::core::Status {
            message: "services is forbidden: User \"eve\" cannot list resource \"services\"".to_owned(),
            reason: "Forbidden".to_owned(),
            code: 403,
            metadata: Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta::default()),
            ..kube::core::Status::default()
        };
        let error =
            anyhow::Error::new(kube::Error::Api(status.boxed())).context("the Services cannot be read");
        let said = said_once(&error);
        assert!(said.starts_with("the Services cannot be read: services is forbidden: User"), "{said}");
        assert!(!said.contains("Status"), "{said}");
    }

    #[test]
    fn what_a_cause_repeats_is_said_once() {
        let error = kube::Error::Service("the API server cannot be reached: refused".into());
        let error = anyhow::Error::new(error).context("the namespace cannot be read");
        assert_eq!(
            said_once(&error),
            "the namespace cannot be read: the API server cannot be reached: refused"
        );
    }
}
