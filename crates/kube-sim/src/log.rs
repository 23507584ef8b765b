//! Every request that arrived.

use std::collections::VecDeque;

use bytes::Bytes;
use http::{HeaderMap, Method, header};
use jiff::Timestamp;
use serde_json::Value;

/// One request, as it arrived.
#[derive(Debug, Clone)]
pub struct RequestRecord {
    /// HTTP method.
    pub method: Method,
    /// Path without query, for example `/api/v1/namespaces/default/services/web/status`.
    pub path: String,
    /// Decoded query parameters in their order.
    pub query: Vec<(String, String)>,
    /// Header `User-Agent`, empty where there is none.
    pub user_agent: String,
    /// Header `Content-Type`, empty where there is none.
    pub content_type: String,
    /// Body as it was sent.
    pub body: Bytes,
    /// When it arrived, by the simulator's clock.
    pub at: Timestamp,
    /// HTTP status of the answer; `None` while there is none, and for an answer that a fault swallowed.
    pub status: Option<u16>,
}

impl RequestRecord {
    pub(crate) fn new(
        method: Method,
        path: &str,
        query: &str,
        headers: &HeaderMap,
        body: &[u8],
        at: Timestamp,
    ) -> Self {
        let text = |name: header::HeaderName| {
            headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
        };
        Self {
            method,
            path: path.to_owned(),
            query: url::form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
            user_agent: text(header::USER_AGENT),
            content_type: text(header::CONTENT_TYPE),
            // A copy: what the server hands over is a part of the buffer of its connection, and would keep all of it.
            body: Bytes::copy_from_slice(body),
            at,
            status: None,
        }
    }

    /// The first value of a query parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON; null where there is none or it is no JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub fn is_watch(&self) -> bool {
        matches!(self.parameter("watch"), Some("1" | "true"))
    }

    /// Whether this asks for no effect.
    pub fn is_dry_run(&self) -> bool {
        self.parameter("dryRun").is_some()
    }

    /// Whether this is a request that changes objects: anything but GET, and no dry run.
    pub fn is_write(&self) -> bool {
        self.method != Method::GET && !self.is_dry_run()
    }
}

/// Requests that are kept; of more than that the oldest are forgotten.
const LIMIT: usize = 20_000;

/// Requests in the order of their arrival.
#[derive(Debug, Default)]
pub(crate) struct Log {
    records: VecDeque<RequestRecord>,
    /// Records that were cleared away: numbers stay valid.
    cleared: usize,
}

impl Log {
    /// Notes a request and gives it a number.
    pub(crate) fn arrived(&mut self, record: RequestRecord) -> usize {
        if self.records.len() == LIMIT {
            if self.cleared == 0 {
                tracing::warn!(limit = LIMIT, "the oldest requests are forgotten");
            }
            self.records.pop_front();
            self.cleared += 1;
        }
        self.records.push_back(record);
        self.cleared + self.records.len() - 1
    }

    pub(crate) fn answered(&mut self, number: usize, status: u16) {
        let index = number.checked_sub(self.cleared);
        if let Some(record) = index.and_then(|index| self.records.get_mut(index)) {
            record.status = Some(status);
        }
    }

    pub(crate) fn records(&self) -> Vec<RequestRecord> {
        self.records.iter().cloned().collect()
    }

    pub(crate) fn clear(&mut self) {
        self.cleared += self.records.len();
        self.records.clear();
    }
}
