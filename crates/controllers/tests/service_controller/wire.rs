//! The connection of the controller under test to the API server: writes down what is said, and breaks on demand.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use http::header::AUTHORIZATION;
use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower::service_fn;

/// What happens to one request that matches.
pub(crate) enum Fault {
    /// The API server answers with this status code instead.
    Answer(u16),
    /// The API server never answers.
    Silence,
    /// The request is carried out and the answer is lost.
    LostAnswer,
    /// Somebody else acts first.
    After(Pin<Box<dyn Future<Output = ()> + Send>>),
}

type Matcher = Box<dyn Fn(&str) -> bool + Send>;
type Hook = Box<dyn Fn(&str) + Send>;

/// The connection.
pub(crate) struct Wire {
    journal: Mutex<Vec<String>>,
    faults: Mutex<Vec<(Matcher, Fault)>>,
    before: Mutex<Option<Hook>>,
    /// Credentials that are added to every request.
    token: Mutex<Option<&'static str>>,
}

impl Wire {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            journal: Mutex::default(),
            faults: Mutex::default(),
            before: Mutex::default(),
            token: Mutex::default(),
        })
    }

    /// A client whose requests pass through here on their way to `server`.
    pub(crate) fn client(self: &Arc<Self>, server: Client) -> Client {
        let wire = Arc::clone(self);
        let service = service_fn(move |request: Request<Body>| {
            let (wire, server) = (Arc::clone(&wire), server.clone());
            async move { wire.pass(request, server).await }
        });
        Client::new(service, "default")
    }

    async fn pass(&self, request: Request<Body>, server: Client) -> Result<Response<Body>, kube::Error> {
        let (mut parts, body) = request.into_parts();
        if let Some(token) = *self.token.lock().unwrap() {
            parts.headers.insert(AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
        }
        let bytes = body.collect_bytes().await?;
        let sent: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        let Some(line) = describe(&parts.method, parts.uri.path(), parts.uri.query().unwrap_or(""), &sent)
        else {
            return server.send(Request::from_parts(parts, Body::from(bytes.to_vec()))).await;
        };
        self.note(line.clone());
        if let Some(hook) = self.before.lock().unwrap().as_ref() {
            hook(&line);
        }
        let forward = Request::from_parts(parts, Body::from(bytes.to_vec()));
        match self.fault(&line) {
            None => server.send(forward).await,
            Some(Fault::Answer(code)) => Ok(refusal(code)),
            Some(Fault::Silence) => std::future::pending().await,
            Some(Fault::LostAnswer) => {
                server.send(forward).await?;
                Err(kube::Error::Service("connection reset".into()))
            }
            Some(Fault::After(act)) => {
                act.await;
                server.send(forward).await
            }
        }
    }

    fn fault(&self, line: &str) -> Option<Fault> {
        let mut faults = self.faults.lock().unwrap();
        let index = faults.iter().position(|(matches, _)| matches(line))?;
        Some(faults.remove(index).1)
    }

    /// The next request whose line in the journal contains `text` meets this fault.
    pub(crate) fn break_next(&self, text: &'static str, fault: Fault) {
        self.faults.lock().unwrap().push((Box::new(move |line| line.contains(text)), fault));
    }

    /// Calls `hook` with the line of each request before it is sent.
    pub(crate) fn before_each(&self, hook: impl Fn(&str) + Send + 'static) {
        *self.before.lock().unwrap() = Some(Box::new(hook));
    }

    pub(crate) fn use_token(&self, token: &'static str) {
        *self.token.lock().unwrap() = Some(token);
    }

    pub(crate) fn heal(&self) {
        self.faults.lock().unwrap().clear();
    }

    pub(crate) fn note(&self, line: String) {
        self.journal.lock().unwrap().push(line);
    }

    /// What happened since the last call.
    pub(crate) fn journal(&self) -> Vec<String> {
        std::mem::take(&mut self.journal.lock().unwrap())
    }
}

/// One line for each request about a single Service; nothing for lists, watches, events and versions.
fn describe(method: &Method, path: &str, query: &str, body: &Value) -> Option<String> {
    let (_, name) = path.split_once("/services/")?;
    if query.contains("watch=") {
        return None;
    }
    if query.contains("dryRun=All") {
        return Some(format!("ask {name}"));
    }
    if *method != Method::PATCH {
        return Some(format!("{} {name}", method.as_str().to_lowercase()));
    }
    let mut parts = Vec::new();
    let metadata = &body["metadata"];
    for key in ["finalizers", "annotations"] {
        if metadata.get(key).is_some() {
            parts.push(key.to_owned());
        }
    }
    if let Some(ingress) = body["status"]["loadBalancer"].get("ingress") {
        parts.push(format!("ingress {}", brief(ingress)));
    }
    Some(format!("patch {name}: {}", parts.join(", ")))
}

/// `192.0.2.1(Proxy)` for an address, the name for a hostname.
fn brief(ingress: &Value) -> String {
    let entries: Vec<String> = ingress
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| match (entry["ip"].as_str(), entry["ipMode"].as_str(), entry["hostname"].as_str()) {
            (Some(ip), None, None) => ip.to_owned(),
            (Some(ip), Some(mode), None) => format!("{ip}({mode})"),
            (None, None, Some(hostname)) => hostname.to_owned(),
            other => format!("{other:?}"),
        })
        .collect();
    if entries.is_empty() { "none".to_owned() } else { entries.join(" ") }
}

fn refusal(code: u16) -> Response<Body> {
    let reason = match code {
        403 => "Forbidden",
        404 => "NotFound",
        409 => "Conflict",
        422 => "Invalid",
        _ => "InternalError",
    };
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": format!("made up by the test: {reason}"), "reason": reason, "code": code,
    });
    Response::builder()
        .status(code)
        .header("content-type", "application/json")
        .body(Body::from(serde_json::to_vec(&status).unwrap()))
        .unwrap()
}
