//! The check for load balancers whose Service is gone.
//!
//! A request to create a load balancer can outlive the process that sent it, and the Service as well. Its load balancer then serves
//! no Service and is deleted with none. It is reported and never deleted: a copy of the cluster's data, restored elsewhere, has
//! the same identity, and the load balancers of one copy look like orphans to the other.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::provider::OrphanCandidate;
use openstack_ccm_runtime::metrics;

use super::context::ServiceSync;
use super::intent::uid;

/// Delay before an orphan that is seen for the first time is checked again.
const CONFIRMATION_DELAY: Duration = Duration::from_secs(300);
/// Event reason: a load balancer with the name of this Service was created for an earlier Service.
const WITHOUT_SERVICE: &str = "LoadBalancerWithoutService";

/// Checks for orphans every `interval` for ever, first after one `interval`.
pub(super) async fn report_orphans(
    sync: Arc<ServiceSync>,
    listed: impl Future<Output = ()>,
    interval: Duration,
) {
    listed.await;
    let mut orphans = Orphans::default();
    let mut pause = interval;
    loop {
        tokio::time::sleep(pause).await;
        let again = pause == interval;
        let unconfirmed = orphans.check(&sync, again).await;
        pause = if unconfirmed { CONFIRMATION_DELAY.min(interval) } else { interval };
    }
}

/// The findings of earlier checks.
#[derive(Debug, Default)]
struct Orphans {
    /// Ids of the orphans in the last check.
    seen: BTreeSet<String>,
    /// Ids of the orphans that were reported and still exist.
    reported: BTreeSet<String>,
}

impl Orphans {
    /// Runs one check; with `again`, it repeats the Events of orphans that were reported before. Returns whether the next check has to
    /// confirm an orphan.
    async fn check(&mut self, sync: &ServiceSync, again: bool) -> bool {
        // The cloud first: later load balancers are not listed, and the Services of listed ones are in the cache.
        let candidates = match sync.provider.orphan_candidates().await {
            Ok(candidates) => candidates,
            Err(failure) => {
                tracing::warn!(error = %failure, "could not check for orphaned load balancers");
                return false;
            }
        };
        let (retained, candidates): (Vec<_>, Vec<_>) =
            candidates.into_iter().partition(|candidate| candidate.is_retained);
        sync.metrics.set_retained(retained.iter().filter_map(|one| one.service.as_ref()));
        let there = sync.cache.uids();
        let lacks_service = |candidate: &OrphanCandidate| {
            candidate.service_uids.iter().all(|uid| !there.contains(uid.as_str()))
        };
        let mut without_service = Vec::new();
        for candidate in candidates.into_iter().filter(lacks_service) {
            if self.is_confirmed(sync, &candidate).await {
                without_service.push(candidate);
            }
        }
        let news = self.note(&without_service);
        metrics::set(&sync.metrics.orphans, self.reported.len());
        for orphan in without_service.iter().filter(|orphan| self.reported.contains(&orphan.id)) {
            let is_news = news.contains(&orphan.id);
            if is_news {
                log(sync, orphan);
            }
            if is_news || again {
                warn_namesake(sync, orphan);
            }
        }
        without_service.iter().any(|orphan| !self.reported.contains(&orphan.id))
    }

    /// Asks the API server about an orphan that is not reported yet: a cache that lacks its Service is not proof enough.
    async fn is_confirmed(&self, sync: &ServiceSync, candidate: &OrphanCandidate) -> bool {
        let Some(key) = candidate.service.as_ref().filter(|_| !self.reported.contains(&candidate.id)) else {
            return true;
        };
        match sync.writer.get(key).await {
            Ok(live) => live.is_none_or(|live| !candidate.service_uids.contains(uid(&live))),
            Err(error) => {
                let error = error.message();
                tracing::warn!(service = %key, error, "could not check whether the service still exists");
                false
            }
        }
    }

    /// Notes the orphans of a check. Returns those that the previous check saw, too, and that are not reported yet.
    fn note(&mut self, now: &[OrphanCandidate]) -> BTreeSet<String> {
        let now: BTreeSet<String> = now.iter().map(|orphan| orphan.id.clone()).collect();
        let confirmed: BTreeSet<String> = now.intersection(&self.seen).cloned().collect();
        let news = confirmed.difference(&self.reported).cloned().collect();
        self.reported = confirmed;
        self.seen = now;
        news
    }
}

fn uids(orphan: &OrphanCandidate) -> String {
    orphan.service_uids.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn log(sync: &ServiceSync, orphan: &OrphanCandidate) {
    let OrphanCandidate { id, name, .. } = orphan;
    let delete = sync.names.delete_command;
    tracing::warn!(
        load_balancer = %id,
        name,
        service_uids = uids(orphan),
        "orphaned load balancer: its service no longer exists; if no other cluster with the same data uses the load balancer, delete it: \
         {delete} {id}"
    );
}

/// Writes an Event for a Service that has the name of the one that is gone, if there is one.
fn warn_namesake(sync: &ServiceSync, orphan: &OrphanCandidate) {
    let OrphanCandidate { id, name, service, .. } = orphan;
    let (uids, delete) = (uids(orphan), sync.names.delete_command);
    let Some(key) = service else { return };
    let Some(namesake) = sync.cache.get(key) else { return };
    let message = format!(
        "load balancer {name} ({id}) is orphaned: it was created for an earlier Service of this name (uid {uids}); if no other cluster \
         with the same data uses the load balancer, delete it: {delete} {id}"
    );
    sync.record_event(key, uid(&namesake), Notice::warning(WITHOUT_SERVICE, message));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(ids: &str) -> Vec<OrphanCandidate> {
        let one = |id: &str| OrphanCandidate {
            id: id.to_owned(),
            name: "kube_service_c1_default_web".to_owned(),
            service_uids: BTreeSet::from(["gone".to_owned()]),
            is_retained: false,
            service: None,
        };
        ids.split_whitespace().map(one).collect()
    }

    #[test]
    fn what_two_checks_saw_is_news_once_and_again_when_it_came_back() {
        let mut orphans = Orphans::default();
        let mut check = |now: &str| {
            let news: Vec<String> = orphans.note(&candidates(now)).into_iter().collect();
            (news.join(" "), orphans.reported.len())
        };
        assert_eq!(check("a"), (String::new(), 0), "it may be gone in a moment");
        assert_eq!(check("a b"), ("a".to_owned(), 1));
        assert_eq!(check("a b"), ("b".to_owned(), 2));
        assert_eq!(check("a b"), (String::new(), 2));
        assert_eq!(check("b"), (String::new(), 1));
        assert_eq!(check(""), (String::new(), 0));
        assert_eq!(check("a"), (String::new(), 0));
        assert_eq!(check("a"), ("a".to_owned(), 1));
    }
}
