//! How the Services of a cluster are published. Pure.

use k8s_openapi::api::core::v1::{Event, Service};
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_doctor::facts::EventFact;
use serde_json::{Value, json};

use super::nodes::counted;
use crate::service_events::events_of;

/// How one Service of type LoadBalancer is published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Publication {
    pub(super) name: ServiceKey,
    mode: &'static str,
    /// What the Service waits for, by its Events.
    pub(super) waits_for: Option<String>,
}

/// The mode of a Service without an address.
const WAITING: &str = "no address";

impl Publication {
    /// Returns all Services of type LoadBalancer that are not being deleted.
    pub(super) fn of_all(services: &[Service]) -> Vec<Self> {
        let wants = |service: &&Service| {
            service.spec.as_ref().and_then(|spec| spec.type_.as_deref()) == Some("LoadBalancer")
                && service.metadata.deletion_timestamp.is_none()
        };
        services.iter().filter(wants).map(Self::of).collect()
    }

    fn of(service: &Service) -> Self {
        let part = |part: &Option<String>| part.clone().unwrap_or_default();
        let name = ServiceKey::new(part(&service.metadata.namespace), part(&service.metadata.name));
        let status = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
        let first = status.and_then(|status| status.ingress.as_ref()).and_then(|entries| entries.first());
        let mode = match first.map(|entry| (entry.hostname.is_some(), entry.ip_mode.as_deref())) {
            None => WAITING,
            Some((true, _)) => "hostname",
            Some((false, Some("Proxy"))) => "ipMode Proxy",
            Some((false, Some(_))) => "ipMode VIP",
            Some((false, None)) => "address without ipMode",
        };
        Self { name, mode, waits_for: None }
    }

    /// Returns the publication as JSON.
    pub(super) fn json(&self) -> Value {
        let ServiceKey { namespace, name } = &self.name;
        let mut shown = json!({"namespace": **namespace, "name": **name, "published": self.mode});
        if let Some(waits_for) = &self.waits_for {
            shown["waits_for"] = json!(waits_for);
        }
        shown
    }

    /// Notes what this Service waits for, by the Events of all Services.
    pub(super) fn note_wait(&mut self, events: &[Event]) {
        let of_this: Vec<EventFact> = events_of(&self.name, events).collect();
        self.waits_for = EventFact::of_wait(&of_this).map(|event| event.message.clone());
    }

    /// Returns whether the Service has no address yet.
    pub(super) fn is_waiting(&self) -> bool {
        self.mode == WAITING
    }
}

/// Summarises publications: `5 of type LoadBalancer: 3 ipMode Proxy, 2 ipMode VIP`.
pub(super) fn summary(publications: &[Publication]) -> String {
    let modes = publications.iter().map(|publication| publication.mode.to_owned());
    format!("{} of type LoadBalancer{}", publications.len(), counted(modes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(name: &str, kind: &str, ingress: &Value) -> Service {
        serde_json::from_value(json!({
            "metadata": {"namespace": "default", "name": name},
            "spec": {"type": kind},
            "status": {"loadBalancer": {"ingress": ingress}},
        }))
        .unwrap()
    }

    #[test]
    fn a_service_says_what_it_waits_for_until_it_has_it() {
        let event = |reason: &str, time: &str| -> Event {
            serde_json::from_value(json!({
                "metadata": {"namespace": "default"},
                "involvedObject": {"kind": "Service", "namespace": "default", "name": "f"},
                "reason": reason, "message": format!("{reason}!"), "type": "Normal", "lastTimestamp": time,
            }))
            .unwrap()
        };
        let mut events =
            vec![event("LoadBalancerQueued", "2026-11-22T11:50:00Z"), event("Other", "2026-11-22T11:51:00Z")];
        let mut waiting = Publication::of(&service("f", "LoadBalancer", &json!([])));
        waiting.note_wait(&events);
        assert_eq!(waiting.waits_for.as_deref(), Some("LoadBalancerQueued!"));
        let mut another = Publication::of(&service("g", "LoadBalancer", &json!([])));
        another.note_wait(&events);
        assert_eq!(another.waits_for, None);
        events.push(event("EnsuredLoadBalancer", "2026-11-22T11:52:00Z"));
        waiting.note_wait(&events);
        assert_eq!(waiting.waits_for, None);
    }

    #[test]
    fn services_are_counted_by_how_they_are_published() {
        let services = [
            service("a", "LoadBalancer", &json!([{"ip": "192.0.2.1", "ipMode": "Proxy"}])),
            service("b", "LoadBalancer", &json!([{"ip": "192.0.2.2", "ipMode": "Proxy"}])),
            service("c", "LoadBalancer", &json!([{"ip": "192.0.2.3", "ipMode": "VIP"}])),
            service("d", "LoadBalancer", &json!([{"hostname": "192.0.2.4.example.org"}])),
            service("e", "LoadBalancer", &json!([{"ip": "192.0.2.5"}])),
            service("f", "LoadBalancer", &json!([])),
            service("g", "ClusterIP", &json!([])),
        ];
        let all = Publication::of_all(&services);
        assert_eq!(
            summary(&all),
            "6 of type LoadBalancer: 1 address without ipMode, 1 hostname, 2 ipMode Proxy, 1 ipMode VIP, 1 no address"
        );
        let waiting: Vec<String> = all
            .iter()
            .filter(|service| service.is_waiting())
            .map(|service| service.name.to_string())
            .collect();
        assert_eq!(waiting, ["default/f"]);
        assert_eq!(summary(&[]), "0 of type LoadBalancer");
    }
}
