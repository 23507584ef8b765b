//! The trace of a run: every call with what it is about, when it began and what its answer shows; and the rules of the protocol of a
//! reconciliation, each a predicate over it.
//!
//! Moments count calls and answers, since the clock of these tests stands still while the program works.

mod rules;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Method, StatusCode};
use openstack_ccm_openstack_api::transport;
use openstack_ccm_openstack_sim::Sim as Cloud;
use serde_json::Value;

use super::line::{Asked, Call, Side};
pub(super) use rules::breaches;

/// What paths of Octavia begin with.
const OCTAVIA: &str = "/v2.0/lbaas/";

/// The next moment.
pub(super) fn moment() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(1, Ordering::SeqCst)
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) at: usize,
    /// Absent where the connection was lost.
    pub(crate) status: Option<StatusCode>,
    /// Load balancers in it.
    pub(crate) shown: Vec<Shown>,
}

/// A load balancer as an answer shows it.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) id: String,
    pub(crate) is_pending: bool,
}

impl Answer {
    pub(super) fn of(status: Option<StatusCode>, shown: Vec<Shown>) -> Self {
        Self { at: moment(), status, shown }
    }

    pub(crate) fn is_success(&self) -> bool {
        self.status.is_some_and(|status| status.is_success())
    }
}

/// The load balancer that a change of Octavia is about. Of one that is being created only the answer knows the id.
pub(super) fn touched_by(asked: &Asked, cloud: &Cloud) -> Option<String> {
    let path = asked.path.split('?').next()?.strip_prefix(OCTAVIA)?;
    let mut parts = path.split('/');
    let (collection, id) = (parts.next()?, parts.next());
    let id_of = |object: &Value| object["id"].as_str().map(str::to_owned);
    let parent = |objects: Vec<Value>, id: &str| {
        objects.iter().find(|object| object["id"] == id).and_then(|object| id_of(&object["loadbalancers"][0]))
    };
    let of_pool = |id: &str| parent(cloud.pools(), id);
    let text = |value: &Value| value.as_str().map(str::to_owned);
    match (collection, id) {
        ("loadbalancers", id) => id.map(str::to_owned),
        ("listeners", Some(id)) => parent(cloud.listeners(), id),
        ("pools", Some(id)) => of_pool(id),
        ("healthmonitors", Some(id)) => {
            let monitors = cloud.health_monitors();
            let monitor = monitors.iter().find(|monitor| monitor["id"] == id)?;
            of_pool(monitor["pools"][0]["id"].as_str()?)
        }
        ("listeners", None) => text(&asked.body["listener"]["loadbalancer_id"])
            .or_else(|| of_pool(asked.body["listener"]["default_pool_id"].as_str()?)),
        ("pools", None) => text(&asked.body["pool"]["loadbalancer_id"])
            .or_else(|| parent(cloud.listeners(), asked.body["pool"]["listener_id"].as_str()?)),
        ("healthmonitors", None) => of_pool(asked.body["healthmonitor"]["pool_id"].as_str()?),
        _ => None,
    }
}

/// Whether a batch names members that are there, of which it puts back what it does not repeat. One that only adds is about others.
pub(super) fn names_members(asked: &Asked, cloud: &Cloud) -> bool {
    let pool = asked.path.strip_prefix(OCTAVIA).and_then(|path| path.strip_prefix("pools/"));
    let Some(pool) =
        pool.and_then(|path| path.strip_suffix("/members")).filter(|_| asked.method == Method::PUT)
    else {
        return false;
    };
    let there = cloud.members(pool);
    let is_there = |named: &Value| {
        let is_it = |one: &Value| ["address", "protocol_port"].iter().all(|key| one[key] == named[key]);
        there.iter().any(is_it)
    };
    asked.body["members"].as_array().is_some_and(|named| named.iter().any(is_there))
}

/// The load balancers that an answer shows.
pub(super) fn shown_by(path: &str, answer: &transport::Response) -> Vec<Shown> {
    let is_of_load_balancers =
        path.strip_prefix(OCTAVIA).is_some_and(|path| path.starts_with("loadbalancers"));
    if !is_of_load_balancers || !answer.status.is_success() {
        return Vec::new();
    }
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let listed = body["loadbalancers"].as_array().into_iter().flatten();
    let alone = [&body["loadbalancer"], &body["statuses"]["loadbalancer"]];
    listed.chain(alone).filter_map(shown).collect()
}

fn shown(object: &Value) -> Option<Shown> {
    let id = object["id"].as_str()?.to_owned();
    let is_pending = object["provisioning_status"].as_str()?.starts_with("PENDING");
    Some(Shown { id, is_pending })
}

/// The trace as it is read: who asks for what, in which reconciliation, from which moment to which, and the answer.
pub(crate) fn text(calls: &[Call]) -> String {
    calls.iter().map(|call| format!("{call}\n")).collect()
}

impl std::fmt::Display for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, path, begun, run, answer, .. } = self;
        let run = run.as_ref().map(|run| format!("{} in {}", run.service, run.number));
        let (ended, status) = answer.as_ref().map(|answer| (answer.at, answer.status)).unzip();
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let status = or_none(status.flatten().map(|status| status.as_u16().to_string()));
        let ended = or_none(ended.map(|ended| ended.to_string()));
        write!(f, "{begun}..{ended} {}: {name} {path} {status}", or_none(run))
    }
}

impl Call {
    /// Path and query below the root of Octavia.
    pub(crate) fn octavia(&self) -> Option<&str> {
        (self.side == Side::OpenStack).then(|| self.path.strip_prefix(OCTAVIA)).flatten()
    }

    /// Whether it was carried out, as its answer says.
    pub(crate) fn is_accepted(&self) -> bool {
        self.answer.as_ref().is_some_and(Answer::is_success)
    }

    /// The moment of its answer; absent where there was none.
    pub(crate) fn ended(&self) -> Option<usize> {
        self.answer.as_ref().map(|answer| answer.at)
    }

    /// Whether its answer shows a load balancer on which Octavia is not at work.
    pub(crate) fn shows_at_rest(&self, id: &str) -> bool {
        let mut shown = self.answer.iter().flat_map(|answer| &answer.shown);
        shown.any(|shown| shown.id == id && !shown.is_pending)
    }
}
