//! Services that share an address are published in one mode.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::LoadBalancerIngress;
use openstack_ccm_advertise::shared;
use openstack_ccm_core::advertise::Path;
use openstack_ccm_core::provider::Ready;
use openstack_ccm_core::service::ServiceKey;

use super::cause::Cause;
use super::context::ServiceSync;
use super::written::publication;

impl ServiceSync {
    /// Returns the provider's report, with the path that follows from the other Services on the same addresses.
    pub(super) fn agreed(&self, own: &ServiceKey, ready: &Ready) -> Ready {
        let mut agreed = ready.clone();
        if ready.path == Path::Direct && !shared::needs_load_balancer(ready.path, &ready.preference) {
            agreed.path = shared::path(ready.path, self.is_needed_by_another(own, &ready.addresses));
        }
        agreed
    }

    fn is_needed_by_another(&self, own: &ServiceKey, addresses: &[IpAddr]) -> bool {
        let needs = |other: &Ready, published: &[LoadBalancerIngress]| {
            shared::share(&other.addresses, addresses)
                && publication(other, published, &self.names.settings).needs_load_balancer()
        };
        self.memory.any_ready(|other, ready, published| other != own && needs(ready, published))
            || self.was_needed(own, addresses)
    }

    /// After a restart: the status of a Service that was not reconciled yet still shows what it needs.
    fn was_needed(&self, own: &ServiceKey, addresses: &[IpAddr]) -> bool {
        self.cache.any_needs_proxy(addresses, |key| key != own && !self.memory.is_ready(key))
    }

    /// Queues the other Services on the addresses for publication, if the needs of this Service changed.
    pub(super) fn notify_neighbours(&self, own: &ServiceKey, before: Option<&Ready>, now: Option<&Ready>) {
        let needs_of = |ready: Option<&Ready>| {
            ready.map(|ready| {
                let needs = shared::needs_load_balancer(ready.path, &ready.preference);
                (ready.addresses.clone(), needs, ready.cluster_access.clone())
            })
        };
        if needs_of(before) == needs_of(now) {
            return;
        }
        let touched = |other: &Ready| {
            [before, now].into_iter().flatten().any(|ready| shared::share(&ready.addresses, &other.addresses))
        };
        for neighbour in self.memory.ready_where(|other, ready| other != own && touched(ready)) {
            self.queue.add(&neighbour, Cause::Readvertise);
        }
    }
}
