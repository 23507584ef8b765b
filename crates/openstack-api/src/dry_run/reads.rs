//! Reading from the real cloud, over a transport that cannot write, and whole lists in place of a read for each object.
//!
//! A plan over hundreds of Services asks for thousands of objects one by one. All of a project's are a handful of lists,
//! which are read when the first of their objects is asked for. Members of pools have no such list.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use http::{HeaderMap, Method};
use serde_json::Value;
use tokio::sync::Mutex;

use super::kind::Kind;
use super::{Stop, filter, id_of};
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

/// The lists, where they are wanted.
#[derive(Debug)]
pub(super) struct Ahead {
    wanted: bool,
    project_id: Option<String>,
    lists: Mutex<HashMap<Kind, Arc<HashMap<String, Value>>>>,
}

impl Ahead {
    pub(super) fn new(wanted: bool, project_id: Option<String>) -> Self {
        Self { wanted, project_id, lists: Mutex::default() }
    }

    fn has(&self, kind: Kind) -> bool {
        self.wanted
            && matches!(
                kind,
                Kind::LoadBalancer | Kind::Listener | Kind::Pool | Kind::HealthMonitor | Kind::FloatingIp
            )
    }

    async fn all(&self, cloud: &ReadOnly, kind: Kind) -> Result<Arc<HashMap<String, Value>>, Stop> {
        let mut lists = self.lists.lock().await;
        if let Some(list) = lists.get(&kind) {
            return Ok(Arc::clone(list));
        }
        let project = self.project_id.iter().map(|id| ("project_id".to_owned(), id.clone())).collect();
        let objects = all_pages(cloud, read(kind, &kind.path(), project), kind).await?;
        let list: Arc<HashMap<_, _>> =
            Arc::new(objects.into_iter().map(|object| (id_of(&object), object)).collect());
        lists.insert(kind, Arc::clone(&list));
        Ok(list)
    }

    /// An object that is listed. One that is not may belong to another project, and has to be asked for.
    pub(super) async fn object(&self, cloud: &ReadOnly, kind: Kind, id: &str) -> Result<Option<Value>, Stop> {
        if !self.has(kind) {
            return Ok(None);
        }
        Ok(self.all(cloud, kind).await?.get(id).cloned())
    }

    /// What a list request would show; absent where the whole list cannot tell.
    pub(super) async fn list(
        &self,
        cloud: &ReadOnly,
        kind: Kind,
        query: &[(String, String)],
    ) -> Result<Option<Vec<Value>>, Stop> {
        if !self.has(kind) || !filter::understands(kind, query) || !self.is_within(cloud, kind, query).await?
        {
            return Ok(None);
        }
        let all = self.all(cloud, kind).await?;
        let mut listed: Vec<Value> =
            all.values().filter(|object| filter::matches(kind, object, query)).cloned().collect();
        listed.sort_by_key(id_of);
        Ok(Some(listed))
    }

    /// Whether everything that the query asks for is in the project whose lists these are.
    async fn is_within(
        &self,
        cloud: &ReadOnly,
        kind: Kind,
        query: &[(String, String)],
    ) -> Result<bool, Stop> {
        let value = |key: &str| query.iter().find(|(other, _)| other == key).map(|(_, value)| value);
        if self.project_id.is_none() || value("project_id") == self.project_id.as_ref() {
            return Ok(true);
        }
        // Children are in the project of their load balancer.
        match value("loadbalancer_id") {
            Some(id) => Ok(self.all(cloud, Kind::LoadBalancer).await?.contains_key(id)),
            None => Ok(kind == Kind::FloatingIp && value("port_id").is_some()),
        }
    }
}
