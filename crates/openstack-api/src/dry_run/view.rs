//! The real cloud, with the recorded writes applied.
//!
//! Answers of the real cloud that cannot be decoded are passed on unchanged, so that the caller judges them as it would without a
//! dry run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use http::{HeaderMap, Method, StatusCode};
use serde_json::{Value, json};

use super::kind::{Kind, Target, pool_of};
use super::placeholder::is_placeholder;
use super::{Reading, Recorder, answer, not_found, unknown};
use crate::client::{Client, Filters, Paths, read};
use crate::transport::{Request, Response, Transport, TransportError};
use openstack_ccm_core::lock::lock;

/// Passes reads on and refuses everything else: code that uses it cannot change the cloud, whatever it tries.
#[derive(Clone, Debug)]
pub struct ReadOnly {
    transport: Arc<dyn Transport>,
}

impl ReadOnly {
    /// Wraps a transport.
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

/// Objects by their paths.
#[derive(Debug, Default)]
struct Documents {
    /// Objects after the recorded writes; absent where they would be deleted.
    written: BTreeMap<String, Option<Value>>,
    /// Objects of the real cloud that were read.
    read: BTreeMap<String, Value>,
    /// The number of the last placeholder.
    last: u32,
}

/// Lists the objects directly below a list's path.
fn below<'a, T>(documents: &'a BTreeMap<String, T>, list: &str) -> impl Iterator<Item = &'a T> {
    let start = format!("{list}/");
    let from = documents.range(start.clone()..);
    let below = from.map_while(move |(path, document)| Some((path.strip_prefix(&start)?, document)));
    below.filter(|(rest, _)| !rest.contains('/')).map(|(_, document)| document)
}

/// The cloud as the reads of a dry run see it.
#[derive(Debug)]
pub(super) struct View {
    cloud: ReadOnly,
    reading: Reading,
    /// Whether the whole list of a kind was read successfully.
    whole: tokio::sync::Mutex<BTreeMap<Kind, bool>>,
    documents: Mutex<Documents>,
    recorder: Arc<dyn Recorder>,
}

impl View {
    pub(super) fn new(cloud: ReadOnly, reading: Reading, recorder: Arc<dyn Recorder>) -> Self {
        Self { cloud, reading, recorder, whole: tokio::sync::Mutex::default(), documents: Mutex::default() }
    }

    pub(super) fn project_id(&self) -> Option<&str> {
        self.reading.project_id.as_deref()
    }

    fn documents(&self) -> MutexGuard<'_, Documents> {
        lock(&self.documents)
    }

    /// Returns a number that no placeholder has yet.
    pub(super) fn next(&self) -> u32 {
        let mut documents = self.documents();
        documents.last += 1;
        documents.last
    }

    /// Notes an object after a write; absent where it would be deleted.
    pub(super) fn write(&self, path: String, object: Option<Value>) {
        self.documents().written.insert(path, object);
    }

    /// Returns the object as written or read; `Some(None)` where it would be deleted.
    fn known(&self, path: &str) -> Option<Option<Value>> {
        let documents = self.documents();
        let written = documents.written.get(path).cloned();
        written.or_else(|| documents.read.get(path).cloned().map(Some))
    }

    fn remember(&self, list: &str, objects: &[Value]) {
        let mut documents = self.documents();
        for object in objects {
            documents.read.insert(item(list, object), object.clone());
        }
    }

    async fn object(&self, request: Request, kind: Kind) -> Result<Response, TransportError> {
        self.list_whole(kind).await;
        match self.known(&request.path) {
            Some(Some(object)) => {
                self.recorder.read(kind, &object);
                Ok(answer(StatusCode::OK, &json!({kind.root(): object})))
            }
            Some(None) => Ok(not_found(kind, &request.path)),
            None if request.path.split('/').any(is_placeholder) => Ok(not_found(kind, &request.path)),
            None => {
                let path = request.path.clone();
                let response = self.cloud.send(request).await?;
                if let Some(object) = under(kind.root(), &response) {
                    self.recorder.read(kind, &object);
                    self.documents().read.insert(path, object);
                }
                Ok(response)
            }
        }
    }

    async fn list(&self, request: Request, target: &Target<'_>) -> Result<Response, TransportError> {
        let Target { kind, list, .. } = target;
        let (kind, query) = (*kind, request.query.clone());
        let pool = pool_of(kind, list);
        if let Some(id) = pool.filter(|id| self.known(&Kind::Pool.path(id)) == Some(None)) {
            return Ok(not_found(Kind::Pool, id));
        }
        let (mut objects, mut links) = (Vec::new(), Value::Null);
        let asks_for_new = query.iter().map(|(_, value)| value.as_str()).chain(pool).any(is_placeholder);
        if self.is_within_whole_list(kind, &query).await {
            let documents = self.documents();
            let asked = below(&documents.read, list).filter(|object| matches(object, &query));
            objects.extend(asked.cloned());
        } else if !asks_for_new {
            let response = self.cloud.send(request.clone()).await?;
            let page = read::<Vec<Value>>(kind.list_root(), &response.body).ok();
            let page = page.filter(|_| response.status.is_success());
            let Some((Some(page), next)) = page.map(|page| (page.value, page.links)) else {
                return Ok(response);
            };
            // Members are never read individually.
            if kind != Kind::Member && !is_given(&query, "fields") {
                self.remember(list, &page);
            }
            (objects, links) = (page, next);
        }
        let documents = self.documents();
        objects.retain(|object| !documents.written.contains_key(&item(list, object)));
        if !is_given(&query, "marker") {
            let mut written = below(&documents.written, list).flatten().peekable();
            if written.peek().is_some() && !understands(&query) {
                return Err(unknown(&request, "this filter is not known here"));
            }
            objects.extend(written.filter(|object| matches(object, &query)).cloned());
        }
        objects.iter().for_each(|object| self.recorder.read(kind, object));
        let links_root = format!("{}_links", kind.list_root());
        Ok(answer(StatusCode::OK, &json!({kind.list_root(): objects, links_root: links})))
    }

    /// Returns whether the project's whole list contains everything that the query matches.
    async fn is_within_whole_list(&self, kind: Kind, query: &[(String, String)]) -> bool {
        let value = |key: &str| query.iter().find(|(other, _)| other == key).map(|(_, value)| value.as_str());
        if !self.reading.ahead || !understands(query) {
            return false;
        }
        let own = self.project_id();
        let is_within = own.is_none()
            || value("project_id") == own
            || match value("loadbalancer_id") {
                // Children are in the same project as their load balancer.
                Some(id) => {
                    let path = Kind::LoadBalancer.path(id);
                    self.list_whole(Kind::LoadBalancer).await
                        && self
                            .documents()
                            .read
                            .get(&path)
                            .is_some_and(|one| one["project_id"].as_str() == own)
                }
                None => kind == Kind::FloatingIp && value("port_id").is_some(),
            };
        is_within && self.list_whole(kind).await
    }

    /// Reads the whole list of a kind once, if wanted. If that fails, each object is read individually.
    async fn list_whole(&self, kind: Kind) -> bool {
        use Kind::{FloatingIp, HealthMonitor, Listener, LoadBalancer, Pool};
        if !self.reading.ahead || !matches!(kind, LoadBalancer | Listener | Pool | HealthMonitor | FloatingIp)
        {
            return false;
        }
        let mut whole = self.whole.lock().await;
        if let Some(whole) = whole.get(&kind) {
            return *whole;
        }
        let list = kind.list();
        let segments: Vec<&str> = list.split('/').skip(1).collect();
        let call = Paths::new(kind.of_service(), &[]).get("list_whole", &segments);
        let call = call.query_if("project_id", self.project_id());
        let client = Client::over(self.cloud.clone());
        let listed = client.collect::<Value, Vec<_>>(call, kind.list_root(), Vec::new()).await;
        listed.iter().for_each(|listed| self.remember(&list, listed));
        whole.insert(kind, listed.is_ok());
        listed.is_ok()
    }
}

/// The filters that every kind of object that is written here shows in full.
const KNOWN_FILTERS: [&str; 17] = [
    "id",
    "name",
    "project_id",
    "description",
    "tags",
    "vip_port_id",
    "vip_address",
    "port_id",
    "floating_ip_address",
    "fixed_ip_address",
    "floating_network_id",
    "device_id",
    "device_owner",
    "network_id",
    "loadbalancer_id",
    "security_groups",
    "fixed_ips",
];

/// Returns whether all filters of the query are known. A list has one page here, so a query with a marker is not.
fn understands(query: &[(String, String)]) -> bool {
    !is_given(query, "marker") && Filters::of(query).keys().all(|key| KNOWN_FILTERS.contains(&key))
}

/// Returns whether a document matches a query. What it does not show is null.
fn matches(object: &Value, query: &[(String, String)]) -> bool {
    Filters::of(query).unmet(|name| Some(object[name].clone())).is_none()
}

fn is_given(query: &[(String, String)], key: &str) -> bool {
    query.iter().any(|(other, _)| other == key)
}

#[async_trait]
impl Transport for View {
    async fn send(&self, request: Request) -> Result<Response, TransportError> {
        let path = request.path.clone();
        let segments: Vec<&str> = path.split('/').collect();
        match Target::of(request.service, &segments).filter(|_| request.method == Method::GET) {
            Some(Target { kind, id: Some(_), below: [], .. }) => self.object(request, kind).await,
            Some(target @ Target { id: None, .. }) => self.list(request, &target).await,
            // The real cloud's status tree lacks the recorded writes, which leave every object ACTIVE at once.
            Some(Target { kind, below: ["status"], .. }) => Ok(not_found(kind, &path)),
            Some(_) | None => self.cloud.send(request).await,
        }
    }
}

pub(super) fn get(kind: Kind, path: String) -> Request {
    let (service, query, headers) = (kind.of_service(), Vec::new(), HeaderMap::new());
    Request { service, method: Method::GET, path, query, headers, body: None, permit: None }
}

/// Returns the object in a successful answer.
pub(super) fn under(root: &str, response: &Response) -> Option<Value> {
    let read = read::<Value>(root, &response.body).ok().filter(|_| response.status.is_success());
    read?.value.filter(Value::is_object)
}

/// Returns the path of an object in a list.
fn item(list: &str, object: &Value) -> String {
    format!("{list}/{}", object["id"].as_str().unwrap_or_default())
}
