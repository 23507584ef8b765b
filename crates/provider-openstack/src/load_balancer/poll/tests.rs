use std::sync::Mutex;

use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_api::client::{Client, ClientSettings, RetryPolicy};
use openstack_ccm_openstack_api::transport::{FnTransport, Response};
use serde_json::{Value, json};

use super::*;
use crate::load_balancer::objects::step::Operation;
use crate::load_balancer::state::watchlist::Awaited;

/// What Octavia shows, and what it was asked.
#[derive(Clone, Default)]
struct Octavia {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Load balancers by id, with their statuses.
    shown: Vec<(String, &'static str)>,
    lists_fail: bool,
    /// No answer to this one, ever.
    hangs: Option<&'static str>,
    all_fails: Option<u16>,
    calls: Vec<String>,
}

impl Octavia {
    fn show(&self, id: &str, status: &'static str) {
        let mut state = self.state.lock().unwrap();
        state.shown.retain(|(known, _)| known != id);
        state.shown.push((id.to_owned(), status));
    }

    fn lose(&self, id: &str) {
        self.state.lock().unwrap().shown.retain(|(known, _)| known != id);
    }

    fn take_calls(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap().calls)
    }

    fn answer(&self, path: &str) -> (u16, Value) {
        let mut state = self.state.lock().unwrap();
        let view = |(id, status): &(String, &str)| json!({"id": id, "provisioning_status": status, "operating_status": "ONLINE", "project_id": "p"});
        let single = path.split('/').next_back().filter(|last| !last.starts_with("loadbalancers"));
        let answer = match (state.all_fails, single) {
            (Some(status), _) => (status, json!({"faultstring": "no"})),
            (None, None) if state.lists_fail => (504, json!({})),
            (None, None) => (200, json!({"loadbalancers": state.shown.iter().map(view).collect::<Vec<_>>()})),
            (None, Some(id)) => match state.shown.iter().find(|(known, _)| known == id) {
                Some(found) => (200, json!({"loadbalancer": view(found)})),
                None => (404, json!({"faultstring": "not found"})),
            },
        };
        state.calls.push(single.map_or_else(|| "list".to_owned(), |id| format!("get {id}")));
        answer
    }

    fn lists(&self) -> Lists {
        let octavia = self.clone();
        let transport = FnTransport::new(move |request| {
            let hangs = octavia.state.lock().unwrap().hangs.is_some_and(|id| request.path.ends_with(id));
            let (status, body) = octavia.answer(&request.path);
            let mut answer = http::Response::new(bytes::Bytes::from(body.to_string()));
            *answer.status_mut() = http::StatusCode::from_u16(status).unwrap();
            async move {
                if hangs {
                    std::future::pending::<()>().await;
                }
                Ok(Response::from(answer))
            }
        });
        let settings = ClientSettings { retry: RetryPolicy::never(), ..ClientSettings::default() };
        Lists::new(OpenStack::new(Client::new(Arc::new(transport), settings)))
    }
}

/// Notes who is woken, and whether it serves.
#[derive(Default)]
struct Bells(Mutex<Vec<(String, bool)>>);

impl EndObserver for Bells {
    fn ended(&self, service: &ServiceKey, is_active: bool) {
        self.0.lock().unwrap().push((service.name.to_string(), is_active));
    }

    fn looked(&self) {}
}

impl Bells {
    fn take(&self) -> Vec<(String, bool)> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// A poller at work.
struct World {
    octavia: Octavia,
    watchlist: Watchlist,
    bells: Arc<Bells>,
    _shutdown: tokio_util::sync::DropGuard,
}

impl World {
    fn new() -> Self {
        let (octavia, watchlist, bells) =
            (Octavia::default(), Watchlist::default(), Arc::new(Bells::default()));
        let shutdown = CancellationToken::new();
        let poller = Poller::new(octavia.lists(), watchlist.clone(), bells.clone());
        tokio::spawn(poller.run(shutdown.clone()));
        Self { octavia, watchlist, bells, _shutdown: shutdown.drop_guard() }
    }

    /// The Service of this name waits for its load balancer.
    fn watch(&self, name: &str, operation: Option<Operation>) {
        self.octavia.show(name, "PENDING_UPDATE");
        let awaited = Awaited { id: name, project_id: Some("p"), operation };
        self.watchlist.watch(awaited, &ServiceKey::new("n", name));
    }
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_woken_when_the_load_balancer_is_active_failed_or_gone() {
    let world = World::new();
    for name in ["serves", "fails", "goes"] {
        world.watch(name, Some(Operation::Members));
    }
    seconds(5).await;
    assert!(world.bells.take().is_empty(), "Octavia is at work");
    world.octavia.show("serves", "ACTIVE");
    world.octavia.show("fails", "ERROR");
    world.octavia.lose("goes");
    seconds(5).await;
    let mut woken = world.bells.take();
    woken.sort();
    assert_eq!(
        woken,
        [("fails", false), ("goes", false), ("serves", true)].map(|(name, is)| (name.to_owned(), is))
    );
    world.octavia.take_calls();
    seconds(60).await;
    assert!(world.octavia.take_calls().is_empty(), "nothing is watched any more");
}

#[tokio::test(start_paused = true)]
async fn few_are_asked_for_one_by_one_and_many_by_one_list() {
    let world = World::new();
    for name in ["a", "b", "c", "d"] {
        world.watch(name, Some(Operation::Members));
    }
    seconds(2).await;
    assert_eq!(world.octavia.take_calls(), ["get a", "get b", "get c", "get d"]);
    world.watch("e", Some(Operation::Members));
    seconds(20).await;
    let calls = world.octavia.take_calls();
    assert!(calls.iter().all(|call| call == "list") && calls.len() < 15, "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn an_end_that_was_seen_waits_for_the_turn_of_its_service() {
    let world = World::new();
    world.watch("web", Some(Operation::Listener));
    world.octavia.show("web", "ACTIVE");
    seconds(300).await;
    assert_eq!(world.bells.take(), [("web".to_owned(), true)]);
    let end = world.watchlist.take_end("web").expect("it is kept");
    assert!(end.active().is_some());
    assert!(world.watchlist.take_end("web").is_none(), "it is handed out once");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_does_not_keep_single_load_balancers_from_being_seen() {
    let world = World::new();
    world.octavia.state.lock().unwrap().lists_fail = true;
    for name in ["a", "b", "c", "d", "e", "f"] {
        world.watch(name, Some(Operation::Members));
    }
    world.octavia.show("e", "ACTIVE");
    seconds(5).await;
    assert_eq!(world.bells.take(), [("e".to_owned(), true)]);
}

#[tokio::test(start_paused = true)]
async fn one_that_does_not_answer_holds_up_no_other() {
    let world = World::new();
    world.octavia.state.lock().unwrap().hangs = Some("hangs");
    for name in ["hangs", "web"] {
        world.watch(name, Some(Operation::Members));
    }
    seconds(5).await;
    world.octavia.show("web", "ACTIVE");
    seconds(10).await;
    assert_eq!(world.bells.take(), [("web".to_owned(), true)]);
    let calls = world.octavia.take_calls();
    assert!(calls.iter().filter(|call| *call == "get hangs").count() <= 1, "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn an_octavia_that_has_too_much_to_do_is_left_alone_for_longer_each_time() {
    let world = World::new();
    world.octavia.state.lock().unwrap().all_fails = Some(503);
    world.watch("web", Some(Operation::Members));
    seconds(60).await;
    assert!(world.octavia.take_calls().len() <= 6);
    world.octavia.state.lock().unwrap().all_fails = None;
    world.octavia.show("web", "ACTIVE");
    seconds(31).await;
    assert_eq!(world.bells.take(), [("web".to_owned(), true)]);
}

/// A guest that changes the load balancer every two seconds would be met at work each time.
#[tokio::test(start_paused = true)]
async fn looks_at_the_work_of_others_keep_no_step() {
    let first_look = |_| {
        let watchlist = Watchlist::default();
        let awaited = Awaited { id: "a", project_id: Some("p"), operation: None };
        watchlist.watch(awaited, &ServiceKey::new("n", "a"));
        watchlist.next().unwrap() - Instant::now()
    };
    let looks: std::collections::BTreeSet<Duration> = (0..20).map(first_look).collect();
    assert!(looks.len() > 10, "{looks:?}");
    assert!(looks.iter().all(|look| (1.0..=1.5).contains(&look.as_secs_f64())), "{looks:?}");
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_the_work_of_another_service_leaves_it_to_that_one() {
    let watchlist = Watchlist::default();
    watchlist.polls_begin();
    let [owner, guest] = ["web", "guest"].map(|name| ServiceKey::new("default", name));
    let awaited = |operation| Awaited { id: "lb-1", project_id: None, operation };
    watchlist.watch(awaited(Some(Operation::Listener)), &owner);
    watchlist.watch(awaited(None), &guest);
    assert!(watchlist.own_work("lb-1", &owner).is_some(), "it goes on waiting for its step");
    assert!(watchlist.own_work("lb-1", &guest).is_none());
}
