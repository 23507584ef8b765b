//! What this process remembers of the Services that it serves.
//!
//! Only a help: everything in here can be lost at any moment, and the next pass finds it again in the cluster and in
//! the cloud. It tells own writes from foreign ones, allows to publish again without asking the cloud, and releases a
//! Service whose object vanished although it had our finalizer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1 as k8s;
use openstack_ccm_core::advertise::entry::IngressEntry;
use openstack_ccm_core::provider::Ready;
use openstack_ccm_core::service::{Service, ServiceKey};
use tokio::time::Instant;

use super::backends::Backends;
use super::change::Written;
use super::drift::Drift;
use crate::lock::lock;

/// What has been announced and not yet concluded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Activity {
    /// Nothing.
    #[default]
    Idle,
    /// `EnsuringLoadBalancer`
    Ensuring,
    /// New backends are on their way; nothing is announced for that.
    UpdatingNodes,
    /// `DeletingLoadBalancer`
    Deleting,
}

/// One served Service.
#[derive(Clone, Debug)]
pub(crate) struct Remembered {
    /// The facts of the last pass; what a release needs when the object is gone.
    pub(crate) service: Service,
    /// What the provider reported last.
    pub(crate) ready: Option<Ready>,
    /// The backends of the last successful pass.
    pub(crate) backends: Option<Backends>,
    /// Entries that were published last.
    pub(crate) published: Option<Vec<IngressEntry>>,
    /// Annotations that were written last.
    pub(crate) written: Written,
    /// Mode and reason of the publication, as metric labels.
    pub(crate) advertised: Option<(&'static str, &'static str)>,
    /// What has been announced.
    pub(crate) activity: Activity,
    /// What a look for drift has put right, while one is going on.
    pub(crate) drift: Option<Drift>,
    /// How often the status was restored after an edit by others.
    pub(crate) restorations: Restorations,
    /// The object as the API server answered our last write, for as long as the watch has not caught up.
    pub(crate) latest: Option<Arc<k8s::Service>>,
}

/// Keeps two writers that disagree about a status from overtaking each other for ever.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Restorations {
    since: Option<Instant>,
    count: u32,
}

impl Restorations {
    /// Restorations that are made within [`Self::WINDOW`]; after that the edit stays until the next pass.
    const MOST: u32 = 10;
    const WINDOW: Duration = Duration::from_secs(600);

    /// Counts one, and answers whether it may be made.
    pub(crate) fn allow(&mut self, now: Instant) -> bool {
        if self.since.is_none_or(|since| now.duration_since(since) >= Self::WINDOW) {
            *self = Self { since: Some(now), count: 0 };
        }
        self.count = self.count.saturating_add(1);
        self.count <= Self::MOST
    }
}

/// The served Services. Each is on its own: a table has room for up to twice as many as it holds.
#[derive(Debug, Default)]
pub(crate) struct Memory(Mutex<HashMap<ServiceKey, Box<Remembered>>>);

impl Memory {
    /// Remembers the facts of a Service, and all that is known of it when it is the same one (by uid).
    pub(crate) fn remember(&self, service: &Service) {
        let mut services = lock(&self.0);
        match services.get_mut(&service.key) {
            Some(known) if known.service.uid == service.uid => known.service = service.clone(),
            _ => {
                let remembered = Remembered {
                    service: service.clone(),
                    ready: None,
                    backends: None,
                    published: None,
                    written: Written::new(),
                    advertised: None,
                    activity: Activity::Idle,
                    drift: None,
                    restorations: Restorations::default(),
                    latest: None,
                };
                services.insert(service.key.clone(), Box::new(remembered));
            }
        }
    }

    /// Everything about a Service, as it is now.
    pub(crate) fn get(&self, key: &ServiceKey) -> Option<Remembered> {
        lock(&self.0).get(key).map(|known| Remembered::clone(known))
    }

    /// Reads or changes what is known of a Service; nothing happens when nothing is known.
    pub(crate) fn with<R>(&self, key: &ServiceKey, change: impl FnOnce(&mut Remembered) -> R) -> Option<R> {
        lock(&self.0).get_mut(key).map(|known| change(known))
    }

    /// Whether the Service is known.
    pub(crate) fn serves(&self, key: &ServiceKey) -> bool {
        lock(&self.0).contains_key(key)
    }

    /// Forgets a Service.
    pub(crate) fn forget(&self, key: &ServiceKey) -> Option<Remembered> {
        lock(&self.0).remove(key).map(|known| *known)
    }

    /// Whether the provider has reported the Service ready.
    pub(crate) fn is_ready(&self, key: &ServiceKey) -> bool {
        lock(&self.0).get(key).is_some_and(|known| known.ready.is_some())
    }

    /// Whether any Service was reported ready so that the condition holds.
    pub(crate) fn any_ready(&self, holds: impl Fn(&ServiceKey, &Ready) -> bool) -> bool {
        lock(&self.0).iter().any(|(key, known)| known.ready.as_ref().is_some_and(|ready| holds(key, ready)))
    }

    /// The Services that were reported ready so that the condition holds.
    pub(crate) fn ready_where(&self, holds: impl Fn(&ServiceKey, &Ready) -> bool) -> Vec<ServiceKey> {
        let services = lock(&self.0);
        let ready = services
            .iter()
            .filter(|(key, known)| known.ready.as_ref().is_some_and(|ready| holds(key, ready)));
        ready.map(|(key, _)| key.clone()).collect()
    }

    /// The Services that the provider has reported ready.
    pub(crate) fn ready(&self) -> Vec<ServiceKey> {
        lock(&self.0).iter().filter(|(_, known)| known.ready.is_some()).map(|(key, _)| key.clone()).collect()
    }
}

/// The newer of two states of one object: the cached one, unless the last answer to a write is of the same object and
/// has a higher resourceVersion. Versions that are not numbers cannot be compared; the cache is right in the end.
pub(crate) fn newer(cached: Arc<k8s::Service>, answered: Option<Arc<k8s::Service>>) -> Arc<k8s::Service> {
    answered
        .filter(|answered| versions(answered, &cached).is_some_and(|(answered, cached)| answered > cached))
        .unwrap_or(cached)
}

/// Whether a state from the watch is one that an answer to our own write has shown us already, or an older one.
pub(crate) fn is_echo(seen: &k8s::Service, answered: &k8s::Service) -> bool {
    versions(answered, seen).is_some_and(|(answered, seen)| answered >= seen)
}

/// The resourceVersions of two states of one object.
fn versions(one: &k8s::Service, other: &k8s::Service) -> Option<(u64, u64)> {
    let version = |service: &k8s::Service| -> Option<u64> {
        service.metadata.resource_version.as_deref().and_then(|version| version.parse().ok())
    };
    (one.metadata.uid == other.metadata.uid).then(|| version(one).zip(version(other))).flatten()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{from_value, json};

    use super::*;

    fn object(uid: &str, version: &str) -> Arc<k8s::Service> {
        Arc::new(
            from_value(json!({"metadata": {"name": "a", "uid": uid, "resourceVersion": version}})).unwrap(),
        )
    }

    #[rstest]
    #[case::answer_is_newer("u1", "12", "12")]
    #[case::cache_caught_up("u1", "9", "10")]
    #[case::another_object("u2", "12", "10")]
    #[case::versions_that_are_no_numbers("u1", "x", "10")]
    fn the_newer_state_is_used(#[case] uid: &str, #[case] answered: &str, #[case] expected: &str) {
        let newest = newer(object("u1", "10"), Some(object(uid, answered)));
        assert_eq!(newest.metadata.resource_version.as_deref(), Some(expected));
    }

    #[test]
    fn a_new_object_of_the_same_name_starts_without_memories() {
        let facts = |uid: &str| {
            crate::service::intent::facts(
                &from_value(json!({"metadata": {"namespace": "n", "name": "a", "uid": uid}})).unwrap(),
            )
        };
        let memory = Memory::default();
        memory.remember(&facts("u1"));
        let key = ServiceKey::new("n", "a");
        memory.with(&key, |known| known.activity = Activity::Ensuring);
        memory.remember(&facts("u1"));
        assert_eq!(memory.get(&key).unwrap().activity, Activity::Ensuring);
        memory.remember(&facts("u2"));
        assert_eq!(memory.get(&key).unwrap().activity, Activity::Idle);
    }
}
