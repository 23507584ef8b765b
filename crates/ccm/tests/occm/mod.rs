//! What the Go openstack-cloud-controller-manager (OCCM) has: `recorded.json` as its releases show it, `announced.json` as
//! threads of its users and authors do, and `framework.json` as the framework does on which its next release is built.

use std::path::Path;
use std::sync::OnceLock;

use serde_json::{Map, Value};

/// What the releases have, by kind and name.
pub(crate) fn recorded() -> &'static Value {
    static RECORDED: OnceLock<Value> = OnceLock::new();
    RECORDED.get_or_init(|| read("recorded.json"))
}

/// What no recorded release has yet.
pub(crate) fn announced() -> &'static Value {
    static ANNOUNCED: OnceLock<Value> = OnceLock::new();
    ANNOUNCED.get_or_init(|| read("announced.json"))
}

/// What the framework has.
pub(crate) fn framework() -> &'static Value {
    static FRAMEWORK: OnceLock<Value> = OnceLock::new();
    FRAMEWORK.get_or_init(|| read("framework.json"))
}

fn read(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ccm/tests/occm").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Everything of a kind, each with its releases.
pub(crate) fn all(kind: &str) -> &'static Map<String, Value> {
    recorded()[kind].as_object().unwrap()
}

/// The releases, the oldest first.
pub(crate) fn releases() -> Vec<&'static str> {
    recorded()["releases"].as_object().unwrap().keys().map(String::as_str).collect()
}

/// Releases whose program was asked for its flags and gates. Those of the others are known from its sources.
pub(crate) fn asked() -> Vec<&'static str> {
    let was_asked = |minor: &&str| recorded()["releases"][*minor]["asked for flags and gates"].is_string();
    releases().into_iter().filter(was_asked).collect()
}

/// Since when OCCM has it, in words for a table: `OCCM` where the oldest recorded release has it, too. Nothing where OCCM
/// does not have it.
pub(crate) fn since(kind: &str, name: &str) -> Option<String> {
    let releases = releases();
    let (oldest, newest) = (releases[0], releases[releases.len() - 1]);
    if let Some(within) = recorded()[kind][name]["in"].as_str() {
        let (first, last) = within.split_once('-').unwrap_or((within, within));
        return Some(match (first == oldest, last == newest) {
            (true, true) => "OCCM".to_owned(),
            (false, true) => format!("OCCM {first}"),
            (_, false) => format!("OCCM until {last}"),
        });
    }
    if framework()[kind][name].is_object() {
        let version = framework()["version"].as_str().unwrap().trim_start_matches("v0.");
        return Some(format!("OCCM, framework 1.{}", version.split('.').next().unwrap()));
    }
    let thread = announced()[kind][name].as_object()?;
    let link = thread["thread"].as_str().unwrap();
    Some(match thread["state"].as_str().unwrap() {
        "merged" => format!("OCCM, [after {newest}]({link})"),
        _ => format!("OCCM, [proposed]({link})"),
    })
}

/// Reasons of Events that OCCM has from the libraries k8s.io/cloud-provider and k8s.io/client-go, in all recorded releases.
const FRAMEWORK_EVENTS: [&str; 14] = [
    "DeleteLoadBalancerFailed",
    "DeletedLoadBalancer",
    "DeletingLoadBalancer",
    "DeletingNode",
    "DeletingNodeFailed",
    "EnsuredLoadBalancer",
    "EnsuringLoadBalancer",
    "FailedToCreateRoute",
    "LeaderElection",
    "SyncLoadBalancerFailed",
    "Synced",
    "UnAvailableLoadBalancer",
    "UpdateLoadBalancerFailed",
    "UpdatedLoadBalancer",
];

/// Beginnings of metrics that OCCM has from the same libraries and from k8s.io/component-base.
const FRAMEWORK_METRICS: [&str; 9] = [
    "kubernetes_",
    "leader_election_",
    "node_controller_",
    "process_",
    "rest_client_",
    "route_controller_",
    "running_managed_controllers",
    "service_controller_",
    "workqueue_",
];

/// Which releases of OCCM have it, for a column of its own: `yes`, `1.33`. Nothing where OCCM does not have it.
pub(crate) fn column(kind: &str, name: &str) -> Option<String> {
    let of_framework = match kind {
        "events" => FRAMEWORK_EVENTS.contains(&name),
        "metrics" => FRAMEWORK_METRICS.iter().any(|begin| name.starts_with(begin)),
        _ => false,
    };
    if of_framework {
        return Some("yes".to_owned());
    }
    let text = since(kind, name)?;
    let text = text.trim_start_matches("OCCM").trim_start_matches(',').trim();
    Some(if text.is_empty() { "yes" } else { text }.to_owned())
}
