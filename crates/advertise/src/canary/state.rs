//! The state of the canary: its Services, its pods, and when their reports count. Pure: the time is passed in.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use openstack_ccm_canary::carried::Carried;
use openstack_ccm_canary::ledger::Ledger;
use openstack_ccm_canary::observed_pod::ObservedPod;
use openstack_ccm_canary::{CONTROL, SUBJECT};
use tokio::time::Instant;

/// Delay after a status was written: longer than all pods need to measure it.
const MEASUREMENT_DELAY: Duration = Duration::from_secs(90);

#[derive(Debug, Default)]
pub(super) struct CanaryState {
    ledger: Ledger,
    /// Each pod, by name.
    pods: BTreeMap<String, CanaryPod>,
    pods_listed: bool,
    /// The uids of the canary's DaemonSets, once they are known: only their pods count.
    daemon_sets: Option<BTreeSet<String>>,
    /// The time from which a Service with the right status counts, by name; absent otherwise.
    right: BTreeMap<String, Instant>,
    /// Whether reports count now.
    trusting: bool,
    /// Whether reports have counted before.
    counted: bool,
}

/// The fields kept of a pod.
#[derive(Debug)]
struct CanaryPod {
    node: String,
    /// The uid of the DaemonSet that made it.
    made_by: String,
    report: Option<Carried>,
}

impl CanaryState {
    /// Records that the status of a Service is right; `found` if it was right before.
    pub(super) fn right(&mut self, service: &str, found: bool, now: Instant) {
        // Pods have already measured a status that was right before.
        let counts_from = if found { now } else { now + MEASUREMENT_DELAY };
        self.right.entry(service.to_owned()).or_insert(counts_from);
        self.everybody(now);
    }

    /// Records that the status of a Service is wrong, or the Service absent.
    pub(super) fn wrong(&mut self, service: &str, now: Instant) {
        self.right.remove(service);
        self.everybody(now);
    }

    pub(super) fn pod(&mut self, pod: &ObservedPod, now: Instant) {
        let Some((name, pod)) = observed(pod) else { return };
        let node = pod.node.clone();
        self.pods.insert(name, pod);
        self.node(&node, now);
    }

    /// Removes a pod.
    pub(super) fn no_pod(&mut self, pod: &ObservedPod, now: Instant) {
        let Some((name, pod)) = observed(pod) else { return };
        self.pods.remove(&name);
        self.node(&pod.node, now);
    }

    pub(super) fn listed(&mut self, pods: &[ObservedPod], now: Instant) {
        self.pods = pods.iter().filter_map(observed).collect();
        self.pods_listed = true;
        self.everybody(now);
    }

    /// Sets the uids of the canary's DaemonSets.
    pub(super) fn daemon_sets(&mut self, uids: &BTreeSet<String>, now: Instant) {
        if self.daemon_sets.as_ref() != Some(uids) {
            self.daemon_sets = Some(uids.clone());
            self.everybody(now);
        }
    }

    /// Whether the reports of pods count.
    fn trusted(&self, now: Instant) -> bool {
        let since = [CONTROL, SUBJECT].map(|service| self.right.get(service));
        self.pods_listed
            && self.daemon_sets.is_some()
            && since.into_iter().all(|since| since.is_some_and(|since| *since <= now))
    }

    fn reports(&self) -> BTreeMap<String, Carried> {
        let mut reports = BTreeMap::new();
        for (node, report) in self.counting() {
            // While a pod is replaced there are two: the worse report counts.
            let strongest = reports.entry(node.to_owned()).or_insert(report);
            *strongest = (*strongest).max(report);
        }
        reports
    }

    /// Nodes and reports of the pods of the canary.
    fn counting(&self) -> impl Iterator<Item = (&str, Carried)> {
        let made =
            |pod: &&CanaryPod| self.daemon_sets.as_ref().is_some_and(|uids| uids.contains(&pod.made_by));
        self.pods.values().filter(made).filter_map(|pod| Some((pod.node.as_str(), pod.report?)))
    }

    fn node(&mut self, node: &str, now: Instant) {
        if self.trusting {
            let report = self.counting().filter(|(of, _)| *of == node).map(|(_, report)| report).max();
            self.ledger.report(node, report, now);
        }
    }

    fn everybody(&mut self, now: Instant) {
        self.trusting = self.trusted(now);
        if !self.trusting {
            // Without reports, verdicts lapse.
            self.ledger.report_all(&BTreeMap::new(), now);
        } else if self.counted {
            self.ledger.report_all(&self.reports(), now);
        } else {
            self.ledger.report_first(&self.reports(), now);
            self.counted = true;
        }
    }

    /// Makes the due reports count.
    pub(super) fn settle(&mut self, now: Instant) {
        if self.trusted(now) && !self.trusting {
            self.everybody(now);
        }
        self.ledger.settle(now);
    }

    /// Returns when the next report is due.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        let trusted = self.right.values().copied().filter(|from| *from > now).max();
        self.ledger.next().into_iter().chain(trusted).min()
    }

    /// Returns the verdicts that count.
    pub(super) fn verdicts(&self) -> BTreeMap<String, Carried> {
        self.ledger.verdicts()
    }
}

/// Returns name and fields of a pod, if a DaemonSet made it.
fn observed(pod: &ObservedPod) -> Option<(String, CanaryPod)> {
    let made_by = pod.daemon_set()?.to_owned();
    let node = pod.spec.node_name.clone()?;
    Some((pod.metadata.name.clone()?, CanaryPod { node, made_by, report: Carried::of_pod(pod) }))
}
