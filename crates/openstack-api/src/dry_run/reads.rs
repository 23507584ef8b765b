//! Reading from the real cloud, over a transport that cannot write.

use std::sync::Arc;

use async_trait::async_trait;
use http::{HeaderMap, Method};
use serde_json::Value;

use super::Stop;
use super::kind::Kind;
use crate::client::next_page;
use crate::transport::{Request, Response, Transport, TransportError};

/// Lets reads through and nothing else: what is built on it cannot change the cloud, whatever it tries.
#[derive(Clone, Debug)]
pub struct ReadOnly {
    transport: Arc<dyn Transport>,
}

impl ReadOnly {
    /// The reading half of a transport.
    pub fn new(transport: Arc<dyn Transport>) -> Self {
        Self { transport }
    }
}

#[async_trait]
impl Transport for ReadOnly {
    async fn send(&self, request: Request) -> Result<Response, TransportError> {
        if request.method == Method::GET {
            return self.transport.send(request).await;
        }
        let what = format!("{} {} is a write, and nothing may be written here", request.method, request.path);
        Err(TransportError::Request { service: request.service, source: what.into() })
    }
}

/// The request for what is at a path.
pub(super) fn read(kind: Kind, path: &str, query: Vec<(String, String)>) -> Request {
    let service = kind.of_service();
    let path = path.to_owned();
    Request { service, method: Method::GET, path, query, headers: HeaderMap::new(), body: None }
}

/// Reads all pages of a list.
pub(super) async fn all_pages(
    cloud: &ReadOnly,
    mut request: Request,
    kind: Kind,
) -> Result<Vec<Value>, Stop> {
    let asked = request.query.clone();
    let mut objects = Vec::new();
    let mut seen = Vec::new();
    loop {
        let mut body = parsed(cloud.send(request.clone()).await?)?;
        if let Value::Array(page) = body[kind.list_root()].take() {
            objects.extend(page);
        }
        let links = body[format!("{}_links", kind.list_root())].take();
        match next_page(&links, &asked).filter(|next| !seen.contains(next)) {
            Some(next) => {
                seen.push(next.clone());
                request.query = next;
            }
            None => return Ok(objects),
        }
    }
}

/// The body of an answer that says success.
pub(super) fn parsed(response: Response) -> Result<Value, Stop> {
    if !response.status.is_success() {
        return Err(Stop::Answer(Box::new(response)));
    }
    // What cannot be read is for the caller to complain about.
    serde_json::from_slice(&response.body).map_err(|_| Stop::Answer(Box::new(response)))
}
