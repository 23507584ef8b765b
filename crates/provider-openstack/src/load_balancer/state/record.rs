//! One record per Service: all that this process remembers between two reconciliations. A release drops its observation.
//!
//! Losing the records is harmless: without them everything is read.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use openstack_ccm_core::lock::lock;
use openstack_ccm_core::node::Node;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::{Intent, Service, ServiceKey};
use openstack_ccm_openstack_api::cache::Moment;
use tokio::time::Instant;

use super::attempts::{Attempts, PreviousVips, RefusalRecord, Stall};
use crate::load_balancer::identity::outputs;
use crate::load_balancer::known::Observation;
use crate::load_balancer::objects::digest::{Agreement, Digest};
use crate::load_balancer::objects::step::Applied;
use crate::load_balancer::objects::step::Step;
use crate::load_balancer::objects::{Desired, Observed, Ownership};
use crate::load_balancer::plan::Refused;

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
    pub(crate) known: Cached,
    pub(crate) attempts: Attempts,
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
}

#[derive(Debug)]
struct Record {
    /// Digest of the Service at its last reconciliation.
    service: Digest,
    /// The nodes, shared between Services.
    nodes: Arc<[Arc<Node>]>,
    known: Cached,
    attempts: Attempts,
    load_balancer: Option<(String, Ownership)>,
    /// Whether to look for changes that another client made in the cloud.
    drift_due: bool,
    since: Moment,
    /// Whether it is known that no duplicate load balancer exists for the Service.
    duplicates_looked_for: bool,
    /// Whether the Service was external, so that its floating IP may still exist.
    was_external: bool,
    /// The floating IP that an annotation asks for, and whether that has changed since this process first saw the Service.
    annotated_floating_ip: Option<(Option<IpAddr>, bool)>,
    /// Digest of the steps of the last plan made after reading everything; reset by a failure.
    last_plan: Option<Digest>,
    /// Whether that plan was repeated, so that it may be sent once more after its pause.
    may_repeat: bool,
}

impl Record {
    fn new(service: Digest, since: Moment) -> Self {
        Self {
            service,
            nodes: Arc::from([]),
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
        }
    }
}

/// The records of all Services.
#[derive(Debug)]
pub(crate) struct Records {
    records: Mutex<HashMap<ServiceKey, Record>>,
    started: Moment,
    started_at: Instant,
}

impl Records {
    pub(crate) fn new() -> Self {
        Self { records: Mutex::default(), started: Moment::now(), started_at: Instant::now() }
    }

    fn with<T: Default>(&self, key: &ServiceKey, act: impl FnOnce(&mut Record) -> T) -> T {
        let mut records = lock(&self.records);
        records.get_mut(key).map(act).unwrap_or_default()
    }

    /// Begins a reconciliation and hands it the cached state: if it is cancelled, that state is lost.
    pub(crate) fn begin(&self, intent: &Intent) -> Beginning {
        let (service, nodes) = (Digest::of_service(&intent.service), &intent.nodes);
        let mut records = lock(&self.records);
        let record = records.entry(intent.service.key.clone()).or_insert_with(|| {
            // A Service that was served before this process started counts from its start.
            let was_there = outputs::was_served(&intent.service);
            let since = if was_there { self.started } else { Moment::now() };
            Record { nodes: Arc::clone(nodes), ..Record::new(service, since) }
        });
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
        record.nodes = Arc::clone(nodes);
        let began = Moment::now();
        let drift_due = std::mem::take(&mut record.drift_due);
        if service_changed || nodes_changed || drift_due || begins_anew {
            record.since = Moment::now();
            record.last_plan = record.last_plan.filter(|_| !nodes_changed);
        }
        Beginning {
            known: std::mem::take(&mut record.known),
            attempts: record.attempts.clone(),
            load_balancer: record.load_balancer.clone(),
            drift_due,
            since: record.since,
            at: Instant::now(),
            began,
            joined,
        }
    }

    /// Returns whether the agreement is young enough for lists alone to show that nothing changed.
    pub(crate) fn stands(&self, key: &ServiceKey, agreement: &Agreement) -> bool {
        agreement.stands(key, self.started_at, Instant::now())
    }

    /// Begins a release: drops the known state and keeps the attempts.
    pub(crate) fn begin_release(&self, service: &Service) {
        let mut records = lock(&self.records);
        let new = || Record::new(Digest::of_service(service), Moment::now());
        records.entry(service.key.clone()).or_insert_with(new).known = Cached::Nothing;
    }

    /// Begins a pause: answers from before it prove nothing after it.
    pub(crate) fn rests(&self, key: &ServiceKey) {
        self.with(key, |record| record.since = Moment::now());
    }

    /// Ends a reconciliation with this known state.
    pub(crate) fn keep(&self, key: &ServiceKey, known: Cached) {
        self.with(key, |record| record.known = known);
    }

    pub(crate) fn uses(&self, key: &ServiceKey, load_balancer: Option<(String, Ownership)>) {
        self.with(key, |record| record.load_balancer = load_balancer);
    }

    /// Returns id and ownership of the load balancer that the Service used last.
    pub(crate) fn load_balancer(&self, key: &ServiceKey) -> Option<(String, Ownership)> {
        self.with(key, |record| record.load_balancer.clone())
    }

    /// A reconciliation ends before it has looked: a drift check stays due.
    pub(crate) fn postponed(&self, key: &ServiceKey, beginning: &Beginning) {
        if beginning.drift_due {
            self.drift_due(key);
        }
    }

    /// Has the next reconciliation look for changes that another client made in the cloud.
    pub(crate) fn drift_due(&self, key: &ServiceKey) {
        self.with(key, |record| record.drift_due = true);
    }

    /// Returns the attempts and their results.
    pub(crate) fn attempts(&self, key: &ServiceKey) -> Attempts {
        self.with(key, |record| record.attempts.clone())
    }

    /// Notes applied steps: see [`Attempts::applied`].
    pub(crate) fn applied(&self, key: &ServiceKey, applied: &Applied, gives_up: bool, repairs: bool) {
        self.with(key, |record| record.attempts.applied(applied, gives_up, repairs, Instant::now()));
    }

    /// Notes a refused step: see [`Attempts::refused`].
    pub(crate) fn refused(
        &self,
        key: &ServiceKey,
        refused: Refused,
        observed: &Observed,
        certain: bool,
    ) -> bool {
        self.with(key, |record| record.attempts.refused(refused, observed, certain, Instant::now()))
    }

    /// Notes a failed step: see [`Attempts::failed`].
    pub(crate) fn failed(&self, key: &ServiceKey, failed: Refused, observed: &Observed) {
        self.with(key, |record| record.attempts.failed(failed, observed, Instant::now()));
    }

    /// Returns the refusals of what the Service asks for.
    pub(crate) fn refusals_of(&self, key: &ServiceKey, asked: Option<&Desired>) -> RefusalRecord {
        self.with(key, |record| {
            let refusals = &mut record.attempts.refusals;
            if let Some(desired) = asked {
                refusals.asked(desired);
            }
            refusals.clone()
        })
    }

    /// Notes accepted steps: see [`Attempts::accepted`].
    pub(crate) fn accepted(&self, key: &ServiceKey, steps: &[Step], applied: &Applied, observed: &Observed) {
        self.with(key, |record| record.attempts.accepted(steps, applied, observed));
    }

    /// Notes that everything is as the Service asks for.
    pub(crate) fn converged(&self, key: &ServiceKey) {
        self.with(key, |record| record.attempts.converged());
    }

    /// Notes that the plan waits for work of Octavia.
    pub(crate) fn waits(&self, key: &ServiceKey) {
        self.with(key, |record| record.attempts.waits(Instant::now()));
    }

    /// Notes that Octavia shows the load balancer.
    pub(crate) fn seen(&self, key: &ServiceKey) {
        self.with(key, |record| record.attempts.seen());
    }

    /// See [`Attempts::replaced`].
    pub(crate) fn replaced(&self, key: &ServiceKey, vips: PreviousVips) {
        self.with(key, |record| record.attempts.replaced(vips));
    }

    /// Notes that nothing could be done with a load balancer although it is not PENDING. Returns for how long, and how often.
    pub(crate) fn stalled(&self, key: &ServiceKey, gives_up: bool) -> Stall {
        let now = Instant::now();
        let noted = self.with(key, |record| Some(record.attempts.stalled(gives_up, now)));
        noted.unwrap_or_else(|| Stall::again(None, gives_up, now))
    }

    /// Notes the steps of a plan made after reading everything. If the previous plan had the same steps, and nothing failed or
    /// changed since, the accepted steps had no effect: returns how long to wait before sending them again.
    pub(crate) fn repeats(&self, key: &ServiceKey, steps: Digest) -> Option<Duration> {
        let now = Instant::now();
        self.with(key, |record| {
            if record.last_plan.replace(steps) != Some(steps) {
                record.may_repeat = false;
                return None;
            }
            let pause = record.attempts.repair_pause(now);
            if pause.is_none() && std::mem::take(&mut record.may_repeat) {
                return None;
            }
            if pause.is_none() {
                record.attempts.repaired(now);
            }
            record.may_repeat = true;
            record.attempts.repair_pause(now)
        })
    }

    /// Allows the same plan again: a step failed, or the plan had its effect, which another client may undo.
    pub(crate) fn reset_repeat_guard(&self, key: &ServiceKey) {
        self.with(key, |record| record.last_plan = None);
    }

    /// Returns whether duplicate load balancers of the Service were looked for.
    pub(crate) fn duplicates_looked_for(&self, key: &ServiceKey) -> bool {
        self.with(key, |record| record.duplicates_looked_for)
    }

    /// Sets whether duplicates were looked for; `false` when another might have been made since.
    pub(crate) fn set_duplicates_looked_for(&self, key: &ServiceKey, looked: bool) {
        self.with(key, |record| record.duplicates_looked_for = looked);
    }

    /// Notes whether the Service is external. Returns whether it is internal and was external before.
    pub(crate) fn has_become_internal(&self, key: &ServiceKey, is_external: bool) -> bool {
        self.with(key, |record| {
            record.was_external |= is_external;
            record.was_external && !is_external
        })
    }

    /// Notes the floating IP that an annotation asks for. Returns whether it has changed since this process first saw the Service.
    pub(crate) fn has_changed_floating_ip(&self, key: &ServiceKey, annotated: Option<IpAddr>) -> bool {
        self.with(key, |record| {
            let (last, has_changed) = record.annotated_floating_ip.get_or_insert((annotated, false));
            *has_changed |= *last != annotated;
            *last = annotated;
            *has_changed
        })
    }

    /// Notes that an internal Service has converged.
    pub(crate) fn is_internal(&self, key: &ServiceKey) {
        self.with(key, |record| record.was_external = false);
    }

    /// Returns how many converged Services have a warning with this reason.
    pub(crate) fn warned_of(&self, reason: &str) -> usize {
        let records = lock(&self.records);
        let is_warned = |record: &&Record| match &record.known {
            Cached::Converged(converged) => converged.warnings.iter().any(|warning| warning.reason == reason),
            _ => false,
        };
        records.values().filter(is_warned).count()
    }

    /// Drops the record of a deleted Service.
    pub(crate) fn forget(&self, key: &ServiceKey) {
        lock(&self.records).remove(key);
    }
}

/// Returns the addresses of nodes that are only in `now`.
fn joined(before: &[Arc<Node>], now: &[Arc<Node>]) -> BTreeSet<IpAddr> {
    let known: BTreeSet<&str> = before.iter().flat_map(|node| addresses(node)).collect();
    now.iter()
        .flat_map(|node| addresses(node))
        .filter(|one| !known.contains(one))
        .filter_map(|one| one.parse().ok())
        .collect()
}

fn addresses(node: &Node) -> impl Iterator<Item = &str> {
    node.addresses.iter().map(|one| one.address.as_str())
}
