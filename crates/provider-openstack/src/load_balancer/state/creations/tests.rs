use std::time::Duration;

use super::*;

/// Notes who is woken.
#[derive(Debug, Default)]
struct Bells(Mutex<Vec<String>>);

impl Wake for Bells {
    fn wake(&self, key: &ServiceKey) {
        self.0.lock().unwrap().push(key.to_string());
    }
}

impl Bells {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

fn creations() -> (Creations, Arc<Bells>) {
    let bells = Arc::new(Bells::default());
    (Creations::new(bells.clone()), bells)
}

fn key(text: &str) -> ServiceKey {
    let (namespace, name) = text.split_once('/').unwrap();
    ServiceKey::new(namespace, name)
}

/// Asks for these, and answers who may.
fn ask(creations: &Creations, services: &[&str]) -> Vec<bool> {
    services.iter().map(|service| creations.ask(&key(service)).is_ok()).collect()
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_woken_when_it_is_admitted() {
    let (creations, bells) = creations();
    assert_eq!(ask(&creations, &["n/a", "n/b", "n/c", "n/d"]), [true, true, false, false]);
    assert_eq!(creations.counts(), Counts { waiting: 2, under_way: 2, limit: 2 });
    creations.sent(&key("n/a"));
    assert!(bells.take().is_empty());
    creations.ended(&key("n/a"), true);
    assert_eq!(bells.take(), ["n/a", "n/c", "n/d"], "the first one serves, and the next ones may");
}

#[tokio::test(start_paused = true)]
async fn nobody_comes_before_those_who_wait() {
    let (creations, bells) = creations();
    ask(&creations, &["n/a", "n/b", "n/c"]);
    creations.reconciled(&key("n/a"), false);
    assert_eq!(bells.take(), ["n/c"], "an admission that was not used goes to the next one");
    assert_eq!(ask(&creations, &["n/new", "n/c"]), [false, true]);
}

/// Its reconciliation may fail to write the id into the Service, and begin again.
#[tokio::test(start_paused = true)]
async fn a_creation_that_octavia_has_taken_keeps_its_place() {
    let (creations, bells) = creations();
    ask(&creations, &["n/a", "n/b", "n/c"]);
    creations.sent(&key("n/a"));
    creations.reconciled(&key("n/a"), false);
    assert_eq!(ask(&creations, &["n/a"]), [true]);
    creations.reconciled(&key("n/a"), false);
    assert!(bells.take().is_empty(), "no other one is let in");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_with_many_does_not_hold_up_one_with_few() {
    let (creations, bells) = creations();
    ask(&creations, &["big/1", "big/2", "big/3", "big/4", "big/5", "small/1", "tiny/1"]);
    for done in ["big/1", "big/2", "big/3", "small/1"] {
        creations.forget(&key(done));
    }
    assert_eq!(bells.take(), ["big/3", "small/1", "tiny/1", "big/4"]);
}

/// The first creation of the burst takes six seconds, and all that follow forty, however few there are.
#[tokio::test(start_paused = true)]
async fn in_a_cloud_that_has_become_slower_several_are_under_way_again() {
    let (creations, bells) = creations();
    let services: Vec<String> = (0..30).map(|number| format!("n/{number}")).collect();
    ask(&creations, &services.iter().map(String::as_str).collect::<Vec<_>>());
    let mut under_way = vec!["n/0".to_owned(), "n/1".to_owned()];
    let mut limits = Vec::new();
    for took in [6, 34, 40, 40, 40, 40] {
        tokio::time::advance(Duration::from_secs(took)).await;
        let ended: Vec<String> = under_way.drain(..if took == 6 { 1 } else { under_way.len() }).collect();
        for service in &ended {
            creations.sent(&key(service));
            creations.ended(&key(service), true);
        }
        under_way.extend(bells.take().into_iter().filter(|woken| !ended.contains(woken)));
        limits.push(creations.counts().limit);
    }
    assert_eq!(limits, [3, 1, 2, 4, 8, 16]);
}

#[tokio::test(start_paused = true)]
async fn who_waits_learns_how_many_come_before_it() {
    let (creations, _) = creations();
    ask(&creations, &["n/a", "n/b", "n/c", "n/d", "other/a", "other/b", "other/c"]);
    let before = |service: &str| creations.ask(&key(service)).unwrap_err().on;
    assert_eq!(
        before("n/c"),
        WaitsOn::Creations(3),
        "two that are under way, and one of the other namespace"
    );
    assert_eq!(before("other/c"), WaitsOn::Creations(6));
}

#[tokio::test(start_paused = true)]
async fn what_nobody_ends_holds_nobody_up_for_long() {
    let (creations, _) = creations();
    ask(&creations, &["n/stuck", "n/vanished"]);
    creations.sent(&key("n/stuck"));
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(ask(&creations, &["n/a"]), [true], "an admission that nobody used");
    creations.sent(&key("n/a"));
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(ask(&creations, &["n/b"]), [true], "nobody saw the first one end");
}

/// On a cloud that takes half a minute for each, however many there are.
#[tokio::test(start_paused = true)]
async fn until_the_first_one_has_ended_more_are_begun() {
    let (creations, bells) = creations();
    ask(&creations, &["n/a", "n/b", "n/c", "n/d", "n/e"]);
    let mut begun = Vec::new();
    for second in 1..=20 {
        tokio::time::advance(Duration::from_secs(1)).await;
        creations.looked();
        begun.extend(bells.take().into_iter().map(|service| (second, service)));
    }
    let expected = [(10, "n/c"), (12, "n/d"), (14, "n/e")];
    assert_eq!(begun, expected.map(|(second, service)| (second, service.to_owned())));
}

/// Those that never end, and those that wait for them, count the same minutes.
#[tokio::test(start_paused = true)]
async fn who_asks_at_the_moment_when_a_place_comes_free_has_it() {
    let (creations, bells) = creations();
    ask(&creations, &["n/stuck", "n/stuck-2"]);
    creations.sent(&key("n/stuck"));
    creations.sent(&key("n/stuck-2"));
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(ask(&creations, &["other/web", "n/stuck-3"]), [false, false]);
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(ask(&creations, &["other/web"]), [true]);
    assert_eq!(bells.take(), ["n/stuck-3"], "who has asked need not be woken");
    creations.reconciled(&key("other/web"), true);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_goes_waits_for_nothing() {
    let (creations, bells) = creations();
    ask(&creations, &["n/a", "n/b", "n/c", "n/d"]);
    creations.forget(&key("n/c"));
    creations.forget(&key("n/a"));
    assert_eq!(bells.take(), ["n/d"]);
    assert_eq!(creations.counts(), Counts { waiting: 0, under_way: 2, limit: 2 });
}

/// What the window grew to would make all that come first equally late.
#[tokio::test(start_paused = true)]
async fn each_burst_begins_with_few() {
    let (creations, _) = creations();
    for burst in ["first", "second"] {
        let services = ["a", "b", "c"].map(|name| format!("n/{burst}-{name}"));
        let services = services.each_ref().map(String::as_str);
        assert_eq!(ask(&creations, &services), [true, true, false], "{burst}");
        for service in services {
            creations.sent(&key(service));
            creations.reconciled(&key(service), true);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_fails_at_once_is_no_measure_for_others() {
    let (creations, bells) = creations();
    ask(&creations, &["n/fails", "n/a", "n/b", "n/c"]);
    creations.sent(&key("n/fails"));
    creations.ended(&key("n/fails"), false);
    assert_eq!(bells.take(), ["n/fails", "n/b"], "one in its place, and no more");
}
