//! One record per Service: what this process remembers of it alone between two reconciliations. What Services share, and what is lost with
//! all that, says the page of `reconcile::serve` (9). A Service that is gone has none.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use openstack_ccm_core::lock::lock;
use openstack_ccm_core::node::Node;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::{Intent, Service, ServiceKey};
use openstack_ccm_openstack_api::cache::Moment;
use tokio::time::Instant;

use super::attempts::Attempts;
use crate::load_balancer::identity::outputs;
use crate::load_balancer::known::Observation;
use crate::load_balancer::objects::digest::{Agreement, Digest};
use crate::load_balancer::objects::{Observed, Ownership};

/// The known state of a Service's objects in the cloud.
#[derive(Debug, Default)]
pub(crate) enum Cached {
    /// Nothing is known: everything is read.
    #[default]
    Nothing,
    /// Nothing is known, and lists that were begun while another client changed the load balancer are out of date.
    ChangedByOthers,
    /// A plan is under way: what was read before it was made, updated with each accepted step.
    PlanInProgress {
        observation: Box<Observation>,
        /// Whether the last step locked the load balancer, so that the end of Octavia's work has to be seen.
        locked: bool,
    },
    /// The plan was empty, and all checks agreed.
    Converged(Box<Converged>),
}

/// The state when the plan was last empty.
#[derive(Debug)]
pub(crate) struct Converged {
    /// What exists, without members.
    pub(crate) observed: Observed,
    /// Project that owns the load balancer.
    pub(crate) project_id: Option<String>,
    /// Address of the Service.
    pub(crate) address: Option<IpAddr>,
    /// Digest to compare with lists; absent where not everything was read.
    pub(crate) agreement: Option<Agreement>,
    /// Warnings of the plan, which hold until something changes.
    pub(crate) warnings: Vec<Notice>,
}

/// The input of one reconciliation.
#[derive(Debug)]
pub(crate) struct Beginning {
    pub(crate) record: ServiceRecord,
    pub(crate) known: Cached,
    /// Id and ownership of the load balancer that the Service used last.
    pub(crate) load_balancer: Option<(String, Ownership)>,
    /// Whether to look for changes that another client made in the cloud.
    pub(crate) drift_due: bool,
    /// When the cause of this reconciliation happened: older answers prove nothing.
    pub(crate) since: Moment,
    /// When this reconciliation began, for pauses: a step refused during it is not sent again within it.
    pub(crate) at: Instant,
    /// When this reconciliation began, for comparison with when answers were begun.
    pub(crate) began: Moment,
    /// Addresses of the nodes that joined since the previous reconciliation.
    pub(crate) joined: BTreeSet<IpAddr>,
    /// Addresses of the nodes that have another server than when the Service was converged last.
    pub(crate) replaced_servers: BTreeSet<IpAddr>,
}

impl Beginning {
    /// Ends the reconciliation before it has looked: a drift check stays due.
    pub(crate) fn postpone(&self) {
        if self.drift_due {
            self.record.lock().drift_due = true;
        }
    }
}

/// The record of one Service, lent to whoever works on it. It is locked for one statement at a time: others look at it meanwhile.
#[derive(Clone, Debug)]
pub(crate) struct ServiceRecord(Arc<Mutex<Record>>);

impl ServiceRecord {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Record> {
        lock(&self.0)
    }
}

#[derive(Debug)]
pub(crate) struct Record {
    /// Digest of the Service at its last reconciliation.
    service: Digest,
    /// The nodes, shared between Services.
    nodes: Arc<[Arc<Node>]>,
    /// Addresses of nodes whose server was replaced since the Service was converged last.
    replaced_servers: BTreeSet<IpAddr>,
    pub(in crate::load_balancer) known: Cached,
    pub(in crate::load_balancer) attempts: Attempts,
    pub(in crate::load_balancer) load_balancer: Option<(String, Ownership)>,
    /// Whether to look for changes that another client made in the cloud.
    drift_due: bool,
    since: Moment,
    /// Whether it is known that no duplicate load balancer exists for the Service.
    pub(in crate::load_balancer) duplicates_looked_for: bool,
    /// Whether the Service was external, so that its floating IP may still exist.
    pub(in crate::load_balancer) was_external: bool,
    /// The floating IP that an annotation asks for, and whether that has changed since this process first saw the Service.
    annotated_floating_ip: Option<(Option<IpAddr>, bool)>,
    /// Digest of the steps of the last plan made after reading everything; reset by a failure.
    last_plan: Option<Digest>,
    /// Whether that plan was repeated, so that it may be sent once more after its pause.
    may_repeat: bool,
    /// The addresses that the Service asks for.
    asks_for: Vec<IpAddr>,
    /// Since when the Service has let another one that asks for the same address go first.
    yields_since: Option<Instant>,
}

impl Record {
    fn new(service: Digest, since: Moment) -> Self {
        Self {
            service,
            nodes: Arc::from([]),
            replaced_servers: BTreeSet::new(),
            known: Cached::Nothing,
            attempts: Attempts::default(),
            load_balancer: None,
            drift_due: false,
            since,
            duplicates_looked_for: false,
            was_external: false,
            annotated_floating_ip: None,
            last_plan: None,
            may_repeat: false,
            asks_for: Vec::new(),
            yields_since: None,
        }
    }
}

impl Record {
    /// Begins a pause: answers from before it prove nothing after it.
    pub(crate) fn rests(&mut self) {
        self.since = Moment::now();
    }

    /// Notes that everything is as the Service asks for.
    pub(crate) fn converged(&mut self) {
        self.attempts.converged();
        self.replaced_servers.clear();
    }

    /// Notes the steps of a plan made after reading everything. If the previous plan had the same steps, and nothing failed or
    /// changed since, the accepted steps had no effect: returns how long to wait before sending them again.
    pub(crate) fn repeats(&mut self, steps: Digest) -> Option<Duration> {
        let now = Instant::now();
        if self.last_plan.replace(steps) != Some(steps) {
            self.may_repeat = false;
            return None;
        }
        let pause = self.attempts.repair_pause(now);
        if pause.is_none() && std::mem::take(&mut self.may_repeat) {
            return None;
        }
        if pause.is_none() {
            self.attempts.repaired(now);
        }
        self.may_repeat = true;
        self.attempts.repair_pause(now)
    }

    /// Allows the same plan again: a step failed, or the plan had its effect, which another client may undo.
    pub(crate) fn reset_repeat_guard(&mut self) {
        self.last_plan = None;
    }

    /// Notes whether the Service is external. Returns whether it is internal and was external before.
    pub(crate) fn has_become_internal(&mut self, is_external: bool) -> bool {
        self.was_external |= is_external;
        self.was_external && !is_external
    }

    /// Notes the floating IP that an annotation asks for. Returns whether it has changed since this process first saw the Service.
    pub(crate) fn has_changed_floating_ip(&mut self, annotated: Option<IpAddr>) -> bool {
        let (last, has_changed) = self.annotated_floating_ip.get_or_insert((annotated, false));
        *has_changed |= *last != annotated;
        *last = annotated;
        *has_changed
    }

    /// Returns whether the Service is converged with a warning of this reason.
    fn is_warned(&self, reason: &str) -> bool {
        match &self.known {
            Cached::Converged(converged) => converged.warnings.iter().any(|warning| warning.reason == reason),
            _ => false,
        }
    }
}

/// The records of all Services.
#[derive(Debug)]
pub(crate) struct Records {
    records: Mutex<HashMap<ServiceKey, ServiceRecord>>,
    started: Moment,
    started_at: Instant,
}

impl Records {
    pub(crate) fn new() -> Self {
        Self { records: Mutex::default(), started: Moment::now(), started_at: Instant::now() }
    }

    /// Lends the record of a Service, which is `new` if there is none.
    fn lend(&self, key: &ServiceKey, new: impl FnOnce() -> Record) -> ServiceRecord {
        let mut records = lock(&self.records);
        let new = || ServiceRecord(Arc::new(Mutex::new(new())));
        records.entry(key.clone()).or_insert_with(new).clone()
    }

    /// Lends the record of a Service.
    pub(crate) fn of(&self, service: &Service) -> ServiceRecord {
        self.lend(&service.key, || Record::new(Digest::of_service(service), Moment::now()))
    }

    fn to_serve(&self, intent: &Intent) -> ServiceRecord {
        let Intent { service, nodes, .. } = intent;
        self.lend(&service.key, || {
            // A Service that was served before this process started counts from its start.
            let since = if outputs::was_served(service) { self.started } else { Moment::now() };
            Record { nodes: Arc::clone(nodes), ..Record::new(Digest::of_service(service), since) }
        })
    }

    fn find(&self, key: &ServiceKey) -> Option<ServiceRecord> {
        lock(&self.records).get(key).cloned()
    }

    fn all(&self) -> Vec<(ServiceKey, ServiceRecord)> {
        lock(&self.records).iter().map(|(key, record)| (key.clone(), record.clone())).collect()
    }

    /// Returns for how long the Service has let another one go first that asks for the same address, with this time.
    pub(crate) fn yields(&self, intent: &Intent) -> Duration {
        self.to_serve(intent).lock().yields_since.get_or_insert_with(Instant::now).elapsed()
    }

    /// Returns the Services that ask for one of these addresses.
    pub(crate) fn asking_for(&self, addresses: &[IpAddr]) -> Vec<ServiceKey> {
        let asks =
            |record: &ServiceRecord| record.lock().asks_for.iter().any(|asked| addresses.contains(asked));
        self.all().into_iter().filter(|(_, record)| asks(record)).map(|(key, _)| key).collect()
    }

    /// Begins a reconciliation and hands it the cached state: if it is cancelled, that state is lost.
    pub(crate) fn begin(&self, intent: &Intent, asks_for: Vec<IpAddr>) -> Beginning {
        let (service, nodes) = (Digest::of_service(&intent.service), &intent.nodes);
        let lent = self.to_serve(intent);
        let mut record = lent.lock();
        record.asks_for = asks_for;
        // The previous reconciliation has converged, so this one has a later cause.
        let begins_anew = matches!(record.known, Cached::Converged(_));
        let service_changed = record.service != service;
        let nodes_changed = !Arc::ptr_eq(&record.nodes, nodes) && record.nodes != *nodes;
        if service_changed {
            record.service = service;
            record.known = Cached::Nothing;
            record.attempts.service_changed();
            record.last_plan = None;
        }
        if nodes_changed && matches!(record.known, Cached::PlanInProgress { .. }) {
            record.known = Cached::Nothing;
        }
        let joined = if nodes_changed { joined(&record.nodes, nodes) } else { BTreeSet::new() };
        if nodes_changed {
            let replaced = replaced_servers(&record.nodes, nodes);
            record.replaced_servers.extend(replaced);
        }
        record.nodes = Arc::clone(nodes);
        let began = Moment::now();
        let drift_due = std::mem::take(&mut record.drift_due);
        if service_changed || nodes_changed || drift_due || begins_anew {
            record.since = Moment::now();
            record.last_plan = record.last_plan.filter(|_| !nodes_changed);
        }
        Beginning {
            known: std::mem::take(&mut record.known),
            load_balancer: record.load_balancer.clone(),
            drift_due,
            since: record.since,
            at: Instant::now(),
            began,
            joined,
            replaced_servers: record.replaced_servers.clone(),
            record: lent.clone(),
        }
    }

    /// Returns whether the agreement is young enough for lists alone to show that nothing changed.
    pub(crate) fn stands(&self, key: &ServiceKey, agreement: &Agreement) -> bool {
        agreement.stands(key, self.started_at, Instant::now())
    }

    /// Returns id and ownership of the load balancer that the Service used last.
    pub(crate) fn load_balancer(&self, key: &ServiceKey) -> Option<(String, Ownership)> {
        self.find(key)?.lock().load_balancer.clone()
    }

    /// Has the next reconciliation look for changes that another client made in the cloud.
    pub(crate) fn drift_due(&self, key: &ServiceKey) {
        if let Some(record) = self.find(key) {
            record.lock().drift_due = true;
        }
    }

    /// Returns how many converged Services have a warning with this reason.
    pub(crate) fn warned_of(&self, reason: &str) -> usize {
        self.all().iter().filter(|(_, record)| record.lock().is_warned(reason)).count()
    }

    /// Drops the record of a deleted Service.
    pub(crate) fn forget(&self, key: &ServiceKey) {
        lock(&self.records).remove(key);
    }
}

/// Returns the addresses of nodes that are only in `now`.
fn joined(before: &[Arc<Node>], now: &[Arc<Node>]) -> BTreeSet<IpAddr> {
    let known: BTreeSet<IpAddr> = before.iter().flat_map(|node| addresses(node)).collect();
    now.iter().flat_map(|node| addresses(node)).filter(|one| !known.contains(one)).collect()
}

/// Returns the addresses of nodes whose server is another one in `now`. One without an id, or with a region before the same id, may
/// be the same.
fn replaced_servers(before: &[Arc<Node>], now: &[Arc<Node>]) -> BTreeSet<IpAddr> {
    let server = |node: &'_ Arc<Node>| {
        node.provider_id.as_deref().and_then(|id| id.rsplit('/').next()).map(str::to_owned)
    };
    let known: HashMap<&str, String> =
        before.iter().filter_map(|node| Some((node.name.as_str(), server(node)?))).collect();
    let is_another = |node: &&Arc<Node>| {
        let before = known.get(node.name.as_str());
        before.is_some_and(|before| server(node).is_some_and(|now| now != *before))
    };
    now.iter().filter(is_another).flat_map(|node| addresses(node)).collect()
}

fn addresses(node: &Node) -> impl Iterator<Item = IpAddr> + '_ {
    node.addresses.iter().filter_map(|one| one.address.parse().ok())
}
