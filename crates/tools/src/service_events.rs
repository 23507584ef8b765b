//! The Events of a Service, reduced to the facts that are judged.

use k8s_openapi::api::core::v1::Event;
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_doctor::facts::EventFact;

/// Returns the facts of a Service's Events.
pub(crate) fn events_of<'a>(
    key: &'a ServiceKey,
    events: &'a [Event],
) -> impl Iterator<Item = EventFact> + use<'a> {
    let is_of = |event: &&Event| {
        let object = &event.involved_object;
        object.kind.as_deref() == Some("Service")
            && object.name.as_deref() == Some(&*key.name)
            && object.namespace.as_deref() == Some(&*key.namespace)
    };
    events.iter().filter(is_of).map(fact)
}

fn fact(event: &Event) -> EventFact {
    let series =
        event.series.as_ref().and_then(|series| series.last_observed_time.as_ref()).map(|time| time.0);
    let last = event.last_timestamp.as_ref().map(|time| time.0);
    let source = event.reporting_component.clone().filter(|source| !source.is_empty());
    EventFact {
        warning: event.type_.as_deref() == Some("Warning"),
        reason: event.reason.clone().unwrap_or_default(),
        message: event.message.clone().unwrap_or_default(),
        time: series.or(last).or(event.event_time.as_ref().map(|time| time.0)),
        source: source
            .or_else(|| event.source.as_ref().and_then(|source| source.component.clone()))
            .unwrap_or_else(|| "somebody".to_owned()),
    }
}
