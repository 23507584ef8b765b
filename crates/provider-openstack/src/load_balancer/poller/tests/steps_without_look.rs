//! The next step of a chain is sent without a look, and what that says of how long Octavia takes.

use rstest::rstest;

use super::*;

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

#[rstest]
#[case::in_one_list(2)]
#[case::one_by_one(5000)]
#[tokio::test(start_paused = true)]
async fn what_was_waited_for_the_ends_of_others_makes_octavia_seem_no_slower(#[case] load_balancers: usize) {
    let rig = rig();
    let mut seen = Vec::new();
    for _ in 0..20 {
        rig.watchlist.list_length().note(load_balancers);
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
