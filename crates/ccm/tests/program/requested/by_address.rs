//! Services that share a load balancer because they ask for one address.

use std::time::Duration;

use openstack_ccm_openstack_sim::{OperationKind, WorkerFault};
use rstest::rstest;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::contract::setup::{configured, floating_ip};
use crate::refused::leads;
use crate::support::{LB_ID, World, lb_name, service};

const OWNED: &str = "loadbalancer.openstack.org/owned-load-balancer-id";
const SHARE: &str = "loadbalancer.openstack.org/share-by-address";
const FLOATING_IP: &str = "loadbalancer.openstack.org/floating-ip";
const VIP_ADDRESS: &str = "loadbalancer.openstack.org/vip-address";
const INTERNAL: &str = "service.beta.kubernetes.io/openstack-internal-load-balancer";
const KEEP: &str = "loadbalancer.openstack.org/keep-floatingip";
const NETWORK_ID: &str = "loadbalancer.openstack.org/network-id";
const ELSEWHERE: &str = "00000000-0000-4000-8000-000000000000";
const ASKED: &str = "198.19.0.77";

fn asking(name: &str, port: u16, shares: bool) -> Value {
    let annotations = json!({FLOATING_IP: ASKED, SHARE: shares.to_string()});
    let ports = json!([{"name": "one", "port": port, "protocol": "TCP", "nodePort": 30000 + port}]);
    service(name, json!({"metadata": {"annotations": annotations}, "spec": {"ports": ports}}))
}

/// A world with the floating IP that is asked for.
async fn with_floating_ip(conf: &str) -> World {
    let conf = conf.to_owned();
    let world = configured(|_| conf).await;
    floating_ip(&world.cloud, ASKED, "");
    world
}

/// Contract: O20, better: with OCCM a load balancer is shared by its id only.
#[tokio::test(start_paused = true)]
async fn two_services_that_both_say_so_share_the_load_balancer_of_their_address() {
    let mut world = with_floating_ip("").await;
    // A plan does not know which of two is published first.
    world.settings.plans = false;
    world.restart().await;
    world.create(&asking("web", 80, true));
    world.create(&asking("dns", 53, true));
    world.until_ingress("web", &format!("{ASKED}(VIP)")).await;
    world.until_ingress("dns", &format!("{ASKED}(VIP)")).await;
    world.quiet_unplanned().await;
    assert_eq!(world.cloud.load_balancers().len(), 1);
    assert!(leads(&world, &[53, 80], 2), "{}", world.state());
    assert_eq!(world.annotation("web", LB_ID), world.annotation("dns", LB_ID));
    world.restart().await;
    world.quiet_unplanned().await;
    assert!(world.take_cloud_writes().iter().all(|write| !write.starts_with("DELETE")));
    assert!(leads(&world, &[53, 80], 2), "{}", world.state());
    for (gone, left) in [("dns", "web"), ("web", "")] {
        world.release(gone).await;
        assert_eq!(world.cloud.load_balancers().len(), usize::from(!left.is_empty()));
    }
}

/// Who joins is a guest, and nothing of the other Service is changed.
#[tokio::test(start_paused = true)]
async fn who_comes_later_is_a_guest() {
    let world = with_floating_ip("").await;
    world.serve(&asking("web", 80, true)).await;
    world.create(&asking("dns", 53, true));
    world.until_served("dns").await;
    assert_eq!(world.annotation("dns", OWNED).as_deref(), Some("none"));
    assert!(world.warnings("web").is_empty() && world.warnings("dns").is_empty());
    // It goes on sharing: what serves is not taken away by a word about the beginning.
    world.annotate("web", SHARE, None);
    world.annotate_to_rest("dns", SHARE, None).await;
    assert!(leads(&world, &[53, 80], 2), "{}", world.state());
}

#[tokio::test(start_paused = true)]
async fn one_word_is_not_enough() {
    let world = with_floating_ip("").await;
    world.serve(&asking("web", 80, false)).await;
    world.create(&asking("dns", 53, true));
    world.until_warned_at_rest("dns", SHARE).await;
    assert_eq!(world.cloud.load_balancers().len(), 1);
    world.annotate("web", SHARE, Some("true"));
    world.until_published("dns").await;
}

/// The limits of sharing by id hold.
#[tokio::test(start_paused = true)]
async fn the_lists_and_numbers_of_cloud_conf_apply() {
    let allowed = "[LoadBalancerNamespace \"default\"]\nallowed-load-balancers = 6a61a5c8-0a57-4f5b-9c3e-0d6f1f9d2a11\n";
    for (conf, said) in [("max-shared-lb = 1\n", "max-shared-lb"), (allowed, "allowed-load-balancers")] {
        let world = with_floating_ip(conf).await;
        world.serve(&asking("web", 80, true)).await;
        world.create(&asking("dns", 53, true));
        world.until_warned_at_rest("dns", said).await;
        assert!(leads(&world, &[80], 2), "{}", world.state());
        world.release("dns").await;
        assert!(leads(&world, &[80], 2), "{}", world.state());
    }
}

/// The address of an internal load balancer that another Service has: nothing is made for the second one.
#[tokio::test(start_paused = true)]
async fn the_address_of_an_internal_load_balancer_is_shared_or_refused() {
    let world = World::started().await;
    let prefix = world.cloud.nodes()[0].addresses[0].rsplit_once('.').unwrap().0.to_owned();
    let internal = |name: &str, port: u16| {
        let mut object = asking(name, port, false);
        object["metadata"]["annotations"] = json!({VIP_ADDRESS: format!("{prefix}.200"), INTERNAL: "true"});
        object
    };
    world.serve(&internal("web", 80)).await;
    world.take_cloud_writes();
    world.create(&internal("dns", 53));
    world.until_warned("dns", "loadbalancer.openstack.org/load-balancer-id: ").await;
    assert!(world.take_cloud_writes().is_empty());
    world.annotate("web", SHARE, Some("true"));
    world.annotate("dns", SHARE, Some("true"));
    world.until_published("dns").await;
    assert_eq!(world.ingress("web"), world.ingress("dns"));
}

/// The id is written into a Service after it has joined: whoever is killed in between has left a trace all the same.
#[tokio::test(start_paused = true)]
async fn a_guest_that_goes_before_it_knows_the_id_leaves_nothing() {
    let mut world = with_floating_ip("").await;
    world.settings.plans = false;
    world.restart().await;
    world.serve(&asking("web", 80, true)).await;
    let refused =
        world.kube.inject(openstack_ccm_kube_sim::Fault::on("PATCH", "/services/dns").unavailable());
    let mut dns = asking("dns", 53, true);
    dns["metadata"]["finalizers"] = json!(["service.kubernetes.io/load-balancer-cleanup"]);
    world.create(&dns);
    world.until("it has joined", |world| leads(world, &[53, 80], 2)).await;
    world.kill().await;
    world.kube.remove_fault(refused);
    world.delete("dns");
    world.start().await;
    world.quiet_unplanned().await;
    assert!(leads(&world, &[80], 2), "{}", world.state());
}

/// A world with the floating IP that is asked for. A plan does not know which of two is published first.
async fn without_plans() -> World {
    let mut world = with_floating_ip("").await;
    world.settings.plans = false;
    world.restart().await;
    world
}

/// One that only the cloud can refuse is waited for a while, and any other not at all.
#[rstest]
#[case::a_wrong_value(NETWORK_ID, "none", 60)]
#[case::an_id_that_does_not_exist(LB_ID, ELSEWHERE, 60)]
#[case::a_subnet_that_does_not_exist("loadbalancer.openstack.org/subnet-id", ELSEWHERE, 200)]
#[tokio::test(start_paused = true)]
async fn a_service_that_cannot_be_served_keeps_nobody_waiting(
    #[case] key: &str,
    #[case] value: &str,
    #[case] seconds: u64,
) {
    let world = without_plans().await;
    let mut wrong = asking("aaa", 80, true);
    wrong["metadata"]["annotations"][key] = json!(value);
    world.create(&wrong);
    world.pass(5).await;
    let start = Instant::now();
    world.create(&asking("web", 81, true));
    world.until_published("web").await;
    assert!(start.elapsed() < Duration::from_secs(seconds), "{:?}", start.elapsed());
    world.annotate("aaa", key, None);
    world.until_served("aaa").await;
    assert!(leads(&world, &[80, 81], 2), "{}", world.state());
}

/// Nor does one whose load balancer Octavia never finishes, for ever.
#[tokio::test(start_paused = true)]
async fn a_creation_that_never_ends_is_not_waited_for_without_end() {
    let world = without_plans().await;
    let hold = WorkerFault::hold(OperationKind::LoadBalancerCreate).of(&lb_name("aaa"));
    world.cloud.faults().add_worker(hold);
    world.create(&asking("aaa", 80, true));
    world.pass(5).await;
    let start = Instant::now();
    world.create(&asking("web", 81, true));
    world.pass(600).await;
    // The floating IP is that of the load balancer which Octavia never finishes.
    world.until_warned("web", "198.19.0.77 is a floating IP that is already attached").await;
    assert!(start.elapsed() < Duration::from_secs(700), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn of_two_new_ones_the_older_gets_the_load_balancer() {
    let mut world = without_plans().await;
    world.stop().await;
    world.create(&asking("web", 80, true));
    tokio::time::sleep(Duration::from_secs(2)).await;
    world.create(&asking("aaa", 81, true));
    world.start().await;
    world.until_served("aaa").await;
    assert_eq!(world.annotation("aaa", OWNED).as_deref(), Some("none"));
    assert!(leads(&world, &[80, 81], 2), "{}", world.state());
}

/// Whatever the ages: the load balancer that is there, or is being made, is the one to share.
#[rstest]
#[tokio::test(start_paused = true)]
async fn an_older_one_waits_for_the_load_balancer_of_a_younger_one(#[values(false, true)] is_killed: bool) {
    let mut world = without_plans().await;
    let mut older = asking("aaa", 80, true);
    older["metadata"]["annotations"][NETWORK_ID] = json!("none");
    world.create(&older);
    world.pass(5).await;
    world.cloud.set_delay(OperationKind::LoadBalancerCreate, Duration::from_secs(300));
    world.create(&asking("web", 81, true));
    world.until("it is being made", |world| world.annotation("web", LB_ID).is_some()).await;
    if is_killed {
        world.kill().await;
    }
    world.annotate("aaa", NETWORK_ID, None);
    if is_killed {
        world.start().await;
    }
    world.until_served("aaa").await;
    assert!(leads(&world, &[80, 81], 2), "{}", world.state());
    assert_eq!(world.cloud.load_balancers().len(), 1);
}

/// As when one ingress controller takes the place of another: nobody waits by the clock for what this program does.
#[rstest]
#[case::made_for_the_service(None, false)]
#[case::somebody_made(Some(FLOATING_IP), false)]
#[case::in_the_subnet(Some(VIP_ADDRESS), true)]
#[tokio::test(start_paused = true)]
async fn an_address_that_comes_free_goes_at_once_to_who_waits_for_it(
    #[case] asks_by: Option<&str>,
    #[case] is_internal: bool,
) {
    let world = without_plans().await;
    let prefix = world.cloud.nodes()[0].addresses[0].rsplit_once('.').unwrap().0.to_owned();
    let asked = if is_internal { format!("{prefix}.200") } else { ASKED.to_owned() };
    let mut first = service("web", json!({"metadata": {"annotations": {KEEP: "true"}}}));
    first["metadata"]["annotations"][INTERNAL] = json!(is_internal.to_string());
    if let Some(key) = asks_by {
        first["metadata"]["annotations"][key] = json!(asked);
    }
    world.serve(&first).await;
    let address = match asks_by {
        Some(_) => asked,
        None => world.ingress("web")[0].trim_end_matches("(VIP)").to_owned(),
    };
    let mut next = asking("next", 81, false);
    let key = if is_internal { VIP_ADDRESS } else { FLOATING_IP };
    next["metadata"]["annotations"] = json!({key: address, INTERNAL: is_internal.to_string()});
    world.create(&next);
    world.pass(400).await;
    assert!(world.ingress("next").is_empty() && !world.warnings("next").is_empty());
    world.release("web").await;
    let start = Instant::now();
    world.until_ingress("next", &format!("{address}(VIP)")).await;
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
}
