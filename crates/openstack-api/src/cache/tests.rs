use std::cell::Cell;

use futures::FutureExt as _;
use futures::future::join_all;

use super::*;

const LIFETIME: Duration = Duration::from_secs(600);
const REQUEST: Duration = Duration::from_secs(1);

type Answers = Cache<String, u8, &'static str>;

async fn ask(cache: &Answers, answer: u8) -> u8 {
    cache.get_or_fetch("key", async move { Ok(answer) }).await.unwrap_or_default()
}

async fn ask_since(cache: &Answers, since: Moment, answer: u8) -> u8 {
    cache.get_or_fetch_since("key", since, async move { Ok(answer) }).await.unwrap_or_default()
}

/// Ten ask at the same time. What they got, and how many requests they sent.
async fn ten_ask(cache: &Answers, answer: Result<u8, &'static str>) -> (Vec<Result<u8, &'static str>>, u32) {
    let requests = Cell::new(0);
    let ten = (0..10).map(|_| {
        cache.get_or_fetch("key", async {
            requests.set(requests.get() + 1);
            tokio::time::sleep(REQUEST).await;
            answer
        })
    });
    let got = join_all(ten).await;
    (got.into_iter().map(|got| got.map_err(|error| *error)).collect(), requests.get())
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_asked_for_again_only_after_its_lifetime() {
    let cache = Answers::new(LIFETIME);
    assert_eq!(ask(&cache, 1).await, 1);
    tokio::time::advance(Duration::from_secs(599)).await;
    assert_eq!(ask(&cache, 2).await, 1);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(ask(&cache, 3).await, 3);
}

#[tokio::test(start_paused = true)]
async fn the_last_answer_is_there_after_its_lifetime_for_who_prefers_it_to_waiting() {
    let cache = Answers::new(LIFETIME);
    ask(&cache, 1).await;
    tokio::time::advance(LIFETIME).await;
    let last = cache.last("key").map(|last| (last.value, last.is_alive()));
    assert_eq!((last, cache.get("key")), (Some((1, false)), None));
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_not_kept() {
    let cache = Answers::new(LIFETIME);
    let failed = cache.get_or_fetch("key", async { Err("down") }).await;
    assert_eq!(failed, Err(Arc::new("down")));
    assert_eq!(ask(&cache, 4).await, 4);
}

#[tokio::test(start_paused = true)]
async fn those_who_ask_at_the_same_time_share_one_request() {
    let cache = Answers::new(LIFETIME);
    assert_eq!(ten_ask(&cache, Ok(1)).await, (vec![Ok(1); 10], 1));
    assert_eq!(ask(&cache, 2).await, 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_shared_need_not_be_kept() {
    let cache = Answers::new(Duration::ZERO);
    assert_eq!(ten_ask(&cache, Ok(1)).await, (vec![Ok(1); 10], 1));
    assert_eq!(ask(&cache, 2).await, 2);
}

#[tokio::test(start_paused = true)]
async fn in_an_outage_nobody_waits_for_more_than_one_request() {
    let cache = Answers::new(LIFETIME);
    let start = Instant::now();
    assert_eq!(ten_ask(&cache, Err("down")).await, (vec![Err("down"); 10], 1));
    assert_eq!(start.elapsed(), REQUEST);
    assert_eq!(ask(&cache, 2).await, 2);
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_asks_when_the_first_was_dropped_on_the_way() {
    let cache = Answers::new(LIFETIME);
    let mut first = Box::pin(cache.get_or_fetch("key", std::future::pending()));
    assert!(first.as_mut().now_or_never().is_none());
    let mut second = Box::pin(ask(&cache, 2));
    assert!(second.as_mut().now_or_never().is_none());
    drop(first);
    assert_eq!(second.await, 2);
    assert_eq!(ask(&cache, 3).await, 2);
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_a_request_from_before_everything_was_forgotten_is_not_kept() {
    let cache = Answers::new(LIFETIME);
    let late = cache.get_or_fetch("key", async {
        cache.clear();
        Ok(1)
    });
    let before = Moment::now();
    assert_eq!(late.await, Ok(1));
    cache.insert("key".to_owned(), before, 1);
    assert_eq!(ask(&cache, 2).await, 2);
}

#[tokio::test(start_paused = true)]
async fn an_answer_begun_before_the_change_does_not_serve_who_has_to_see_the_change() {
    let cache = Answers::new(LIFETIME);
    let before = Moment::now();
    assert_eq!(ask(&cache, 1).await, 1);
    assert_eq!(ask_since(&cache, before, 2).await, 1);
    let change = Moment::now();
    assert_eq!(ask_since(&cache, change, 3).await, 3);
    assert_eq!(ask_since(&cache, change, 4).await, 3);
}

#[tokio::test(start_paused = true)]
async fn all_who_have_to_see_a_change_share_one_request_after_the_one_under_way() {
    let cache = Answers::new(LIFETIME);
    let under_way = Cell::new(0);
    let fetch = |answer| {
        let under_way = &under_way;
        async move {
            under_way.set(under_way.get() + 1);
            assert_eq!(under_way.get(), 1, "one request at a time");
            tokio::time::sleep(REQUEST).await;
            under_way.set(under_way.get() - 1);
            Ok(answer)
        }
    };
    let mut old = Box::pin(cache.get_or_fetch("key", fetch(1)));
    assert!(old.as_mut().now_or_never().is_none());
    let change = Moment::now();
    let start = Instant::now();
    let others = join_all((2..10).map(|answer| cache.get_or_fetch_since("key", change, fetch(answer))));
    let (old, others) = tokio::join!(old, others);
    assert_eq!((old, others), (Ok(1), vec![Ok(2); 8]));
    assert_eq!(start.elapsed(), 2 * REQUEST);
}

#[tokio::test(start_paused = true)]
async fn the_failure_of_an_older_request_is_shared_by_who_waited_for_it() {
    let cache = Answers::new(LIFETIME);
    let mut old = Box::pin(cache.get_or_fetch("key", async {
        tokio::time::sleep(REQUEST).await;
        Err("down")
    }));
    assert!(old.as_mut().now_or_never().is_none());
    let new = cache.get_or_fetch_since("key", Moment::now(), async { Ok(2) });
    assert_eq!(tokio::join!(old, new), (Err(Arc::new("down")), Err(Arc::new("down"))));
}

#[tokio::test(start_paused = true)]
async fn an_older_answer_does_not_replace_a_newer_one() {
    let cache = Answers::new(LIFETIME);
    let before = Moment::now();
    ask(&cache, 2).await;
    cache.insert("key".to_owned(), before, 1);
    assert_eq!(cache.get("key"), Some(2));
    cache.insert("key".to_owned(), Moment::now(), 3);
    assert_eq!(cache.get("key"), Some(3));
}
