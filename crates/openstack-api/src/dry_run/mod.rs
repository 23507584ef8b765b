//! A cloud to plan on: reads go to the real one, writes are recorded and kept as documents over what the real one shows, so
//! that later reads see them.
//!
//! It knows the few kinds of objects that this program writes, and refuses what it does not know. Octavia is taken to do at
//! once, and without failing, what it is asked for. What is created has ids and addresses that cannot be taken for real ones
//! ([`is_placeholder`]).
//!
//! | module | holds |
//! | --- | --- |
//! | `view` | the real cloud, over a transport that cannot write, with the documents over it |
//! | `filter` | which objects a list shows |
//! | `writes`, `create` | what a write changes |
//! | `kind`, `placeholder` | the objects and their stand-ins |

mod create;
mod filter;
mod kind;
mod placeholder;
mod view;
mod writes;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use http::{HeaderMap, Method, StatusCode};
use serde_json::{Value, json};

pub use kind::Kind;
pub use placeholder::{is_placeholder, is_placeholder_address};
pub use view::ReadOnly;

use crate::client::Client;
use crate::transport::{Request, Response, Service, Transport, TransportError};
use kind::Target;
use view::View;

/// How a dry run reads.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// Whether lists are read whole, once, and answer every later read: for plans over many Services. Members of pools have no
    /// such list.
    pub ahead: bool,
    /// Project of the credentials, to which whole lists are limited.
    pub project_id: Option<String>,
}

/// Learns what happens in a dry run.
pub trait Recorder: Send + Sync + fmt::Debug {
    /// This object was shown, as it is or as it would be.
    fn read(&self, kind: Kind, object: &Value);

    /// A caller would have written.
    fn wrote(&self, write: Write);
}

/// A call that would have changed the cloud.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    pub service: Service,
    pub method: Method,
    /// Path from the root of the service.
    pub path: String,
    pub query: Vec<(String, String)>,
    pub body: Option<Value>,
    /// What it would have changed. Empty where everything is as it would be afterwards.
    pub changes: Vec<ObjectChange>,
}

/// One object before and after a write.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectChange {
    pub kind: Kind,
    /// Id; a placeholder where the object does not exist yet.
    pub id: String,
    /// The pool of a member.
    pub parent: Option<String>,
    /// As it was; absent where it is created.
    pub before: Option<Value>,
    /// As it would be; absent where it is deleted.
    pub after: Option<Value>,
}

/// The transport.
#[derive(Debug)]
pub struct DryRun {
    view: Arc<View>,
    /// Reads what the view shows.
    client: Client,
    recorder: Arc<dyn Recorder>,
}

impl DryRun {
    /// A dry run on the cloud behind `transport`.
    pub fn new(transport: Arc<dyn Transport>, reading: Reading, recorder: Arc<dyn Recorder>) -> Self {
        let view = Arc::new(View::new(ReadOnly::new(transport), reading, Arc::clone(&recorder)));
        let client =
            Client::new(Arc::clone(&view) as Arc<dyn Transport>, crate::client::ClientSettings::default());
        Self { view, client, recorder }
    }

    async fn write(&self, request: Request) -> Result<Response, Stop> {
        let segments: Vec<&str> = request.path.split('/').collect();
        let target = Target::of(request.service, &segments)
            .ok_or_else(|| unknown(&request, "objects of this kind are not supported in a dry run"))?;
        let body: Option<Value> = request
            .body
            .as_deref()
            .map(serde_json::from_slice)
            .transpose()
            .map_err(|error| unknown(&request, &error.to_string()))?;
        let (response, changes) = self.effect(&request, target, body.as_ref()).await?;
        let Request { service, method, path, query, .. } = request;
        self.recorder.wrote(Write { service, method, path, query, body, changes });
        Ok(response)
    }
}

#[async_trait]
impl Transport for DryRun {
    async fn send(&self, request: Request) -> Result<Response, TransportError> {
        if request.method == Method::GET {
            return self.view.send(request).await;
        }
        match self.write(request).await {
            Ok(response) => Ok(response),
            Err(Stop::Answer(response)) => Ok(*response),
            Err(Stop::Failed(error)) => Err(error),
        }
    }
}

/// Why there is nothing to go on with.
enum Stop {
    /// The cloud answered something that its caller has to deal with.
    Answer(Box<Response>),
    /// There is no answer.
    Failed(TransportError),
}

impl From<TransportError> for Stop {
    fn from(error: TransportError) -> Self {
        Self::Failed(error)
    }
}

/// A call of which nobody can say what it does: no plan is better than a wrong one.
fn unknown(request: &Request, why: &str) -> TransportError {
    let Request { method, path, service, .. } = request;
    let source = format!("a dry run cannot predict the effect of {method} {path}: {why}").into();
    TransportError::Request { service: *service, source }
}

fn answer(status: StatusCode, body: &Value) -> Response {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    Response { status, headers: HeaderMap::new(), body: body.into() }
}

/// The answer for an object that is not there, in a form that both services use somewhere.
fn not_found(kind: Kind, path: &str) -> Response {
    let message = format!("{kind} {} could not be found", path.rsplit('/').next().unwrap_or_default());
    let body = if kind.is_octavias() {
        json!({"faultcode": "Client", "faultstring": message, "debuginfo": null})
    } else {
        json!({"NeutronError": {"type": "NotFound", "message": message, "detail": ""}})
    };
    answer(StatusCode::NOT_FOUND, &body)
}

#[cfg(test)]
mod tests;
