//! An error and its causes as one line for people.

/// What the client library for Kubernetes puts before the error of a connection.
const NOISE: &str = "ServiceError: ";

/// The error and its causes, each said once: some libraries repeat their cause in their own text.
pub(crate) fn said_once(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        let cause = cause.strip_prefix(NOISE).unwrap_or(&cause);
        if !text.contains(cause) {
            text.push_str(if text.is_empty() { "" } else { ": " });
            text.push_str(cause);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

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
