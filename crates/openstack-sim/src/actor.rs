//! Other people in the cloud: an administrator, the user behind the controller's back, a stranger.

use bytes::Bytes;
use http::Method;
use serde_json::Value;

use crate::request::Request;
use crate::service::Service;
use crate::sim::Sim;

/// Somebody who makes requests that no fault touches and no log shows.
#[derive(Debug)]
pub struct Actor<'a> {
    sim: &'a Sim,
    token: String,
}

impl<'a> Actor<'a> {
    pub(crate) fn new(sim: &'a Sim, token: String) -> Self {
        Self { sim, token }
    }

    /// GET: status and body.
    pub fn get(&self, service: &str, path: &str) -> (u16, Value) {
        self.send(&Method::GET, service, path, &Value::Null)
    }

    /// POST: status and body.
    pub fn post(&self, service: &str, path: &str, body: &Value) -> (u16, Value) {
        self.send(&Method::POST, service, path, body)
    }

    /// A POST that has to succeed: the body of the answer.
    pub fn make(&self, service: &str, path: &str, body: &Value) -> Value {
        succeeded("POST", path, self.post(service, path, body))
    }

    /// A PUT that has to succeed: the body of the answer.
    pub fn change(&self, service: &str, path: &str, body: &Value) -> Value {
        succeeded("PUT", path, self.put(service, path, body))
    }

    /// PUT: status and body.
    pub fn put(&self, service: &str, path: &str, body: &Value) -> (u16, Value) {
        self.send(&Method::PUT, service, path, body)
    }

    /// DELETE: status and body.
    pub fn delete(&self, service: &str, path: &str) -> (u16, Value) {
        self.send(&Method::DELETE, service, path, &Value::Null)
    }

    /// Any request; status 0 when there is no such service, or the path is no path.
    pub fn send(&self, method: &Method, service: &str, path: &str, body: &Value) -> (u16, Value) {
        let (Some(service), Ok(uri), Ok(token)) =
            (Service::from_catalog_type(service), path.parse(), self.token.parse())
        else {
            return (0, Value::Null);
        };
        let payload = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let mut request = http::Request::new(payload);
        *request.method_mut() = method.clone();
        *request.uri_mut() = uri;
        request.headers_mut().insert("x-auth-token", token);
        let reply = self.sim.apply(&Request::new(service, request));
        (reply.status.as_u16(), reply.value())
    }
}

fn succeeded(method: &str, path: &str, (status, answer): (u16, Value)) -> Value {
    assert!((200..300).contains(&status), "{method} {path}: {status} {answer}");
    answer
}
