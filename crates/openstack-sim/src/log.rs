//! Every call that was made, for tests to read and count.

use std::sync::{Mutex, MutexGuard, PoisonError};

use http::Method;
use serde_json::Value;

use crate::request::Request;
use crate::service::Service;

/// One call.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The service that was called.
    pub service: Service,
    /// The method.
    pub method: Method,
    /// The path below the service root, such as `/v2.0/lbaas/listeners`.
    pub path: String,
    /// The query as it was sent, without `?`.
    pub query: String,
    /// The body as JSON; null when there was none, and always for Keystone and Barbican, whose bodies carry secrets.
    pub body: Value,
    /// The status of the answer; `None` when the connection was closed instead.
    pub status: Option<u16>,
}

impl Call {
    /// Whether the call asked for a change.
    #[must_use]
    pub fn is_write(&self) -> bool {
        !matches!(self.method, Method::GET | Method::HEAD)
    }
}

/// The calls in the order in which they were answered.
#[derive(Debug, Default)]
pub struct CallLog {
    calls: Mutex<Vec<Call>>,
}

impl CallLog {
    fn lock(&self) -> MutexGuard<'_, Vec<Call>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn record(&self, request: &Request, status: Option<u16>) {
        let secret = matches!(request.service, Service::Identity | Service::KeyManager);
        let body = if secret { Value::Null } else { request.json().unwrap_or_default() };
        self.lock().push(Call {
            service: request.service,
            method: request.method.clone(),
            path: request.path.clone(),
            query: request.raw_query.clone(),
            body,
            status,
        });
    }

    /// All calls since the beginning or the last [`Self::clear`].
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.lock().clone()
    }

    /// The calls that asked for a change, log-ins not counted.
    #[must_use]
    pub fn writes(&self) -> Vec<Call> {
        self.lock()
            .iter()
            .filter(|call| call.is_write() && call.service != Service::Identity)
            .cloned()
            .collect()
    }

    /// How many calls fulfil a condition.
    #[must_use]
    pub fn count(&self, condition: impl Fn(&Call) -> bool) -> usize {
        self.lock().iter().filter(|call| condition(call)).count()
    }

    /// How many calls with this method went to a path that contains `part`.
    #[must_use]
    pub fn count_of(&self, method: &Method, part: &str) -> usize {
        self.count(|call| call.method == *method && call.path.contains(part))
    }

    /// Forgets all calls.
    pub fn clear(&self) {
        self.lock().clear();
    }
}
