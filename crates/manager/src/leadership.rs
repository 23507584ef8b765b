//! Work under a Lease, and the annotation by which a leader describes itself there to all who may read Leases.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use openstack_ccm_core::cloud::Cloud;
use openstack_ccm_core::permit::Fence;
use openstack_ccm_runtime::election::{ElectionMetrics, ElectionOptions, Elector, Ended, LeaseAnnotations};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::args::LeaderElectionArgs;
use crate::health::{Health, Probe};
use crate::version::version;

/// Component of the Events about leadership, as every cloud-controller-manager has it.
const EVENT_SOURCE: &str = "cloud-controller-manager";
/// How long beyond the lease duration a leader may be without a renewal before it counts as stuck.
const RENEWAL_GRACE: Duration = Duration::from_secs(20);

/// Takes part in the election for this process.
pub struct Leadership {
    elector: Elector,
    /// Name of the Lease.
    lease: String,
    /// How long the work may take to end after a stop, before the Lease is released.
    grace: Duration,
}

/// A leadership that ended without a requested stop.
#[derive(Debug, thiserror::Error)]
#[error("leadership was lost (lease {lease}); the process exits and has to be restarted")]
pub struct LeadershipLost {
    lease: String,
}

impl Leadership {
    /// Creates a candidate; `client` is used for Leases only and does not repeat requests by itself.
    pub fn new(
        options: ElectionOptions,
        grace: Duration,
        client: Client,
        metrics: ElectionMetrics,
        health: &Health,
    ) -> Self {
        let (limit, lease) = (options.lease_duration + RENEWAL_GRACE, options.name.clone());
        let elector = Elector::new(client, options).counted_in(metrics);
        let heartbeat = elector.heartbeat();
        health.ask("leaderElection", Probe::Liveness, move || {
            let age = heartbeat.age().filter(|age| *age > limit)?;
            Some(format!("this process leads and has not renewed its lease for {} s", age.as_secs()))
        });
        Self { elector, lease, grace }
    }

    /// Waits for the Lease, then works while it is held; each write of the work asks the fence.
    ///
    /// # Errors
    /// The lease was lost.
    pub async fn lead<Work>(
        self,
        stop: CancellationToken,
        work: impl FnOnce(CancellationToken, Fence) -> Work,
    ) -> Result<(), LeadershipLost>
    where
        Work: Future<Output = ()>,
    {
        let fence = self.elector.fence();
        match self.elector.lead(stop, self.grace, |leading| work(leading, fence)).await {
            Ended::Stopped | Ended::WorkEnded => Ok(()),
            Ended::Lost => Err(LeadershipLost { lease: self.lease }),
        }
    }
}

/// Returns the election options of the flags, with the record that the candidate will publish.
pub fn options(
    arguments: &LeaderElectionArgs,
    record: LeaderRecord,
    cloud: Arc<dyn Cloud>,
) -> ElectionOptions {
    let identity = record.identity.clone();
    let current = move || LeaderRecord { missing: cloud.missing_parts(), ..record.clone() }.annotations();
    ElectionOptions {
        annotations: LeaseAnnotations::new(current),
        component: EVENT_SOURCE,
        namespace: arguments.lease.leader_elect_resource_namespace.clone(),
        name: arguments.lease.leader_elect_resource_name.clone(),
        identity,
        lease_duration: arguments.leader_elect_lease_duration,
        renew_deadline: arguments.leader_elect_renew_deadline,
        retry_period: arguments.leader_elect_retry_period,
    }
}

/// Returns the name of the host with a unique suffix.
pub(crate) fn identity() -> String {
    let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}_{}", hostname.trim(), uuid::Uuid::new_v4())
}

/// The annotation of the Lease.
const ANNOTATION: &str = "cloud-controller-manager.openstack.org/leader";

/// What a leader publishes about itself. A later holder of another program leaves the annotation there, so it counts only
/// with the identity in the Lease itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaderRecord {
    /// `spec.holderIdentity` of the Lease while this leader holds it.
    pub identity: String,
    /// Version of the program, with the commit where it is known.
    pub version: String,
    /// Canonical names of the controllers that it runs.
    #[serde(default)]
    pub controllers: Vec<String>,
    /// `--cluster-name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// `--load-balancer-class`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Region of the cloud in which it works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Optional parts of the cloud's API that the cloud turned out to lack.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

impl LeaderRecord {
    pub fn of_this_process(
        controllers: Vec<String>,
        cluster: &str,
        class: Option<String>,
        region: Option<String>,
    ) -> Self {
        let version = version().to_owned();
        Self {
            identity: identity(),
            version,
            controllers,
            cluster: Some(cluster.to_owned()),
            class,
            region,
            missing: Vec::new(),
        }
    }

    /// Returns the record as annotations of the Lease.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        // Serializing texts cannot fail.
        let text = serde_json::to_string(self).unwrap_or_default();
        BTreeMap::from([(ANNOTATION.to_owned(), text)])
    }

    /// Reads the record from the annotations of a Lease, if the holder wrote it.
    pub fn of_holder(annotations: &BTreeMap<String, String>, holder: &str) -> Option<Self> {
        let record: Self = serde_json::from_str(annotations.get(ANNOTATION)?).ok()?;
        (record.identity == holder).then_some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_of_an_earlier_holder_does_not_count() {
        let record = LeaderRecord {
            identity: "cp-1_a".to_owned(),
            version: "0.1.0".to_owned(),
            controllers: vec!["service-lb-controller".to_owned()],
            cluster: Some("c1".to_owned()),
            class: None,
            region: None,
            missing: vec!["Status tree".to_owned()],
        };
        assert_eq!(LeaderRecord::of_holder(&record.annotations(), "cp-1_a"), Some(record.clone()));
        assert_eq!(LeaderRecord::of_holder(&record.annotations(), "occm_b"), None);
        assert_eq!(LeaderRecord::of_holder(&BTreeMap::new(), "cp-1_a"), None);
    }
}
