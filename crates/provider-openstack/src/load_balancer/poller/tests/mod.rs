use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;
use std::time::Duration;

use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_openstack_api::client::{Client, ClientSettings, RetryPolicy};
use openstack_ccm_openstack_api::transport::{FnTransport, Response};
use tokio::task::JoinHandle;

use super::poller_list::{Namesakes, PollerList};
use super::*;

mod single_requests;
mod steps_without_look;

/// An Octavia that only lists, and remembers when and how it was asked.
#[derive(Clone, Default)]
struct FakeOctavia {
    state: Arc<Mutex<FakeState>>,
}

#[derive(Default)]
struct FakeState {
    statuses: BTreeMap<String, &'static str>,
    /// Which questions it refuses, and how.
    refused: Option<(&'static str, u16)>,
    /// Which questions it answers late, and after how long.
    slow: Option<(&'static str, Duration)>,
    asked: Vec<(Duration, String)>,
}

impl FakeOctavia {
    fn set(&self, id: &str, status: &'static str) {
        self.state.lock().unwrap().statuses.insert(id.to_owned(), status);
    }

    /// Refuses questions that contain this.
    fn refuse(&self, question: &'static str, status: u16) {
        self.state.lock().unwrap().refused = Some((question, status));
    }

    fn refuse_nothing(&self) {
        self.state.lock().unwrap().refused = None;
    }

    fn is_slow(&self, question: &'static str, seconds: u64) {
        self.state.lock().unwrap().slow = Some((question, Duration::from_secs(seconds)));
    }

    /// Seconds at which it was asked since `start`.
    fn asked(&self) -> Vec<(u64, String)> {
        let state = self.state.lock().unwrap();
        state.asked.iter().map(|(at, query)| (at.as_secs(), query.clone())).collect()
    }

    fn client(&self) -> Client {
        let (state, start) = (Arc::clone(&self.state), Instant::now());
        let transport = FnTransport::new(move |request| {
            let mut state = state.lock().unwrap();
            let query = request.path_and_query();
            state.asked.push((start.elapsed(), query.trim_start_matches("/v2.0/lbaas/").to_owned()));
            let by_id = query.strip_prefix("/v2.0/lbaas/loadbalancers?id=");
            let list: Vec<String> = state
                .statuses
                .iter()
                .filter(|(id, _)| by_id.is_none_or(|by_id| by_id == *id))
                .map(|(id, status)| {
                    format!(r#"{{"id":"{id}","project_id":"project","provisioning_status":"{status}","operating_status":"ONLINE"}}"#)
                })
                .collect();
            let body = format!(r#"{{"loadbalancers":[{}]}}"#, list.join(","));
            let mut answer = http::Response::new(bytes::Bytes::from(body));
            if let Some((_, status)) = state.refused.filter(|(question, _)| query.contains(question)) {
                *answer.status_mut() = http::StatusCode::from_u16(status).unwrap();
            }
            let slow = state.slow.filter(|(question, _)| query.contains(question));
            let delay = slow.map_or(Duration::ZERO, |(_, delay)| delay);
            async move {
                tokio::time::sleep(delay).await;
                Ok(Response::from(answer))
            }
        });
        let settings = ClientSettings { retry: RetryPolicy::never(), ..ClientSettings::default() };
        Client::new(Arc::new(transport), settings)
    }
}

#[derive(Default)]
struct Woken(Mutex<Vec<String>>);

impl EndObserver for Woken {
    fn ended(&self, key: &ServiceKey, _: bool) {
        self.0.lock().unwrap().push(key.to_string());
    }
}

struct Rig {
    octavia: FakeOctavia,
    watchlist: Watchlist,
    woken: Arc<Woken>,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

fn rig() -> Rig {
    let (octavia, watchlist, woken) =
        (FakeOctavia::default(), Watchlist::default(), Arc::new(Woken::default()));
    let observer: Arc<dyn EndObserver> = Arc::clone(&woken) as _;
    let api = Octavia::new(octavia.client());
    let poller = Poller::new(api, watchlist.clone(), observer);
    let shutdown = CancellationToken::new();
    let task = tokio::spawn(poller.run(shutdown.clone()));
    Rig { octavia, watchlist, woken, shutdown, task }
}

impl Rig {
    fn watch(&self, id: &str, service: &str) {
        self.watchlist.watch(awaited(id, Some("project")), &ServiceKey::new("default", service));
    }

    fn woken(&self) -> Vec<String> {
        std::mem::take(&mut *self.woken.0.lock().unwrap())
    }
}

fn awaited<'a>(id: &'a str, project_id: Option<&'a str>) -> Awaited<'a> {
    Awaited { id, project_id, name: None, operation: None, afterwards: Afterwards::Look }
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_while_nothing_is_pending() {
    let rig = rig();
    pass(3600).await;
    assert_eq!(rig.octavia.asked(), []);
}

#[tokio::test(start_paused = true)]
async fn every_service_of_a_finished_load_balancer_is_woken_once() {
    let rig = rig();
    rig.octavia.set("lb", "PENDING_UPDATE");
    rig.watch("lb", "web");
    rig.watch("lb", "web2");
    pass(10).await;
    assert_eq!(rig.woken(), [""; 0]);
    rig.octavia.set("lb", "ACTIVE");
    pass(10).await;
    assert_eq!(rig.woken(), ["default/web", "default/web2"]);
    let calls = rig.octavia.asked().len();
    pass(3600).await;
    assert_eq!((rig.woken().len(), rig.octavia.asked().len()), (0, calls), "it goes on for nothing");
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_is_gone_or_failed_wakes_too() {
    let rig = rig();
    rig.octavia.set("failed", "ERROR");
    rig.watch("gone", "web");
    rig.watch("failed", "web2");
    pass(2).await;
    assert_eq!(rig.woken(), ["default/web2", "default/web"]);
}

#[tokio::test(start_paused = true)]
async fn one_call_serves_all_and_slows_down_gently() {
    let rig = rig();
    for number in 0..50 {
        let id = format!("lb-{number}");
        rig.octavia.set(&id, "PENDING_CREATE");
        rig.watch(&id, &id);
    }
    pass(20).await;
    let asked = rig.octavia.asked();
    assert!(asked.iter().all(|(_, query)| query == "loadbalancers?project_id=project"), "{asked:?}");
    let seconds: Vec<u64> = asked.iter().map(|(at, _)| *at).collect();
    assert_eq!(seconds, [1, 2, 3, 5, 7, 9, 12, 15, 18]);
}

#[tokio::test(start_paused = true)]
async fn a_stuck_load_balancer_does_not_delay_another() {
    let rig = rig();
    rig.octavia.set("stuck", "PENDING_UPDATE");
    rig.watch("stuck", "stuck");
    pass(3600).await;
    rig.octavia.set("quick", "ACTIVE");
    rig.watch("quick", "quick");
    pass(2).await;
    assert_eq!(rig.woken(), ["default/quick"]);
}

#[tokio::test(start_paused = true)]
async fn an_octavia_that_fails_is_asked_less_and_less_and_then_again() {
    let rig = rig();
    rig.octavia.refuse("", 500);
    rig.octavia.set("lb", "ACTIVE");
    rig.watch("lb", "web");
    pass(65).await;
    let seconds: Vec<u64> = rig.octavia.asked().iter().map(|(at, _)| *at).collect();
    assert_eq!(seconds, [1, 3, 7, 15, 31, 61]);
    rig.octavia.refuse_nothing();
    pass(30).await;
    assert_eq!(rig.woken(), ["default/web"]);
}

const ALONE: WatchCounts = WatchCounts { watched: 1, waiting: 1 };

fn empty_list_of(id: &str) -> PollerList {
    PollerList::new([id.to_owned()].into(), HashSet::new(), Namesakes::Unknown)
}

#[tokio::test(start_paused = true)]
async fn an_answer_from_before_the_registration_wakes_nobody() {
    let watchlist = Watchlist::default();
    let asked = Instant::now();
    watchlist.watch(awaited("lb", None), &ServiceKey::new("default", "web"));
    assert!(watchlist.finished(empty_list_of("lb"), asked, ALONE).is_empty());
    pass(1).await;
    assert!(
        watchlist.finished(empty_list_of("another"), Instant::now(), ALONE).is_empty(),
        "it tells of another one"
    );
    assert_eq!(watchlist.finished(empty_list_of("lb"), Instant::now(), ALONE).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_that_is_made_is_asked_for_by_its_name_so_that_its_namesakes_show() {
    let rig = rig();
    rig.octavia.set("lb", "ACTIVE");
    rig.octavia.set("another", "ACTIVE");
    let made =
        Awaited { name: Some(""), operation: Some(Operation::Creation), ..awaited("lb", Some("project")) };
    rig.watchlist.watch(made, &ServiceKey::new("default", "web"));
    pass(4).await;
    assert_eq!(rig.octavia.asked(), [(3, "loadbalancers?name=&project_id=project".to_owned())]);
    let end = rig.watchlist.take_end("lb").expect("it ended");
    assert_eq!(end.load_balancer.map(|one| one.id).as_deref(), Some("lb"));
    let namesakes = end.namesakes.expect("they show");
    assert_eq!(namesakes.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["another"]);
}

#[tokio::test(start_paused = true)]
async fn only_what_was_begun_for_a_service_is_its_own_work() {
    let rig = rig();
    let (web, other) = (ServiceKey::new("default", "web"), ServiceKey::new("default", "other"));
    rig.octavia.set("lb", "PENDING_UPDATE");
    rig.octavia.set("foreign", "PENDING_UPDATE");
    let begun = Awaited { operation: Some(Operation::Listener), ..awaited("lb", Some("project")) };
    rig.watchlist.watch(begun, &web);
    rig.watchlist.watch(awaited("foreign", Some("project")), &web);
    pass(5).await;
    assert_eq!(rig.watchlist.own_work("lb", &web).map(|time| time.as_secs()), Some(5));
    assert_eq!(rig.watchlist.own_work("lb", &other), None);
    assert_eq!(rig.watchlist.own_work("foreign", &web), None, "nobody knows since when it goes on");
    rig.octavia.set("lb", "ACTIVE");
    pass(5).await;
    assert_eq!(rig.watchlist.own_work("lb", &web), None, "its end was seen");
}

#[tokio::test(start_paused = true)]
async fn it_ends_at_shutdown() {
    let rig = rig();
    rig.octavia.set("lb", "PENDING_UPDATE");
    rig.watch("lb", "web");
    pass(5).await;
    rig.shutdown.cancel();
    rig.task.await.expect("it ends without a panic");
}
