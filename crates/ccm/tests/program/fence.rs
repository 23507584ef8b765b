//! An instance that does not lead any more writes nothing, also where it does not know yet: the process was stopped for a while (SIGSTOP,
//! swapping, a debugger, a machine that was moved), and all its timers are due at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use openstack_ccm_core::permit::{Fence, Target};
use openstack_ccm_kube_sim::ApiVersion;
use openstack_ccm_runtime::election::{ElectionOptions, LeaseAnnotations};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{Side, World, service};

const WORKERS: usize = 32;
const SECOND: Duration = Duration::from_secs(1);
const LEASE: &str = "cloud-controller-manager";

fn election() -> ElectionOptions {
    ElectionOptions {
        namespace: "kube-system".to_owned(),
        name: LEASE.to_owned(),
        identity: "me".to_owned(),
        lease_duration: 30 * SECOND,
        renew_deadline: 20 * SECOND,
        retry_period: 10 * SECOND,
        annotations: LeaseAnnotations::default(),
        component: "cloud-controller-manager",
    }
}

fn lease(world: &World) -> Value {
    world.kube.get("leases", "kube-system", LEASE).unwrap()["spec"].clone()
}

/// As many Services as there are workers, each of which asks Octavia something, and the Lease was just renewed.
async fn with_all_workers_at_work(mut world: World) -> World {
    world.settings.service.concurrency = WORKERS;
    world.settings.latency = SECOND;
    world.settings.plans = false;
    world.start().await;
    let names: Vec<String> = (0..WORKERS).map(|number| format!("web-{number}")).collect();
    for name in &names {
        world.create(&service(name, json!({})));
    }
    for name in &names {
        world.until_published(name).await;
    }
    world.quiet().await;
    if world.settings.election.is_some() {
        let renewed = lease(&world)["renewTime"].clone();
        world.until("the Lease is renewed", |world| lease(world)["renewTime"] != renewed).await;
    }
    world.take_calls();
    world.add_node("node-3", "v1.36.0");
    let asking = |world: &World| {
        let calls = world.calls_from(world.taken_calls());
        calls.iter().filter(|call| call.side == Side::OpenStack).count() >= WORKERS
    };
    world.until("all workers ask", asking).await;
    world
}

/// What is written until the program has noticed that another instance leads.
#[rstest]
#[case::with_the_fence(true)]
#[case::without_it_something_is_written(false)]
#[tokio::test(start_paused = true)]
async fn a_process_that_was_stopped_while_another_led_writes_nothing(#[case] asks: bool) {
    let mut world = World::new(ApiVersion::V1_36);
    world.settings.election = Some(election());
    world.settings.asks_elector = asks;
    let world = with_all_workers_at_work(world).await;
    let writes = |world: &World| world.take_cloud_writes().len();
    assert_eq!(writes(&world), 0, "they only ask yet");
    // The process is stopped, and another one takes the Lease when it has lapsed.
    let theirs = json!({"spec": {"holderIdentity": "another", "renewTime": "2026-11-27T12:00:00.000000Z"}});
    world.kube.patch("leases", "kube-system", LEASE, &theirs).unwrap();
    tokio::time::advance(60 * SECOND).await;
    tokio::time::sleep(600 * SECOND).await;
    assert_eq!(writes(&world) == 0, asks);
    assert_eq!(lease(&world)["holderIdentity"], "another");
    if asks {
        world.assert_permitted();
    }
}

/// The cloud is left alone from the moment on at which others may lead soon; what was begun is published.
#[tokio::test(start_paused = true)]
async fn what_the_fence_does_not_let_pass_is_not_sent_and_no_event_blames_a_service() {
    let open = Arc::new(AtomicBool::new(true));
    let mut world = World::new(ApiVersion::V1_36);
    world.settings.fence = Fence::new({
        let open = Arc::clone(&open);
        move |target| target == Target::Cluster || open.load(Ordering::SeqCst)
    });
    let world = with_all_workers_at_work(world).await;
    open.store(false, Ordering::SeqCst);
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!(world.take_cloud_writes(), Vec::<String>::new());
    assert_eq!(world.warnings("web-0"), Vec::<String>::new());
    // The Lease was renewed after all.
    open.store(true, Ordering::SeqCst);
    let is_member = |pool: &Value| world.cloud.members(pool["id"].as_str().unwrap()).len() == 3;
    world.until("all follow the node", |world| world.cloud.pools().iter().all(is_member)).await;
    world.assert_permitted();
}
