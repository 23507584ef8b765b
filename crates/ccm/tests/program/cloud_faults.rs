//! A cloud that is slow, fails, loses work, or is changed behind the program's back.

use std::time::Duration;

use http::Method;
use openstack_ccm_openstack_sim::{Fault, OperationKind, WorkerFault};
use rstest::rstest;
use serde_json::json;
use tokio::time::Instant;

use crate::contract::setup::{configured, id, load_balancer, member_names};
use crate::support::{ADDRESS, LB_ID, PROXY, Side, World, lb_name, service};

/// The lines of cloud.conf that let load balancers be replaced which serve nobody.
pub(crate) const REPLACE: &str = "error-recovery = replace\n";

/// The pause before the second repair, at least.
const PAUSE: Duration = Duration::from_secs(10);

fn octavia(method: Method, path: &str) -> Fault {
    Fault::new().service("load-balancer").method(method).path(path)
}

/// Defect: 43, better: the time that the cloud asks for is kept.
#[tokio::test(start_paused = true)]
async fn an_overloaded_octavia_is_left_alone_as_long_as_it_asks() {
    let world = World::started().await;
    let busy = octavia(Method::POST, "loadbalancers$").answer(503, json!({"faultstring": "busy"}));
    world.cloud.faults().add(busy.retry_after(90).once());
    let start = Instant::now();
    world.create(&service("web", json!({})));
    world.until_warned("web", "busy").await;
    world.until_published("web").await;
    assert!(start.elapsed() >= Duration::from_secs(90), "{:?}", start.elapsed());
    world.quiet().await;
    let posts: Vec<Instant> = world
        .take_calls()
        .into_iter()
        .filter(|call| call.name == "POST loadbalancers")
        .map(|call| call.at)
        .collect();
    assert_eq!(posts.len(), 2);
    assert!(posts[1] - posts[0] >= Duration::from_secs(90));
}

/// Who is refused because Octavia has too much to do has made nothing, so that the request may go again as it is.
#[tokio::test(start_paused = true)]
async fn a_creation_that_comes_too_soon_is_sent_again() {
    let mut world = World::started().await;
    world.settings.plans = false;
    let creation = octavia(Method::POST, "/loadbalancers$");
    world.cloud.faults().add(creation.answer(429, json!({})).retry_after(5).once());
    world.create(&service("web", json!({})));
    world.until_served("web").await;
    assert_eq!(world.cloud.load_balancers().len(), 1);
    assert!(world.warnings("web").is_empty(), "{:?}", world.warnings("web"));
    let posts = world.take_calls().into_iter().filter(|call| call.name == "POST loadbalancers");
    assert_eq!(posts.count(), 2);
}

#[rstest]
#[case::unavailable(Fault::new().answer(503, json!({})))]
#[case::broken(Fault::new().answer(500, json!({})))]
#[case::no_connection(Fault::new().drop_before())]
#[case::deaf(Fault::new().drop_after())]
#[case::too_many(Fault::new().answer(429, json!({})).retry_after(5))]
#[tokio::test(start_paused = true)]
async fn an_outage_of_the_cloud_is_survived(#[case] fault: Fault) {
    let world = World::started().await;
    let outage = world.cloud.faults().add(fault);
    world.create(&service("web", json!({"metadata": {"annotations": {PROXY: "v2"}}})));
    tokio::time::sleep(Duration::from_secs(1800)).await;
    assert!(world.ingress("web").is_empty());
    assert!(!world.warnings("web").is_empty(), "the user is warned");
    world.cloud.faults().remove(outage);
    world.until_served_at("web", "198.19.0.11(Proxy)").await;
    assert_eq!(world.cloud.load_balancers().len(), 1);
    assert_eq!(world.cloud.floating_ips().len(), 1);
    assert!(world.cloud.leaked_ports().is_empty());
}

/// Each third call fails, for the whole life of a Service.
#[rstest]
#[case::lost_answers(Fault::new().drop_after())]
#[case::errors(Fault::new().answer(502, json!({})))]
#[tokio::test(start_paused = true)]
async fn a_cloud_that_fails_again_and_again_ends_in_the_same_state(#[case] fault: Fault) {
    let healthy = World::serving(&service("web", json!({"metadata": {"annotations": {PROXY: "v2"}}}))).await;
    let world = World::started().await;
    for nth in 1..40 {
        world.cloud.faults().add(fault.clone().nth(nth * 3));
    }
    world.serve(&service("web", json!({"metadata": {"annotations": {PROXY: "v2"}}}))).await;
    assert_eq!(world.state(), healthy.state());
    world.release("web").await;
    assert!(world.cloud.load_balancers().is_empty() && world.cloud.floating_ips().is_empty());
    assert!(world.cloud.leaked_ports().is_empty());
}

#[rstest]
#[case::once(1)]
#[case::twice(2)]
#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_fails_to_be_made_is_recreated(#[case] failures: u32) {
    let world = World::started().await;
    world.cloud.faults().add_worker(WorkerFault::fail(OperationKind::LoadBalancerCreate).times(failures));
    world.create(&service("web", json!({})));
    world.until_served("web").await;
    assert_eq!(world.cloud.load_balancers().len(), 1);
    assert!(world.cloud.leaked_ports().is_empty());
    let warnings = world.warnings("web");
    assert!(warnings.iter().any(|warning| warning.contains("LoadBalancerReplaced")), "{warnings:?}");
    let rested = warnings.iter().any(|warning| warning.contains("SyncLoadBalancerFailed"));
    assert_eq!(rested, failures > 1, "the second repair has to rest: {warnings:?}");
    let calls = world.take_calls();
    let posts: Vec<Instant> =
        calls.iter().filter(|call| call.name == "POST loadbalancers").map(|call| call.at).collect();
    let pauses: Vec<bool> = posts.windows(2).map(|two| two[1] - two[0] >= PAUSE).collect();
    assert_eq!(pauses, &[false, true][..posts.len() - 1]);
}

/// Octavia may have begun what it answers with 500. The list that both share is from before that: they look once more, as the rules of a
/// trace have it.
#[tokio::test(start_paused = true)]
async fn creations_that_may_have_arrived_are_looked_for_in_no_older_list() {
    const SERVICES: [&str; 2] = ["web-1", "web-2"];
    let mut world = World::started().await;
    world.settings.plans = false;
    // They look at the same time.
    world.settings.latency = Duration::from_millis(100);
    world.restart().await;
    world.cloud.faults().add(octavia(Method::POST, "loadbalancers$").answer(500, json!({})).times(2));
    SERVICES.iter().for_each(|name| world.create(&service(name, json!({}))));
    for name in SERVICES {
        world.until_published(name).await;
    }
    world.quiet().await;
    assert_eq!(world.cloud.load_balancers().len(), 2);
}

/// It is found by its name.
#[tokio::test(start_paused = true)]
async fn a_creation_whose_answer_is_lost_is_not_repeated() {
    let world = World::started().await;
    world.cloud.faults().add(octavia(Method::POST, "loadbalancers$").drop_after().once());
    world.create(&service("web", json!({})));
    world.until_warned("web", "SyncLoadBalancerFailed").await;
    world.until_served("web").await;
    let calls = world.take_calls();
    assert_eq!(calls.iter().filter(|call| call.name == "POST loadbalancers").count(), 1);
    assert_eq!(world.cloud.load_balancers().len(), 1);
    assert!(world.cloud.leaked_ports().is_empty());
}

/// What Octavia can do decides what its load balancers are made with.
#[tokio::test(start_paused = true)]
async fn an_octavia_that_cannot_be_asked_what_it_can_do_gets_no_load_balancer() {
    let world = World::started().await;
    world.cloud.faults().add(octavia(Method::GET, "^/$").answer(503, json!({})).times(3));
    world.create(&service("web", json!({})));
    world.until_warned("web", "SyncLoadBalancerFailed").await;
    assert!(world.cloud.load_balancers().is_empty());
    world.until_published("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_somebody_else_has_locked_is_waited_for() {
    let world = World::serving(&service("web", json!({}))).await;
    let body = json!({"faultcode": "Client", "faultstring": "Load Balancer x is immutable and cannot be updated.",
        "debuginfo": null});
    world.cloud.faults().add(octavia(Method::PUT, "/members($|[?])").answer(409, body).once());
    let refusals = world.refusals();
    world.add_node("node-3", "v1.36.0");
    world.quiet_unplanned().await;
    assert_eq!(world.refusals(), refusals + 1);
    assert_eq!(member_names(&world), ["node-1", "node-2", "node-3"]);
    assert!(world.warnings("web").is_empty(), "{:?}", world.warnings("web"));
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_broke_down_comes_back_on_its_addresses_where_the_operator_wants_that() {
    let world = configured(|_| REPLACE.to_owned()).await;
    world.serve(&service("web", json!({"metadata": {"annotations": {PROXY: "v2"}}}))).await;
    let before = world.state();
    let id = world.cloud.load_balancer(&lb_name("web")).unwrap()["id"].clone();
    breaks_down(&world, "web");
    // Found by the check for drift, within 36 minutes.
    let replaced = |world: &World| {
        world
            .cloud
            .load_balancer(&lb_name("web"))
            .is_some_and(|lb| lb["id"] != id && lb["provisioning_status"] == "ACTIVE")
    };
    world.until("it is replaced", replaced).await;
    world.quiet().await;
    assert_eq!(world.state(), before);
    assert!(world.cloud.leaked_ports().is_empty());
    let warnings = world.warnings("web");
    assert!(warnings.iter().any(|warning| warning.contains("LoadBalancerReplaced")), "{warnings:?}");
}

/// The VIP behind a floating IP shows nowhere once its load balancer is gone: the floating IP keeps it meanwhile.
#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_breaks_comes_back_on_its_vip_though_the_program_is_killed_in_between() {
    let mut world = configured(|_| REPLACE.to_owned()).await;
    world.serve(&service("other", json!({}))).await;
    world.serve(&service("web", json!({}))).await;
    // A lower address becomes free, which Neutron would give to a new load balancer.
    world.release("other").await;
    let (before, vip) = (world.cloud_state(), load_balancer(&world)["vip_address"].clone());
    breaks_down(&world, "web");
    world.until("it is deleted", |world| world.cloud.load_balancers().is_empty()).await;
    assert!(world.cloud_state().contains("former-vip"), "{}", world.cloud_state());
    world.kill().await;
    world.start().await;
    world.until("it is recreated", |world| !world.cloud.load_balancers().is_empty()).await;
    world.quiet().await;
    assert_eq!((load_balancer(&world)["vip_address"].clone(), world.cloud_state()), (vip, before));
}

/// The load balancer of a Service breaks, and serves all the same: ERROR and ONLINE.
pub(crate) fn breaks(world: &World, name: &str) {
    turns_to_error(world, name, true);
}

/// The load balancer of a Service breaks, and serves nobody any more: ERROR and OFFLINE.
pub(crate) fn breaks_down(world: &World, name: &str) {
    turns_to_error(world, name, false);
}

/// A change of the load balancer itself fails inside Octavia.
fn turns_to_error(world: &World, name: &str, up: bool) {
    world.cloud.faults().add_worker(WorkerFault::fail(OperationKind::LoadBalancerUpdate).times(1));
    let load_balancer = || world.cloud.load_balancer(&lb_name(name)).unwrap();
    let path = format!("/v2.0/lbaas/loadbalancers/{}", id(&load_balancer()));
    let change = json!({"loadbalancer": {"admin_state_up": up}});
    world.cloud.admin().change("load-balancer", &path, &change);
    world.cloud.settle();
    assert_eq!(load_balancer()["provisioning_status"], "ERROR");
    assert_eq!(load_balancer()["operating_status"], if up { "ONLINE" } else { "OFFLINE" });
}

/// Defect: 22, better: no worker waits for a locked load balancer.
#[tokio::test(start_paused = true)]
async fn a_stuck_load_balancer_holds_up_no_other_service() {
    let mut world = World::started().await;
    world.stop().await;
    world.settings.service.concurrency = 1;
    world.start().await;
    let stuck = world.cloud.faults().add_worker(WorkerFault::hold(None).of(&lb_name("stuck")));
    world.create(&service("stuck", json!({})));
    world.until("it is being made", |world| world.cloud.load_balancer(&lb_name("stuck")).is_some()).await;
    let start = Instant::now();
    for number in 0..5 {
        world.create(&service(&format!("web-{number}"), json!({})));
    }
    for number in 0..5 {
        world.until_published(&format!("web-{number}")).await;
    }
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    tokio::time::sleep(Duration::from_secs(1200)).await;
    assert!(world.ingress("stuck").is_empty());
    world.until_warned("stuck", "LoadBalancerStuck").await;
    world.cloud.faults().remove(stuck);
    world.until_published("stuck").await;
}

/// An Event says what a Service waits for, once, and without a call more than before; for steps of its own there is none.
#[tokio::test(start_paused = true)]
async fn who_waits_for_a_long_change_of_others_says_so_once() {
    let world = World::serving(&service("web", json!({}))).await;
    world.cloud.set_delay(OperationKind::LoadBalancerUpdate, Duration::from_secs(50));
    world.cloud.set_delay(OperationKind::MemberBatch, Duration::from_secs(50));
    let path = format!("/v2.0/lbaas/loadbalancers/{}", id(&load_balancer(&world)));
    world.cloud.user().change(
        "load-balancer",
        &path,
        &json!({"loadbalancer": {"description": "of somebody"}}),
    );
    world.add_node("node-9", "v1.36.0");
    let busy = |world: &World| {
        let events = world.events("web");
        events.iter().filter(|event| event.contains("LoadBalancerBusy")).cloned().collect::<Vec<_>>()
    };
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert_eq!(busy(&world), [""; 0]);
    world.take_calls();
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert!(busy(&world)[0].contains("a change that this Service did not request"), "{:?}", busy(&world));
    let looks = world.take_calls();
    let looks =
        looks.iter().filter(|call| call.side == Side::OpenStack && !call.name.contains("loadbalancers"));
    assert_eq!(looks.map(|call| call.name.as_str()).collect::<Vec<_>>(), [""; 0]);
    world.until("the node is a member", |world| member_names(world).len() == 3).await;
    world.quiet().await;
    assert_eq!(busy(&world).len(), 1, "{:?}", world.events("web"));
}

/// Its new name shows in no list of those that have the old one.
#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_somebody_renames_while_its_service_goes_is_not_left_behind() {
    for offset in (0..400).step_by(20) {
        let mut world = World::serving(&service("web", json!({}))).await;
        world.stop().await;
        world.settings.latency = Duration::from_millis(100);
        world.start_to_rest().await;
        let path = format!("/v2.0/lbaas/loadbalancers/{}", id(&load_balancer(&world)));
        world.delete("web");
        tokio::time::sleep(Duration::from_millis(offset)).await;
        let change = json!({"loadbalancer": {"name": "renamed"}});
        world.cloud.user().put("load-balancer", &path, &change);
        world.until_gone("web").await;
        world.quiet_unplanned().await;
        assert_eq!(world.cloud.load_balancers(), [json!(null); 0], "{offset}");
    }
}

/// Defect: 65, better: children in ERROR are seen and sent again.
#[tokio::test(start_paused = true)]
async fn members_that_fail_inside_octavia_are_sent_again() {
    let world = World::serving(&service("web", json!({}))).await;
    world.cloud.faults().add_worker(WorkerFault::fail(OperationKind::MemberBatch).times(2));
    world.add_node("node-3", "v1.36.0");
    world.until("it is a member", |world| world.cloud_state().contains("member node-3")).await;
    world.quiet().await;
    let state = world.cloud_state();
    assert!(!state.contains("ERROR"), "{state}");
    assert_eq!(world.take_cloud_writes(), ["PUT pools/ID/members"; 3]);
}

/// What could not be read is missing until it is read again, and not for as long as the Service stays as it is.
#[rstest]
#[case::overloaded(429)]
#[case::unavailable(503)]
#[case::broken(500)]
#[tokio::test(start_paused = true)]
async fn floating_ips_that_could_not_be_listed_delay_a_service_and_no_more(#[case] status: u16) {
    let world = World::serving(&service("first", json!({}))).await;
    let shared = world.cloud.load_balancer(&lb_name("first")).unwrap()["id"].clone();
    let list = Fault::new().service("network").method(Method::GET).path("/floatingips");
    let outage = world.cloud.faults().add(list.answer(status, json!({})));
    let second = json!({"metadata": {"annotations": {LB_ID: shared}}, "spec": {"ports": [{"port": 81, "nodePort": 30081}]}});
    world.create(&service("second", second));
    world.until("its port is there", |world| world.cloud.listeners().len() == 2).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    world.cloud.faults().remove(outage);
    world.until_published("second").await;
}

/// Any user who may write a Service may write the annotation: nodes would take the traffic of the other Service.
#[tokio::test(start_paused = true)]
async fn an_annotated_address_is_not_published_while_floating_ips_cannot_be_listed() {
    let mut world = World::serving(&service("web", json!({}))).await;
    assert_eq!(world.ingress("web"), ["198.19.0.11(VIP)"]);
    world.cloud.set_delay(OperationKind::LoadBalancerCreate, Duration::from_secs(20));
    world.create(&service("mean", json!({"metadata": {"annotations": {ADDRESS: "198.19.0.11"}}})));
    world.until("it is being made", |world| world.cloud.load_balancer(&lb_name("mean")).is_some()).await;
    let list = Fault::new().service("network").method(Method::GET).path("/floatingips");
    let outage = world.cloud.faults().add(list.answer(403, json!({})));
    // So that it does not know any more that there is no floating IP yet.
    world.restart().await;
    for _ in 0..60 {
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(world.ingress("mean"), Vec::<String>::new());
    }
    world.cloud.faults().remove(outage);
    world.until_ingress("mean", "198.19.0.12(VIP)").await;
}

/// A new protocol needs another pool: as long as Octavia fails at its members, nothing would answer behind it.
#[tokio::test(start_paused = true)]
async fn a_pool_that_octavia_fails_at_takes_nothing_from_the_one_that_serves() {
    let world = World::serving(&service("web", json!({}))).await;
    let listener = |world: &World| world.cloud.listeners()[0].clone();
    let serving = listener(&world)["default_pool_id"].clone();
    let outage = world.cloud.faults().add_worker(WorkerFault::fail(OperationKind::MemberBatch));
    world.annotate("web", PROXY, Some("v2"));
    for _ in 0..120 {
        tokio::time::sleep(Duration::from_secs(30)).await;
        let is_there = world.cloud.pools().iter().any(|pool| pool["id"] == serving);
        assert!(is_there && listener(&world)["default_pool_id"] == serving);
    }
    world.cloud.faults().remove(outage);
    world.until("the other pool serves", |world| listener(world)["default_pool_id"] != serving).await;
    world.quiet().await;
    let pools = world.cloud.pools();
    assert_eq!((pools.len(), &pools[0]["protocol"]), (1, &json!("PROXYV2")));
}

/// Defect: 5, better: an id that the program wrote itself does not bind it to what is gone.
#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_somebody_deletes_is_recreated() {
    let world = World::serving(&service("web", json!({"metadata": {"annotations": {PROXY: "v2"}}}))).await;
    let before = world.state();
    let id = world.cloud.load_balancer(&lb_name("web")).unwrap()["id"].as_str().unwrap().to_owned();
    world.cloud.user().delete("load-balancer", &format!("/v2.0/lbaas/loadbalancers/{id}?cascade=true"));
    world.cloud.settle();
    assert!(world.cloud.load_balancers().is_empty());
    world.until("it is recreated", |world| !world.cloud.load_balancers().is_empty()).await;
    world.quiet().await;
    assert_eq!(world.state(), before);
    assert_eq!(world.cloud.floating_ips().len(), 1);
    let warnings = world.warnings("web");
    assert!(warnings.iter().any(|warning| warning.contains("LoadBalancerGone")), "{warnings:?}");
}

#[tokio::test(start_paused = true)]
async fn children_that_somebody_deletes_are_recreated() {
    let world = World::serving(&service("web", json!({"metadata": {"annotations": {PROXY: "v2"}}}))).await;
    let before = world.state();
    let listener = world.cloud.listeners()[0]["id"].as_str().unwrap().to_owned();
    world.cloud.user().delete("load-balancer", &format!("/v2.0/lbaas/listeners/{listener}"));
    world.cloud.settle();
    let pool = world.cloud.pools()[0]["id"].as_str().unwrap().to_owned();
    world.cloud.user().delete("load-balancer", &format!("/v2.0/lbaas/pools/{pool}"));
    world.cloud.settle();
    let floating_ip = world.cloud.floating_ips()[0]["id"].as_str().unwrap().to_owned();
    world.cloud.user().put(
        "network",
        &format!("/v2.0/floatingips/{floating_ip}"),
        &json!({"floatingip": {"port_id": null}}),
    );
    world.until("they are recreated", |world| !world.cloud.listeners().is_empty()).await;
    world.quiet().await;
    assert_eq!(world.state(), before);
}

/// The id is what shows a wrong project or region, so it must not get lost.
#[rstest]
#[tokio::test(start_paused = true)]
async fn an_id_that_could_not_be_written_is_written_later(
    #[values(0, 1, 2, 3)] first: usize,
    #[values(1, 2, 3, 4)] count: usize,
) {
    let world = World::started().await;
    let refused = openstack_ccm_kube_sim::Fault::on("PATCH", "").after(first).times(count).refuse();
    world.kube.inject(refused);
    // No plan foresees a write that fails.
    world.create(&service("web", json!({"metadata": {"annotations": {PROXY: "v2"}}})));
    world.until_published("web").await;
    world.quiet_unplanned().await;
    let id = id(&load_balancer(&world));
    assert_eq!(world.annotation("web", "loadbalancer.openstack.org/load-balancer-id"), Some(id.clone()));
    assert_eq!(world.annotation("web", "loadbalancer.openstack.org/owned-load-balancer-id"), Some(id));
}
