//! A cloud to plan on: reads go to the real one, writes are recorded and change a picture of it that is kept in memory, so
//! that later reads see them.
//!
//! The picture is of the few kinds of objects that this program writes, and of what is read again of them. Octavia is
//! taken to do at once, and without failing, what it is asked for. What is created has ids and addresses that cannot be
//! taken for real ones ([`is_placeholder`]).
//!
//! | module | holds |
//! | --- | --- |
//! | `reads` | reading from the real cloud, over a transport that cannot write; whole lists in place of a read for each object |
//! | `view` | the real cloud with the picture over it |
//! | `filter` | which objects a list shows |
//! | `octavia`, `neutron` | what a write changes |
//! | `kind`, `placeholder` | the objects and their stand-ins |

mod filter;
mod kind;
mod neutron;
mod octavia;
mod placeholder;
mod reads;
mod view;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

pub use kind::Kind;
pub use placeholder::{is_placeholder, is_placeholder_address};
pub use reads::ReadOnly;

use crate::transport::{Request, Response, Service, Transport, TransportError};
use kind::Target;
use view::View;

/// How a dry run reads.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// Whether lists are read whole, once, and answer every later read: for plans over many Services.
    pub ahead: bool,
    /// Project of the credentials, to which whole lists are limited.
    pub project_id: Option<String>,
}

/// Learns what happens in a dry run.
pub trait Recorder: Send + Sync + fmt::Debug {
    /// A caller was shown this object of the real cloud or of the picture.
    fn read(&self, kind: Kind, object: &Value);

    /// A caller would have written.
    fn wrote(&self, write: Write);
}

/// A call that would have changed the cloud.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// Which service would have been called.
    pub service: Service,
    /// HTTP method.
    pub method: Method,
    /// Path from the root of the service.
    pub path: String,
    /// Query pairs.
    pub query: Vec<(String, String)>,
    /// JSON body.
    pub body: Option<Value>,
    /// What it would have changed. Empty where everything is as it would be afterwards.
    pub changes: Vec<ObjectChange>,
}

/// One object before and after a write.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectChange {
    /// Kind of object.
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
    cloud: ReadOnly,
    view: View,
    recorder: Arc<dyn Recorder>,
}

impl DryRun {
    /// A dry run on the cloud behind `transport`.
    pub fn new(transport: Arc<dyn Transport>, reading: Reading, recorder: Arc<dyn Recorder>) -> Self {
        let cloud = ReadOnly::new(transport);
        Self { view: View::new(cloud.clone(), reading), cloud, recorder }
    }

    async fn read(&self, request: Request, target: Target<'_>) -> Result<Response, Stop> {
        let Target { kind, id, below } = target;
        match (id, below.as_slice()) {
            (None, _) => {
                let objects = self.view.list(kind, &request).await?;
                objects.iter().for_each(|object| self.recorder.read(kind, object));
                Ok(answer(StatusCode::OK, &json!({kind.list_root(): objects})))
            }
            (Some(id), []) => {
                let object = self.view.get(kind, id).await?;
                self.recorder.read(kind, &object);
                Ok(answer(StatusCode::OK, &json!({kind.root(): object})))
            }
            (Some(id), ["members"]) if kind == Kind::Pool => {
                let members = self.view.members(id).await?;
                members.iter().for_each(|member| self.recorder.read(Kind::Member, member));
                Ok(answer(StatusCode::OK, &json!({"members": members})))
            }
            // The statuses of the real cloud are none of the picture, in which everything is ACTIVE at once.
            (Some(id), ["status"]) => Err(not_found(kind, id)),
            (Some(_), _) => Ok(self.cloud.send(request).await?),
        }
    }

    async fn write(&self, request: Request, target: Target<'_>) -> Result<Response, Stop> {
        let body: Option<Value> = match request.body.as_deref().map(serde_json::from_slice).transpose() {
            Ok(body) => body,
            Err(error) => return Err(unknown(&request, &error.to_string())),
        };
        let effect = if target.kind.is_octavias() {
            octavia::effect(&self.view, &request, target, body.as_ref()).await?
        } else {
            neutron::effect(&self.view, &request, target, body.as_ref()).await?
        };
        let Effect { status, shown, changes } = effect;
        let Request { service, method, path, query, .. } = request;
        self.recorder.wrote(Write { service, method, path, query, body, changes });
        Ok(answer(status, &shown))
    }
}

#[async_trait]
impl Transport for DryRun {
    async fn send(&self, request: Request) -> Result<Response, TransportError> {
        let path = request.path.clone();
        let result = match (Target::parse(request.service, &path), request.method == Method::GET) {
            (Some(target), true) => self.read(request, target).await,
            (None, true) => return self.cloud.send(request).await,
            (Some(target), false) => self.write(request, target).await,
            (None, false) => Err(unknown(&request, "nothing is known of such objects")),
        };
        match result {
            Ok(response) => Ok(response),
            Err(Stop::Answer(response)) => Ok(*response),
            Err(Stop::Failed(error)) => Err(error),
        }
    }
}

/// What a write does.
struct Effect {
    status: StatusCode,
    /// The body of the answer.
    shown: Value,
    changes: Vec<ObjectChange>,
}

impl Effect {
    /// The answer shows the object.
    fn shows(status: StatusCode, kind: Kind, object: &Value, changes: Vec<ObjectChange>) -> Self {
        Self { status, shown: json!({kind.root(): object}), changes }
    }

    /// The answer is empty.
    fn silent(status: StatusCode, changes: Vec<ObjectChange>) -> Self {
        Self { status, shown: Value::Null, changes }
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

/// A write of which nobody can say what it does: no plan is better than a wrong one.
fn unknown(request: &Request, why: &str) -> Stop {
    let Request { method, path, service, .. } = request;
    let source = format!("a dry run cannot tell what {method} {path} changes: {why}").into();
    Stop::Failed(TransportError::Request { service: *service, source })
}

fn answer(status: StatusCode, body: &Value) -> Response {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    Response { status, headers: http::HeaderMap::new(), body: body.into() }
}

/// The answer for an object that is not there, in a form that both services use somewhere.
fn not_found(kind: Kind, id: &str) -> Stop {
    let message = format!("{kind} {id} could not be found");
    let body = if kind.is_octavias() {
        json!({"faultcode": "Client", "faultstring": message, "debuginfo": null})
    } else {
        json!({"NeutronError": {"type": "NotFound", "message": message, "detail": ""}})
    };
    Stop::Answer(Box::new(answer(StatusCode::NOT_FOUND, &body)))
}

/// The attributes in a body.
fn attributes(request: &Request, kind: Kind, body: Option<&Value>) -> Result<Map<String, Value>, Stop> {
    let object = body.and_then(|body| body[kind.root()].as_object());
    object.cloned().ok_or_else(|| unknown(request, &format!("the body has no {}", kind.root())))
}

/// The object with these attributes.
fn merged(before: &Value, attributes: &Map<String, Value>) -> Value {
    let mut after = before.clone();
    if let Some(object) = after.as_object_mut() {
        object.extend(attributes.clone());
    }
    after
}

fn id_of(object: &Value) -> String {
    object["id"].as_str().unwrap_or_default().to_owned()
}

fn created(kind: Kind, object: &Value) -> ObjectChange {
    ObjectChange { kind, id: id_of(object), parent: None, before: None, after: Some(object.clone()) }
}

fn changed(kind: Kind, before: &Value, after: &Value) -> ObjectChange {
    ObjectChange {
        kind,
        id: id_of(before),
        parent: None,
        before: Some(before.clone()),
        after: Some(after.clone()),
    }
}

fn deleted(kind: Kind, object: &Value) -> ObjectChange {
    ObjectChange { kind, id: id_of(object), parent: None, before: Some(object.clone()), after: None }
}

#[cfg(test)]
mod tests;
