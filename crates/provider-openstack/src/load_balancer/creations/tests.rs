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

/// What Octavia takes to answer.
const ANSWER: Duration = Duration::from_millis(100);

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
    assert_eq!(ask(&creations, &["n/a", "n/b", "n/c"]), [true, false, false]);
    assert_eq!(creations.counts(), Counts { waiting: 2, under_way: 1, limit: 1 });
    creations.sent(&key("n/a"), ANSWER);
    assert!(bells.take().is_empty(), "it may serve at once");
    tokio::time::advance(LEAST_ALONE).await;
    ask(&creations, &["n/c"]);
    assert_eq!(bells.take(), ["n/b"], "it does not");
    assert_eq!(ask(&creations, &["n/b", "n/d"]), [true, false]);
    creations.ended(&key("n/a"), true);
    assert_eq!(bells.take(), ["n/a", "n/c", "n/d"], "the first one serves, and the next ones may");
}

#[tokio::test(start_paused = true)]
async fn nobody_comes_before_those_who_wait() {
    let (creations, bells) = creations();
    ask(&creations, &["n/a", "n/b"]);
    creations.reconciled(&key("n/a"), false);
    assert_eq!(bells.take(), ["n/b"], "an admission that was not used goes to the next one");
    assert_eq!(ask(&creations, &["n/new", "n/b"]), [false, true]);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_with_many_does_not_hold_up_one_with_few() {
    let (creations, bells) = creations();
    ask(&creations, &["big/1", "big/2", "big/3", "big/4", "big/5", "small/1", "tiny/1"]);
    for done in ["big/1", "big/2", "small/1", "tiny/1"] {
        creations.forget(&key(done));
    }
    assert_eq!(bells.take(), ["big/2", "small/1", "tiny/1", "big/3"]);
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_long_is_told_once() {
    let (creations, _) = creations();
    ask(&creations, &["n/a", "n/next"]);
    let mut told = Vec::new();
    for seconds in [0, 10, 20] {
        tokio::time::advance(Duration::from_secs(seconds)).await;
        let (_, notice) = creations.ask(&key("n/b")).unwrap_err();
        told.push(notice.is_some());
    }
    assert_eq!(told, [false, true, false]);
}

#[tokio::test(start_paused = true)]
async fn what_nobody_ends_holds_nobody_up_for_ever() {
    let (creations, bells) = creations();
    ask(&creations, &["n/stuck"]);
    creations.sent(&key("n/stuck"), ANSWER);
    ask(&creations, &["n/vanished", "n/a"]);
    tokio::time::advance(LEAST_ALONE).await;
    ask(&creations, &["n/a"]);
    assert_eq!(bells.take(), ["n/vanished"]);
    tokio::time::advance(Duration::from_secs(60)).await;
    ask(&creations, &["n/b"]);
    assert_eq!(bells.take(), ["n/a"], "an admission that nobody used");
    tokio::time::advance(Duration::from_secs(600)).await;
    ask(&creations, &["n/c"]);
    assert_eq!(bells.take(), ["n/b", "n/c"], "nobody saw the others end");
}

#[tokio::test(start_paused = true)]
async fn a_service_that_goes_waits_for_nothing() {
    let (creations, bells) = creations();
    ask(&creations, &["n/a", "n/b", "n/c"]);
    creations.forget(&key("n/b"));
    creations.forget(&key("n/a"));
    assert_eq!(bells.take(), ["n/c"]);
    assert_eq!(creations.counts(), Counts { waiting: 0, under_way: 1, limit: 1 });
}

/// What the window grew to would make all that come first equally late.
#[tokio::test(start_paused = true)]
async fn each_burst_begins_with_one() {
    let (creations, bells) = creations();
    for burst in ["first", "second"] {
        let services = ["a", "b", "c"].map(|name| format!("n/{burst}-{name}"));
        let services = services.each_ref().map(String::as_str);
        assert_eq!(ask(&creations, &services), [true, false, false], "{burst}");
        creations.sent(&key(services[0]), Duration::from_secs(1));
        creations.reconciled(&key(services[0]), true);
        assert_eq!(bells.take(), services[1..]);
        for service in services {
            creations.reconciled(&key(service), true);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_the_first_one_does_not_wait_for_long() {
    let (creations, bells) = creations();
    ask(&creations, &["n/before"]);
    creations.sent(&key("n/before"), Duration::from_secs(1));
    creations.reconciled(&key("n/before"), true);
    assert_eq!(ask(&creations, &["n/a", "n/b"]), [true, false]);
    creations.sent(&key("n/a"), Duration::from_secs(1));
    assert!(bells.take().is_empty(), "it will serve soon");
    tokio::time::advance(QUIETLY_FOR).await;
    ask(&creations, &["n/b"]);
    assert_eq!(bells.take(), ["n/b"], "it does not");
}

#[tokio::test(start_paused = true)]
async fn one_that_fails_at_once_is_no_measure_for_others() {
    let (creations, bells) = creations();
    ask(&creations, &["n/fails", "n/a", "n/b", "n/c", "n/d"]);
    creations.sent(&key("n/fails"), ANSWER);
    tokio::time::advance(Duration::from_secs(1)).await;
    creations.ended(&key("n/fails"), false);
    assert_eq!(bells.take(), ["n/fails", "n/a"], "the next one is made alone in its place");
    creations.sent(&key("n/a"), ANSWER);
    tokio::time::advance(Duration::from_secs(60)).await;
    ask(&creations, &["n/b"]);
    assert_eq!(bells.take(), ["n/b"], "which takes long");
    creations.sent(&key("n/b"), ANSWER);
    assert_eq!(bells.take(), ["n/c", "n/d"], "so that answers count");
}
