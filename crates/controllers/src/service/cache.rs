//! The Services from the watch, without fields that are never read.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1 as k8s;
use openstack_ccm_advertise::entry::{PROXY, entries};
use openstack_ccm_core::lock::lock;
use openstack_ccm_core::provider::Neighbours;
use openstack_ccm_core::service::{Service, ServiceKey};

use super::intent::{Ours, Wanted, facts, uid};
use crate::nodes::NodeStore;
use crate::version::number;

/// Returns the newer of two states: the cached one, unless the last answer to a write is of the same object and
/// has a higher resourceVersion. Versions that are not numbers cannot be compared; the cache catches up in the end.
pub(crate) fn newer(cached: Arc<k8s::Service>, answered: Option<Arc<k8s::Service>>) -> Arc<k8s::Service> {
    answered.filter(|answered| is_older(&cached, answered)).unwrap_or(cached)
}

/// Whether a state from the watch is no newer than the answer to our own write.
pub(crate) fn is_echo(seen: &k8s::Service, answered: &k8s::Service) -> bool {
    versions(answered, seen).is_some_and(|(answered, seen)| answered >= seen)
}

/// Whether both are one state of one object.
pub(crate) fn is_same_state(one: &k8s::Service, other: &k8s::Service) -> bool {
    versions(one, other).is_some_and(|(one, other)| one == other)
}

/// Whether the first state of one object is older than the other.
pub(crate) fn is_older(one: &k8s::Service, other: &k8s::Service) -> bool {
    versions(one, other).is_some_and(|(one, other)| one < other)
}

/// Returns the resourceVersions of two states of one object.
fn versions(one: &k8s::Service, other: &k8s::Service) -> Option<(u64, u64)> {
    let version = |of: &k8s::Service| number(of.metadata.resource_version.as_deref()?);
    (uid(one) == uid(other)).then(|| version(one).zip(version(other))).flatten()
}

/// Whether the status of the Service publishes one of these addresses as `Proxy`.
fn is_proxied(service: &k8s::Service, addresses: &[IpAddr]) -> bool {
    entries(service).iter().filter(|entry| entry.ip_mode.as_deref() == Some(PROXY)).any(|entry| {
        let address = entry.ip.as_deref().and_then(|ip| ip.parse().ok());
        address.is_some_and(|address| addresses.contains(&address))
    })
}

/// The newest state of each Service that the watch brought.
#[derive(Debug)]
pub(crate) struct ServiceCache {
    ours: Ours,
    services: Mutex<HashMap<ServiceKey, Arc<k8s::Service>>>,
}

impl ServiceCache {
    pub(super) fn new(ours: Ours) -> Self {
        Self { ours, services: Mutex::default() }
    }

    pub(crate) fn get(&self, key: &ServiceKey) -> Option<Arc<k8s::Service>> {
        lock(&self.services).get(key).cloned()
    }

    /// Stores a state, and returns the previous one.
    pub(super) fn put(&self, key: ServiceKey, service: Arc<k8s::Service>) -> Option<Arc<k8s::Service>> {
        lock(&self.services).insert(key, service)
    }

    pub(super) fn remove(&self, key: &ServiceKey) {
        lock(&self.services).remove(key);
    }

    /// Returns the Services that a list lacks, or has as another object of the same name.
    pub(super) fn lacking(
        &self,
        list: &HashMap<ServiceKey, Arc<k8s::Service>>,
    ) -> Vec<(ServiceKey, Arc<k8s::Service>)> {
        let is_listed =
            |key: &ServiceKey, cached| list.get(key).is_some_and(|listed| uid(listed) == uid(cached));
        let cached = lock(&self.services);
        let lacking = cached.iter().filter(|(key, cached)| !is_listed(key, cached));
        lacking.map(|(key, cached)| (key.clone(), Arc::clone(cached))).collect()
    }

    /// Stores a complete list, and returns the previous Services.
    pub(super) fn replace(
        &self,
        list: HashMap<ServiceKey, Arc<k8s::Service>>,
    ) -> HashMap<ServiceKey, Arc<k8s::Service>> {
        std::mem::replace(&mut lock(&self.services), list)
    }

    fn is_served(&self, service: &k8s::Service) -> bool {
        self.ours.wanted(service, false) == Wanted::Serve
    }

    /// Whether the Service is ours to serve, and published, so that clients may use it.
    pub(super) fn is_in_use(&self, service: &k8s::Service) -> bool {
        self.is_served(service) && !entries(service).is_empty()
    }

    /// Whether a Service that `asked` accepts publishes one of these addresses as `Proxy`. A Service under deletion does not count,
    /// whatever its status says until it is cleared.
    pub(crate) fn any_needs_proxy(&self, addresses: &[IpAddr], asked: impl Fn(&ServiceKey) -> bool) -> bool {
        let needs = |service: &k8s::Service| self.is_served(service) && is_proxied(service, addresses);
        lock(&self.services).iter().any(|(key, service)| needs(service) && asked(key))
    }

    /// Returns the Services with one of these addresses in `externalIPs`, to whose pods nodes send packets for it.
    pub(super) fn with_external_ip(&self, addresses: &[IpAddr]) -> BTreeSet<ServiceKey> {
        let has = |service: &k8s::Service| {
            let ips = service.spec.iter().flat_map(|spec| spec.external_ips.iter().flatten());
            ips.filter_map(|ip| ip.parse().ok()).any(|ip| addresses.contains(&ip))
        };
        let services = lock(&self.services);
        services.iter().filter(|(_, service)| has(service)).map(|(key, _)| key.clone()).collect()
    }

    /// Returns the keys of the Services that are ours to serve.
    pub(super) fn served_keys(&self) -> Vec<ServiceKey> {
        let services = lock(&self.services);
        services.iter().filter(|(_, service)| self.is_served(service)).map(|(key, _)| key.clone()).collect()
    }

    pub(super) fn uids(&self) -> HashSet<String> {
        lock(&self.services).values().map(|service| uid(service).to_owned()).collect()
    }
}

/// What the reconciliation of one Service may know of other Services and of the nodes.
pub(super) struct KnownToAll {
    pub(super) services: Arc<ServiceCache>,
    pub(super) nodes: NodeStore,
}

impl Neighbours for KnownToAll {
    fn served(&self) -> Vec<Service> {
        let services = &self.services;
        let all: Vec<Arc<k8s::Service>> = lock(&services.services).values().cloned().collect();
        all.iter().filter(|service| services.is_served(service)).map(|service| facts(service)).collect()
    }

    fn node_addresses(&self) -> BTreeSet<IpAddr> {
        // Nodes that an empty list or one of the past lacks are no less this cluster's.
        let nodes = self.nodes.known();
        nodes
            .iter()
            .flat_map(|node| &node.facts.addresses)
            .filter_map(|one| one.address.parse().ok())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{from_value, json};

    use super::*;

    fn state(uid: &str, version: &str) -> Arc<k8s::Service> {
        let service = json!({"metadata": {"name": "a", "uid": uid, "resourceVersion": version}});
        Arc::new(from_value(service).unwrap())
    }

    #[rstest]
    #[case::answer_is_newer("u1", "12", "12")]
    #[case::cache_caught_up("u1", "9", "10")]
    #[case::another_object("u2", "12", "10")]
    #[case::versions_that_are_no_numbers("u1", "x", "10")]
    fn the_newer_state_is_used(#[case] uid: &str, #[case] answered: &str, #[case] expected: &str) {
        let newest = newer(state("u1", "10"), Some(state(uid, answered)));
        assert_eq!(newest.metadata.resource_version.as_deref(), Some(expected));
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
        let service = json!({
            "metadata": {"name": "a", "uid": "u1", "deletionTimestamp": deleted},
            "spec": {"type": kind},
            "status": {"loadBalancer": {"ingress": [{"hostname": "x"}, {"ip": "192.0.2.1", "ipMode": mode}]}},
        });
        let cache = ServiceCache::new(Ours::WithoutClass);
        cache.put(ServiceKey::new("default", "a"), Arc::new(from_value(service).unwrap()));
        let needs = |address: &str| cache.any_needs_proxy(&[address.parse().unwrap()], |_| true);
        assert_eq!(needs("192.0.2.1"), expected);
        assert!(!needs("192.0.2.2"));
    }
}
