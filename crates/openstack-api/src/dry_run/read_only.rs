//! A transport that cannot write.

use std::sync::Arc;

use async_trait::async_trait;
use http::Method;

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
