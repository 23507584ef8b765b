//! Every call that was made, for tests to read and count.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::Method;
use serde_json::Value;

use crate::request::Request;
use crate::service::Service;

#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The service that was called.
    pub service: Service,
    pub method: Method,
    /// The path below the service root, such as `/v2.0/lbaas/listeners`.
    pub path: String,
    /// The query as it was sent, without `?`.
    pub query: String,
    /// The body as it was sent; empty when there was none, and always for Keystone and Barbican, whose bodies carry
    /// secrets.
    pub body: Bytes,
    /// The status of the answer; `None` when the connection was closed instead.
    pub status: Option<u16>,
}

impl Call {
    /// The body as JSON; null where there is none or it is no JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Whether the call asked for a change.
    pub fn is_write(&self) -> bool {
        !matches!(self.method, Method::GET | Method::HEAD)
    }
}

/// Calls that are kept; of more than that the oldest are forgotten.
const LIMIT: usize = 20_000;

/// The calls in the order in which they were answered, the last 20,000 where there were more.
#[derive(Debug, Default)]
pub struct CallLog {
    calls: Mutex<VecDeque<Call>>,
}

impl CallLog {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Call>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn record(&self, request: &Request, status: Option<u16>) {
        let secret = matches!(request.service, Service::Identity | Service::KeyManager);
        // A copy: what the server hands over is a part of the buffer of its connection, and would keep all of it.
        let body = if secret { Bytes::new() } else { Bytes::copy_from_slice(&request.body) };
        let mut calls = self.lock();
        if calls.len() == LIMIT && calls.pop_front().is_some() {
            tracing::debug!(limit = LIMIT, "the oldest call is forgotten");
        }
        calls.push_back(Call {
            service: request.service,
            method: request.method.clone(),
            path: request.path.clone(),
            query: request.raw_query.clone(),
            body,
            status,
        });
    }

    /// The calls since the beginning or the last [`Self::clear`].
    pub fn calls(&self) -> Vec<Call> {
        self.lock().iter().cloned().collect()
    }

    /// The calls that asked for a change, logins not counted.
    pub fn writes(&self) -> Vec<Call> {
        self.lock()
            .iter()
            .filter(|call| call.is_write() && call.service != Service::Identity)
            .cloned()
            .collect()
    }

    /// How many calls fulfil a condition.
    pub fn count(&self, condition: impl Fn(&Call) -> bool) -> usize {
        self.lock().iter().filter(|call| condition(call)).count()
    }

    /// Forgets all calls.
    pub fn clear(&self) {
        self.lock().clear();
    }
}
