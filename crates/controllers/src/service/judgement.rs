//! The judgement over the nodes of the cluster, published to all parts of the controller.

use std::sync::{Arc, Mutex};

use openstack_ccm_advertise::measured::Measured;
use openstack_ccm_advertise::node::JUDGEMENT_INTERVAL;
use openstack_ccm_core::lock::lock;
use openstack_ccm_runtime::parts::becomes;
use tokio::sync::watch;

use super::backends::NodeSnapshot;
use crate::nodes::NodeStore;

/// Judges the nodes by what they show and by measurements.
pub(super) struct Judgement {
    nodes: NodeStore,
    measured: Measured,
    published: watch::Sender<Arc<NodeSnapshot>>,
    /// Held from reading the nodes until the judgement is published: of two concurrent judgements, the older could be
    /// published last, and stand.
    judging: Mutex<()>,
}

impl Judgement {
    /// Starts without a judgement.
    pub(super) fn new(nodes: NodeStore, measured: Measured) -> Self {
        Self { nodes, measured, published: watch::Sender::default(), judging: Mutex::default() }
    }

    /// Returns a receiver of each judgement, the first as soon as the nodes have been listed.
    pub(super) fn published(&self) -> watch::Receiver<Arc<NodeSnapshot>> {
        self.published.subscribe()
    }

    /// Waits until the nodes have been judged with all measurements, including those from before the start, unless these are
    /// unavailable.
    pub(super) fn settled(&self) -> impl Future<Output = ()> + Send + use<> {
        let (published, measured) = (self.published(), self.measured.clone());
        async move {
            becomes(measured.ready(), |ready| *ready).await;
            becomes(published, |known| known.listed && known.measured == measured.now()).await;
        }
    }

    /// Judges the nodes after some of them changed. Returns the previous judgement, and this one.
    pub(super) fn of_changed_nodes(&self) -> (Arc<NodeSnapshot>, Arc<NodeSnapshot>) {
        let _judging = lock(&self.judging);
        let new = Arc::new(self.now());
        (self.published.send_replace(Arc::clone(&new)), new)
    }

    /// Judges the nodes again for ever: after new measurements, and because an unreachable node ceases to count without any
    /// event. `changed` gets the previous judgement, and the new one.
    pub(super) async fn keep(&self, changed: impl Fn(&NodeSnapshot, &NodeSnapshot)) {
        let mut measured = self.measured.changes();
        // The nodes may have been listed, and then measured, before this loop began.
        measured.mark_changed();
        loop {
            tokio::select! {
                changed = measured.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(JUDGEMENT_INTERVAL) => {
                    if !self.nodes.all().iter().any(|node| node.unreachable_since.is_some()) {
                        continue;
                    }
                }
            }
            if let Some((old, new)) = self.of_known_nodes() {
                changed(&old, &new);
            }
        }
    }

    /// Judges unchanged nodes again. Returns the previous and the new judgement if they differ.
    fn of_known_nodes(&self) -> Option<(Arc<NodeSnapshot>, Arc<NodeSnapshot>)> {
        let _judging = lock(&self.judging);
        let old = Arc::clone(&self.published.borrow());
        // A later change of nodes is compared with the published backends, so they stay.
        let new = NodeSnapshot { backends: Arc::clone(&old.backends), ..self.now() };
        if !old.listed || (old.verdicts == new.verdicts && old.measured == new.measured) {
            return None;
        }
        let new = Arc::new(new);
        self.published.send_replace(Arc::clone(&new));
        Some((old, new))
    }

    fn now(&self) -> NodeSnapshot {
        NodeSnapshot::of(&self.nodes.serving(), &self.measured.now(), jiff::Timestamp::now())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use futures::FutureExt as _;
    use openstack_ccm_advertise::node::{Cause, NodeVerdict, Source};

    use super::*;

    fn judgement() -> (Judgement, Measured) {
        let measured = Measured::by_nobody();
        (Judgement::new(NodeStore::default(), measured.clone()), measured)
    }

    /// Records a measurement of a node.
    fn measure(measured: &Measured) {
        let verdict = NodeVerdict::unfit(Source::KubeProxy, Cause::GateOff);
        measured.by_kube_proxies(BTreeMap::from([("n1".to_owned(), verdict)]));
    }

    #[test]
    fn what_is_measured_while_nodes_are_listed_is_not_lost() {
        for round in 0..2000 {
            let (judgement, measured) = judgement();
            std::thread::scope(|scope| {
                scope.spawn(|| judgement.of_changed_nodes());
                scope.spawn(|| {
                    measure(&measured);
                    judgement.of_known_nodes()
                });
            });
            assert_eq!(judgement.published().borrow().measured, measured.now(), "round {round}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_measured_before_anybody_listened_counts() {
        let (judgement, measured) = judgement();
        judgement.of_changed_nodes();
        measure(&measured);
        assert!(judgement.keep(|_, _| {}).now_or_never().is_none());
        assert_eq!(judgement.published().borrow().measured, measured.now());
    }

    #[test]
    fn nodes_that_were_listed_before_something_was_measured_are_not_settled() {
        let (judgement, measured) = judgement();
        assert!(judgement.settled().now_or_never().is_none(), "not listed");
        judgement.of_changed_nodes();
        assert!(judgement.settled().now_or_never().is_some());
        measure(&measured);
        assert!(judgement.settled().now_or_never().is_none(), "of what was known before");
        judgement.of_known_nodes();
        assert!(judgement.settled().now_or_never().is_some());
    }
}
