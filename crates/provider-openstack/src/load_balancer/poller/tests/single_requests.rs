//! Few of very many are asked for one by one.

use super::*;

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
async fn too_many_requests_are_followed_by_lists_for_a_minute() {
    let rig = few_of_very_many(20);
    rig.octavia.refuse("?id=", 429);
    pass(4).await;
    let asked = rig.octavia.asked();
    let (list, single) = asked.split_last().expect("it was asked");
    assert_eq!(*list, (3, "loadbalancers?project_id=project".to_owned()));
    assert_eq!(single.len(), AT_ONCE, "no more are sent once one is refused: {single:?}");
    assert_eq!(rig.woken().len(), 20);
    for (wait, kind) in [(5, "project_id="), (60, "?id=lb-")] {
        pass(wait).await;
        rig.watchlist.list_length().note(5000);
        let asked = rig.octavia.asked().len();
        (0..2).for_each(|number| rig.watch(&format!("lb-{number}"), "web"));
        pass(2).await;
        let later = rig.octavia.asked().split_off(asked);
        assert!(!later.is_empty() && later.iter().all(|(_, query)| query.contains(kind)), "{later:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_octavia_that_is_overloaded_is_asked_less_and_less() {
    let rig = few_of_very_many(20);
    rig.octavia.refuse("", 429);
    pass(300).await;
    let seconds: Vec<_> = rig.octavia.asked().iter().map(|(at, _)| *at).collect();
    assert!(seconds.iter().filter(|at| **at > 60).count() < 50, "{seconds:?}");
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
