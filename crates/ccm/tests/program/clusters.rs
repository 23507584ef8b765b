//! Many Services at once, and several clusters in one cloud.

use std::collections::BTreeSet;

use openstack_ccm_kube_sim::ApiVersion;
use serde_json::json;

use crate::support::{PROXY, World, lb_name, service};

#[tokio::test(start_paused = true)]
async fn fifty_services_at_once_get_one_load_balancer_each() {
    let world = World::started().await;
    let names: Vec<String> = (0..50).map(|number| format!("web-{number}")).collect();
    for name in &names {
        world.create(&service(name, json!({"metadata": {"annotations": {PROXY: "v2"}}})));
    }
    for name in &names {
        world.until_published(name).await;
    }
    world.quiet().await;
    let addresses: BTreeSet<String> = names.iter().flat_map(|name| world.ingress(name)).collect();
    assert_eq!(addresses.len(), 50);
    assert_eq!(world.cloud.load_balancers().len(), 50);
    assert_eq!(world.cloud.floating_ips().len(), 50);
    assert!(world.cloud.leaked_ports().is_empty());
    let mut writes = world.take_cloud_writes();
    writes.sort_unstable();
    let count = |name: &str| writes.iter().filter(|write| *write == name).count();
    assert_eq!((count("POST loadbalancers"), count("POST floatingips"), writes.len()), (50, 50, 150));
    for name in &names {
        assert!(world.warnings(name).is_empty(), "{:?}", world.warnings(name));
        world.delete(name);
    }
    for name in &names {
        world.until_gone(name).await;
    }
    assert!(world.cloud.load_balancers().is_empty() && world.cloud.floating_ips().is_empty());
}

/// Two clusters whose operators did not choose a name, with a Service of the same name in the same namespace, never share a load
/// balancer by accident.
///
/// Contract: C29, better: the second is refused with an Event, instead of taking the members over.
/// Defect: 83, better: tags carry the identity of the cluster, and another cluster's load balancer is
/// refused.
#[tokio::test(start_paused = true)]
async fn two_clusters_of_one_name_never_share_a_load_balancer_by_accident() {
    let first = World::serving(&service("web", json!({}))).await;
    let before = first.cloud_state();
    let mut second = World::in_cloud(ApiVersion::V1_36, first.cloud.clone());
    second.settings.cluster_uid = Some("5ec0ad00-0000-4000-8000-000000000002".to_owned());
    // Simulated clusters give the same uids; real ones do not.
    second.create(&service("placeholder", json!({"spec": {"type": "ClusterIP"}})));
    second.start().await;
    second.create(&service("web", json!({})));
    second.until_warned_at_rest("web", "belongs to another cluster").await;
    assert!(second.take_cloud_writes().is_empty());
    assert_eq!(first.cloud_state(), before);
    assert!(second.ingress("web").is_empty());
    second.release("web").await;
    assert!(second.take_cloud_writes().is_empty());
    assert_eq!(first.cloud_state(), before);
    assert!(first.cloud.load_balancer(&lb_name("web")).is_some());
}

#[tokio::test(start_paused = true)]
async fn two_clusters_of_different_names_live_side_by_side() {
    let first = World::serving(&service("web", json!({}))).await;
    let mut second = World::in_cloud(ApiVersion::V1_36, first.cloud.clone());
    second.settings.cluster_name = "c2".to_owned();
    second.settings.cluster_uid = Some("5ec0ad00-0000-4000-8000-000000000002".to_owned());
    second.create(&service("placeholder", json!({"spec": {"type": "ClusterIP"}})));
    second.start().await;
    second.serve(&service("web", json!({}))).await;
    assert_eq!(first.cloud.load_balancers().len(), 2);
    assert_ne!(first.ingress("web"), second.ingress("web"));
    second.release("web").await;
    first.quiet().await;
    assert_eq!(first.cloud.load_balancers().len(), 1);
    assert!(first.cloud.load_balancer(&lb_name("web")).is_some());
}

/// A Service that is deleted and made again under its name before its load balancer is gone.
#[tokio::test(start_paused = true)]
async fn a_service_that_is_made_again_gets_its_own_load_balancer() {
    let world = World::serving(&service("web", json!({}))).await;
    let before = world.cloud.load_balancer(&lb_name("web")).unwrap()["id"].clone();
    world.release("web").await;
    world.create(&service("web", json!({"metadata": {"annotations": {PROXY: "v1"}}})));
    world.until_served("web").await;
    assert_eq!(world.cloud.load_balancers().len(), 1);
    assert_ne!(world.cloud.load_balancer(&lb_name("web")).unwrap()["id"], before);
    assert!(world.cloud_state().contains("PROXY"));
}
