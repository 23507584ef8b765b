//! A Kubernetes API for plans: passes reads to the real API server, and records writes and answers them from a picture in memory.
//!
//! The one exception is the check whether the API server keeps `ipMode`: it is a patch with `dryRun=All`, which the server answers
//! without storing anything. A user who may not patch is refused, and the plan reports the answer as unknown.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use http::{Method, Request, Response, StatusCode, header};
use kube::Client;
use kube::client::Body;
use openstack_ccm_core::lock::lock;
use serde_json::{Value, json};
use tower::service_fn;

use super::as_if::AsIf;
use super::journal::{Call, ClusterWrite, Journal};

/// Returns a client that writes nothing.
pub fn client(real: Client, journal: Arc<Journal>, as_if: AsIf) -> Client {
    let cluster = Arc::new(Cluster { real, journal, as_if, picture: Mutex::default() });
    let service = service_fn(move |request: Request<Body>| {
        let cluster = Arc::clone(&cluster);
        async move { cluster.answer(request).await }
    });
    Client::new(service, "default")
}

struct Cluster {
    real: Client,
    journal: Arc<Journal>,
    as_if: AsIf,
    /// Objects after the recorded writes, by path; null where they would be deleted.
    picture: Mutex<HashMap<String, Value>>,
}

impl Cluster {
    async fn answer(&self, request: Request<Body>) -> Result<Response<Body>, kube::Error> {
        let path = request.uri().path().to_owned();
        match *request.method() {
            Method::GET => match self.known(&path) {
                Some(known) => Ok(shown(&known)),
                None => self.read(request).await,
            },
            Method::PATCH if is_question(&request) => self.real.send(request).await,
            Method::PATCH => self.patch(&path, request).await,
            Method::DELETE => self.delete(&path, request).await,
            _ => {
                self.journal
                    .trouble(format!("a dry run cannot predict the effect of {} {path}", request.method()));
                Ok(status(StatusCode::METHOD_NOT_ALLOWED, "nothing may be written here"))
            }
        }
    }

    fn known(&self, path: &str) -> Option<Value> {
        lock(&self.picture).get(object_path(path)).cloned()
    }

    /// Reads from the API server, and adds the assumed annotations and the recorded writes.
    async fn read(&self, request: Request<Body>) -> Result<Response<Body>, kube::Error> {
        let path = request.uri().path().to_owned();
        let answer = self.real.send(request).await?;
        if (self.as_if.is_empty() && lock(&self.picture).is_empty()) || !answer.status().is_success() {
            return Ok(answer);
        }
        let mut object = body(answer).await?;
        match object["items"].as_array_mut() {
            Some(items) => {
                for item in items.iter_mut() {
                    match self.known(&path_in_list(&path, item)) {
                        Some(known) => *item = known,
                        None => self.as_if.apply(item),
                    }
                }
                items.retain(|item| !item.is_null());
            }
            None => self.as_if.apply(&mut object),
        }
        Ok(shown(&object))
    }

    /// Returns the object at a path, or the answer to pass on where there is none.
    async fn object(&self, path: &str) -> Result<Result<Value, Response<Body>>, kube::Error> {
        let path = object_path(path);
        if let Some(known) = self.known(path) {
            return Ok(if known.is_null() { Err(shown(&known)) } else { Ok(known) });
        }
        let request = Request::get(path).body(Body::empty()).map_err(kube::Error::HttpError)?;
        let answer = self.read(request).await?;
        if !answer.status().is_success() {
            return Ok(Err(answer));
        }
        body(answer).await.map(Ok)
    }

    async fn patch(&self, path: &str, request: Request<Body>) -> Result<Response<Body>, kube::Error> {
        let is_strategic = is_strategic_patch(&request);
        let patch = request.into_body().collect_bytes().await?;
        let patch: Value = serde_json::from_slice(&patch).map_err(kube::Error::SerdeError)?;
        let patched = |before: &Value| {
            let mut after = before.clone();
            json_patch::merge(&mut after, &patch);
            if is_strategic {
                merge_conditions(before, &mut after);
            }
            after["metadata"]["resourceVersion"] = json!(next_version(before));
            after
        };
        self.write(Method::PATCH, path, patch.clone(), patched).await
    }

    async fn delete(&self, path: &str, request: Request<Body>) -> Result<Response<Body>, kube::Error> {
        let conditions = request.into_body().collect_bytes().await?;
        let conditions = serde_json::from_slice(&conditions).unwrap_or_default();
        self.write(Method::DELETE, path, conditions, |_| Value::Null).await
    }

    /// Records a write, and answers as if it had turned the object into `after`.
    async fn write(
        &self,
        method: Method,
        path: &str,
        body: Value,
        after: impl FnOnce(&Value) -> Value,
    ) -> Result<Response<Body>, kube::Error> {
        let before = match self.object(path).await? {
            Ok(before) => before,
            Err(answer) => return Ok(answer),
        };
        let after = after(&before);
        let gone = json!({"kind": "Status", "apiVersion": "v1", "status": "Success"});
        let answer = json_answer(StatusCode::OK, if after.is_null() { &gone } else { &after });
        lock(&self.picture).insert(object_path(path).to_owned(), after.clone());
        let write = ClusterWrite { method, path: path.to_owned(), body, before, after };
        self.journal.note(Call::Cluster(write));
        Ok(answer)
    }
}

/// Returns whether the request is a dry run of the API server.
fn is_question(request: &Request<Body>) -> bool {
    request.uri().query().is_some_and(|query| query.split('&').any(|pair| pair == "dryRun=All"))
}

fn is_strategic_patch(request: &Request<Body>) -> bool {
    let kind = request.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind == "application/strategic-merge-patch+json")
}

/// Restores the conditions that a strategic merge patch does not name: such a patch replaces only conditions of the same type. The
/// controllers patch no other list in this way.
fn merge_conditions(before: &Value, after: &mut Value) {
    let named = after["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let others = before["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let others = others.into_iter().filter(|one| named.iter().all(|new| new["type"] != one["type"]));
    after["status"]["conditions"] = others.chain(named.iter().cloned()).collect();
}

/// Returns the path without a sub-resource.
fn object_path(path: &str) -> &str {
    path.strip_suffix("/status").unwrap_or(path)
}

/// Returns the path of an object in the list at `list`, which may span all namespaces.
fn path_in_list(list: &str, object: &Value) -> String {
    let text = |key: &str| object["metadata"][key].as_str();
    let name = text("name").unwrap_or_default();
    match (list.rsplit_once('/'), text("namespace")) {
        (Some((group, plural)), Some(namespace)) => format!("{group}/namespaces/{namespace}/{plural}/{name}"),
        _ => format!("{list}/{name}"),
    }
}

/// Returns the resource version after another write, by which a reader sees that the object is newer.
fn next_version(object: &Value) -> String {
    let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    version.parse::<u64>().map_or_else(|_| version.to_owned(), |number| (number + 1).to_string())
}

async fn body(answer: Response<Body>) -> Result<Value, kube::Error> {
    let bytes = answer.into_body().collect_bytes().await?;
    serde_json::from_slice(&bytes).map_err(kube::Error::SerdeError)
}

/// Returns an object as the answer to a read; null gives Not Found.
fn shown(object: &Value) -> Response<Body> {
    if object.is_null() {
        return status(StatusCode::NOT_FOUND, "the object would be deleted");
    }
    json_answer(StatusCode::OK, object)
}

fn status(code: StatusCode, message: &str) -> Response<Body> {
    let reason = if code == StatusCode::NOT_FOUND { "NotFound" } else { "MethodNotAllowed" };
    let body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code.as_u16()});
    json_answer(code, &body)
}

fn json_answer(code: StatusCode, body: &Value) -> Response<Body> {
    let mut answer = Response::new(Body::from(body.to_string().into_bytes()));
    *answer.status_mut() = code;
    answer.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    answer
}
