//! Measurements of the service proxies of nodes, in addition to what the nodes show.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use openstack_ccm_canary::carried::Carried;
use openstack_ccm_canary::verdict::Verdict as Measurement;
use tokio::sync::watch;

use crate::node::{Cause, NodeVerdict, Source, prevailing};

/// How long a node must be unreachable before its measurements no longer count.
const UNMEASURED: SignedDuration = SignedDuration::from_mins(5);

/// The measurements at one moment, by name of the node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measurements {
    canary: BTreeMap<String, Carried>,
    kube_proxy: BTreeMap<String, NodeVerdict>,
}

impl Measurements {
    /// Creates measurements from a canary's verdicts, by node.
    pub fn of_canary(verdicts: BTreeMap<String, Carried>) -> Self {
        Self { canary: verdicts, ..Self::default() }
    }

    /// Returns the strongest verdict on a node; `guess` is the verdict by what the node shows.
    fn standing(&self, node: &str, guess: &NodeVerdict) -> NodeVerdict {
        let canary = self.canary.get(node).and_then(|carried| verdict_of_canary(*carried));
        let all = [Some(guess), self.kube_proxy.get(node), canary.as_ref()];
        prevailing(all.into_iter().flatten()).unwrap_or(guess).clone()
    }

    /// Returns the strongest verdict on a node; `guess` is the verdict by what the node shows. An unreachable node cannot be
    /// measured, so earlier measurements count for a while only.
    pub fn standing_since(
        &self,
        node: &str,
        guess: &NodeVerdict,
        unreachable_since: Option<Timestamp>,
        now: Timestamp,
    ) -> NodeVerdict {
        let silent = |since| now.duration_since(since) >= UNMEASURED;
        if unreachable_since.is_some_and(silent) { guess.clone() } else { self.standing(node, guess) }
    }

    /// Returns the nodes on which something other than a service proxy answers the canary.
    pub fn contradictions(&self) -> impl Iterator<Item = &str> {
        let odd = self.canary.iter().filter(|(_, carried)| **carried == Carried::Contradiction);
        odd.map(|(node, _)| node.as_str())
    }
}

/// A contradiction is no verdict: the guess stands.
fn verdict_of_canary(carried: Carried) -> Option<NodeVerdict> {
    match carried.verdict() {
        Measurement::Fit => Some(NodeVerdict::fit(Source::Canary, Cause::SeenToHonour)),
        Measurement::Unfit => Some(NodeVerdict::unfit(Source::Canary, Cause::SeenToIgnore)),
        Measurement::Unknown => None,
    }
}

/// The current measurements, kept up to date by all sources. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    now: watch::Sender<Arc<Measurements>>,
    ready: watch::Sender<bool>,
}

impl Measured {
    /// Creates measurements without a source: ready at once.
    pub fn by_nobody() -> Self {
        let measured = Self::default();
        measured.ready.send_replace(true);
        measured
    }

    /// Returns the present measurements.
    pub fn now(&self) -> Arc<Measurements> {
        Arc::clone(&self.now.borrow())
    }

    /// Returns a receiver of changes.
    pub fn changes(&self) -> watch::Receiver<Arc<Measurements>> {
        self.now.subscribe()
    }

    /// Returns a receiver that becomes true once verdicts from before the start are known, or unavailable.
    pub fn ready(&self) -> watch::Receiver<bool> {
        self.ready.subscribe()
    }

    pub(crate) fn set_ready(&self) {
        self.ready.send_if_modified(|ready| !std::mem::replace(ready, true));
    }

    pub(crate) fn by_canary(&self, verdicts: BTreeMap<String, Carried>) {
        self.set(|now| now.canary = verdicts);
    }

    /// Replaces all reports of kube-proxies, by node.
    pub fn by_kube_proxies(&self, verdicts: BTreeMap<String, NodeVerdict>) {
        self.set(|now| now.kube_proxy = verdicts);
    }

    fn set(&self, change: impl FnOnce(&mut Measurements)) {
        self.now.send_if_modified(|now| {
            let mut new = Measurements::clone(now);
            change(&mut new);
            let changed = new != **now;
            *now = Arc::new(new);
            changed
        });
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::node::{Verdict, guess_by_kubelet};

    #[rstest]
    #[case::guess("v1.29.3", None, None, Verdict::Unfit, Source::Version)]
    #[case::canary_above_the_version("v1.29.3", None, Some(Carried::Fit), Verdict::Fit, Source::Canary)]
    #[case::canary_above_the_version_both_ways(
        "v1.36.3",
        None,
        Some(Carried::Unfit),
        Verdict::Unfit,
        Source::Canary
    )]
    #[case::kube_proxy_above_the_version("v1.29.3", Some(true), None, Verdict::Fit, Source::KubeProxy)]
    #[case::canary_above_kube_proxy(
        "v1.36.3",
        Some(true),
        Some(Carried::Unfit),
        Verdict::Unfit,
        Source::Canary
    )]
    #[case::contradiction_is_no_verdict(
        "v1.36.3",
        Some(false),
        Some(Carried::Contradiction),
        Verdict::Unfit,
        Source::KubeProxy
    )]
    fn what_was_measured_stands_above_what_is_guessed(
        #[case] kubelet: &str,
        #[case] gate: Option<bool>,
        #[case] canary: Option<Carried>,
        #[case] verdict: Verdict,
        #[case] source: Source,
    ) {
        let measured = Measured::by_nobody();
        let by_gate = gate.map(|gate| ("a".to_owned(), crate::kube_proxy::by_gate(gate)));
        measured.by_kube_proxies(by_gate.into_iter().collect());
        measured.by_canary(canary.map(|carried| ("a".to_owned(), carried)).into_iter().collect());
        let standing = measured.now().standing("a", &guess_by_kubelet(kubelet));
        assert_eq!((standing.verdict, standing.source), (verdict, source));
    }
}
