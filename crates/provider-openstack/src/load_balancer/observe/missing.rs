//! Whether load balancers that cannot be found are really gone.
//!
//! The credentials of another project or region show none of them, and all of them serve. So a load balancer that was made
//! for a Service is only recreated where something shows that this is the place where it was, and where most others are
//! still there.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use openstack_ccm_core::cloud::ClusterIdentity;
use openstack_ccm_core::failure::{Failure, Hold};
use openstack_ccm_core::provider::Neighbours;
use openstack_ccm_core::service::Service;
use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_api::error::ApiError;
use openstack_ccm_openstack_api::octavia::LoadBalancerFilter;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::load_balancer::annotations::LOAD_BALANCER_ID;
use crate::load_balancer::failure;
use crate::load_balancer::names;
use crate::load_balancer::outputs;

/// For so long one count stands for all Services that ask.
const GOOD_FOR: Duration = Duration::from_secs(20);

/// What a list of all load balancers shows of those that Services name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// Load balancers that were made for Services and are named by them.
    pub(crate) named: usize,
    /// Those of them that the list lacks.
    pub(crate) missing: usize,
    /// Whether the list has any load balancer of this cluster, or this process has found one before.
    pub(crate) any_of_cluster: bool,
}

/// What the absence of a load balancer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absence {
    /// It is gone: others of this cluster are there.
    Gone,
    /// Most are missing: this may be another project or region.
    Most,
    /// It is the only one that could tell.
    Unproven,
}

impl Count {
    /// Counts, of what Services name, what is listed.
    fn of(named: &HashSet<String>, listed: &HashSet<String>, any_of_cluster: bool) -> Self {
        let missing = named.iter().filter(|id| !listed.contains(*id)).count();
        Self { named: named.len(), missing, any_of_cluster: any_of_cluster || missing < named.len() }
    }

    /// What it means that one of the named is missing.
    pub(crate) fn absence(self) -> Absence {
        let Self { named, missing, any_of_cluster } = self;
        if missing >= 2 && missing.saturating_mul(2) > named {
            Absence::Most
        } else if any_of_cluster {
            Absence::Gone
        } else {
            Absence::Unproven
        }
    }

    /// Whether a load balancer may be created for a Service that never had one.
    fn allows_more(self) -> bool {
        self.missing == 0 || self.absence() == Absence::Gone
    }
}

/// The judge of absences.
pub(crate) struct MissingLoadBalancers {
    openstack: OpenStack,
    cluster: ClusterIdentity,
    neighbours: OnceLock<Arc<dyn Neighbours>>,
    last: Mutex<Option<(Instant, Count)>>,
    /// Whether this process has found a load balancer by the id that a Service names, so that its credentials are right.
    found_one: AtomicBool,
    /// Whether the last count did not allow to create any.
    in_doubt: AtomicBool,
}

impl MissingLoadBalancers {
    pub(crate) fn new(openstack: OpenStack, cluster: ClusterIdentity) -> Self {
        Self {
            openstack,
            cluster,
            neighbours: OnceLock::new(),
            last: Mutex::default(),
            found_one: AtomicBool::new(false),
            in_doubt: AtomicBool::new(false),
        }
    }

    /// Notes who knows all Services. The first one stays.
    pub(crate) fn meet(&self, neighbours: Arc<dyn Neighbours>) {
        drop(self.neighbours.set(neighbours));
    }

    /// Notes that a load balancer was found by the id that a Service names.
    pub(crate) fn found(&self) {
        self.found_one.store(true, Ordering::Relaxed);
    }

    /// Whether a load balancer may be created for a Service that never had one.
    ///
    /// # Errors
    /// Any failed call; the reason why none is created.
    pub(crate) async fn allow_first(&self) -> Result<(), Failure> {
        if self.found_one.load(Ordering::Relaxed) && !self.in_doubt.load(Ordering::Relaxed) {
            return Ok(());
        }
        let count = self.count(None).await?;
        if count.allows_more() { Ok(()) } else { Err(held(count)) }
    }

    /// What it means that the Service's load balancer cannot be found.
    ///
    /// # Errors
    /// Any failed call.
    pub(crate) async fn absence(&self, service: &Service) -> Result<(Absence, Count), Failure> {
        let count = self.count(Some(service)).await?;
        Ok((count.absence(), count))
    }

    /// Ids of the load balancers that Services name, and this one among them.
    fn named(&self, service: Option<&Service>) -> HashSet<String> {
        let served = self.neighbours.get().map(|neighbours| neighbours.served()).unwrap_or_default();
        // The watch may not have what was written a moment ago.
        let others = served.iter().filter(|other| service.is_none_or(|service| other.key != service.key));
        named(others.chain(service))
    }

    /// One count at a time: many ask at once, and each looks at all Services.
    async fn count(&self, service: Option<&Service>) -> Result<Count, Failure> {
        let mut last = self.last.lock().await;
        if let Some((_, count)) = last.filter(|(counted, _)| counted.elapsed() < GOOD_FOR) {
            return Ok(count);
        }
        let named = self.named(service);
        if named.is_empty() && service.is_none() {
            return Ok(Count::default());
        }
        let count = self.list(&named).await.map_err(|error| {
            failure::of_call(&error, "listing the load balancers", failure::Missing::Race)
        })?;
        let here = self.found_one.load(Ordering::Relaxed);
        let count = Count { any_of_cluster: count.any_of_cluster || here, ..count };
        *last = Some((Instant::now(), count));
        let doubted = count.missing > 0 && !count.allows_more();
        if doubted && !self.in_doubt.swap(doubted, Ordering::Relaxed) {
            tracing::error!(
                named = count.named,
                missing = count.missing,
                "load balancers that services name cannot be found: this may be another project or region than before, \
                 so none is created; check project, region and log-in of cloud.conf"
            );
        }
        self.in_doubt.store(doubted, Ordering::Relaxed);
        Ok(count)
    }

    async fn list(&self, named: &HashSet<String>) -> Result<Count, ApiError> {
        let all = self.openstack.octavia.list_load_balancers(&LoadBalancerFilter::default()).await?;
        let uid = &self.cluster.uid;
        let of_cluster = all.iter().any(|one| names::cluster_uids(&one.tags).any(|other| other == uid));
        let listed = all.into_iter().map(|one| one.id).collect();
        Ok(Count::of(named, &listed, of_cluster))
    }
}

/// The load balancers that were made for these Services, by the ids that the Services name.
fn named<'a>(services: impl Iterator<Item = &'a Service>) -> HashSet<String> {
    let own = services.filter(|service| outputs::is_own_output(service));
    own.filter_map(|service| service.annotations.get(LOAD_BALANCER_ID.key).cloned()).collect()
}

/// The reason why none is created.
pub(crate) fn held(count: Count) -> Failure {
    let who = match count.absence() {
        Absence::Most => "most of the load balancers that Services name cannot be found",
        Absence::Unproven | Absence::Gone => {
            "the only load balancer that a Service names cannot be found, and nothing shows that this is the project \
             and region where it was"
        }
    };
    Failure::held(
        Hold::LoadBalancerMissing,
        format!(
            "{who}: none is created, and ids and statuses stay; check project, region and log-in of cloud.conf; if they \
             are really gone, remove the annotation {} from the Service, or set recreate-missing=true in [LoadBalancer] \
             of cloud.conf for all",
            LOAD_BALANCER_ID.key
        ),
    )
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::one_of_many("a b c d", "a b c", false, Absence::Gone)]
    #[case::half_of_two("a b", "a", false, Absence::Gone)]
    #[case::half_of_four("a b c d", "a b", false, Absence::Gone)]
    #[case::more_than_half("a b c", "a", false, Absence::Most)]
    #[case::all_of_two("a b", "", false, Absence::Most)]
    #[case::most_though_others_of_the_cluster_are_there("a b c", "a x", true, Absence::Most)]
    #[case::the_only_one("a", "", false, Absence::Unproven)]
    #[case::the_only_one_beside_strangers("a", "x y", false, Absence::Unproven)]
    #[case::the_only_one_beside_others_of_the_cluster("a", "x", true, Absence::Gone)]
    fn an_absence_is_judged_by_what_is_there(
        #[case] named: &str,
        #[case] listed: &str,
        #[case] any_of_cluster: bool,
        #[case] expected: Absence,
    ) {
        let ids = |text: &str| text.split_whitespace().map(str::to_owned).collect::<HashSet<_>>();
        assert_eq!(Count::of(&ids(named), &ids(listed), any_of_cluster).absence(), expected);
    }

    #[rstest]
    #[case::nothing_is_named("", "", true)]
    #[case::all_are_there("a b", "a b", true)]
    #[case::one_is_missing("a b c", "a b", true)]
    #[case::most_are_missing("a b c", "a", false)]
    #[case::the_only_one_is_missing("a", "", false)]
    fn a_new_service_waits_where_it_may_be_the_wrong_place(
        #[case] named: &str,
        #[case] listed: &str,
        #[case] expected: bool,
    ) {
        let ids = |text: &str| text.split_whitespace().map(str::to_owned).collect::<HashSet<_>>();
        assert_eq!(Count::of(&ids(named), &ids(listed), false).allows_more(), expected);
    }
}
