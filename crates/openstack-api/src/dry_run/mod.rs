//! A cloud for dry runs: passes reads to the real cloud, and records writes and keeps them as documents over the real objects, so
//! that later reads see them.
//!
//! It knows the few kinds of objects that this program writes, and refuses all others. It assumes that Octavia does everything at
//! once and without failing. New objects have ids and addresses that cannot be mistaken for real ones ([`is_placeholder`]).
//!
//! | module | holds |
//! | --- | --- |
//! | `view` | the real cloud, over a transport that cannot write, with the recorded documents over it |
//! | `writes`, `create` | the changes of a write |
//! | `kind`, `placeholder` | the kinds of objects; ids and addresses of new ones |
//! | `difference` | each object once, with the attributes that would change |

mod create;
mod difference;
mod kind;
mod placeholder;
mod view;
mod writes;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use http::{HeaderMap, Method, StatusCode};
use serde_json::{Value, json};

pub use difference::{Difference, Fate, differences, known, merged, shown};
pub use kind::Kind;
pub use placeholder::{is_placeholder, is_placeholder_address};
pub use view::ReadOnly;

use crate::client::Client;
use crate::transport::{Request, Response, Service, Transport, TransportError};
use kind::Target;
use view::View;

/// How a dry run reads the cloud.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// Whether each list is read whole, once, and then answers every later read: for plans with many Services. Members of pools
    /// have no such list.
    pub ahead: bool,
    /// The project of the credentials, to which whole lists are limited.
    pub project_id: Option<String>,
}

/// Records the events of a dry run.
pub trait Recorder: Send + Sync + fmt::Debug {
    /// Records an object that a read returned, with the recorded writes applied.
    fn read(&self, kind: Kind, object: &Value);

    /// Records a write.
    fn wrote(&self, write: Write);
}

/// A call that would change the cloud.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    pub service: Service,
    pub method: Method,
    /// Path from the root of the service.
    pub path: String,
    pub query: Vec<(String, String)>,
    pub body: Option<Value>,
    /// The changes; empty where the objects already are as the call wants them.
    pub changes: Vec<ObjectChange>,
}

/// One object before and after a write.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectChange {
    pub kind: Kind,
    /// The id; a placeholder where the object does not exist yet.
    pub id: String,
    /// The pool of a member.
    pub parent: Option<String>,
    /// The object before the write; absent where it is created.
    pub before: Option<Value>,
    /// The object after the write; absent where it is deleted.
    pub after: Option<Value>,
}

/// The transport of a dry run.
#[derive(Debug)]
pub struct DryRun {
    view: Arc<View>,
    /// A client that reads through the view.
    client: Client,
    recorder: Arc<dyn Recorder>,
}

impl DryRun {
    /// Creates a dry run on the cloud behind `transport`.
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

/// Why a write cannot be predicted.
enum Stop {
    /// The cloud's answer, which the caller has to handle.
    Answer(Box<Response>),
    /// The cloud did not answer.
    Failed(TransportError),
}

impl From<TransportError> for Stop {
    fn from(error: TransportError) -> Self {
        Self::Failed(error)
    }
}

/// Returns the error of a call with an unpredictable effect: no plan is better than a wrong one.
fn unknown(request: &Request, why: &str) -> TransportError {
    let Request { method, path, service, .. } = request;
    let source = format!("a dry run cannot predict the effect of {method} {path}: {why}").into();
    TransportError::Request { service: *service, source }
}

fn answer(status: StatusCode, body: &Value) -> Response {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    Response { status, headers: HeaderMap::new(), body: body.into() }
}

/// Returns the answer for a missing object, in a form that each service uses somewhere.
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
