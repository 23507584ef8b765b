//! One call to the API server: bounded in time, with an error text fit for users.

use std::future::Future;
use std::time::Duration;

use futures::future::BoxFuture;
use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::permit::NotPermitted;

/// Why a call to the API server gave no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// No answer in time; whether the request was carried out is unknown.
    #[error("the API server did not answer within {} s", .0.as_secs())]
    Timeout(Duration),
    /// A `Status` that is not success.
    #[error("the API server answered {code} {reason}: {message}")]
    Refused {
        /// HTTP status code.
        code: u16,
        /// `reason` of the Status, for example `Forbidden`.
        reason: String,
        /// `message` of the Status.
        message: String,
    },
    /// The request writes, and nothing may be written now.
    #[error("{0}")]
    NotPermitted(NotPermitted),
    /// The request could not be sent or the answer not be read.
    #[error("the request to the API server failed")]
    Failed(#[source] kube::Error),
}

impl CallError {
    fn code(&self) -> Option<u16> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            Self::Timeout(_) | Self::NotPermitted(_) | Self::Failed(_) => None,
        }
    }

    /// Whether the object does not exist.
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// Whether the object was changed since it was read.
    pub fn is_conflict(&self) -> bool {
        self.code() == Some(409)
    }

    /// Whether the object would be invalid, often because it has changed since the decision was made.
    pub fn is_invalid(&self) -> bool {
        self.code() == Some(422)
    }

    /// Whether the same request may succeed later.
    pub(crate) fn is_temporary(&self) -> bool {
        !matches!(self, Self::NotPermitted(_)) && self.class() == FailureClass::Unavailable
    }

    fn class(&self) -> FailureClass {
        match self {
            Self::Timeout(_) | Self::NotPermitted(_) | Self::Failed(_) => FailureClass::Unavailable,
            Self::Refused { code, .. } => match code {
                401 | 403 => FailureClass::Auth,
                409 => FailureClass::Busy,
                408 | 429 | 500..=599 => FailureClass::Unavailable,
                _ => FailureClass::Bug,
            },
        }
    }

    /// Returns the error with its cause in one line.
    pub fn message(&self) -> String {
        match self {
            Self::Failed(source) => format!("{self}: {source}"),
            Self::Timeout(_) | Self::NotPermitted(_) | Self::Refused { .. } => self.to_string(),
        }
    }

    /// Turns the error into a failed reconciliation; `doing` says what was tried: `failed to update load balancer status`.
    pub fn to_failure(&self, doing: &str) -> Failure {
        Failure::new(self.class(), format!("{doing}: {}", self.message()))
    }
}

impl From<kube::Error> for CallError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => {
                Self::Refused { code: status.code, reason: status.reason, message: status.message }
            }
            kube::Error::Service(error) => match error.downcast::<NotPermitted>() {
                Ok(why) => Self::NotPermitted(*why),
                Err(error) => Self::Failed(kube::Error::Service(error)),
            },
            other => Self::Failed(other),
        }
    }
}

/// Waits for one call, at most `limit`.
///
/// Boxed: otherwise every calling future would contain this one, and the code that polls it.
pub fn call<'a, T>(
    limit: Duration,
    request: impl Future<Output = kube::Result<T>> + Send + 'a,
) -> BoxFuture<'a, Result<T, CallError>> {
    Box::pin(async move {
        match tokio::time::timeout(limit, request).await {
            Ok(answer) => answer.map_err(CallError::from),
            Err(_elapsed) => Err(CallError::Timeout(limit)),
        }
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(403, FailureClass::Auth)]
    #[case(409, FailureClass::Busy)]
    #[case(429, FailureClass::Unavailable)]
    #[case(503, FailureClass::Unavailable)]
    #[case(422, FailureClass::Bug)]
    fn refusals_are_classified(#[case] code: u16, #[case] class: FailureClass) {
        let error = CallError::Refused { code, reason: "R".into(), message: "m".into() };
        let failure = error.to_failure("failed to update load balancer status");
        assert_eq!(failure.class, class);
        assert_eq!(
            failure.message,
            format!("failed to update load balancer status: the API server answered {code} R: m")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_server_is_given_up() {
        let error = call::<()>(Duration::from_secs(30), std::future::pending()).await.unwrap_err();
        assert_eq!(error.message(), "the API server did not answer within 30 s");
    }
}
