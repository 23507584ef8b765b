//! An answer of an HTTP API that speaks JSON.

use anyhow::{Context as _, Result, bail};
use reqwest::blocking::Response;
use serde_json::Value;

/// Status code and body.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// What was asked, for messages.
    pub request: String,
    /// Status code of HTTP.
    pub status: u16,
    /// The body; null if it is empty.
    pub body: Value,
}

impl Answer {
    pub(crate) fn read(request: String, response: Response) -> Result<Self> {
        let status = response.status().as_u16();
        let text = response.text().with_context(|| request.clone())?;
        let body = if text.trim().is_empty() {
            Value::Null
        } else {
            serde_json::from_str(&text).unwrap_or_else(|_| Value::String(text.clone()))
        };
        Ok(Self { request, status, body })
    }

    /// The body of a 2xx answer.
    pub(crate) fn success(self) -> Result<Value> {
        if !(200..300).contains(&self.status) {
            bail!("{}: {} {}", self.request, self.status, self.body);
        }
        Ok(self.body)
    }
}
