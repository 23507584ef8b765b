//! What is known of the canary: its Services, its pods, and when what they say counts. Pure: the time is passed in.

use std::collections::BTreeMap;
use std::time::Duration;

use openstack_ccm_canary::carried::Carried;
use openstack_ccm_canary::ledger::Ledger;
use openstack_ccm_canary::observed_pod::ObservedPod;
use openstack_ccm_canary::{CONTROL, SUBJECT};
use tokio::time::Instant;

/// After a status was written: longer than all pods need to look at it.
const LOOK: Duration = Duration::from_secs(90);

/// What the canary is in.
#[derive(Debug, Default)]
pub(super) struct CanaryState {
    ledger: Ledger,
    /// Node and report of each pod, by name.
    pods: BTreeMap<String, (String, Option<Carried>)>,
    pods_listed: bool,
    /// Since when the status of a Service is right, by name; absent while it is not.
    right: BTreeMap<String, Instant>,
    /// Whether reports count now.
    trusting: bool,
    /// Whether reports have counted before.
    counted: bool,
}

impl CanaryState {
    /// The status of a Service is right; `found` if nobody had to write it.
    pub(super) fn right(&mut self, service: &str, found: bool, now: Instant) {
        // What was found to be right has been looked at.
        let counts_from = if found { now } else { now + LOOK };
        self.right.entry(service.to_owned()).or_insert(counts_from);
        self.everybody(now);
    }

    /// The status of a Service is not right, or there is no such Service.
    pub(super) fn wrong(&mut self, service: &str, now: Instant) {
        self.right.remove(service);
        self.everybody(now);
    }

    pub(super) fn pod(&mut self, pod: &ObservedPod, now: Instant) {
        let Some((name, node)) = names(pod) else { return };
        self.pods.insert(name, (node.clone(), Carried::of_pod(pod)));
        self.node(&node, now);
    }

    /// A pod that is gone.
    pub(super) fn no_pod(&mut self, pod: &ObservedPod, now: Instant) {
        let Some((name, node)) = names(pod) else { return };
        self.pods.remove(&name);
        self.node(&node, now);
    }

    pub(super) fn listed(&mut self, pods: &[ObservedPod], now: Instant) {
        let report = |pod: &ObservedPod| names(pod).map(|(name, node)| (name, (node, Carried::of_pod(pod))));
        self.pods = pods.iter().filter_map(report).collect();
        self.pods_listed = true;
        self.everybody(now);
    }

    /// Whether what pods say counts.
    fn trusted(&self, now: Instant) -> bool {
        let since = [CONTROL, SUBJECT].map(|service| self.right.get(service));
        self.pods_listed && since.into_iter().all(|since| since.is_some_and(|since| *since <= now))
    }

    fn reports(&self) -> BTreeMap<String, Carried> {
        let mut reports = BTreeMap::new();
        for (node, report) in self.pods.values() {
            if let Some(report) = report {
                // While a pod is replaced there are two: the one that warns counts.
                let strongest = reports.entry(node.clone()).or_insert(*report);
                *strongest = (*strongest).max(*report);
            }
        }
        reports
    }

    fn node(&mut self, node: &str, now: Instant) {
        if self.trusting {
            let report =
                self.pods.values().filter(|(of, _)| of == node).filter_map(|(_, report)| *report).max();
            self.ledger.report(node, report, now);
        }
    }

    fn everybody(&mut self, now: Instant) {
        self.trusting = self.trusted(now);
        if !self.trusting {
            // Nobody is asked, so that verdicts lapse.
            self.ledger.report_all(&BTreeMap::new(), now);
        } else if self.counted {
            self.ledger.report_all(&self.reports(), now);
        } else {
            self.ledger.report_first(&self.reports(), now);
            self.counted = true;
        }
    }

    /// Lets what is due count.
    pub(super) fn settle(&mut self, now: Instant) {
        if self.trusted(now) && !self.trusting {
            self.everybody(now);
        }
        self.ledger.settle(now);
    }

    /// When something is due next.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        let trusted = self.right.values().copied().filter(|from| *from > now).max();
        self.ledger.next().into_iter().chain(trusted).min()
    }

    /// What counts.
    pub(super) fn verdicts(&self) -> BTreeMap<String, Carried> {
        self.ledger.verdicts()
    }
}

/// Name and node of a pod of the canary.
fn names(pod: &ObservedPod) -> Option<(String, String)> {
    if !pod.is_of_canary() {
        return None;
    }
    Some((pod.metadata.name.clone()?, pod.spec.node_name.clone()?))
}
