//! The plan for one subject.

use std::collections::{BTreeMap, BTreeSet};

use openstack_ccm_controllers::dry_run::{End, RecordedEvent};
use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::notice::Severity;
use openstack_ccm_core::service::ServiceKey;
pub use openstack_ccm_doctor::facts::Forecast as State;
use openstack_ccm_openstack_api::dry_run::{Kind, ObjectChange, is_placeholder};
use openstack_ccm_provider_openstack::load_balancer::names::GeneratedName;
use serde::Serialize;
use serde_json::Value;

use super::changes::{Change, changes, entries};
use super::journal::{Call, Seen};
use super::rehearsal::{Item, Subject};

/// The plan for one subject.
#[derive(Clone, Debug, Serialize)]
pub struct Forecast {
    /// `shop/web`, `nodes`, `routes`.
    pub subject: String,
    /// The id of the load balancer that serves the Service now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_balancer: Option<String>,
    /// The program that made the load balancer, if it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made_by: Option<String>,
    /// The cluster name in the name of the load balancer, if it differs from `--cluster-name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_cluster: Option<String>,
    /// The published entries of the Service.
    pub published: Vec<String>,
    /// How far the controller would get.
    #[serde(flatten)]
    pub state: State,
    /// How connections would be interrupted; empty where none is interrupted.
    pub interruptions: Vec<String>,
    /// The objects that would change.
    pub changes: Vec<Change>,
    /// Members that would be removed from pools, each with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed_members: Vec<String>,
    /// The number of examined objects of each kind that stay as they are.
    pub unchanged: BTreeMap<String, usize>,
    /// Warnings that users would get.
    pub warnings: Vec<String>,
    /// The number of ports that switch the PROXY header, at which moment the pods have to follow.
    pub proxy_switches: usize,
    /// The number of warnings about values that are wrong or mean something else here.
    pub odd_values: usize,
}

/// Returns the cluster name in the name or a tag of a load balancer for a Service.
fn named_for(load_balancer: &Value, service: &ServiceKey) -> Option<String> {
    let tags = load_balancer["tags"].as_array().into_iter().flatten();
    let names = tags.chain([&load_balancer["name"]]).filter_map(Value::as_str);
    let mut parsed = names.filter_map(GeneratedName::parse);
    parsed.find(|name| name.service == *service).map(|name| name.cluster)
}

impl Forecast {
    /// Makes the forecast with the other cluster name that the load balancer shows. `known` are the names that the operator gave.
    pub fn asking(item: &Item, known: &[String]) -> Self {
        let load_balancer = load_balancer(item);
        let other_cluster = match (&item.subject, load_balancer) {
            (Subject::Service(key), Some(load_balancer)) => named_for(load_balancer, key),
            _ => None,
        };
        Self { other_cluster: other_cluster.filter(|name| !known.contains(name)), ..Self::of(item) }
    }

    /// Makes the forecast for one item of a dry run.
    pub fn of(item: &Item) -> Self {
        let Item { subject, calls, seen, concluded, published, .. } = item;
        let changes = changes(calls);
        let load_balancer = load_balancer(item);
        Self {
            subject: subject.to_string(),
            made_by: load_balancer.and_then(made_by),
            other_cluster: None,
            load_balancer: load_balancer.and_then(|one| one["id"].as_str()).map(str::to_owned),
            published: published.clone(),
            state: state(&concluded.end, seen, load_balancer.is_some()),
            interruptions: interruptions(calls),
            removed_members: item.removed_members.clone(),
            unchanged: unchanged(&changes, calls, seen),
            changes,
            warnings: warnings(&concluded.events),
            proxy_switches: count(&concluded.events, &["LoadBalancerProxyProtocolSwitched"]),
            odd_values: count(&concluded.events, &ABOUT_VALUES),
        }
    }
}

/// Returns the load balancer of the Service, as read: by the id that the Service has or gets, or else by its name.
fn load_balancer(item: &Item) -> Option<&Value> {
    let Item { subject, calls, seen, named, .. } = item;
    let annotated = calls.iter().rev().filter_map(Call::in_cluster).find_map(|write| {
        write.after["metadata"]["annotations"]["loadbalancer.openstack.org/load-balancer-id"].as_str()
    });
    let mut all = seen.iter().filter(|((kind, id), _)| *kind == Kind::LoadBalancer && !is_placeholder(id));
    match (annotated.or(named.as_deref()), subject) {
        (Some(id), _) => all.find(|((_, seen), _)| seen == id).map(|(_, object)| object),
        (None, Subject::Service(key)) => {
            all.map(|(_, object)| object).find(|object| named_for(object, key).is_some())
        }
        (None, _) => None,
    }
}

/// Returns which program made a load balancer without the tags of this program, by its name.
fn made_by(load_balancer: &Value) -> Option<String> {
    let tags = load_balancer["tags"].as_array();
    let ours = tags.is_some_and(|tags| {
        tags.iter().filter_map(Value::as_str).any(|tag| tag.starts_with("openstack-ccm-cluster="))
    });
    let name = load_balancer["name"].as_str().unwrap_or_default();
    (!ours).then(|| if name.starts_with("kube_service_") { "OCCM" } else { "somebody else" }.to_owned())
}

fn state(end: &End, seen: &Seen, exists: bool) -> State {
    let Failure { class, message, .. } = match end {
        End::Done => return State::Settled,
        End::Waits => return State::Waits(pending(seen)),
        End::Failed(failure) => failure.clone(),
    };
    match class {
        // An existing load balancer goes on serving with its present setting. Only the message about a load balancer that the
        // Service must not use begins with its name.
        FailureClass::UserInput if exists && !message.starts_with("load balancer ") => State::Keeps(message),
        FailureClass::UserInput | FailureClass::Quota | FailureClass::Held(_) => State::Refused(message),
        FailureClass::Busy => State::Waits(message),
        FailureClass::Auth | FailureClass::Unavailable | FailureClass::Bug => State::Unknown(message),
    }
}

/// Returns the object that Octavia is working on.
fn pending(seen: &Seen) -> String {
    let pending = seen.iter().find_map(|((kind, id), object)| {
        let status = object["provisioning_status"].as_str()?;
        status.starts_with("PENDING").then(|| format!("{kind} {id} is {status}"))
    });
    pending.unwrap_or_else(|| "the cloud is at work on it".to_owned())
}

/// Returns the changes that end existing connections: a closed port or network, or another address.
fn interruptions(calls: &[Call]) -> Vec<String> {
    let mut found = Vec::new();
    for change in calls.iter().flat_map(Call::changes) {
        let ObjectChange { kind, id, before, after, .. } = change;
        let Some(before) = before.as_ref().filter(|_| !is_placeholder(id)) else { continue };
        let name = change.name();
        match (kind, after) {
            (Kind::LoadBalancer, None) => found.push(format!("load balancer {name} is deleted")),
            (Kind::Listener, None) => found.push(format!("listener {name} is deleted or replaced")),
            (Kind::FloatingIp, None) => found.push(format!("floating IP {name} is given up")),
            (Kind::FloatingIp, Some(after)) if led_elsewhere(before, after) => {
                found.push(format!("floating IP {name} is detached from its load balancer"));
            }
            _ => {}
        }
    }
    found.extend(other_address(calls));
    let mut once = BTreeSet::new();
    found.retain(|one| once.insert(one.clone()));
    found
}

fn led_elsewhere(before: &Value, after: &Value) -> bool {
    before["port_id"].is_string() && before["port_id"] != after["port_id"]
}

/// Reports that an address or hostname of the Service would no longer be published.
fn other_address(calls: &[Call]) -> Option<String> {
    let mut writes =
        calls.iter().filter_map(Call::in_cluster).filter(|write| write.path.contains("/services/"));
    let places = |service: &Value| -> Vec<String> {
        let entries = entries(&service["status"]["loadBalancer"]["ingress"]);
        entries.iter().map(|entry| entry.split(' ').next().unwrap_or_default().to_owned()).collect()
    };
    let first = writes.next()?;
    let (mut gone, after) = (places(&first.before), places(&writes.next_back().unwrap_or(first).after));
    gone.retain(|place| !after.contains(place));
    (!gone.is_empty()).then(|| format!("the Service is no longer published with {}", gone.join(", ")))
}

/// Counts the examined objects that would not change.
fn unchanged(changes: &[Change], calls: &[Call], seen: &Seen) -> BTreeMap<String, usize> {
    let touched: BTreeSet<(Kind, &str)> =
        calls.iter().flat_map(Call::changes).map(|change| (change.kind, change.id.as_str())).collect();
    let mut counts = BTreeMap::new();
    if changes.is_empty() && seen.len() > 1000 {
        // The controller listed all objects, but looked at none of them.
        return counts;
    }
    let counted = [Kind::Listener, Kind::Pool, Kind::Member, Kind::HealthMonitor];
    for (kind, id) in seen.keys().filter(|(kind, id)| counted.contains(kind) && !is_placeholder(id)) {
        if !touched.contains(&(*kind, id.as_str())) {
            *counts.entry(format!("{kind}s")).or_default() += 1;
        }
    }
    counts
}

/// Reasons of warnings about values that are wrong, have no effect, or have another effect here.
const ABOUT_VALUES: [&str; 15] = [
    "UnknownAnnotation",
    "FloatingIPKept",
    "LoadBalancerAppProtocolMismatch",
    "LoadBalancerAvailabilityZonesIgnored",
    "LoadBalancerChecksOverlap",
    "LoadBalancerFlavorIgnored",
    "LoadBalancerHeadersNotInserted",
    "LoadBalancerIPIgnored",
    "LoadBalancerLbMethodUnknown",
    "LoadBalancerNeedsRecreation",
    "LoadBalancerSettingNotSupported",
    "LoadBalancerSettingNotUnderstood",
    "LoadBalancerSettingWithoutEffect",
    "LoadBalancerSettingWrongWithoutEffect",
    "LoadBalancerSourceRangesIgnored",
];

/// Counts the different warnings with one of these reasons.
fn count(events: &[RecordedEvent], reasons: &[&str]) -> usize {
    let chosen = events.iter().filter(|event| reasons.contains(&event.notice.reason));
    chosen.map(|event| &event.notice.message).collect::<BTreeSet<_>>().len()
}

/// Returns whether an Event reports a failure, which the state shows.
pub(crate) fn is_failure(event: &RecordedEvent) -> bool {
    let reasons = ["SyncLoadBalancerFailed", "UpdateLoadBalancerFailed", "DeleteLoadBalancerFailed"];
    reasons.contains(&event.notice.reason)
}

fn warnings(events: &[RecordedEvent]) -> Vec<String> {
    let warnings =
        events.iter().filter(|event| event.notice.severity == Severity::Warning && !is_failure(event));
    let mut once = BTreeSet::new();
    warnings
        .map(|event| match event.kind.as_str() {
            "Node" => format!("{} {}: {}", event.object, event.notice.reason, event.notice.message),
            _ => format!("{}: {}", event.notice.reason, event.notice.message),
        })
        .filter(|text| once.insert(text.clone()))
        .collect()
}
