//! Watches every write that the simulated cloud receives and every status that is published: what carries traffic is removed
//! or replaced only if the Service itself asked for it since it was made, or its node is gone; and what is somebody
//! else's is never written at all.
//!
//! What a Service asks for is known from the history of its object in the API server, read here by rules of their own
//! ([`wish`]); nothing is asked of the program.

mod judge;
mod tests;
mod wish;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use openstack_ccm_core::lock::lock;
use openstack_ccm_kube_sim::{ObjectChange, Sim as Kubernetes};
use openstack_ccm_openstack_sim::{Sim as Cloud, Traffic, Write};
use serde_json::Value;
use tokio::time::Instant;

use wish::{NodeState, Wish};

/// Changes as young as this are never forgotten by the API server.
const API_SERVERS_REMEMBER: Duration = Duration::from_secs(75);
/// Until then a node that was lost, and is there again, may be unknown: lists and watches are retried with pauses.
const LISTED_AGAIN: Duration = Duration::from_secs(60);

/// Namespace and name.
type ServiceName = (String, String);
/// Counts what happens: writes to the cloud, and changes of Services and nodes.
type Moment = u64;

/// The watch over one cloud and the clusters in it.
#[derive(Clone)]
pub(crate) struct Watch {
    cloud: Cloud,
    record: Arc<Mutex<Record>>,
}

impl Watch {
    /// Watches a cloud. Clusters are named afterwards.
    pub(crate) fn over(cloud: &Cloud) -> Self {
        let watch = Self { cloud: cloud.clone(), record: Arc::default() };
        let record = Arc::clone(&watch.record);
        cloud.watch_writes(move |write| lock(&record).judge(write));
        watch
    }

    /// Watches a cluster, whose program is known by the name of the cluster.
    pub(crate) fn cluster(&self, name: &str, kube: &Kubernetes) {
        let cluster = Cluster { kube: Some(kube.clone()), ..Cluster::default() };
        lock(&self.record).clusters.insert(name.to_owned(), cluster);
    }

    /// Follows the clusters also where nothing is written to the cloud for long: API servers forget.
    pub(crate) async fn keep_following(self) {
        loop {
            tokio::time::sleep(API_SERVERS_REMEMBER / 2).await;
            let traffic = self.cloud.traffic();
            let mut record = lock(&self.record);
            record.note(&traffic);
            record.follow();
        }
    }

    /// Something happens below the API servers, such as a restored backup: it says nothing of what anybody asked for, except that
    /// a node that is not there any more is gone.
    pub(crate) fn unasked(&self, happens: impl FnOnce()) {
        let traffic = self.cloud.traffic();
        let mut record = lock(&self.record);
        // Whose a load balancer is that a Service names is known by its name.
        record.note(&traffic);
        record.follow();
        happens();
        record.now += 1;
        let now = record.now;
        for cluster in record.clusters.values_mut() {
            if let Some(kube) = &cluster.kube {
                let seen = kube.resource_version();
                (cluster.services_seen, cluster.nodes_seen) = (seen, seen);
                let nodes = kube.list("nodes", "").unwrap();
                cluster.note_nodes(now, &nodes);
            }
        }
    }

    /// What was done against the rule since the last time.
    pub(crate) fn take_breaches(&self) -> Vec<String> {
        let mut record = lock(&self.record);
        record.follow();
        std::mem::take(&mut record.breaches)
    }
}

/// What was seen so far.
#[derive(Default)]
struct Record {
    now: Moment,
    clusters: BTreeMap<String, Cluster>,
    /// When what carries traffic was seen first, by id.
    births: BTreeMap<String, Moment>,
    /// What has been ACTIVE once, by id.
    served: BTreeSet<String>,
    /// Names of all load balancers that there ever were, by id.
    names: BTreeMap<String, String>,
    breaches: Vec<String>,
}

/// One cluster.
#[derive(Default)]
struct Cluster {
    kube: Option<Kubernetes>,
    services_seen: u64,
    nodes_seen: u64,
    services: BTreeMap<ServiceName, Vec<(Moment, Wish)>>,
    nodes: BTreeMap<String, Vec<(Moment, Option<NodeState>)>>,
    /// When a node that had been lost was there again.
    found: BTreeMap<String, Instant>,
    /// Since when an address is in the status of a Service.
    published: BTreeMap<(ServiceName, String), Moment>,
    /// The addresses and hostnames in the status of each Service.
    statuses: BTreeMap<ServiceName, Vec<(Moment, BTreeSet<String>)>>,
}

impl Record {
    /// Notes what happened in the clusters since the last time.
    fn follow(&mut self) {
        let Self { now, clusters, names, breaches, .. } = self;
        for (name, cluster) in clusters {
            let Some(kube) = cluster.kube.clone() else { continue };
            for change in kube.changes_since("nodes", cluster.nodes_seen).unwrap() {
                *now += 1;
                cluster.nodes_seen = change.resource_version;
                cluster.note_node(*now, &change);
            }
            for change in kube.changes_since("services", cluster.services_seen).unwrap() {
                *now += 1;
                cluster.services_seen = change.resource_version;
                cluster.note_service(name, *now, &change, names, breaches);
            }
        }
    }

    fn note(&mut self, traffic: &Traffic) {
        let now = self.now;
        let lasting = traffic.load_balancers.iter().map(|(id, one)| (id, one.built));
        let lasting = lasting
            .chain(traffic.listeners.iter().map(|(id, one)| (id, one.active)))
            .chain(traffic.pools.iter().map(|(id, one)| (id, one.active)))
            .chain(traffic.members.iter().map(|(id, one)| (id, one.active)))
            .chain(traffic.floating_ips.iter().map(|(id, one)| (id, one.port_id.is_some())));
        for (id, serves) in lasting {
            self.births.entry(id.clone()).or_insert(now);
            if serves {
                self.served.insert(id.clone());
            }
        }
        for (id, one) in &traffic.load_balancers {
            if self.names.get(id) != Some(&one.name) {
                self.names.insert(id.clone(), one.name.clone());
            }
        }
    }

    fn judge(&mut self, write: &Write<'_>) {
        self.note(write.before);
        self.follow();
        self.now += 1;
        self.note(write.after);
        let breaches = judge::judge(self, write);
        self.breaches.extend(breaches);
    }

    /// Whether clients may have been led to one of these addresses since a moment: it was in the status of the Service, or a
    /// hostname, which may mean any.
    fn was_published(&self, owner: &Owner, addresses: &[&str], moment: Moment) -> bool {
        let cluster = self.clusters.get(&owner.cluster);
        let statuses = cluster.and_then(|cluster| cluster.statuses.get(&owner.service));
        let leads = |entry: &String| entry.parse::<IpAddr>().is_err() || addresses.contains(&entry.as_str());
        since(statuses.map_or(&[], Vec::as_slice), moment).iter().any(|(_, status)| status.iter().any(leads))
    }

    /// The wishes of a Service that were in force at a moment or came later.
    fn wishes_since(&self, owner: &Owner, moment: Moment) -> &[(Moment, Wish)] {
        let cluster = self.clusters.get(&owner.cluster);
        let wishes = cluster.and_then(|cluster| cluster.services.get(&owner.service));
        since(wishes.map_or(&[], Vec::as_slice), moment)
    }
}

/// What was in force at a moment, and what came later.
fn since<T>(history: &[(Moment, T)], moment: Moment) -> &[(Moment, T)] {
    let first = history.iter().rposition(|(at, _)| *at <= moment).unwrap_or_default();
    &history[first..]
}

impl Cluster {
    /// Whether the program may still act on a list in which a node was missing.
    fn was_lost_shortly_before(&self, node: &str) -> bool {
        self.found.get(node).is_some_and(|found| found.elapsed() < LISTED_AGAIN)
    }

    /// Notes which nodes there are. That there is none at all is not believed.
    fn note_nodes(&mut self, now: Moment, nodes: &[Value]) {
        if nodes.is_empty() {
            return;
        }
        for (name, history) in &mut self.nodes {
            let state = nodes.iter().find(|node| node["metadata"]["name"] == **name).map(NodeState::of);
            if history.last().map(|(_, last)| last) != Some(&state) {
                if state.is_some() {
                    self.found.insert(name.clone(), Instant::now());
                }
                history.push((now, state));
            }
        }
    }

    fn note_node(&mut self, now: Moment, change: &ObjectChange) {
        let object = change.after.as_deref().or(change.before.as_deref()).unwrap();
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let state = change.after.as_deref().map(NodeState::of);
        let history = self.nodes.entry(name).or_default();
        if history.last().map(|(_, last)| last) != Some(&state) {
            history.push((now, state));
        }
    }

    fn note_service(
        &mut self,
        cluster: &str,
        now: Moment,
        change: &ObjectChange,
        names: &BTreeMap<String, String>,
        breaches: &mut Vec<String>,
    ) {
        let object = change.after.as_deref().or(change.before.as_deref()).unwrap();
        let metadata = &object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let name = (text(&metadata["namespace"]), text(&metadata["name"]));
        let owner = Owner { cluster: cluster.to_owned(), service: name.clone() };
        let history = self.services.entry(name.clone()).or_default();
        let wish = match change.after.as_deref() {
            Some(service) => Wish::of(&owner, service, history.last().map(|(_, wish)| wish), names),
            None => Wish::default(),
        };
        if history.last().map(|(_, last)| last) != Some(&wish) {
            history.push((now, wish));
        }
        let (before, after) = (entries(change.before.as_deref()), entries(change.after.as_deref()));
        for lost in before.difference(&after) {
            let birth = self.published.remove(&(name.clone(), lost.clone())).unwrap_or(now);
            let history = self.services[&name].as_slice();
            // Published by a write that was under way when the Service named it no longer.
            let named = |wishes: &[(Moment, Wish)]| wishes.iter().any(|(_, wish)| wish.names(lost));
            let late = named(history) && !named(since(history, birth));
            // What was published answers what was asked when its run began, which is not before the status before it.
            let statuses = self.statuses.get(&name).map_or(&[][..], Vec::as_slice);
            let previous = statuses.iter().rev().find(|(at, _)| *at < birth).map_or(0, |(at, _)| *at);
            let wishes = since(history, previous);
            let asked = late
                || wishes.iter().any(|(_, wish)| !wish.alive)
                || wishes.windows(2).any(|pair| pair[0].1.published_by() != pair[1].1.published_by());
            if !asked && change.after.is_some() {
                breaches.push(format!("{owner}: {lost} was taken out of its status, now {after:?}"));
            }
        }
        for gained in after.difference(&before) {
            self.published.insert((name.clone(), gained.clone()), now);
        }
        if before != after {
            self.statuses.entry(name).or_default().push((now, after));
        }
    }
}

/// The addresses and hostnames in a status.
fn entries(service: Option<&Value>) -> BTreeSet<String> {
    let entries = service.and_then(|service| service["status"]["loadBalancer"]["ingress"].as_array());
    let address = |entry: &Value| entry["ip"].as_str().or(entry["hostname"].as_str()).map(str::to_owned);
    entries.into_iter().flatten().filter_map(address).collect()
}

/// The Service for which something was made, as generated names say.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Owner {
    cluster: String,
    service: ServiceName,
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}/{}", self.cluster, self.service.0, self.service.1)
    }
}

/// What the names of load balancers begin with.
const GENERATED: &str = "kube_service_";

impl Owner {
    /// Reads `kube_service_c1_default_web`, and names of children that end so. Namespaces and names have no underscore.
    fn of_name(name: &str) -> Option<Self> {
        let generated = &name[name.find(GENERATED)? + GENERATED.len()..];
        let mut parts = generated.rsplitn(3, '_');
        let (service, namespace, cluster) = (parts.next()?, parts.next()?, parts.next()?);
        let service = (namespace.to_owned(), service.to_owned());
        Some(Self { cluster: cluster.to_owned(), service })
    }

    /// Reads `Floating IP for Kubernetes external service default/web from cluster c1`.
    fn of_description(description: &str) -> Option<Self> {
        let rest = description.strip_prefix("Floating IP for Kubernetes external service ")?;
        let (service, cluster) = rest.split_once(" from cluster ")?;
        let (namespace, name) = service.split_once('/')?;
        let service = (namespace.to_owned(), name.to_owned());
        Some(Self { cluster: cluster.to_owned(), service })
    }
}
