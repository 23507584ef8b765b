//! The Services as the watch has them.
//!
//! A decoded object takes a multiple of its text, most of it for fields that are empty, and a cluster has thousands of
//! them. So the text is cached, with the little that is asked for across all Services beside it, and a reconciliation decodes the
//! one object that it is about.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1 as k8s;
use openstack_ccm_advertise::entry::{PROXY, entries};
use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::provider::Neighbours;
use openstack_ccm_core::service::{Service, ServiceKey};

use super::intent::{Ours, Wanted, facts, uid};
use openstack_ccm_runtime::lock::lock;

/// One state of a Service object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CachedService {
    /// `metadata.uid`
    uid: Box<str>,
    /// `metadata.resourceVersion`, where it is a number.
    version: Option<u64>,
    /// Whether the Service is ours to serve.
    served: bool,
    /// Whether it is published with an address or a hostname.
    published: bool,
    /// The addresses that it is published with as `ipMode: Proxy`.
    proxied: Box<[IpAddr]>,
    /// The object as JSON.
    text: Box<[u8]>,
}

impl CachedService {
    /// A state as it is cached.
    pub(crate) fn of(service: &k8s::Service, ours: &Ours) -> Arc<Self> {
        let entries = entries(service);
        Arc::new(Self {
            uid: uid(service).into(),
            version: service.metadata.resource_version.as_deref().and_then(|version| version.parse().ok()),
            served: ours.wanted(service, false) == Wanted::Serve,
            published: !entries.is_empty(),
            proxied: entries.iter().filter_map(proxied).collect(),
            // What cannot be written cannot be read either, and that has somewhere to go.
            text: serde_json::to_vec(service).unwrap_or_default().into(),
        })
    }

    /// `metadata.uid`
    pub(crate) fn uid(&self) -> &str {
        &self.uid
    }

    /// Whether both are one state of one object. Versions that are not numbers cannot be compared.
    pub(crate) fn is_same_state(&self, other: &Self) -> bool {
        versions(self, other).is_some_and(|(one, other)| one == other)
    }

    /// Whether this state of one object is older than the other. Versions that are not numbers cannot be compared.
    pub(crate) fn is_older_than(&self, other: &Self) -> bool {
        versions(self, other).is_some_and(|(one, other)| one < other)
    }

    /// Whether the Service is ours to serve, and somebody may use it.
    pub(super) fn is_in_use(&self) -> bool {
        self.served && self.published
    }

    /// Whether the Service says by its status that it needs one of these addresses to be published as `Proxy`. One that
    /// goes needs nothing any more, whatever its status says until it is cleared.
    pub(crate) fn needs_proxy(&self, addresses: &[IpAddr]) -> bool {
        self.served && self.proxied.iter().any(|address| addresses.contains(address))
    }

    /// The object.
    ///
    /// # Errors
    /// A text that is not what was written.
    pub(crate) fn object(&self) -> Result<Arc<k8s::Service>, Failure> {
        serde_json::from_slice(&self.text).map(Arc::new).map_err(|error| {
            Failure::new(FailureClass::Bug, format!("the object of the service cannot be read: {error}"))
        })
    }
}

fn proxied(entry: &k8s::LoadBalancerIngress) -> Option<IpAddr> {
    let address = entry.ip.as_deref()?.parse().ok();
    address.filter(|_| entry.ip_mode.as_deref() == Some(PROXY))
}

/// The newer of two states of one object: the cached one, unless the last answer to a write is of the same object and
/// has a higher resourceVersion. Versions that are not numbers cannot be compared; the cache is right in the end.
pub(crate) fn newer(cached: Arc<CachedService>, answered: Option<Arc<CachedService>>) -> Arc<CachedService> {
    answered
        .filter(|answered| versions(answered, &cached).is_some_and(|(answered, cached)| answered > cached))
        .unwrap_or(cached)
}

/// Whether a state from the watch is one that an answer to our own write has shown us already, or an older one.
pub(crate) fn is_echo(seen: &CachedService, answered: &CachedService) -> bool {
    versions(answered, seen).is_some_and(|(answered, seen)| answered >= seen)
}

/// The resourceVersions of two states of one object.
fn versions(one: &CachedService, other: &CachedService) -> Option<(u64, u64)> {
    (one.uid == other.uid).then(|| one.version.zip(other.version)).flatten()
}

/// The newest state of each Service that the watch brought.
#[derive(Debug, Default)]
pub(crate) struct ServiceCache(Mutex<HashMap<ServiceKey, Arc<CachedService>>>);

impl ServiceCache {
    /// The Service.
    pub(crate) fn get(&self, key: &ServiceKey) -> Option<Arc<CachedService>> {
        lock(&self.0).get(key).cloned()
    }

    /// Puts a state in place of another, which is answered.
    pub(super) fn put(&self, key: ServiceKey, cached: Arc<CachedService>) -> Option<Arc<CachedService>> {
        lock(&self.0).insert(key, cached)
    }

    /// Takes a Service out.
    pub(super) fn remove(&self, key: &ServiceKey) {
        lock(&self.0).remove(key);
    }

    /// The Services that a list lacks, or has as another object of the same name.
    pub(super) fn lacking(
        &self,
        list: &HashMap<ServiceKey, Arc<CachedService>>,
    ) -> Vec<(ServiceKey, Arc<CachedService>)> {
        let is_listed = |key: &ServiceKey, uid: &str| list.get(key).is_some_and(|listed| listed.uid() == uid);
        let cached = lock(&self.0);
        let lacking = cached.iter().filter(|(key, cached)| !is_listed(key, cached.uid()));
        lacking.map(|(key, cached)| (key.clone(), Arc::clone(cached))).collect()
    }

    /// Puts a complete list in place of what was there, which is answered.
    pub(super) fn replace(
        &self,
        list: HashMap<ServiceKey, Arc<CachedService>>,
    ) -> HashMap<ServiceKey, Arc<CachedService>> {
        std::mem::replace(&mut lock(&self.0), list)
    }

    /// Whether any Service is as asked for.
    pub(crate) fn any(&self, asked: impl Fn(&ServiceKey, &CachedService) -> bool) -> bool {
        lock(&self.0).iter().any(|(key, cached)| asked(key, cached))
    }

    /// The names of the Services that are ours to serve.
    pub(super) fn served_keys(&self) -> Vec<ServiceKey> {
        lock(&self.0).iter().filter(|(_, cached)| cached.served).map(|(key, _)| key.clone()).collect()
    }

    /// The uids of all Services.
    pub(super) fn uids(&self) -> HashSet<Box<str>> {
        lock(&self.0).values().map(|cached| cached.uid.clone()).collect()
    }
}

impl Neighbours for ServiceCache {
    fn served(&self) -> Vec<Service> {
        let cached: Vec<Arc<CachedService>> =
            lock(&self.0).values().filter(|cached| cached.served).cloned().collect();
        cached.iter().filter_map(|cached| cached.object().ok()).map(|object| facts(&object)).collect()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, from_value, json};

    use super::*;

    fn cached(service: Value) -> Arc<CachedService> {
        CachedService::of(&from_value(service).unwrap(), &Ours::WithoutClass)
    }

    fn state(uid: &str, version: &str) -> Arc<CachedService> {
        cached(json!({"metadata": {"name": "a", "uid": uid, "resourceVersion": version}}))
    }

    #[rstest]
    #[case::answer_is_newer("u1", "12", "12")]
    #[case::cache_caught_up("u1", "9", "10")]
    #[case::another_object("u2", "12", "10")]
    #[case::versions_that_are_no_numbers("u1", "x", "10")]
    fn the_newer_state_is_used(#[case] uid: &str, #[case] answered: &str, #[case] expected: &str) {
        let newest = newer(state("u1", "10"), Some(state(uid, answered))).object().unwrap();
        assert_eq!(newest.metadata.resource_version.as_deref(), Some(expected));
    }

    #[test]
    fn nothing_of_an_object_is_lost_while_it_is_kept() {
        let service: k8s::Service = from_value(json!({
            "metadata": {"namespace": "default", "name": "app", "uid": "u1", "resourceVersion": "7",
                "annotations": {"a": "\"ü\"\n"}, "finalizers": ["x"], "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"type": "LoadBalancer", "loadBalancerSourceRanges": ["10.0.0.0/8"],
                "ports": [{"port": 80, "targetPort": "http", "nodePort": 30080}, {"port": 81, "targetPort": 8081}],
                "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}}},
            "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1", "ipMode": "Router"}]}},
        }))
        .unwrap();
        assert_eq!(*CachedService::of(&service, &Ours::WithoutClass).object().unwrap(), service);
    }

    #[rstest]
    #[case::published_as_proxy("LoadBalancer", None, "Proxy", true)]
    #[case::published_as_vip("LoadBalancer", None, "VIP", false)]
    #[case::it_goes("LoadBalancer", Some("2026-01-01T00:00:00Z"), "Proxy", false)]
    #[case::of_another_type("ClusterIP", None, "Proxy", false)]
    fn what_a_service_needs_is_seen_by_its_status(
        #[case] kind: &str,
        #[case] deleted: Option<&str>,
        #[case] mode: &str,
        #[case] expected: bool,
    ) {
        let cached = cached(json!({
            "metadata": {"name": "a", "uid": "u1", "deletionTimestamp": deleted},
            "spec": {"type": kind},
            "status": {"loadBalancer": {"ingress": [{"hostname": "x"}, {"ip": "192.0.2.1", "ipMode": mode}]}},
        }));
        assert_eq!(cached.needs_proxy(&["192.0.2.1".parse().unwrap()]), expected);
        assert!(!cached.needs_proxy(&["192.0.2.2".parse().unwrap()]));
    }
}
