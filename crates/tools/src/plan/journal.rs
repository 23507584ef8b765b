//! The records of a dry run: the calls that would change something, in order, and the objects that were read.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;

use http::Method;
use openstack_ccm_core::lock::lock;
use openstack_ccm_openstack_api::dry_run::{Kind, ObjectChange, Recorder, Write};
use serde_json::{Value, json};

/// A call that would change something.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// A call to OpenStack.
    Cloud(Write),
    /// A call to the Kubernetes API.
    Cluster(ClusterWrite),
}

/// A call to the Kubernetes API that would change an object.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterWrite {
    /// HTTP method: PATCH or DELETE.
    pub method: Method,
    /// Path, including the sub-resource.
    pub path: String,
    /// The merge patch; for a DELETE its preconditions, or null.
    pub body: Value,
    /// The object before the call.
    pub before: Value,
    /// The object after the call; null where it would be deleted.
    pub after: Value,
}

impl Call {
    /// Returns the changes to the cloud.
    pub(crate) fn changes(&self) -> &[ObjectChange] {
        match self {
            Self::Cloud(write) => &write.changes,
            Self::Cluster(_) => &[],
        }
    }

    /// Returns the change to the cluster.
    pub(crate) fn in_cluster(&self) -> Option<&ClusterWrite> {
        match self {
            Self::Cluster(write) => Some(write),
            Self::Cloud(_) => None,
        }
    }

    /// Returns the call as JSON.
    pub(super) fn object(&self) -> Value {
        let (method, service, path, body) = self.parts();
        json!({"method": method.as_str(), "service": service, "path": path, "body": body})
    }

    /// Returns method, name of the called service, path and body.
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

/// The cloud objects that were read, as first read, by kind and id.
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
    /// The number of calls since the start.
    count: usize,
    /// Reasons why the plan would be wrong.
    troubles: Vec<String>,
}

impl Journal {
    /// Records a call.
    pub fn note(&self, call: Call) {
        let mut entries = lock(&self.entries);
        entries.calls.push(call);
        entries.count += 1;
    }

    /// Records a reason why the plan would be wrong.
    pub fn trouble(&self, cause: String) {
        lock(&self.entries).troubles.push(cause);
    }

    /// Takes the reasons why the plan would be wrong, recorded since the last time.
    pub fn take_troubles(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.entries).troubles)
    }

    /// Returns the number of calls recorded since the start.
    pub fn count(&self) -> usize {
        lock(&self.entries).count
    }

    /// Takes the calls and objects recorded since the last time.
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
