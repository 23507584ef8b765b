//! What a plan says about one subject, and about all of them together.

use std::collections::{BTreeMap, BTreeSet};

use openstack_ccm_controllers::dry_run::{End, RecordedEvent};
use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::notice::Severity;
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_openstack_api::dry_run::{Kind, ObjectChange, is_placeholder};
use openstack_ccm_provider_openstack::load_balancer::names::GeneratedName;
use serde::Serialize;
use serde_json::Value;

use super::cluster_lines::entries;
use super::fields;
use super::journal::{Call, Seen};
use super::line::Line;
use super::lines::lines;
use super::rehearsal::{Item, Subject};

/// How far a subject would get.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", content = "cause", rename_all = "kebab-case")]
pub enum State {
    /// All the way. The JSON keeps its word for this.
    #[serde(rename = "settled")]
    Converged,
    /// The cloud is at work on it, and nobody can say what is to be done before it has finished.
    Waits(String),
    /// The load balancer that exists keeps a setting, because the user or the operator has to change something first.
    Keeps(String),
    /// The user or the operator has to change something.
    Refused(String),
    /// It could not be looked at, or a call failed.
    Unknown(String),
}

/// What a plan says about one subject.
#[derive(Clone, Debug, Serialize)]
pub struct Forecast {
    /// `shop/web`, `nodes`, `routes`.
    pub subject: String,
    /// The load balancer that serves the Service now: its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_balancer: Option<String>,
    /// Who made it, where that is not this program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made_by: Option<String>,
    /// The cluster's name in the name of the load balancer, where that is not the one of `--cluster-name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_cluster: Option<String>,
    /// What the Service is published with now.
    pub published: Vec<String>,
    /// How far it would get.
    #[serde(flatten)]
    pub state: State,
    /// How connections would be interrupted; empty where none is.
    pub interruptions: Vec<String>,
    /// What would be other.
    pub changes: Vec<Line>,
    /// How many objects of which kind were looked at and stay as they are.
    pub unchanged: BTreeMap<String, usize>,
    /// Warnings that users would get.
    pub warnings: Vec<String>,
    /// How many ports get or lose the PROXY header, at which moment the pods have to follow.
    pub proxy_switches: usize,
    /// How many of the warnings are about values that are wrong or mean something else here.
    pub odd_values: usize,
}

/// The cluster's name under which a load balancer was made for a Service, or is used by it.
fn named_for(load_balancer: &Value, service: &ServiceKey) -> Option<String> {
    let tags = load_balancer["tags"].as_array().into_iter().flatten();
    let names = tags.chain([&load_balancer["name"]]).filter_map(Value::as_str);
    let mut parsed = names.filter_map(GeneratedName::parse);
    parsed.find(|name| name.service == *service).map(|name| name.cluster)
}

impl Forecast {
    /// The same, with the name of another cluster that the load balancer shows. `known` are those that the operator gave.
    pub fn asking(item: &Item, known: &[String]) -> Self {
        let load_balancer = load_balancer(item);
        let other_cluster = match (&item.subject, load_balancer) {
            (Subject::Service(key), Some(load_balancer)) => named_for(load_balancer, key),
            _ => None,
        };
        Self { other_cluster: other_cluster.filter(|name| !known.contains(name)), ..Self::of(item) }
    }

    /// The forecast for one item of a dry run.
    pub fn of(item: &Item) -> Self {
        let Item { subject, calls, seen, concluded, published, .. } = item;
        let changes = lines(calls);
        let load_balancer = load_balancer(item);
        Self {
            subject: subject.to_string(),
            made_by: load_balancer.and_then(made_by),
            other_cluster: None,
            load_balancer: load_balancer.and_then(|one| one["id"].as_str()).map(str::to_owned),
            published: published.clone(),
            state: state(&concluded.end, seen, load_balancer.is_some()),
            interruptions: interruptions(calls),
            unchanged: unchanged(&changes, calls, seen),
            changes,
            warnings: warnings(&concluded.events),
            proxy_switches: count(&concluded.events, &["LoadBalancerProxyProtocolSwitched"]),
            odd_values: count(&concluded.events, &ABOUT_VALUES),
        }
    }
}

/// The load balancer of the Service, as it was seen: the one whose id the Service has or gets, or else has its name.
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

/// Who made a load balancer that lacks the tags of this program, by its name.
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
        End::Done => return State::Converged,
        End::Waits => return State::Waits(pending(seen)),
        End::Failed(failure) => failure.clone(),
    };
    match class {
        // What is there goes on being served, with the setting that it has.
        // Only a load balancer that the Service must not use is named first.
        FailureClass::UserInput if exists && !message.starts_with("load balancer ") => State::Keeps(message),
        FailureClass::UserInput | FailureClass::Quota | FailureClass::Held(_) => State::Refused(message),
        FailureClass::Busy => State::Waits(message),
        FailureClass::Auth | FailureClass::Unavailable | FailureClass::Bug => State::Unknown(message),
    }
}

/// What Octavia is at work on.
fn pending(seen: &Seen) -> String {
    let pending = seen.iter().find_map(|((kind, id), object)| {
        let status = object["provisioning_status"].as_str()?;
        status.starts_with("PENDING").then(|| format!("{kind} {id} is {status}"))
    });
    pending.unwrap_or_else(|| "the cloud is at work on it".to_owned())
}

/// What ends connections that are there: a door that closes, or another address.
fn interruptions(calls: &[Call]) -> Vec<String> {
    let mut found = Vec::new();
    for ObjectChange { kind, id, before, after, .. } in calls.iter().flat_map(Call::changes) {
        let Some(before) = before.as_ref().filter(|_| !is_placeholder(id)) else { continue };
        let name = fields::name(*kind, before);
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

/// The Service would no longer be published with what it is published with now.
fn other_address(calls: &[Call]) -> Option<String> {
    let mut writes =
        calls.iter().filter_map(Call::in_cluster).filter(|write| write.path.contains("/services/"));
    let places = |service: &Value| -> Vec<String> {
        let entries = entries(service);
        entries.iter().map(|entry| entry.split(' ').next().unwrap_or_default().to_owned()).collect()
    };
    let first = writes.next()?;
    let (mut gone, after) = (places(&first.before), places(&writes.next_back().unwrap_or(first).after));
    gone.retain(|place| !after.contains(place));
    (!gone.is_empty()).then(|| format!("the Service is no longer published with {}", gone.join(", ")))
}

/// What was looked at and is not among the changes.
fn unchanged(changes: &[Line], calls: &[Call], seen: &Seen) -> BTreeMap<String, usize> {
    let touched: BTreeSet<(Kind, &str)> =
        calls.iter().flat_map(Call::changes).map(|change| (change.kind, change.id.as_str())).collect();
    let mut counts = BTreeMap::new();
    if changes.is_empty() && seen.len() > 1000 {
        // Lists of all, of which nothing was taken up.
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

/// Warnings about values that are wrong, or have no effect or another one here.
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

/// How many different warnings have one of these reasons.
fn count(events: &[RecordedEvent], reasons: &[&str]) -> usize {
    let chosen = events.iter().filter(|event| reasons.contains(&event.notice.reason));
    chosen.map(|event| &event.notice.message).collect::<BTreeSet<_>>().len()
}

fn warnings(events: &[RecordedEvent]) -> Vec<String> {
    // What stands in the way is said by the state.
    let of_state = ["SyncLoadBalancerFailed", "UpdateLoadBalancerFailed", "DeleteLoadBalancerFailed"];
    let warnings = events.iter().filter(|event| {
        event.notice.severity == Severity::Warning && !of_state.contains(&event.notice.reason)
    });
    let mut once = BTreeSet::new();
    warnings
        .map(|event| match event.kind.as_str() {
            "Node" => format!("{} {}: {}", event.object, event.notice.reason, event.notice.message),
            _ => format!("{}: {}", event.notice.reason, event.notice.message),
        })
        .filter(|text| once.insert(text.clone()))
        .collect()
}
