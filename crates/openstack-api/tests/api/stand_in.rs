//! A cloud that answers from a list and remembers what it was asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use openstack_ccm_core::cloud::CallObserver;
use openstack_ccm_openstack_api::client::{Client, ClientSettings, RetryPolicy};
use openstack_ccm_openstack_api::transport::{Request, Response, Service, Transport, TransportError};
use serde_json::Value;

type Answer = Result<Response, TransportError>;

/// Gives its answers in order and fails the test when there are none left.
#[derive(Clone, Debug, Default)]
pub(crate) struct StandIn {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl StandIn {
    pub(crate) fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self { answers: Arc::new(Mutex::new(answers.into_iter().collect())), requests: Arc::default() }
    }

    /// Answers everything with one body.
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::new([Ok(answer(status, body))])
    }

    pub(crate) fn client(&self) -> Client {
        Client::over(self.clone())
    }

    pub(crate) fn client_with(&self, retry: RetryPolicy, observer: Arc<dyn CallObserver>) -> Client {
        let settings = ClientSettings { observer, retry, ..ClientSettings::default() };
        Client::new(Arc::new(self.clone()), settings)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Method, path and query of every request.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.requests()
            .iter()
            .map(|request| format!("{} {}", request.method, request.path_and_query()))
            .collect()
    }

    /// The only request's line and body.
    pub(crate) fn only(&self) -> (String, Value) {
        let requests = self.requests();
        let [request] = requests.as_slice() else { panic!("{} requests, not one", requests.len()) };
        let body = request.body.as_ref().map_or(Value::Null, |body| serde_json::from_slice(body).unwrap());
        (format!("{} {}", request.method, request.path_and_query()), body)
    }
}

#[async_trait]
impl Transport for StandIn {
    async fn send(&self, request: Request) -> Answer {
        let line = request.path_and_query();
        self.requests.lock().unwrap().push(request);
        let answer = self.answers.lock().unwrap().pop_front();
        answer.unwrap_or_else(|| panic!("no answer left for {line}"))
    }
}

pub(crate) fn answer(status: u16, body: &Value) -> Response {
    answer_with(status, &[], body)
}

pub(crate) fn answer_with(status: u16, headers: &[(&'static str, &'static str)], body: &Value) -> Response {
    let headers = headers
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect::<HeaderMap>();
    let body = if body.is_null() { String::new() } else { body.to_string() };
    Response { status: StatusCode::from_u16(status).unwrap(), headers, body: body.into() }
}

pub(crate) fn lost_answer() -> TransportError {
    TransportError::LostAnswer {
        service: Service::LoadBalancer,
        host: "lb:9876".to_owned(),
        timed_out: true,
        source: "operation timed out".into(),
    }
}

pub(crate) fn no_connection() -> TransportError {
    TransportError::Connect {
        service: Service::LoadBalancer,
        host: "lb:9876".to_owned(),
        source: "connection refused".into(),
    }
}

/// A call, and whether it succeeded.
type Entry = (&'static str, bool);

/// Remembers what it was asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    entries: Arc<Mutex<Vec<Entry>>>,
}

impl Ledger {
    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.entries.lock().unwrap().clone()
    }
}

impl CallObserver for Ledger {
    fn observe(&self, call: &'static str, _duration: Duration, succeeded: bool) {
        self.entries.lock().unwrap().push((call, succeeded));
    }
}
