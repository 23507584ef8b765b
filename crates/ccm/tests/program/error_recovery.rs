//! A load balancer in ERROR may serve: it is left alone, unless it was never built or the operator chose otherwise.

use std::time::Duration;

use openstack_ccm_kube_sim::ApiVersion;
use openstack_ccm_openstack_sim::{OperationKind, WorkerFault};
use rstest::rstest;
use serde_json::{Value, json};

use crate::cloud_faults::{REPLACE, breaks, breaks_down};
use crate::contract::setup::{INTERNAL, annotated, configured, forget_load_balancer, id, load_balancer};
use crate::support::{ANNOTATION, Side, World, lb_name, service};

const FAILOVER: &str = "error-recovery = failover\n";
const HOUR: Duration = Duration::from_secs(3600);

fn held(world: &World) -> String {
    let metrics = world.metrics();
    let name = "openstack_ccm_services_held{reason=\"load_balancer_in_error\"} ";
    metrics.lines().find_map(|line| line.strip_prefix(name)).expect("the metric").to_owned()
}

fn warning(world: &World, name: &str) -> String {
    let mut warnings = world.warnings(name);
    warnings.retain(|warning| warning.contains("LoadBalancerInError"));
    assert!(!warnings.is_empty(), "{:?}", world.events(name));
    warnings.pop().unwrap()
}

/// Has an administrator fail the load balancer of a Service over.
fn fail_over(world: &World, name: &str) {
    let id = id(&world.cloud.load_balancer(&lb_name(name)).unwrap());
    let path = format!("/v2.0/lbaas/loadbalancers/{id}/failover");
    assert_eq!(world.cloud.admin().put("load-balancer", &path, &json!({})).0, 202);
}

/// Services `web-0` and so on, all served; and their load balancers and statuses.
async fn serve_several(world: &World, count: usize) -> Vec<(Value, Vec<String>)> {
    for number in 0..count {
        world.create(&service(&format!("web-{number}"), json!({})));
    }
    for number in 0..count {
        world.until_published(&format!("web-{number}")).await;
    }
    world.quiet().await;
    world.take_calls();
    several(world, count)
}

fn several(world: &World, count: usize) -> Vec<(Value, Vec<String>)> {
    let one = |number: usize| {
        let name = format!("web-{number}");
        let id = world.cloud.load_balancer(&lb_name(&name)).unwrap_or_default()["id"].clone();
        (id, world.ingress(&name))
    };
    (0..count).map(one).collect()
}

/// Defect: 6, better: one that was never built is recreated; any other one stays and is reported, since it may serve, unless the operator chose a failover or a replacement.
#[tokio::test(start_paused = true)]
async fn load_balancers_that_serve_stay_in_an_outage_of_the_compute_service() {
    let mut world = World::started().await;
    let before = serve_several(&world, 5).await;
    let outage = world.cloud.faults().add_worker(WorkerFault::fail(OperationKind::LoadBalancerCreate));
    (0..5).for_each(|number| breaks(&world, &format!("web-{number}")));
    world.restart().await;
    tokio::time::sleep(HOUR).await;
    assert_eq!(held(&world), "5");
    let warning = warning(&world, "web-3");
    for part in [
        "the provisioning status ERROR and the operating status ONLINE",
        "it might still forward traffic",
        "openstack loadbalancer failover",
    ] {
        assert!(warning.contains(part), "{warning}");
    }
    // A node joins meanwhile, which Octavia refuses to hear of.
    world.add_node("node-3", "v1.36.0");
    assert_eq!(world.take_cloud_writes(), Vec::<String>::new());
    tokio::time::sleep(HOUR).await;
    let calls = world.take_calls();
    assert!(calls.iter().all(|call| call.side == Side::Kubernetes || !call.write), "{calls:?}");
    assert_eq!(several(&world, 5), before);
    let reads = calls.iter().filter(|call| call.side == Side::OpenStack).count();
    assert!(reads < 5 * 12 * 10, "{reads} calls in an hour");

    world.cloud.faults().remove(outage);
    (0..5).for_each(|number| fail_over(&world, &format!("web-{number}")));
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!((held(&world), several(&world, 5)), ("0".to_owned(), before));
    assert_eq!(world.cloud_state().matches("member node-3").count(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_occm_left_in_error_stays_when_this_program_starts() {
    let mut world = World::serving(&service("web", json!({}))).await;
    world.stop().await;
    // What only this program writes.
    for key in ["owned-load-balancer-id", "settled"] {
        world.annotate("web", &format!("{ANNOTATION}{key}"), None);
    }
    let path = format!("/v2.0/lbaas/loadbalancers/{}", id(&load_balancer(&world)));
    let tags = json!({"loadbalancer": {"tags": [lb_name("web")]}});
    assert_eq!(world.cloud.user().put("load-balancer", &path, &tags).0, 200);
    world.cloud.settle();
    breaks(&world, "web");
    let before = (load_balancer(&world)["id"].clone(), world.ingress("web"));
    world.take_calls();
    world.start().await;
    world.until_warned("web", "LoadBalancerInError").await;
    tokio::time::sleep(HOUR).await;
    let writes = world.take_cloud_writes();
    assert!(writes.iter().all(|write| !write.contains("loadbalancers")), "{writes:?}");
    assert_eq!((load_balancer(&world)["id"].clone(), world.ingress("web")), before);
}

/// Nothing of the Service says that it was served, but its load balancer sends heartbeats.
#[tokio::test(start_paused = true)]
async fn a_service_whose_status_was_lost_gets_it_back_from_a_load_balancer_in_error() {
    let mut world = World::serving(&service("web", json!({}))).await;
    let before = (load_balancer(&world)["id"].clone(), world.ingress("web"));
    world.stop().await;
    breaks(&world, "web");
    forget_load_balancer(&world);
    let empty = json!({"status": {"loadBalancer": {"ingress": null}}});
    world.kube.patch_status("services", "default", "web", &empty).unwrap();
    assert!(world.ingress("web").is_empty());
    world.start().await;
    world.until_published("web").await;
    tokio::time::sleep(HOUR).await;
    assert_eq!((load_balancer(&world)["id"].clone(), world.ingress("web")), before);
    assert_eq!(held(&world), "1");
}

#[rstest]
#[case::report("", "it might still forward traffic")]
#[case::replace_and_retain(REPLACE, "its reclaim-policy is retain")]
#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_broke_down_stays_unless_the_operator_and_the_service_agree(
    #[case] cloud_conf: &str,
    #[case] reason: &str,
) {
    let world = configured(|_| cloud_conf.to_owned()).await;
    world.serve(&annotated(&[("reclaim-policy", "retain")])).await;
    let before = (load_balancer(&world)["id"].clone(), world.ingress("web"));
    breaks_down(&world, "web");
    world.until_warned("web", reason).await;
    tokio::time::sleep(HOUR).await;
    assert_eq!(world.take_cloud_writes(), Vec::<String>::new());
    assert_eq!((load_balancer(&world)["id"].clone(), world.ingress("web")), before);
    assert!(warning(&world, "web").contains("operating status OFFLINE"));
}

#[tokio::test(start_paused = true)]
async fn what_serves_is_not_replaced_whatever_the_operator_chose() {
    let world = configured(|_| REPLACE.to_owned()).await;
    let before = serve_several(&world, 2).await;
    (0..2).for_each(|number| breaks(&world, &format!("web-{number}")));
    tokio::time::sleep(2 * HOUR).await;
    assert_eq!(world.take_cloud_writes(), Vec::<String>::new());
    assert_eq!(several(&world, 2), before);
    assert!(warning(&world, "web-1").contains("its operating status says that it forwards traffic"));
}

#[tokio::test(start_paused = true)]
async fn a_refused_failover_is_asked_for_once_and_reported() {
    let world = configured(|_| FAILOVER.to_owned()).await;
    let before = serve_several(&world, 1).await;
    breaks(&world, "web-0");
    world.until_warned("web-0", "Octavia refused to fail it over").await;
    tokio::time::sleep(2 * HOUR).await;
    // A change of the Service is no reason to ask again.
    world.annotate("web-0", &format!("{ANNOTATION}connection-limit"), Some("7"));
    tokio::time::sleep(HOUR).await;
    assert_eq!(world.take_cloud_writes(), ["PUT loadbalancers/ID/failover"]);
    assert_eq!((several(&world, 1), held(&world)), (before, "1".to_owned()));
}

#[rstest]
#[case::it_helps(0, false)]
#[case::it_does_not_help(1, true)]
#[tokio::test(start_paused = true)]
async fn an_administrator_has_load_balancers_failed_over_once(#[case] failures: u32, #[case] stays: bool) {
    let mut world = World::new(ApiVersion::V1_36);
    world.settings.cloud_conf = FAILOVER.to_owned();
    world.settings.user = "admin";
    world.start().await;
    let before = serve_several(&world, 1).await;
    breaks(&world, "web-0");
    if failures > 0 {
        world
            .cloud
            .faults()
            .add_worker(WorkerFault::fail(OperationKind::LoadBalancerFailover).times(failures));
    }
    tokio::time::sleep(2 * HOUR).await;
    assert_eq!(world.take_cloud_writes(), ["PUT loadbalancers/ID/failover"]);
    assert_eq!(several(&world, 1), before);
    let status = world.cloud.load_balancer(&lb_name("web-0")).unwrap()["provisioning_status"].clone();
    assert_eq!(status, if stays { "ERROR" } else { "ACTIVE" });
    assert_eq!(held(&world), if stays { "1" } else { "0" });
    if stays {
        assert!(warning(&world, "web-0").contains("a failover did not repair it"));
    }
}

#[tokio::test(start_paused = true)]
async fn one_load_balancer_at_a_time_is_replaced() {
    let world = configured(|_| REPLACE.to_owned()).await;
    let before = serve_several(&world, 4).await;
    (0..4).for_each(|number| breaks_down(&world, &format!("web-{number}")));
    // Each is there at every moment, but for one at most.
    let is_there = |world: &World, number: usize| {
        let found = world.cloud.load_balancer(&lb_name(&format!("web-{number}")));
        found.is_some_and(|found| {
            let built = found["id"] == before[number].0 || found["provisioning_status"] == "ACTIVE";
            built && found["provisioning_status"] != "PENDING_DELETE"
        })
    };
    let all_replaced = |world: &World| {
        let there = (0..4).filter(|number| is_there(world, *number)).count();
        assert!(there >= 3, "{} are missing at once", 4 - there);
        several(world, 4).iter().zip(&before).all(|(now, before)| now.0 != before.0) && there == 4
    };
    world.until("all are replaced", all_replaced).await;
    world.quiet().await;
    let addresses = |all: &[(Value, Vec<String>)]| all.iter().map(|one| one.1.clone()).collect::<Vec<_>>();
    assert_eq!(addresses(&several(&world, 4)), addresses(&before));
}

#[tokio::test(start_paused = true)]
async fn none_is_replaced_while_the_last_creation_failed() {
    let mut world = configured(|_| REPLACE.to_owned()).await;
    let before = serve_several(&world, 3).await;
    let outage = world.cloud.faults().add_worker(WorkerFault::fail(OperationKind::LoadBalancerCreate));
    (0..3).for_each(|number| breaks_down(&world, &format!("web-{number}")));
    let untouched = |world: &World| {
        several(world, 3).iter().zip(&before).filter(|(now, before)| now.0 == before.0).count()
    };
    tokio::time::sleep(2 * HOUR).await;
    assert_eq!(untouched(&world), 2);
    // The next program does not know what happened.
    world.kill().await;
    world.start().await;
    tokio::time::sleep(2 * HOUR).await;
    assert_eq!(untouched(&world), 2);
    world.cloud.faults().remove(outage);
    world.until("all are replaced", |world| untouched(world) == 0).await;
}

/// Where a floating IP does not show whose it was.
#[tokio::test(start_paused = true)]
async fn an_internal_service_whose_replacement_was_interrupted_gets_its_load_balancer() {
    let mut world = configured(|_| REPLACE.to_owned()).await;
    world.serve(&annotated(&[(INTERNAL, "true")])).await;
    let address = world.ingress("web");
    breaks_down(&world, "web");
    world.until("it is deleted", |world| world.cloud.load_balancers().is_empty()).await;
    world.kill().await;
    world.start().await;
    world.until("it is recreated", |world| !world.cloud.load_balancers().is_empty()).await;
    world.quiet().await;
    assert_eq!(
        (world.ingress("web"), load_balancer(&world)["provisioning_status"].clone()),
        (address, json!("ACTIVE"))
    );
}
