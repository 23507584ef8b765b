//! Candidates whose work writes down when it runs.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use openstack_ccm_kube_sim::Sim;
use openstack_ccm_runtime::election::{ElectionOptions, Elector, Ended, LeaseAnnotations};
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::link::Link;

pub(crate) const LEASE_DURATION: Duration = Duration::from_secs(15);
pub(crate) const RENEW_DEADLINE: Duration = Duration::from_secs(10);
pub(crate) const RETRY_PERIOD: Duration = Duration::from_secs(2);
/// The longest pause between two tries of one that waits.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(2);
const GRACE: Duration = Duration::from_secs(16);
/// Longest virtual time that a condition may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// What happened, and how long after the beginning.
pub(crate) struct Journal {
    begin: Instant,
    entries: Mutex<Vec<(Duration, String)>>,
}

impl Journal {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { begin: Instant::now(), entries: Mutex::default() })
    }

    fn note(&self, what: String) {
        self.entries.lock().unwrap().push((self.begin.elapsed(), what));
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.entries.lock().unwrap().iter().map(|(_, what)| what.clone()).collect()
    }

    /// When something happened for the last time.
    pub(crate) fn when(&self, what: &str) -> Duration {
        let entries = self.entries.lock().unwrap();
        let found = entries.iter().rev().find(|(_, noted)| noted == what);
        found.unwrap_or_else(|| panic!("{what:?} is not in {entries:?}")).0
    }

    pub(crate) fn has(&self, what: &str) -> bool {
        self.entries.lock().unwrap().iter().any(|(_, noted)| noted == what)
    }

    pub(crate) async fn until(&self, what: &str) {
        let start = Instant::now();
        while !self.has(what) {
            assert!(start.elapsed() < PATIENCE, "did not happen: {what}, but {:?}", self.lines());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Panics if two candidates ever worked at once.
    pub(crate) fn assert_one_at_a_time(&self) {
        let mut working = Vec::new();
        for line in self.lines() {
            match line.split_once(' ').unwrap() {
                (name, "works") => working.push(name.to_owned()),
                (name, "is done") => working.retain(|other| other != name),
                _ => {}
            }
            assert!(working.len() <= 1, "{working:?} work at once: {:?}", self.lines());
        }
    }
}

/// What the work does when it is asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Ends after this time.
    Ends(Duration),
    /// Goes on until it is dropped.
    Ignores,
    /// Ends by itself after this time, whatever it is asked.
    Finishes(Duration),
}

pub(crate) struct Candidate {
    pub(crate) link: Arc<Link>,
    stop: CancellationToken,
    task: JoinHandle<Ended>,
}

impl Candidate {
    pub(crate) fn start(sim: &Sim, journal: &Arc<Journal>, name: &'static str, work: Work) -> Self {
        Self::over(Link::new(), sim, journal, name, work)
    }

    pub(crate) fn over(
        link: Arc<Link>,
        sim: &Sim,
        journal: &Arc<Journal>,
        name: &'static str,
        work: Work,
    ) -> Self {
        let (stop, journal) = (CancellationToken::new(), Arc::clone(journal));
        let elector = Elector::new(link.client(sim), options(name));
        let task = tokio::spawn(elector.lead(stop.clone(), GRACE, move |leading| async move {
            journal.note(format!("{name} works"));
            let _end = NoteEnd { journal: Arc::clone(&journal), name };
            let asked = async {
                leading.cancelled().await;
                journal.note(format!("{name} is asked to stop"));
            };
            match work {
                Work::Ends(time) => {
                    asked.await;
                    tokio::time::sleep(time).await;
                }
                Work::Ignores => {
                    asked.await;
                    std::future::pending::<()>().await;
                }
                Work::Finishes(time) => tokio::time::sleep(time).await,
            }
        }));
        Self { link, stop, task }
    }

    /// As SIGTERM does.
    pub(crate) async fn stop(self) -> Ended {
        self.stop.cancel();
        self.task.await.unwrap()
    }

    /// Asks for the stop without waiting.
    pub(crate) fn ask_to_stop(&self) {
        self.stop.cancel();
    }

    /// As SIGKILL does.
    pub(crate) fn kill(self) {
        self.task.abort();
    }

    pub(crate) async fn end(self) -> Ended {
        self.task.await.unwrap()
    }
}

/// Notes the end of the work however it comes.
struct NoteEnd {
    journal: Arc<Journal>,
    name: &'static str,
}

impl Drop for NoteEnd {
    fn drop(&mut self) {
        self.journal.note(format!("{} is done", self.name));
    }
}

fn options(identity: &str) -> ElectionOptions {
    ElectionOptions {
        namespace: "kube-system".into(),
        name: "ccm".into(),
        identity: identity.into(),
        lease_duration: LEASE_DURATION,
        renew_deadline: RENEW_DEADLINE,
        annotations: LeaseAnnotations::default(),
        component: "cloud-controller-manager",
        retry_period: RETRY_PERIOD,
    }
}

/// The Lease's specification; null while there is none.
pub(crate) fn lease(sim: &Sim) -> Value {
    sim.get("leases", "kube-system", "ccm").map(|lease| lease["spec"].clone()).unwrap_or_default()
}

pub(crate) fn holder(sim: &Sim) -> String {
    lease(sim)["holderIdentity"].as_str().unwrap_or_default().to_owned()
}
