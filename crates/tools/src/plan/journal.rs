//! What a dry run recorded: the calls that would change something, in order, and what was seen on the way.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;

use http::Method;
use openstack_ccm_openstack_api::dry_run::{Kind, ObjectChange, Recorder, Write};
use openstack_ccm_runtime::lock::lock;
use serde_json::{Value, json};

/// A call that would change something.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// To OpenStack.
    Cloud(Write),
    /// To the Kubernetes API.
    Cluster(ClusterWrite),
}

/// A call to the Kubernetes API that would change an object.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterWrite {
    /// HTTP method: PATCH or DELETE.
    pub method: Method,
    /// Path, with the sub-resource.
    pub path: String,
    /// The merge patch; of a DELETE under which conditions, or null.
    pub body: Value,
    /// The object as it is.
    pub before: Value,
    /// The object as it would be; null where it would be deleted.
    pub after: Value,
}

impl Call {
    /// What it would change in the cloud.
    pub(super) fn changes(&self) -> &[ObjectChange] {
        match self {
            Self::Cloud(write) => &write.changes,
            Self::Cluster(_) => &[],
        }
    }

    /// What it would change in the cluster.
    pub(crate) fn in_cluster(&self) -> Option<&ClusterWrite> {
        match self {
            Self::Cluster(write) => Some(write),
            Self::Cloud(_) => None,
        }
    }

    /// The call as JSON.
    pub(super) fn object(&self) -> Value {
        let (method, service, path, body) = self.parts();
        json!({"method": method.as_str(), "service": service, "path": path, "body": body})
    }

    /// Method, name of the service that is called, path and body.
    fn parts(&self) -> (&Method, &'static str, String, Value) {
        match self {
            Self::Cloud(Write { service, method, path, query, body, changes: _ }) => {
                let query: Vec<String> = query.iter().map(|(key, value)| format!("{key}={value}")).collect();
                let mark = if query.is_empty() { "" } else { "?" };
                let path = format!("{path}{mark}{}", query.join("&"));
                (method, service.catalog_type(), path, body.clone().unwrap_or_default())
            }
            Self::Cluster(write) => (&write.method, "kubernetes", write.path.clone(), write.body.clone()),
        }
    }
}

impl fmt::Display for Call {
    /// `POST load-balancer /v2.0/lbaas/loadbalancers {…}`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (method, service, path, body) = self.parts();
        write!(f, "{method} {service} {path}")?;
        if body.is_null() { Ok(()) } else { write!(f, " {body}") }
    }
}

/// The objects of the cloud that were seen, as they were seen first, by kind and id.
pub type Seen = BTreeMap<(Kind, String), Value>;

/// The journal of a dry run.
#[derive(Debug, Default)]
pub struct Journal {
    entries: Mutex<JournalEntries>,
}

#[derive(Debug, Default)]
struct JournalEntries {
    calls: Vec<Call>,
    seen: Seen,
    /// Calls of all time.
    count: usize,
    /// Why the plan would be wrong.
    troubles: Vec<String>,
}

impl Journal {
    /// Writes a call down.
    pub fn note(&self, call: Call) {
        let mut entries = lock(&self.entries);
        entries.calls.push(call);
        entries.count += 1;
    }

    /// Notes why the plan would be wrong.
    pub fn trouble(&self, cause: String) {
        lock(&self.entries).troubles.push(cause);
    }

    /// Why the plan would be wrong, since the last time.
    pub fn take_troubles(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.entries).troubles)
    }

    /// How many calls were written down, of all time.
    pub fn count(&self) -> usize {
        lock(&self.entries).count
    }

    /// What was written down since the last time.
    pub fn take(&self) -> (Vec<Call>, Seen) {
        let mut entries = lock(&self.entries);
        (std::mem::take(&mut entries.calls), std::mem::take(&mut entries.seen))
    }
}

impl Recorder for Journal {
    fn read(&self, kind: Kind, object: &Value) {
        let Some(id) = object["id"].as_str() else { return };
        lock(&self.entries).seen.entry((kind, id.to_owned())).or_insert_with(|| object.clone());
    }

    fn wrote(&self, write: Write) {
        self.note(Call::Cloud(write));
    }
}
