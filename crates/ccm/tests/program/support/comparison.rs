//! A plan before each wait of a test, and whether what follows is what was planned.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};

use openstack_ccm_core::lock::lock;
use openstack_ccm_tools::plan::forecast::State;
use serde_json::Value;
use tokio::time::Instant;

use super::World;
use super::canonical;
use super::ledger::{self, Escape, Ledger};
use super::prediction::{Prediction, Progress};
use super::trace;

/// What is being compared.
pub(crate) struct Comparison {
    ledger: Ledger,
    /// The plan that is being carried out.
    open: Option<Prediction>,
    /// Whether something was refused: the program knows it, and no plan does.
    is_refused: bool,
    /// The world when the last wait was over.
    pause: Pause,
    /// Whether that wait went on until nothing happened any more.
    was_quiet: bool,
}

impl Comparison {
    pub(crate) fn new() -> Self {
        Self {
            ledger: Ledger::open(),
            open: None,
            is_refused: false,
            pause: Pause::default(),
            was_quiet: false,
        }
    }
}

/// The world at a moment: who finds the same later knows that nothing happened meanwhile.
#[derive(Clone, Copy, Default, PartialEq)]
struct Pause {
    calls: usize,
    objects: u64,
}

impl World {
    fn pause(&self) -> Pause {
        let mut hasher = DefaultHasher::new();
        self.kube.resource_version().hash(&mut hasher);
        format!("{:?}", self.cloud.snapshot()).hash(&mut hasher);
        Pause { calls: self.call_count(), objects: hasher.finish() }
    }

    /// Plans what a test is about to wait for, `to_the_end` or not, unless it waits on for what was planned before.
    pub(crate) async fn begin_wait(&self, to_the_end: bool) {
        if !self.settings.plans || self.goes_on() {
            return;
        }
        // What shows no scenario is compared from one rest to the next.
        let was_quiet = std::mem::replace(&mut lock(&self.comparison).was_quiet, false);
        let from_rest_to_rest = to_the_end && was_quiet;
        if !(ledger::shows_a_scenario() || from_rest_to_rest) {
            lock(&self.comparison).open = None;
            return;
        }
        self.close(Escape::Overtaken);
        let prediction = match self.foresee().await {
            Ok(prediction) => prediction,
            Err(Some(escape)) => return lock(&self.comparison).ledger.escaped(escape),
            Err(None) => return,
        };
        let mut comparison = lock(&self.comparison);
        comparison.pause.calls = prediction.calls;
        comparison.is_refused = false;
        comparison.open = Some(prediction);
    }

    /// Compares what was done in a wait; with `to_the_end` everything planned has to be done.
    pub(crate) fn end_wait(&self, to_the_end: bool) {
        if !self.settings.plans {
            return;
        }
        let pause = self.pause();
        let mut comparison = lock(&self.comparison);
        comparison.pause = pause;
        comparison.was_quiet = to_the_end;
        let Some(open) = &comparison.open else { return };
        let surprise = match self.progress(open) {
            Progress::Left(left) if left == 0 || !to_the_end => None,
            Progress::Left(_) => Some(self.beside_each_other(open)),
            Progress::Surprise(surprise) => Some(surprise),
            Progress::Unknown => {
                comparison.ledger.escaped(Escape::Refused);
                comparison.open = None;
                comparison.is_refused = true;
                None
            }
        };
        if let Some(surprise) = surprise {
            comparison.open = None;
            comparison.ledger.surprised(&surprise);
        }
    }

    /// Ends what is being compared, however far it got.
    pub(crate) fn close(&self, cause: Escape) {
        let mut comparison = lock(&self.comparison);
        let apart = self.changes_from(comparison.pause.calls);
        if !apart.iter().all(|(call, _)| canonical::is_note(call)) {
            comparison.ledger.escaped(Escape::Aside);
        }
        comparison.pause.calls = self.call_count();
        let Some(open) = comparison.open.take() else { return };
        match self.progress(&open) {
            Progress::Left(0) => comparison.ledger.compared(),
            Progress::Left(_) => comparison.ledger.escaped(cause),
            // What was done before the last wait was over was compared then.
            Progress::Surprise(_) => {}
            Progress::Unknown => comparison.ledger.escaped(Escape::Refused),
        }
    }

    /// Whether nothing happened since the last wait: its plan is still being carried out, or was refused.
    fn goes_on(&self) -> bool {
        let comparison = lock(&self.comparison);
        (comparison.open.is_some() || comparison.is_refused) && comparison.pause == self.pause()
    }

    /// What makes every plan differ from what is done.
    fn obstacle(&self) -> Option<Escape> {
        let is_broken = |one: &Value| one["provisioning_status"] == "ERROR";
        // A program that has only begun replaces none; a plan looks beyond that.
        let replaces = self.settings.cloud_conf.contains("error-recovery");
        if self.settings.translation.is_some() {
            Some(Escape::Translated)
        } else if self.cloud.faults().can_strike() || self.kube.faults_can_strike() {
            Some(Escape::Fault)
        } else if replaces && self.cloud.load_balancers().iter().any(is_broken) {
            Some(Escape::Broken)
        } else {
            None
        }
    }

    fn is_cloud_at_work(&self) -> bool {
        let is_pending = |one: &Value| {
            one["provisioning_status"].as_str().is_some_and(|status| status.starts_with("PENDING"))
        };
        self.cloud.load_balancers().iter().any(is_pending)
    }

    /// A plan of what comes next, or why there can be none; nothing to plan where no program runs.
    async fn foresee(&self) -> Result<Prediction, Option<Escape>> {
        let Some(line) = self.line() else { return Err(None) };
        if let Some(obstacle) = self.obstacle() {
            return Err(Some(obstacle));
        }
        if line.is_busy() {
            return Err(Some(Escape::Pending));
        }
        let start = Instant::now();
        let prediction = self.predict().await;
        assert_eq!(start, Instant::now(), "a plan takes no time");
        match prediction.incomplete {
            None => Ok(prediction),
            Some(State::Unknown(_)) => Err(Some(Escape::Unreadable)),
            Some(state) => {
                assert!(self.is_cloud_at_work(), "a plan stops although the cloud is at rest: {state:?}");
                Err(Some(Escape::Pending))
            }
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        if self.settings.plans {
            self.close(Escape::Unfinished);
        }
        let calls = self.calls_from(0);
        let breaches = trace::breaches(&calls);
        assert!(breaches.is_empty(), "{breaches:#?}\n{}", trace::text(&calls));
    }
}
