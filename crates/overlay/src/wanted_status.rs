//! The wanted entries of one status, and the patch that writes them. Pure.

use std::collections::BTreeSet;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{LoadBalancerIngress, Service};
use openstack_ccm_advertise::cluster::{Cluster, ServerSupport};
use openstack_ccm_advertise::{Advertisement, Mode, Publication, decide};
use openstack_ccm_core::advertise::{ClusterAccess, IpModeChoice, Needs, Path, Preference, hostname};
use openstack_ccm_core::notice::Notice;
use serde_json::{Value, json};

use crate::names::{MODE_ANNOTATION, SETTINGS};
use crate::rules::{Choice, Chosen, Rules};
use crate::service::{ingress, is_load_balancer, is_ours};
use crate::untouched::{Refusal, is_of_canary, refusal};

/// The state of the cluster, and the operator's settings.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The rules that choose Services.
    pub rules: &'a Rules,
    /// Whether the API server and the nodes honour `ipMode`.
    pub cluster: &'a Cluster,
    pub node_addresses: &'a BTreeSet<IpAddr>,
    /// The suffix under which names of addresses resolve, if the operator has one.
    pub hostname_suffix: Option<&'a str>,
}

/// The decision about one Service.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The state of the Service.
    pub state: State,
    /// The entries to write, if they differ from the published ones.
    pub write: Option<Vec<LoadBalancerIngress>>,
    /// Messages for the user.
    pub notices: Vec<Notice>,
}

/// The state of a Service.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// The Service is not chosen; entries that this program wrote are reverted.
    NotChosen,
    /// The Service's own annotation asks for the short circuit.
    Vip,
    /// The Service's own annotation is invalid; the published entries stay.
    Unreadable,
    /// The Service is chosen, but its owner has not published an address yet.
    Waiting(Chosen),
    /// The Service is chosen, but is one that this program never touches.
    Refused(Chosen, Refusal),
    /// The Service is chosen, but it is not known whether the API server keeps `ipMode`; the published entries stay.
    ServerUnknown(Chosen),
    Decided(Chosen, Advertisement),
}

/// Decides about one Service.
pub fn plan(service: &Service, view: &View<'_>) -> Plan {
    if !is_load_balancer(service) {
        return Plan { state: State::NotChosen, write: None, notices: Vec::new() };
    }
    let suffix = view.hostname_suffix;
    match view.rules.choose(service) {
        Choice::None => give_back_of(service, view, State::NotChosen),
        Choice::Vip => Plan { state: State::Vip, write: given_back(service, suffix), notices: Vec::new() },
        Choice::Unreadable(value) => {
            let message = format!(
                "the annotation {MODE_ANNOTATION}: {value:?} is neither proxy nor vip nor auto, so the published status is not changed; \
                 correct or remove the annotation"
            );
            let notices = vec![Notice::warning("IPModeNotUnderstood", message)];
            Plan { state: State::Unreadable, write: None, notices }
        }
        Choice::Proxy(chosen) => chosen_one(service, chosen, view),
    }
}

/// Reverts entries that this program wrote, and no others. Those of the canary's Services stay as long as the canary exists.
fn give_back_of(service: &Service, view: &View<'_>, state: State) -> Plan {
    let is_given = is_ours(service) && !is_of_canary(service);
    let write = is_given.then(|| given_back(service, view.hostname_suffix)).flatten();
    Plan { state, write, notices: Vec::new() }
}

fn chosen_one(service: &Service, chosen: Chosen, view: &View<'_>) -> Plan {
    let published = ingress(service);
    if published.is_empty() {
        return Plan { state: State::Waiting(chosen), write: None, notices: Vec::new() };
    }
    let names_are_ours = is_ours(service);
    let addressed = with_addresses(published, view.hostname_suffix.filter(|_| names_are_ours));
    let refused = refusal(&with_list(service, &addressed), view.node_addresses);
    if let Some(refusal) = refused {
        let is_reported = !matches!(refusal, Refusal::HostnamesOnly | Refusal::Canary);
        let notice = Notice::warning("IPModeRefused", format!("the status is not changed: {refusal}"));
        let notices = is_reported.then_some(notice).into_iter().collect();
        return Plan { notices, ..give_back_of(service, view, State::Refused(chosen, refusal)) };
    }
    if view.cluster.gate.is_none() && view.cluster.server == ServerSupport::Unknown {
        return Plan { state: State::ServerUnknown(chosen), write: None, notices: Vec::new() };
    }
    let decided = decided(&addressed, &chosen, view);
    let wanted = match decided.mode {
        Mode::Proxy => in_mode(&addressed, "Proxy"),
        Mode::Hostname => decided.entries.clone(),
        // The server drops `ipMode`, and there is no hostname: no write would help.
        Mode::Vip => published.to_vec(),
    };
    let write = (wanted != published).then_some(wanted);
    let notices = source_ranges(service, decided.mode);
    Plan { state: State::Decided(chosen, decided), write, notices }
}

fn decided(addressed: &[LoadBalancerIngress], chosen: &Chosen, view: &View<'_>) -> Advertisement {
    let addresses: Vec<IpAddr> =
        addressed.iter().filter_map(|entry| entry.ip.as_deref()?.parse().ok()).collect();
    // Replacing an address by a hostname can be reverted only if the entry has no other fields.
    let plain = |entry: &LoadBalancerIngress| entry.hostname.is_none() && entry.ports.is_none();
    let suffix = view.hostname_suffix.filter(|_| addressed.iter().all(plain));
    let preference = Preference {
        service_mode: (*chosen == Chosen::Own).then_some(IpModeChoice::Proxy),
        hostname_suffix: suffix.map(str::to_owned),
        ..Preference::default()
    };
    let publication = Publication {
        addresses: &addresses,
        path: Path::ThroughLoadBalancer(Needs::ProxyProtocol),
        preference: &preference,
        access: &ClusterAccess::Open,
        published: &[],
        settings: &SETTINGS,
    };
    decide(&publication, view.cluster)
}

/// Returns the entries as the owner would have them: by address and `VIP`. Absent if they are so already.
pub(crate) fn given_back(service: &Service, suffix: Option<&str>) -> Option<Vec<LoadBalancerIngress>> {
    let published = ingress(service);
    let addressed = with_addresses(published, suffix.filter(|_| is_ours(service)));
    let touched = |(one, other): (&LoadBalancerIngress, &LoadBalancerIngress)| {
        one.ip_mode.as_deref() == Some("Proxy") || one.hostname != other.hostname
    };
    published.iter().zip(&addressed).any(touched).then(|| in_mode(&addressed, "VIP"))
}

/// Returns the entries with hostnames that were made from an address replaced by that address.
fn with_addresses(published: &[LoadBalancerIngress], suffix: Option<&str>) -> Vec<LoadBalancerIngress> {
    let address = |entry: &LoadBalancerIngress| hostname::address_in(entry.hostname.as_deref()?, suffix?);
    let with_address = |entry: &LoadBalancerIngress| match address(entry).filter(|_| entry.ip.is_none()) {
        Some(ip) => LoadBalancerIngress { ip: Some(ip.to_string()), ..LoadBalancerIngress::default() },
        None => entry.clone(),
    };
    published.iter().map(with_address).collect()
}

/// Returns the entries with this mode wherever there is an address.
fn in_mode(entries: &[LoadBalancerIngress], mode: &str) -> Vec<LoadBalancerIngress> {
    let with_mode = |entry: &LoadBalancerIngress| LoadBalancerIngress {
        ip_mode: entry.ip.is_some().then(|| mode.to_owned()),
        ..entry.clone()
    };
    entries.iter().map(with_mode).collect()
}

/// Returns the Service with other entries in its status.
pub(crate) fn with_list(service: &Service, entries: &[LoadBalancerIngress]) -> Service {
    let mut service = service.clone();
    let status = service.status.get_or_insert_default();
    status.load_balancer.get_or_insert_default().ingress = Some(entries.to_vec());
    service
}

/// Warns that the source ranges no longer hold for pods: nodes applied them while they short-circuited.
fn source_ranges(service: &Service, mode: Mode) -> Vec<Notice> {
    let ranges = service.spec.as_ref().and_then(|spec| spec.load_balancer_source_ranges.as_ref());
    if mode == Mode::Vip || ranges.is_none_or(Vec::is_empty) {
        return Vec::new();
    }
    vec![Notice::warning(
        "IPModeSourceRanges",
        "pods now connect through the load balancer, so spec.loadBalancerSourceRanges applies to pods too: add the address with which pods \
         leave the cluster. The nodes no longer enforce the ranges; check that your cloud does",
    )]
}

/// Returns a JSON patch that replaces the entries, if uid and entries are still those that were read.
pub fn patch(service: &Service, wanted: &[LoadBalancerIngress]) -> Value {
    const LIST: &str = "/status/loadBalancer/ingress";
    json!([
        {"op": "test", "path": "/metadata/uid", "value": service.metadata.uid},
        {"op": "test", "path": LIST, "value": ingress(service)},
        {"op": "replace", "path": LIST, "value": wanted},
    ])
}
