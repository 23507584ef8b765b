//! Whether the API server still shows the cluster that this process works for.
//!
//! An address that leads to another API server, or to one whose data were replaced, shows other Services and Nodes. What such
//! objects ask for, or their absence, is no reason to touch a load balancer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use openstack_ccm_core::permit::{ClusterCheck, Gate, NotPermitted};
use openstack_ccm_runtime::call::call;
use openstack_ccm_runtime::parts::becomes;
use tokio::sync::{Mutex, watch};

/// The namespace whose uid is the identity of a cluster.
const IDENTITY_NAMESPACE: &str = "kube-system";
/// Longest wait for one answer.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Delay after a failed check.
const RETRY_DELAY: Duration = Duration::from_secs(5);
/// Time between two checks while nothing points at a change.
const LOOK_INTERVAL: Duration = Duration::from_secs(60);

/// The cluster of this process. Once another cluster was seen, that is final: only a person knows which of the two is right.
pub struct KnownCluster {
    client: Client,
    uid: String,
    other: watch::Sender<Option<String>>,
    /// Number of lists and watches begun; the API server may be another one since each.
    begun: AtomicU64,
    /// Number of checks that have ended.
    questions: AtomicU64,
    /// Locked during a check, so that one check serves all waiting callers.
    confirmed: Mutex<Confirmed>,
}

#[derive(Default)]
struct Confirmed {
    /// Number of lists and watches up to which the cluster is confirmed.
    covers: u64,
    /// The last failed check, and why it failed.
    failed: Option<(u64, NotPermitted)>,
}

/// The client of one controller, the cluster that it has to show, and the gate of all writes.
pub struct ClusterClient {
    pub client: Client,
    pub cluster: Arc<KnownCluster>,
    pub gate: Gate,
}

impl KnownCluster {
    /// Creates the cluster whose namespace kube-system has this uid. `client` reads it over a new connection each time: an existing
    /// connection may lead elsewhere than those that are made now.
    pub fn new(client: Client, uid: String) -> Self {
        let other = watch::Sender::new(None);
        Self {
            client,
            uid,
            other,
            begun: AtomicU64::new(1),
            questions: AtomicU64::new(0),
            confirmed: Mutex::default(),
        }
    }

    /// Notes that a list or a watch has begun: what it shows counts only once the cluster is confirmed anew.
    pub fn begun(&self) {
        self.begun.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns why nothing is done any more, if another cluster was seen.
    pub fn problem(&self) -> Option<String> {
        let other = self.other.borrow().clone()?;
        Some(format!(
            "the API server now belongs to another cluster: the namespace kube-system has uid {other} and had uid {} when this process \
             started. Nothing is changed in either cluster. Correct the address of the API server or its data; if the cluster was changed \
             on purpose, restart this process",
            self.uid
        ))
    }

    /// Waits until another cluster is seen.
    pub fn differs(&self) -> impl Future<Output = ()> + Send + use<> {
        becomes(self.other.subscribe(), Option::is_some)
    }

    /// Waits until the cluster is confirmed, and for ever once another cluster was seen.
    pub(crate) async fn confirmed(&self) {
        loop {
            match self.confirm().await {
                Ok(()) => return,
                Err(NotPermitted::AnotherCluster(_)) => return std::future::pending().await,
                Err(error) => {
                    tracing::warn!("{error}");
                    tokio::time::sleep(RETRY_DELAY).await;
                }
            }
        }
    }

    /// Checks the cluster from time to time, for ever.
    pub(crate) async fn follow(&self) {
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            self.begun();
            self.confirmed().await;
        }
    }

    /// Compares the uid that the API server shows.
    async fn look(&self) -> Result<(), NotPermitted> {
        let api = Api::<Namespace>::all(self.client.clone());
        let namespace = call(CALL_TIMEOUT, api.get(IDENTITY_NAMESPACE)).await;
        let namespace = namespace.map_err(|error| NotPermitted::NotChecked(error.message()))?;
        let uid = namespace.metadata.uid.unwrap_or_default();
        if uid != self.uid {
            self.other.send_replace(Some(uid));
            tracing::error!("{}", self.problem().unwrap_or_default());
        }
        self.not_another()
    }

    fn not_another(&self) -> Result<(), NotPermitted> {
        self.problem().map_or(Ok(()), |problem| Err(NotPermitted::AnotherCluster(problem)))
    }
}

#[async_trait]
impl ClusterCheck for KnownCluster {
    fn another(&self) -> Option<String> {
        self.problem()
    }

    async fn confirm(&self) -> Result<(), NotPermitted> {
        let needed = self.begun.load(Ordering::SeqCst);
        let asked_before = self.questions.load(Ordering::SeqCst);
        let mut confirmed = self.confirmed.lock().await;
        self.not_another()?;
        if confirmed.covers >= needed {
            return Ok(());
        }
        // A caller that waited for a check shares its failure, too.
        if let Some((_, why)) = confirmed.failed.as_ref().filter(|(question, _)| *question > asked_before) {
            return Err(why.clone());
        }
        let covers = self.begun.load(Ordering::SeqCst);
        let answer = self.look().await;
        let question = self.questions.fetch_add(1, Ordering::SeqCst) + 1;
        match &answer {
            Ok(()) => confirmed.covers = covers,
            Err(why) => confirmed.failed = Some((question, why.clone())),
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;
    use openstack_ccm_kube_sim::{ApiVersion, Fault, Sim};

    use super::*;

    fn known() -> (Sim, KnownCluster) {
        let sim = Sim::new(ApiVersion::V1_36);
        let identity = sim.get("namespaces", "", IDENTITY_NAMESPACE).unwrap();
        let uid = identity["metadata"]["uid"].as_str().unwrap().to_owned();
        let known = KnownCluster::new(Client::new(sim.service(), "default"), uid);
        (sim, known)
    }

    fn asked(sim: &Sim) -> usize {
        sim.count_requests("GET", "/namespaces/kube-system")
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_counts_until_something_is_listed_or_watched_anew() {
        let (sim, known) = known();
        for expected in [1, 1] {
            known.confirm().await.unwrap();
            assert_eq!(asked(&sim), expected);
        }
        known.begun();
        known.confirm().await.unwrap();
        assert_eq!(asked(&sim), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn one_question_serves_all_who_wait_and_so_does_its_failure() {
        let (sim, known) = known();
        let fault = sim.inject(Fault::on("GET", "/namespaces/kube-system").unavailable());
        let answers = join_all((0..5).map(|_| known.confirm())).await;
        assert!(
            answers.iter().all(|answer| matches!(answer, Err(NotPermitted::NotChecked(_)))),
            "{answers:?}"
        );
        assert_eq!(asked(&sim), 1);
        sim.remove_fault(fault);
        let answers = join_all((0..5).map(|_| known.confirm())).await;
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
        assert_eq!(asked(&sim), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn another_cluster_stays_another_one() {
        let (sim, known) = known();
        sim.set_cluster_uid("another").unwrap();
        assert!(matches!(known.confirm().await, Err(NotPermitted::AnotherCluster(_))));
        assert!(known.another().unwrap().contains("another"));
        sim.set_cluster_uid(&known.uid).unwrap();
        assert!(known.confirm().await.is_err(), "a person decides");
    }
}
