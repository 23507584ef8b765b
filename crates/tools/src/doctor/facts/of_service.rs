//! Gathers the facts about one Service: its slices, its Events, its controller, and the addresses of its hostnames.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Event, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::ListParams;
use kube::{Api, Client};
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_dns::{ResolveError, Resolver};
use openstack_ccm_doctor::facts::{EventFact, Host, Looked, ServedBy, entries};
use openstack_ccm_overlay::cloud::{CLOUDS, Cloud, Key, Value};

use super::reading::{all, said};
use crate::service_events::events_of;

/// Older Events say nothing about the present.
const RECENT: SignedDuration = SignedDuration::from_hours(1);
/// The label by which a slice names its Service.
const OF_SERVICE: &str = "kubernetes.io/service-name";

/// A resolver that is asked before DNS.
pub(crate) type Names<'a> = dyn Fn(&str) -> Option<Host> + Sync + 'a;

/// A cache of lists, read ahead where many Services are looked at.
pub(super) struct Lists<'a> {
    client: &'a Client,
    whole: Option<Whole>,
}

/// All slices and all Events.
type Whole = (Looked<Vec<EndpointSlice>>, Looked<Vec<Event>>);

impl<'a> Lists<'a> {
    pub(super) async fn new(client: &'a Client, many: bool) -> Self {
        let whole = match many {
            true => {
                let slices = all(&Api::<EndpointSlice>::all(client.clone())).await.map_err(said);
                Some((slices, all(&Api::<Event>::all(client.clone())).await.map_err(said)))
            }
            false => None,
        };
        Self { client, whole }
    }

    pub(super) async fn slices(&self, key: &ServiceKey) -> Looked<Vec<EndpointSlice>> {
        if let Some((slices, _)) = &self.whole {
            let is_of = |slice: &&EndpointSlice| {
                let label = slice.metadata.labels.as_ref().and_then(|labels| labels.get(OF_SERVICE));
                slice.metadata.namespace.as_deref() == Some(&*key.namespace)
                    && label.map(String::as_str) == Some(&*key.name)
            };
            return slices
                .as_ref()
                .map(|all| all.iter().filter(is_of).cloned().collect())
                .map_err(Clone::clone);
        }
        let api = Api::<EndpointSlice>::namespaced(self.client.clone(), &key.namespace);
        let of_service = ListParams::default().labels(&format!("{OF_SERVICE}={}", key.name));
        api.list(&of_service).await.map(|list| list.items).map_err(said)
    }

    pub(super) async fn events(&self, key: &ServiceKey, now: Timestamp) -> Looked<Vec<EventFact>> {
        let events = match &self.whole {
            Some((_, events)) => events.clone()?,
            None => {
                let api = Api::<Event>::namespaced(self.client.clone(), &key.namespace);
                let selector = format!("involvedObject.kind=Service,involvedObject.name={}", key.name);
                api.list(&ListParams::default().fields(&selector)).await.map_err(said)?.items
            }
        };
        let is_recent = |event: &EventFact| event.time.is_none_or(|time| now.duration_since(time) < RECENT);
        Ok(events_of(key, &events).filter(is_recent).collect())
    }
}

/// Returns which controller serves a Service; `class` is that of openstack-ccm's controllers.
pub(super) fn served_by(service: &Service, class: Option<&str>) -> ServedBy {
    let own = service.spec.as_ref().and_then(|spec| spec.load_balancer_class.as_deref());
    let annotations = service.metadata.annotations.iter().flatten();
    let mut others = CLOUDS.iter().filter(|cloud| cloud.name != "openstack");
    let keys: Vec<&str> = annotations.map(|(key, _)| key.as_str()).collect();
    let manager = last_manager(service);
    let is_it = |cloud: &&Cloud| {
        let by_annotation = cloud.annotations.iter().any(|rule| keys.iter().any(|key| is_key(rule.key, key)));
        by_annotation || manager.as_deref().is_some_and(|manager| manager.contains(cloud.name))
    };
    if let Some(cloud) = others.find(is_it) {
        return ServedBy::AnotherCloud(cloud.title.to_owned(), header_of(cloud));
    }
    if own == class { ServedBy::Ours } else { ServedBy::Class(own.unwrap_or_default().to_owned()) }
}

fn is_key(key: Key, wanted: &str) -> bool {
    match key {
        Key::Exactly(key) => key == wanted,
        Key::Prefix(prefix) => wanted.starts_with(prefix),
    }
}

/// Returns the annotation by which a Service asks a cloud for the header.
fn header_of(cloud: &Cloud) -> Option<String> {
    cloud.annotations.iter().find_map(|rule| match (rule.key, rule.value) {
        (Key::Exactly(key), Value::OneOf(values)) => values.first().map(|value| format!("{key}={value}")),
        _ => None,
    })
}

/// Returns the field manager that wrote the status last.
fn last_manager(service: &Service) -> Option<String> {
    let managed = service.metadata.managed_fields.iter().flatten();
    let of_status = managed.filter(|entry| entry.subresource.as_deref() == Some("status"));
    of_status.max_by_key(|entry| entry.time.as_ref().map(|time| time.0))?.manager.clone()
}

/// Resolves the published hostnames on this machine.
pub(super) async fn hosts(service: &Service, names: &Names<'_>) -> BTreeMap<String, Host> {
    let resolver = Resolver::default();
    let mut hosts = BTreeMap::new();
    for name in
        entries(service).iter().filter(|entry| entry.ip.is_none()).filter_map(|entry| entry.hostname.clone())
    {
        let host = match names(&name) {
            Some(host) => host,
            // The trailing dot disables the search list of this machine.
            None => match resolver.addresses(&format!("{}.", name.trim_end_matches('.'))).await {
                Ok(addresses) => Host::Is(addresses),
                Err(error @ ResolveError::NoServer(_)) => Host::Unknown(error.to_string()),
                Err(ResolveError::NoAddress { cause, .. }) if denies(&cause) => {
                    Host::IsNot("there is no such name, or it has no address".to_owned())
                }
                Err(error) => Host::Unknown(error.to_string()),
            },
        };
        hosts.insert(name, host);
    }
    hosts
}

/// Returns whether a DNS server denied the name; otherwise no server answered.
fn denies(cause: &str) -> bool {
    let cause = cause.to_ascii_lowercase();
    cause.contains("no records found") || cause.contains("nxdomain") || cause.contains("non-existent domain")
}
