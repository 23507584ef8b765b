//! The controller reports load balancers whose Service is gone, and never deletes them.

use std::time::Duration;

use openstack_ccm_kube_sim::ApiVersion;
use serde_json::{Value, json};

use crate::contract::setup::{annotated, cluster_uid, load_balancer, make_for_namesake};
use crate::support::{Stop, World, service};

const OTHER_CLUSTER: &str = "5ec0ad00-0000-4000-8000-000000000002";
/// Longer than a check, and the one that confirms what it saw.
const TWO_LOOKS: Duration = Duration::from_secs(2400);

/// The metric.
fn without_service(world: &World) -> String {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &world.registry.lock().unwrap()).unwrap();
    let line = text.lines().find(|line| line.starts_with("openstack_ccm_load_balancers_without_service "));
    line.unwrap().rsplit(' ').next().unwrap().to_owned()
}

fn warnings(world: &World) -> Vec<String> {
    let mut warnings = world.warnings("web");
    warnings.retain(|warning| warning.contains("LoadBalancerWithoutService"));
    warnings
}

/// Makes a load balancer as a request of an earlier time would, which Octavia has carried out.
fn made_for(world: &World, cluster_uid: &str, service_uid: &str, description: &str) -> String {
    let id = make_for_namesake(world, cluster_uid, service_uid, description);
    world.cloud.settle();
    id
}

/// A new Service `web` and a program that sends the request for its load balancer and dies. The request arrives when
/// the next program has let the Service go.
async fn late_request() -> World {
    let probe = World::started().await;
    probe.create(&service("web", json!({})));
    probe.until_published("web").await;
    let number = probe.take_calls().iter().position(|call| call.name == "POST loadbalancers").unwrap();
    let mut world = World::new(ApiVersion::V1_36);
    world.create(&service("web", json!({})));
    world.start_until(Some(Stop::OnItsWay(number))).await;
    assert!(!world.survives().await);
    world.delete("web");
    world.kill().await;
    world.start().await;
    world.until_gone("web").await;
    world.until("it arrives", |world| !world.cloud.load_balancers().is_empty()).await;
    world
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_was_made_after_its_service_was_gone_is_counted_and_stays() {
    let world = late_request().await;
    world.serve(&service("api", json!({}))).await;
    assert_eq!(without_service(&world), "0");
    tokio::time::sleep(TWO_LOOKS).await;
    assert_eq!(without_service(&world), "1");
    assert!(world.take_cloud_writes().is_empty());
    // Who comes back under the name takes it over.
    let made = load_balancer(&world)["id"].clone();
    world.serve(&service("web", json!({}))).await;
    assert_eq!((load_balancer(&world)["id"].clone(), world.cloud.load_balancers().len()), (made, 2));
    tokio::time::sleep(TWO_LOOKS).await;
    assert_eq!((without_service(&world), world.cloud.load_balancers().len()), ("0".to_owned(), 2));
}

/// What other clusters made, what stays on purpose and what serves is not an orphan, whatever its name.
#[tokio::test(start_paused = true)]
async fn only_what_names_this_cluster_and_no_service_that_is_there_counts() {
    let world = World::serving(&service("web", json!({}))).await;
    let (own, earlier) = (cluster_uid(&world), "11111111-2222-4333-8444-555555555555");
    let served = load_balancer(&world)["id"].clone();
    made_for(&world, OTHER_CLUSTER, earlier, "");
    made_for(&world, &own, earlier, "Retained: Kubernetes external service default/web from cluster c1");
    tokio::time::sleep(TWO_LOOKS).await;
    assert_eq!((without_service(&world), warnings(&world)), ("0".to_owned(), Vec::new()));
    let orphan = made_for(&world, &own, earlier, "Kubernetes external service default/web from cluster c1");
    tokio::time::sleep(TWO_LOOKS).await;
    tokio::time::sleep(TWO_LOOKS).await;
    assert_eq!(without_service(&world), "1");
    let events = world.kube.list("events", "default").unwrap();
    let reports: Vec<&Value> =
        events.iter().filter(|event| event["reason"] == "LoadBalancerWithoutService").collect();
    assert_eq!((reports.len(), warnings(&world).len()), (1, 1), "it is reported once");
    assert!(reports[0]["message"].as_str().unwrap().contains(&orphan) && served != orphan);
    assert_eq!(world.cloud.load_balancers().len(), 4);
    assert!(world.take_cloud_writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_retained_or_of_another_type_leaves_no_orphan() {
    let world = World::serving(&annotated(&[("reclaim-policy", "retain")])).await;
    world.patch("web", &json!({"spec": {"type": "ClusterIP"}}));
    tokio::time::sleep(TWO_LOOKS).await;
    world.release("web").await;
    tokio::time::sleep(TWO_LOOKS).await;
    assert_eq!((without_service(&world), world.cloud.load_balancers().len()), ("0".to_owned(), 1));
}
