//! Whether anybody else has changed a load balancer before members are sent to it without a reading.
//!
//! Afterwards its `updated_at` tells of the batch, and would cover up what others changed before.

use std::sync::Arc;
use std::time::Duration;

use openstack_ccm_openstack_api::error::ApiError;
use openstack_ccm_openstack_api::octavia::LoadBalancerFilter;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::{Observation, Observer, Observing};
use crate::load_balancer::list_length::{Askers, ListLength};
use crate::load_balancer::poller::LastChanges;

/// Nobody waits longer for others, nor for an answer: what is about to be sent is right without it. A list of a thousand load balancers
/// may take Octavia seconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// Lists once for those that ask at about the same time, unless the list is too long for them.
#[derive(Debug)]
pub(super) struct OtherChanges {
    askers: Askers,
    /// Held while somebody lists: when the last list ended that nobody got.
    failed: Mutex<Option<Instant>>,
}

impl OtherChanges {
    /// In a project with so many load balancers.
    pub(super) fn new(load_balancers: Arc<ListLength>) -> Self {
        Self { askers: Askers::of(load_balancers), failed: Mutex::default() }
    }
}

impl Observing<'_> {
    /// Looks whether the load balancer is as it was when it agreed with the Service; where it is not, or where that cannot be told, no
    /// digest will stand for it before it is read. What is about to be sent is right either way, so a failed look holds nothing up.
    pub(crate) async fn look_for_other_changes(&self, observation: &mut Observation) {
        let Some(id) = observation.id_if_not_changed_by_others() else { return };
        let seen = self.observer.last_change(&id).await;
        observation.was_changed_at(seen.as_deref());
    }
}

impl Observer {
    /// `updated_at` of a load balancer. `None` where there is none of this id in the project of the credentials, or it shows none, or
    /// nobody knows.
    async fn last_change(&self, id: &str) -> Option<String> {
        let asked = Instant::now();
        let askers = &self.other_changes.askers;
        let _asker = askers.join();
        if let Some(known) = self.watchlist.last_change(id, asked) {
            return known;
        }
        if askers.are_too_few_in_a_moment().await {
            return self.last_change_of_one(id).await;
        }
        let mut failed = timeout(PATIENCE, self.other_changes.failed.lock()).await.ok()?;
        if let Some(known) = self.watchlist.last_change(id, asked) {
            return known;
        }
        // The next one would hardly fare better, and hold up those that wait behind it.
        if failed.is_some_and(|ended| ended >= asked) {
            return None;
        }
        let asked = Instant::now();
        let filter = LoadBalancerFilter::of_project(self.openstack.project_id.clone());
        let list = self.openstack.octavia.list_load_balancers_into(&filter, LastChanges::default());
        match in_time(list).await {
            Some(listed) => self.watchlist.note_last_changes(listed, asked),
            None => *failed = Some(Instant::now()),
        }
        self.watchlist.last_change(id, asked).flatten()
    }

    async fn last_change_of_one(&self, id: &str) -> Option<String> {
        let project_id = self.openstack.project_id.clone();
        let filter = LoadBalancerFilter { project_id, ..LoadBalancerFilter::id(id) };
        let listed = in_time(self.openstack.octavia.list_load_balancers(&filter)).await?;
        listed.into_iter().find_map(|one| one.updated_at)
    }
}

/// The answer, unless it fails or is long in coming.
async fn in_time<T>(answer: impl Future<Output = Result<T, ApiError>>) -> Option<T> {
    const UNKNOWN: &str = "nobody knows whether somebody else has changed the load balancer";
    match timeout(PATIENCE, answer).await {
        Ok(Ok(listed)) => return Some(listed),
        Ok(Err(error)) => tracing::debug!(%error, "{UNKNOWN}"),
        Err(elapsed) => tracing::debug!(error = %elapsed, "{UNKNOWN}"),
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex as StdMutex;

    use futures::future::join_all;
    use openstack_ccm_core::cloud::ClusterIdentity;
    use openstack_ccm_openstack_api::OpenStack;
    use openstack_ccm_openstack_api::client::{Client, ClientSettings, RetryPolicy};
    use openstack_ccm_openstack_api::transport::{FnTransport, Response};
    use rstest::rstest;

    use super::*;
    use crate::load_balancer::poller::Watchlist;

    /// After how long Octavia answers, and with which status; and what it was asked.
    #[derive(Clone)]
    struct SlowOctavia {
        answer: Arc<StdMutex<(u64, u16)>>,
        calls: Arc<StdMutex<Vec<String>>>,
    }

    impl SlowOctavia {
        fn new(seconds: u64, status: u16) -> Self {
            Self { answer: Arc::new(StdMutex::new((seconds, status))), calls: Arc::default() }
        }

        fn observer(&self) -> Observer {
            let octavia = self.clone();
            let transport = FnTransport::new(move |request| {
                octavia.calls.lock().unwrap().push(request.path_and_query());
                let (seconds, status) = *octavia.answer.lock().unwrap();
                let list = r#"{"loadbalancers":[{"id":"lb","provisioning_status":"ACTIVE",
                    "operating_status":"ONLINE","updated_at":"today"}]}"#;
                let mut answer = http::Response::new(bytes::Bytes::from_static(list.as_bytes()));
                *answer.status_mut() = http::StatusCode::from_u16(status).unwrap();
                async move {
                    tokio::time::sleep(Duration::from_secs(seconds)).await;
                    Ok(Response::from(answer))
                }
            });
            let settings = ClientSettings { retry: RetryPolicy::never(), ..ClientSettings::default() };
            let openstack = OpenStack::new(Client::new(Arc::new(transport), settings));
            let cluster = ClusterIdentity { name: "kubernetes".to_owned(), uid: "uid".to_owned() };
            Observer::new(openstack, cluster, Watchlist::default(), false)
        }

        fn calls(&self) -> usize {
            self.calls.lock().unwrap().len()
        }
    }

    #[rstest]
    #[case::it_fails(3, 500, 3)]
    #[case::it_hangs(60, 200, 20)]
    #[tokio::test(start_paused = true)]
    async fn a_list_that_nobody_gets_holds_up_each_only_once(
        #[case] seconds: u64,
        #[case] status: u16,
        #[case] held_up: u64,
    ) {
        let octavia = SlowOctavia::new(seconds, status);
        let observer = octavia.observer();
        let start = Instant::now();
        let ask = async |after| {
            tokio::time::sleep(Duration::from_millis(after)).await;
            observer.last_change("lb").await
        };
        let seen = join_all((0..32).map(|number| ask(number * 50))).await;
        assert_eq!(seen, vec![None; 32]);
        assert_eq!((octavia.calls(), start.elapsed().as_secs()), (1, held_up));
        *octavia.answer.lock().unwrap() = (1, 200);
        assert_eq!(ask(1).await.as_deref(), Some("today"), "it is asked again later");
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_alone_is_not_held_up_for_long_either() {
        let octavia = SlowOctavia::new(60, 200);
        let observer = octavia.observer();
        observer.watchlist.list_length().note(5000);
        let start = Instant::now();
        assert_eq!(observer.last_change("lb").await, None);
        assert_eq!(start.elapsed(), PATIENCE);
        assert!(octavia.calls.lock().unwrap()[0].contains("id=lb"));
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_ask_at_about_the_same_time_get_one_list() {
        let octavia = SlowOctavia::new(1, 200);
        let observer = octavia.observer();
        let seen = join_all((0..32).map(|_| observer.last_change("lb"))).await;
        assert!(seen.iter().all(|seen| seen.as_deref() == Some("today")));
        assert_eq!(octavia.calls(), 1);
    }
}
