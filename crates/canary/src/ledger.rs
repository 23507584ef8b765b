//! The verdicts of all nodes over time. Pure: the time is passed in.
//!
//! A verdict is not what a pod reports at a moment, but what it has reported for a while: the readiness of two containers does not
//! change in one instant, pods are replaced, and a node whose verdict flaps must not change the publication of every
//! Service each time.

use std::collections::BTreeMap;
use std::time::Duration;

use openstack_ccm_core::backoff::Backoff;
use tokio::time::Instant;

use crate::carried::Carried;

/// How long a pod has to report the same before the report counts: twice the period of the readiness probes.
pub const SETTLE_DELAY: Duration = Duration::from_secs(10);
/// How long a verdict counts after its pod fell silent or was deleted. Longer than a pod needs to be replaced.
pub const VERDICT_LIFETIME: Duration = Duration::from_secs(300);
/// How long a node that was unfit twice within [`RELAPSE_LIFETIME`] has to be fit before that counts; doubles with each relapse.
const RELAPSES: Backoff = Backoff::doubling(Duration::from_secs(60), Duration::from_secs(960));
/// After this time without another verdict, earlier relapses are forgotten.
const RELAPSE_LIFETIME: Duration = Duration::from_secs(3600);

/// The verdicts of nodes, by name.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    nodes: BTreeMap<String, Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    /// What the pod reports, and since when.
    reported: Option<Carried>,
    since: Instant,
    /// The verdict that counts, and since when.
    held: Option<Carried>,
    changed: Instant,
    /// How often the node became unfit recently.
    falls: u32,
}

impl Entry {
    fn new(reported: Carried, now: Instant) -> Self {
        Self { reported: Some(reported), since: now, held: None, changed: now, falls: 0 }
    }

    /// Returns when the report of the pod becomes the verdict, or when a verdict without report ends.
    fn due(&self) -> Option<Instant> {
        match self.reported {
            reported if reported == self.held => None,
            None => Some(self.since + VERDICT_LIFETIME),
            Some(Carried::Fit) if self.held == Some(Carried::Unfit) => Some(self.since + self.patience()),
            Some(_) => Some(self.since + SETTLE_DELAY),
        }
    }

    /// Returns how long an unfit node has to report fit. Its pod has waited already, so the first time is short.
    fn patience(&self) -> Duration {
        self.falls.checked_sub(2).map_or(SETTLE_DELAY, |relapses| RELAPSES.delay(relapses))
    }

    fn settle(&mut self, now: Instant) -> bool {
        if self.due().is_none_or(|due| due > now) {
            return false;
        }
        self.hold(now);
        true
    }

    fn hold(&mut self, now: Instant) {
        if self.reported == Some(Carried::Unfit) {
            let calm = now.saturating_duration_since(self.changed) > RELAPSE_LIFETIME;
            self.falls = if calm { 1 } else { self.falls.saturating_add(1) };
        }
        self.held = self.reported;
        self.changed = now;
    }
}

impl Ledger {
    /// Records the report of a node's pod, or its silence. Returns whether a verdict changed.
    pub fn report(&mut self, node: &str, reported: Option<Carried>, now: Instant) -> bool {
        let Some(entry) = self.nodes.get_mut(node) else {
            if let Some(reported) = reported {
                self.nodes.insert(node.to_owned(), Entry::new(reported, now));
            }
            return false;
        };
        // A report that was due before counts, however late this call is.
        let changed = entry.settle(now);
        if entry.reported != reported {
            entry.reported = reported;
            entry.since = now;
        }
        changed
    }

    /// Records the first report of each pod. There is no earlier report to compare it with, so it takes effect immediately.
    pub fn report_first(&mut self, reports: &BTreeMap<String, Carried>, now: Instant) -> bool {
        let mut changed = false;
        for (node, reported) in reports {
            if !self.nodes.contains_key(node) {
                let mut entry = Entry::new(*reported, now);
                entry.hold(now);
                self.nodes.insert(node.clone(), entry);
                changed = true;
            }
        }
        self.report_all(reports, now) || changed
    }

    /// Records the reports of all pods. Nodes without a report fall silent.
    pub fn report_all(&mut self, reports: &BTreeMap<String, Carried>, now: Instant) -> bool {
        let silent = self.nodes.keys().filter(|node| !reports.contains_key(*node));
        let silent: Vec<(String, Option<Carried>)> = silent.map(|node| (node.clone(), None)).collect();
        let all = reports.iter().map(|(node, reported)| (node.clone(), Some(*reported))).chain(silent);
        let changes =
            all.map(|(node, reported)| self.report(&node, reported, now)).filter(|changed| *changed).count();
        changes > 0
    }

    /// Makes the due reports count. Returns whether a verdict changed.
    pub fn settle(&mut self, now: Instant) -> bool {
        let changed =
            self.nodes.values_mut().map(|entry| entry.settle(now)).filter(|changed| *changed).count();
        self.nodes.retain(|_, entry| entry.reported.is_some() || entry.held.is_some());
        changed > 0
    }

    /// Returns when the next report is due.
    pub fn next(&self) -> Option<Instant> {
        self.nodes.values().filter_map(Entry::due).min()
    }

    /// Returns the verdicts that count.
    pub fn verdicts(&self) -> BTreeMap<String, Carried> {
        self.nodes.iter().filter_map(|(node, entry)| Some((node.clone(), entry.held?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Carried::{Contradiction, Fit, Unfit};
    use super::*;

    fn held(ledger: &Ledger) -> Option<Carried> {
        ledger.verdicts().get("a").copied()
    }

    /// Reports each value for so many seconds. Returns the last verdicts, and how often they changed on the way.
    fn replay(reports: &[(Option<Carried>, u32)]) -> (Option<Carried>, u32) {
        let mut ledger = Ledger::default();
        let (mut now, mut changes) = (Instant::now(), 0);
        for (report, seconds) in reports {
            changes += u32::from(ledger.report("a", *report, now));
            for _ in 0..*seconds {
                now += Duration::from_secs(1);
                changes += u32::from(ledger.settle(now));
            }
        }
        (held(&ledger), changes)
    }

    fn story(reports: &[(Option<Carried>, u32)]) -> Option<Carried> {
        replay(reports).0
    }

    #[test]
    fn readiness_that_is_ahead_for_a_moment_counts_for_nothing() {
        assert_eq!(story(&[(Some(Unfit), 5), (Some(Fit), 10)]), Some(Fit));
        assert_eq!(story(&[(Some(Fit), 10), (Some(Contradiction), 5), (None, 5)]), Some(Fit));
        assert_eq!(story(&[(Some(Fit), 10), (Some(Unfit), 9), (None, 60)]), Some(Fit));
    }

    #[test]
    fn an_unfit_node_counts_at_once_and_a_fit_one_soon_the_first_time() {
        assert_eq!(story(&[(Some(Fit), 10), (Some(Unfit), 10)]), Some(Unfit));
        assert_eq!(story(&[(Some(Unfit), 10), (Some(Fit), 10)]), Some(Fit));
    }

    #[test]
    fn a_pod_that_is_replaced_takes_its_verdict_along() {
        assert_eq!(story(&[(Some(Fit), 10), (None, 299)]), Some(Fit));
        assert_eq!(story(&[(Some(Fit), 10), (None, 300)]), None);
        assert_eq!(story(&[(Some(Unfit), 10), (None, 200), (Some(Unfit), 1), (None, 299)]), Some(Unfit));
    }

    #[test]
    fn a_node_that_goes_to_and_fro_is_unfit_for_longer_each_time() {
        let mut reports = vec![(Some(Unfit), 10)];
        for _ in 0..50 {
            reports.extend([(Some(Fit), 12), (Some(Unfit), 12)]);
        }
        assert_eq!(replay(&reports), (Some(Unfit), 3), "unfit, fit, and unfit from then on");
        reports.push((Some(Fit), 61));
        assert_eq!(story(&reports), Some(Fit), "calm after the second fall");
        reports.extend([(Some(Unfit), 12), (Some(Fit), 61)]);
        assert_eq!(story(&reports), Some(Unfit), "not after the third");
        reports.push((Some(Fit), 60));
        assert_eq!(story(&reports), Some(Fit));
    }

    #[test]
    fn the_first_reports_count_at_once_and_later_ones_do_not() {
        let now = Instant::now();
        let mut ledger = Ledger::default();
        let reports = |reports: &[(&str, Carried)]| -> BTreeMap<String, Carried> {
            reports.iter().map(|(node, reported)| ((*node).to_owned(), *reported)).collect()
        };
        assert!(ledger.report_first(&reports(&[("a", Fit), ("b", Unfit)]), now));
        assert_eq!(ledger.verdicts(), reports(&[("a", Fit), ("b", Unfit)]));
        assert!(!ledger.report_all(&reports(&[("a", Unfit), ("c", Unfit)]), now));
        assert_eq!(ledger.verdicts(), reports(&[("a", Fit), ("b", Unfit)]));
        assert_eq!(ledger.next(), Some(now + SETTLE_DELAY));
        assert!(ledger.settle(now + SETTLE_DELAY));
        assert_eq!(ledger.verdicts(), reports(&[("a", Unfit), ("b", Unfit), ("c", Unfit)]));
        assert!(ledger.settle(now + VERDICT_LIFETIME));
        assert_eq!(ledger.verdicts(), reports(&[("a", Unfit), ("c", Unfit)]), "the pod of b is gone");
    }
}
