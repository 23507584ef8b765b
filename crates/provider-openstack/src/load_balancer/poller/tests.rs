use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;
use std::time::Duration;

use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_openstack_api::client::{Client, ClientSettings, RetryPolicy};
use openstack_ccm_openstack_api::transport::{FnTransport, Response};
use tokio::task::JoinHandle;

use super::poller_list::{Namesakes, PollerList};
use super::*;

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
async fn few_of_very_many_are_asked_for_one_by_one() {
    let rig = rig();
    (0..200).for_each(|number| rig.octavia.set(&format!("lb-{number}"), "ACTIVE"));
    rig.watchlist.list_length().note(200);
    let key = |number| ServiceKey::new("default", format!("web-{number}"));
    let named = Awaited { name: Some(""), ..awaited("lb-1", Some("project")) };
    rig.watchlist.watch(named, &key(1));
    rig.watchlist.watch(awaited("lb-2", Some("project")), &key(2));
    rig.watchlist.watch(awaited("lb-3", None), &key(3));
    pass(2).await;
    let mut asked: Vec<_> = rig.octavia.asked().into_iter().map(|(_, query)| query).collect();
    asked.sort_unstable();
    let by_id = |id: &str| format!("loadbalancers?id={id}");
    assert_eq!(asked, [by_id("lb-2"), by_id("lb-3"), "loadbalancers?name=&project_id=project".to_owned()]);
    assert_eq!(rig.woken(), ["default/web-1", "default/web-2", "default/web-3"]);
    let namesakes = |id| rig.watchlist.take_end(id).expect("it ended").namesakes.map(|found| found.len());
    assert_eq!((namesakes("lb-1"), namesakes("lb-2")), (Some(199), None), "the list of its name shows them");
}

#[tokio::test(start_paused = true)]
async fn many_of_very_many_are_asked_for_with_one_list() {
    let rig = rig();
    rig.watchlist.list_length().note(200);
    (0..4).for_each(|number| rig.watch(&format!("lb-{number}"), "web"));
    pass(2).await;
    assert_eq!(rig.octavia.asked(), [(1, "loadbalancers?project_id=project".to_owned())]);
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

#[tokio::test(start_paused = true)]
async fn an_answer_from_before_the_registration_wakes_nobody() {
    let watchlist = Watchlist::default();
    let asked = Instant::now();
    watchlist.watch(awaited("lb", None), &ServiceKey::new("default", "web"));
    assert!(watchlist.finished(empty_list_of("lb"), asked).is_empty());
    pass(1).await;
    assert!(
        watchlist.finished(empty_list_of("another"), Instant::now()).is_empty(),
        "it tells of another one"
    );
    assert_eq!(watchlist.finished(empty_list_of("lb"), Instant::now()).len(), 1);
}

fn empty_list_of(id: &str) -> PollerList {
    PollerList::new([id.to_owned()].into(), HashSet::new(), Namesakes::Unknown)
}

/// So many load balancers are ACTIVE and watched, of very many.
fn few_of_very_many(count: usize) -> Rig {
    let rig = rig();
    rig.watchlist.list_length().note(5000);
    for id in (0..count).map(|number| format!("lb-{number}")) {
        rig.octavia.set(&id, "ACTIVE");
        rig.watch(&id, &id);
    }
    rig
}

#[tokio::test(start_paused = true)]
async fn a_request_that_fails_takes_nothing_from_the_others() {
    let rig = few_of_very_many(3);
    rig.octavia.refuse("id=lb-1", 500);
    pass(2).await;
    assert_eq!(rig.woken(), ["default/lb-0", "default/lb-2"]);
    let asked = rig.octavia.asked().len();
    pass(10).await;
    assert_eq!(rig.woken(), [""; 0], "nobody knows what became of it");
    let again = rig.octavia.asked().split_off(asked);
    assert_eq!(again.first(), Some(&(3, "loadbalancers?id=lb-1".to_owned())));
    rig.octavia.refuse_nothing();
    pass(4).await;
    assert_eq!(rig.woken(), ["default/lb-1"]);
    assert!(rig.watchlist.take_end("lb-1").is_some_and(|end| end.load_balancer.is_some()), "it is not gone");
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_are_followed_by_one_list() {
    let rig = few_of_very_many(20);
    rig.octavia.refuse("?id=", 429);
    pass(4).await;
    let asked = rig.octavia.asked();
    let (list, single) = asked.split_last().expect("it was asked");
    assert_eq!(*list, (3, "loadbalancers?project_id=project".to_owned()));
    assert_eq!(single.len(), AT_ONCE, "no more are sent once one is refused: {single:?}");
    assert_eq!(rig.woken().len(), 20);
    rig.watchlist.list_length().note(5000);
    rig.octavia.refuse_nothing();
    (0..2).for_each(|number| rig.watch(&format!("lb-{number}"), "web"));
    pass(2).await;
    let later = rig.octavia.asked().split_off(asked.len());
    assert!(later.iter().all(|(_, query)| query.contains("id=lb-")), "it was one list: {later:?}");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_is_followed_by_single_requests() {
    let rig = few_of_very_many(2);
    rig.octavia.refuse("", 503);
    pass(10).await;
    let list = |seconds| (seconds, "loadbalancers?project_id=project".to_owned());
    let single = |seconds, id: &str| (seconds, format!("loadbalancers?id={id}"));
    let expected = [single(1, "lb-0"), single(1, "lb-1"), list(3), single(7, "lb-0"), single(7, "lb-1")];
    assert_eq!(rig.octavia.asked(), expected);
    assert_eq!(rig.woken(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_the_answer_about_another_one() {
    let rig = few_of_very_many(3);
    rig.octavia.is_slow("id=lb-0", 20);
    pass(2).await;
    assert_eq!(rig.woken(), ["default/lb-1", "default/lb-2"]);
    pass(20).await;
    assert_eq!(rig.woken(), ["default/lb-0"]);
    assert!(rig.watchlist.take_end("lb-0").is_some(), "what comes late is no less good");
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

/// A pool is at work for so many seconds, and what follows then.
async fn pool_changes(rig: &Rig, afterwards: Afterwards, seconds: u64) {
    rig.octavia.set("lb", "PENDING_UPDATE");
    let begun = Awaited { operation: Some(Operation::Pool), afterwards, ..awaited("lb", Some("project")) };
    rig.watchlist.watch(begun, &ServiceKey::new("default", "web"));
    pass(seconds).await;
    rig.octavia.set("lb", "ACTIVE");
}

#[tokio::test(start_paused = true)]
async fn who_sends_another_step_is_woken_without_a_look_once_it_is_known_how_long_octavia_takes() {
    let rig = rig();
    pool_changes(&rig, Afterwards::Write, 3).await;
    pass(2).await;
    assert_eq!(rig.woken(), ["default/web"]);
    let looks = rig.octavia.asked().len();
    assert!(looks > 0, "nobody knew");
    pool_changes(&rig, Afterwards::Write, 3).await;
    assert!(!rig.watchlist.is_presumed_ended("lb") && rig.woken().is_empty());
    pass(2).await;
    assert_eq!((rig.woken(), rig.octavia.asked().len()), (vec!["default/web".to_owned()], looks));
    assert!(rig.watchlist.is_presumed_ended("lb"));
    assert_eq!(rig.watchlist.own_work("lb", &ServiceKey::new("default", "web")), None, "it goes on");
}

#[tokio::test(start_paused = true)]
async fn a_step_that_came_too_early_is_followed_by_looks() {
    let rig = rig();
    pool_changes(&rig, Afterwards::Write, 3).await;
    pass(2).await;
    pool_changes(&rig, Afterwards::Write, 3).await;
    rig.octavia.set("lb", "PENDING_UPDATE");
    pass(2).await;
    assert_eq!(rig.woken(), ["default/web", "default/web"]);
    let looks = rig.octavia.asked().len();
    // Octavia refuses the step.
    rig.watchlist.watch(awaited("lb", Some("project")), &ServiceKey::new("default", "web"));
    pass(5).await;
    assert!(rig.octavia.asked().len() > looks && rig.woken().is_empty());
    rig.octavia.set("lb", "ACTIVE");
    pass(3).await;
    assert_eq!(rig.woken(), ["default/web"]);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_is_not_sent_after_all_is_followed_by_a_look() {
    let rig = rig();
    pool_changes(&rig, Afterwards::Write, 3).await;
    pass(2).await;
    pool_changes(&rig, Afterwards::Write, 20).await;
    assert_eq!(rig.woken(), ["default/web", "default/web"]);
    pass(3).await;
    assert_eq!(rig.woken(), ["default/web"], "it has ended");
    assert!(rig.watchlist.take_end("lb").is_some());
}

#[tokio::test(start_paused = true)]
async fn one_list_shows_whether_octavia_has_finished_where_several_wait() {
    let rig = rig();
    pool_changes(&rig, Afterwards::Write, 3).await;
    pass(2).await;
    let looks = rig.octavia.asked().len();
    rig.octavia.set("another", "PENDING_UPDATE");
    rig.watch("another", "another");
    pool_changes(&rig, Afterwards::Write, 3).await;
    pass(2).await;
    assert_eq!(rig.woken(), ["default/web", "default/web"]);
    assert!(rig.octavia.asked().len() > looks && !rig.watchlist.is_presumed_ended("lb"));
}

#[tokio::test(start_paused = true)]
async fn a_list_for_several_comes_a_little_later_so_that_it_shows_more_ends() {
    for (afterwards, first) in [(Afterwards::Write, 2), (Afterwards::Look, 1)] {
        let rig = rig();
        for (id, service) in [("one", "web-1"), ("two", "web-2")] {
            let begun =
                Awaited { operation: Some(Operation::Members), afterwards, ..awaited(id, Some("project")) };
            rig.watchlist.watch(begun, &ServiceKey::new("default", service));
        }
        pass(3).await;
        assert_eq!(rig.octavia.asked(), [(first, "loadbalancers?project_id=project".to_owned())]);
    }
}

/// After how many milliseconds the Service is woken that sends another step then; Octavia needs three seconds for this one.
async fn milliseconds_until_woken(rig: &Rig) -> u128 {
    let began = Instant::now();
    pool_changes(rig, Afterwards::Write, 3).await;
    while rig.woken().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    began.elapsed().as_millis()
}

#[tokio::test(start_paused = true)]
async fn a_step_that_takes_its_time_makes_octavia_seem_no_slower() {
    let rig = rig();
    let measured = milliseconds_until_woken(&rig).await;
    let mut seen = Vec::new();
    for _ in 0..5 {
        seen.push(milliseconds_until_woken(&rig).await);
        // The reconciliation, and Octavia's answer to the next step.
        pass(2).await;
    }
    assert!(seen.is_sorted_by(|earlier, later| earlier >= later), "{seen:?}");
    assert!(seen[0] <= measured && seen[4] < seen[0], "{measured}, {seen:?}");
}

#[tokio::test(start_paused = true)]
async fn a_step_that_is_not_sent_after_all_makes_octavia_seem_no_slower() {
    let rig = rig();
    milliseconds_until_woken(&rig).await;
    let before = milliseconds_until_woken(&rig).await;
    pass(30).await;
    assert_eq!(rig.woken(), ["default/web"], "a poll found that it has ended");
    assert!(milliseconds_until_woken(&rig).await <= before);
}

#[tokio::test(start_paused = true)]
async fn what_was_waited_for_the_ends_of_others_makes_octavia_seem_no_slower() {
    let rig = rig();
    let mut seen = Vec::new();
    for _ in 0..20 {
        let began = Instant::now();
        for (id, service) in [("one", "web-1"), ("two", "web-2")] {
            let operation = Some(Operation::Members);
            let begun = Awaited { operation, afterwards: Afterwards::Write, ..awaited(id, Some("project")) };
            rig.octavia.set(id, "PENDING_UPDATE");
            rig.watchlist.watch(begun, &ServiceKey::new("default", service));
        }
        pass(3).await;
        rig.octavia.set("one", "ACTIVE");
        rig.octavia.set("two", "ACTIVE");
        while rig.woken.0.lock().unwrap().len() < 2 {
            pass(1).await;
        }
        rig.woken();
        seen.push(began.elapsed().as_secs());
    }
    assert!(seen.iter().all(|seconds| *seconds <= 7), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn an_end_that_nobody_waits_for_is_looked_for_later_and_at_once_for_who_waits() {
    let rig = rig();
    pool_changes(&rig, Afterwards::Nothing, 5).await;
    assert_eq!(rig.octavia.asked(), []);
    pass(2).await;
    assert_eq!((rig.octavia.asked().len(), rig.woken()), (1, vec!["default/web".to_owned()]));
    pool_changes(&rig, Afterwards::Nothing, 3).await;
    let web = ServiceKey::new("default", "web");
    assert_eq!(rig.watchlist.own_work("lb", &web).map(|time| time.as_secs()), Some(3));
    pass(1).await;
    assert_eq!((rig.octavia.asked().len(), rig.woken()), (2, vec!["default/web".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn what_nobody_waited_for_does_not_tell_how_long_octavia_takes() {
    let rig = rig();
    for _ in 0..5 {
        pool_changes(&rig, Afterwards::Nothing, 1).await;
        pass(9).await;
    }
    let seconds: Vec<_> = rig.octavia.asked().iter().map(|(at, _)| at % 10).collect();
    assert_eq!(seconds, [6; 5]);
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
