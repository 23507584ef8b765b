//! Requests to the API server that got no answer, in words that name the server and the cause.

use std::error::Error as StdError;

use openstack_ccm_core::permit::NotPermitted;
use tower::BoxError;

/// The HTTP client's error for a connection that could not be made. The cause below it says more.
const NO_CONNECTION: &str = "client error (Connect)";

/// A request without an answer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the API server {server} {what}: {cause}")]
pub struct Unanswered {
    server: String,
    what: &'static str,
    cause: String,
}

impl Unanswered {
    /// Explains the error of a request to `server`. Errors of the client library itself stay as they are.
    pub(super) fn explain(server: &str, error: BoxError) -> BoxError {
        if error.is::<NotPermitted>() {
            return error;
        }
        let error = match error.downcast::<kube::Error>().map(|known| *known) {
            Ok(kube::Error::Service(cause)) => cause,
            Ok(kube::Error::HyperError(cause)) => cause.into(),
            Ok(known) => return known.into(),
            Err(error) => error,
        };
        let (mut causes, mut next) = (Vec::<String>::new(), Some(&*error as &dyn StdError));
        while let Some(cause) = next {
            let text = cause.to_string();
            if !causes.iter().any(|known| known.contains(&text)) {
                causes.push(text);
            }
            next = cause.source();
        }
        let no_connection = causes.len() > 1 && causes[0] == NO_CONNECTION;
        let what = if no_connection { "cannot be reached" } else { "did not answer" };
        let cause = causes[usize::from(no_connection)..].join(": ");
        Box::new(Self { server: server.to_owned(), what, cause })
    }
}
