//! What this process remembers of the Services that it serves.
//!
//! A cache: it can be lost at any moment, and later reconciliations rebuild it from the cluster and the cloud. With it the controller
//! tells its own writes of a status from those of others, writes a status again without asking the cloud, and releases the load
//! balancer of a Service whose object vanished although it had our finalizer.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::{LoadBalancerIngress, Service};
use openstack_ccm_advertise::announce::Announced;
use openstack_ccm_core::failure::Hold;
use openstack_ccm_core::provider::Ready;
use openstack_ccm_core::service::ServiceKey;
use tokio::time::Instant;

use super::backends::Backends;
use super::cache::is_same_state;
use super::drift::Drift;
use super::intent::uid;
use super::wait::Wait;
use super::written::Written;
use crate::metrics::Operation;
use openstack_ccm_core::lock::lock;

/// One served Service.
#[derive(Debug, Default)]
pub(crate) struct Remembered {
    /// The object of the last reconciliation; a release needs it when the Service is gone.
    pub(crate) object: Arc<Service>,
    /// What the provider reported last.
    pub(crate) ready: Option<Ready>,
    /// The backends of the last successful reconciliation.
    pub(crate) backends: Option<Backends>,
    /// Entries that were published last.
    pub(crate) published: Option<Vec<LoadBalancerIngress>>,
    /// Annotations that were written last. A list, because the smallest map has room for eleven.
    written: Box<[(String, Option<String>)]>,
    /// What was reported last about the publication.
    pub(crate) announced: Announced,
    /// What was reported last about Services with its address in `externalIPs`.
    pub(crate) bypassed: Option<String>,
    /// Whether the Service was seen to ask for the removal of its load balancer. Without that, it only vanished.
    pub(crate) asked_to_go: bool,
    /// Why its load balancer is held, if it is, and when that was reported last.
    pub(crate) held: Option<(Hold, Instant)>,
    /// Whether no node can take its traffic.
    pub(crate) without_nodes: bool,
    /// The operation in progress; it was announced, unless it only updates backends.
    pub(crate) activity: Option<Operation>,
    /// What the Service waits for, if it does.
    pub(crate) wait: Option<Wait>,
    /// The repairs of a check for drift, while one is in progress.
    pub(crate) drift: Option<Drift>,
    /// How often the status was restored after edits by other clients.
    pub(crate) restorations: Restorations,
    /// The object in the API server's answer to our last write, until the watch has caught up.
    pub(crate) latest: Option<Arc<Service>>,
}

impl Remembered {
    /// Annotations that were written last.
    pub(crate) fn written(&self) -> Written {
        self.written.iter().cloned().collect()
    }

    /// Notes annotations that are about to be written.
    pub(crate) fn writes(&mut self, annotations: &Written) {
        let mut written = self.written();
        written.extend(annotations.clone());
        self.written = written.into_iter().collect();
    }
}

/// Keeps two writers of a status from overwriting each other for ever.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Restorations {
    since: Option<Instant>,
    count: u32,
    /// Whether the other writer was reported within the window.
    announced: bool,
}

impl Restorations {
    /// Maximum of restorations within [`Self::WINDOW`]; after that an edit stays until the next reconciliation.
    pub(crate) const MAX_PER_WINDOW: u32 = 10;
    pub(crate) const WINDOW: Duration = Duration::from_secs(600);

    /// Counts a restoration, and returns whether it may be made.
    pub(crate) fn allow(&mut self, now: Instant) -> bool {
        if self.since.is_none_or(|since| now.duration_since(since) >= Self::WINDOW) {
            *self = Self { since: Some(now), ..Self::default() };
        }
        self.count = self.count.saturating_add(1);
        self.count <= Self::MAX_PER_WINDOW
    }

    /// Whether to report the other writer now: this is the last restoration.
    pub(crate) fn announce(&mut self) -> bool {
        self.count >= Self::MAX_PER_WINDOW && !std::mem::replace(&mut self.announced, true)
    }
}

/// The served Services. Boxed: a table has room for up to twice as many as it holds.
#[derive(Debug, Default)]
pub(crate) struct Memory(Mutex<HashMap<ServiceKey, Box<Remembered>>>);

impl Memory {
    /// Remembers the object of a Service, and keeps all that is known of it if the uid is the same.
    pub(crate) fn remember(&self, key: &ServiceKey, object: &Arc<Service>) {
        let mut services = lock(&self.0);
        match services.get_mut(key) {
            Some(known) if uid(&known.object) == uid(object) => known.object = Arc::clone(object),
            _ => {
                let remembered = Remembered { object: Arc::clone(object), ..Remembered::default() };
                services.insert(key.clone(), Box::new(remembered));
            }
        }
    }

    /// Replaces the remembered object by an equivalent newer state from the watch, if it is one of these two states: to keep both would
    /// take the memory twice.
    pub(crate) fn follow(&self, key: &ServiceKey, before: Option<&Service>, now: &Arc<Service>) {
        self.with(key, |known| {
            let is_remembered = |state: &Service| is_same_state(&known.object, state);
            if is_remembered(now) || before.is_some_and(is_remembered) {
                known.object = Arc::clone(now);
            }
        });
    }

    /// Drops all answers to writes, because a new list shows more. Returns the Services that had such an answer.
    pub(crate) fn listed_anew(&self) -> HashSet<ServiceKey> {
        let mut services = lock(&self.0);
        let answered =
            services.iter_mut().filter_map(|(key, known)| known.latest.take().map(|_| key.clone()));
        answered.collect()
    }

    /// Reads or changes what is known of a Service; does nothing if nothing is known.
    pub(crate) fn with<R>(&self, key: &ServiceKey, change: impl FnOnce(&mut Remembered) -> R) -> Option<R> {
        lock(&self.0).get_mut(key).map(|known| change(known))
    }

    /// Whether the Service is known.
    pub(crate) fn serves(&self, key: &ServiceKey) -> bool {
        lock(&self.0).contains_key(key)
    }

    pub(crate) fn forget(&self, key: &ServiceKey) -> Option<Remembered> {
        lock(&self.0).remove(key).map(|known| *known)
    }

    /// Whether the provider has reported the Service ready.
    pub(crate) fn is_ready(&self, key: &ServiceKey) -> bool {
        lock(&self.0).get(key).is_some_and(|known| known.ready.is_some())
    }

    /// Whether the condition holds for any ready Service and its published entries.
    pub(crate) fn any_ready(
        &self,
        holds: impl Fn(&ServiceKey, &Ready, &[LoadBalancerIngress]) -> bool,
    ) -> bool {
        lock(&self.0).iter().any(|(key, known)| {
            let published = known.published.as_deref().unwrap_or_default();
            known.ready.as_ref().is_some_and(|ready| holds(key, ready, published))
        })
    }

    /// Returns the ready Services for which the condition holds.
    pub(crate) fn ready_where(&self, holds: impl Fn(&ServiceKey, &Ready) -> bool) -> Vec<ServiceKey> {
        let services = lock(&self.0);
        let ready = services
            .iter()
            .filter(|(key, known)| known.ready.as_ref().is_some_and(|ready| holds(key, ready)));
        ready.map(|(key, _)| key.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{from_value, json};

    use super::*;

    #[rstest]
    #[case::after_the_remembered_one("4", Some("4"), "5", true)]
    #[case::the_remembered_one_itself_which_an_answer_showed_before("5", Some("4"), "5", true)]
    #[case::an_older_one_of_several_that_were_written("6", Some("4"), "5", false)]
    #[case::after_one_that_asked_for_something_else("3", Some("4"), "5", false)]
    #[case::the_first_one_of_a_list("4", None, "5", false)]
    fn a_state_that_asks_for_the_same_replaces_the_remembered_one(
        #[case] remembered: &str,
        #[case] before: Option<&str>,
        #[case] now: &str,
        #[case] replaces: bool,
    ) {
        let state = |version: &str| {
            let service = json!({"metadata": {"name": "a", "uid": "u1", "resourceVersion": version}});
            Arc::new(from_value(service).unwrap())
        };
        let (memory, key, now) = (Memory::default(), ServiceKey::new("n", "a"), state(now));
        memory.remember(&key, &state(remembered));
        memory.follow(&key, before.map(state).as_deref(), &now);
        assert_eq!(memory.with(&key, |known| Arc::ptr_eq(&known.object, &now)), Some(replaces));
    }

    #[test]
    fn a_new_object_of_the_same_name_starts_without_memories() {
        let object = |uid: &str| {
            let service = json!({"metadata": {"namespace": "n", "name": "a", "uid": uid}});
            Arc::new(from_value(service).unwrap())
        };
        let memory = Memory::default();
        let key = ServiceKey::new("n", "a");
        let activity = || memory.with(&key, |known| known.activity).unwrap();
        memory.remember(&key, &object("u1"));
        memory.with(&key, |known| known.activity = Some(Operation::Ensure));
        memory.remember(&key, &object("u1"));
        assert_eq!(activity(), Some(Operation::Ensure));
        memory.remember(&key, &object("u2"));
        assert_eq!(activity(), None);
    }
}
