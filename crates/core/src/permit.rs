//! The checks before a write, and the [`Permit`] that they give.
//!
//! All writes need the same two checks: that this process still leads, and that the API server still shows the cluster that the
//! process works for. [`Gate::permit`] makes both, and only it creates a [`Permit`], without which the clients send no write.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

/// The target of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The cloud: the next leader may already write there as soon as the renewal of the Lease is overdue.
    Cloud,
    /// The cluster, which refuses writes based on an old state: they may go on until the Lease expires.
    Cluster,
}

type Holds = dyn Fn(Target) -> bool + Send + Sync;

/// Whether this process leads, by the clock alone. Cancelling the work is not enough: after the process was stopped for a while, the
/// task that cancels and the work are due at the same time.
#[derive(Clone)]
pub struct Fence(Option<Arc<Holds>>);

impl Fence {
    /// Creates a fence that holds while `holds` says so.
    pub fn new(holds: impl Fn(Target) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(holds)))
    }

    /// Creates the fence for use without leader election: it always holds.
    pub fn always() -> Self {
        Self(None)
    }

    /// Whether a write may begin now.
    pub fn holds(&self, target: Target) -> bool {
        self.0.as_ref().is_none_or(|holds| holds(target))
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Fence(elected)" } else { "Fence(always)" })
    }
}

/// Checks whether the API server still shows the cluster that this process works for.
#[async_trait]
pub trait ClusterCheck: Send + Sync {
    /// Returns what is wrong if another cluster was seen.
    fn another(&self) -> Option<String>;

    /// Returns once a request that was sent after the last start of a list or watch shows the same cluster.
    ///
    /// # Errors
    /// Another cluster was seen, or there was no answer.
    async fn confirm(&self) -> Result<(), NotPermitted>;
}

/// Makes the checks before a write. Clones share them.
#[derive(Clone)]
pub struct Gate {
    cluster: Option<Arc<dyn ClusterCheck>>,
    fence: Fence,
}

impl Gate {
    /// Creates the gate for controllers of one cluster.
    pub fn new(cluster: Arc<dyn ClusterCheck>, fence: Fence) -> Self {
        Self { cluster: Some(cluster), fence }
    }

    /// Creates the gate of a controller that works in whichever cluster the API server shows.
    pub fn of_lead(fence: Fence) -> Self {
        Self { cluster: None, fence }
    }

    /// Creates the gate of commands that a person runs: without watches and without leader election.
    pub fn open() -> Self {
        Self { cluster: None, fence: Fence::always() }
    }

    /// Checks whether one write may begin.
    ///
    /// # Errors
    /// Nothing may be written now.
    pub async fn permit(&self, target: Target) -> Result<Permit, NotPermitted> {
        if let Some(cluster) = &self.cluster {
            cluster.confirm().await?;
        }
        let permit = Permit { fence: self.fence.clone(), target };
        permit.check()?;
        Ok(permit)
    }

    /// Returns why nothing may be written, as far as that is known without a request.
    pub fn closed(&self) -> Option<NotPermitted> {
        let another = self.cluster.as_ref().and_then(|cluster| cluster.another());
        let lost = || (!self.fence.holds(Target::Cloud)).then_some(NotPermitted::LeadLost);
        another.map(NotPermitted::AnotherCluster).or_else(lost)
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("fence", &self.fence).finish_non_exhaustive()
    }
}

/// The permission to begin one write.
#[derive(Clone, Debug)]
pub struct Permit {
    fence: Fence,
    target: Target,
}

impl Permit {
    /// Checks the lead again, right before sending: a step in between, such as a login, may have taken long.
    ///
    /// # Errors
    /// The lead was lost meanwhile.
    pub fn check(&self) -> Result<(), NotPermitted> {
        if self.fence.holds(self.target) { Ok(()) } else { Err(NotPermitted::LeadLost) }
    }
}

/// Why nothing may be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotPermitted {
    /// The Lease was not renewed in time, or another instance has it.
    #[error(
        "nothing was sent: the Lease was not renewed in time, and another instance might be the leader now"
    )]
    LeadLost,
    /// Another cluster was seen; the text says what to do.
    #[error("nothing was sent: {0}")]
    AnotherCluster(String),
    /// There was no answer; the text says why.
    #[error(
        "nothing was sent: could not read the namespace kube-system to verify that the API server still belongs to the same cluster: {0}"
    )]
    NotChecked(String),
    /// A defect: a write request without a [`Permit`].
    #[error("nothing was sent: the request had no permit, which is a bug in openstack-ccm: please report it")]
    NotAsked,
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    struct Cluster(Result<(), NotPermitted>);

    #[async_trait]
    impl ClusterCheck for Cluster {
        fn another(&self) -> Option<String> {
            match &self.0 {
                Err(NotPermitted::AnotherCluster(why)) => Some(why.clone()),
                _ => None,
            }
        }

        async fn confirm(&self) -> Result<(), NotPermitted> {
            self.0.clone()
        }
    }

    #[tokio::test]
    async fn a_permit_ends_with_the_lead() {
        let held = Arc::new(AtomicBool::new(true));
        let fence = Fence::new({
            let held = Arc::clone(&held);
            move |_| held.load(Ordering::SeqCst)
        });
        let gate = Gate::new(Arc::new(Cluster(Ok(()))), fence);
        let permit = gate.permit(Target::Cloud).await.unwrap();
        assert_eq!((permit.check(), gate.closed()), (Ok(()), None));
        held.store(false, Ordering::SeqCst);
        assert_eq!(permit.check(), Err(NotPermitted::LeadLost));
        assert_eq!(gate.closed(), Some(NotPermitted::LeadLost));
        assert_eq!(gate.permit(Target::Cluster).await.unwrap_err(), NotPermitted::LeadLost);
    }

    #[tokio::test]
    async fn without_an_answer_about_the_cluster_there_is_no_permit() {
        for why in
            [NotPermitted::AnotherCluster("b".to_owned()), NotPermitted::NotChecked("no answer".to_owned())]
        {
            let gate = Gate::new(Arc::new(Cluster(Err(why.clone()))), Fence::always());
            assert_eq!(gate.permit(Target::Cloud).await.unwrap_err(), why);
        }
    }
}
