//! Kubernetes is doubted as the cloud is: what it does not show any more was not asked for.

use std::time::Duration;

use openstack_ccm::health::Probe;
use openstack_ccm_kube_sim::ApiVersion;
use serde_json::json;

use crate::support::{World, service};

const HOUR: Duration = Duration::from_secs(3600);

fn held(world: &World) -> String {
    let metrics = world.metrics();
    let name = "openstack_ccm_services_held{reason=\"service_vanished\"} ";
    metrics.lines().find_map(|line| line.strip_prefix(name)).expect("the metric").to_owned()
}

async fn serving(count: usize) -> World {
    let mut world = World::new(ApiVersion::V1_36);
    world.start().await;
    for number in 0..count {
        world.create(&service(&format!("web-{number}"), json!({})));
    }
    for number in 0..count {
        world.until_published(&format!("web-{number}")).await;
    }
    world.quiet().await;
    world.take_calls();
    world
}

#[tokio::test(start_paused = true)]
async fn an_api_server_without_our_services_costs_no_load_balancer_and_no_floating_ip() {
    let world = serving(3).await;
    for number in 0..3 {
        world.kube.lose("services", "default", &format!("web-{number}")).unwrap();
    }
    tokio::time::sleep(2 * HOUR).await;
    assert_eq!(world.take_cloud_writes(), Vec::<String>::new());
    assert_eq!((world.cloud.load_balancers().len(), world.cloud.floating_ips().len()), (3, 3));
    assert_eq!(held(&world), "3");
    let orphans = world.metrics();
    assert!(orphans.contains("openstack_ccm_load_balancers_without_service 3"), "{orphans}");
}

#[tokio::test(start_paused = true)]
async fn what_is_deleted_on_purpose_goes_as_fast_as_ever() {
    let world = serving(3).await;
    let start = tokio::time::Instant::now();
    for number in 0..3 {
        world.delete(&format!("web-{number}"));
    }
    world.until("all are gone", |world| world.cloud.load_balancers().is_empty()).await;
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    world.quiet().await;
    assert_eq!(held(&world), "0");
}

#[tokio::test(start_paused = true)]
async fn an_address_that_leads_to_another_cluster_is_said_by_readiness_and_nothing_is_done() {
    let world = serving(2).await;
    world.kube.set_cluster_uid("11111111-2222-4333-8444-555555555555").unwrap();
    world.kube.lose("services", "default", "web-0").unwrap();
    world.create(&service("theirs", json!({})));
    tokio::time::sleep(HOUR).await;
    world.delete("web-1");
    tokio::time::sleep(HOUR).await;
    assert_eq!(world.take_cloud_writes(), Vec::<String>::new());
    assert_eq!(world.cloud.load_balancers().len(), 2);
    let (ready, lines) = world.health.report(Probe::Readiness, &[]);
    assert!(!ready);
    assert!(
        lines.contains(
            "[-]cluster failed: the API server shows another cluster: the namespace kube-system has the uid"
        ),
        "{lines}"
    );
}
