//! Clusters that change while the program runs: Services turn over by themselves, and the cloud is not touched.

use openstack_ccm_kube_sim::ApiVersion;
use rstest::rstest;
use serde_json::json;

use crate::support::{ADDRESS, PROXY, World, service};

const HOSTNAME: &str = "198.19.0.11.lb.example.org";
const BY_MODE: &str = "198.19.0.11(Proxy)";

async fn serving(version: ApiVersion) -> World {
    let mut world = World::new(version);
    world.settings.cloud_conf = "ingress-hostname-suffix = lb.example.org\n".to_owned();
    world.start().await;
    world.serve(&service("web", json!({"metadata": {"annotations": {PROXY: "v2"}}}))).await;
    world
}

#[rstest]
#[case::servers_first(true)]
#[case::nodes_last_to_be_replaced(false)]
#[tokio::test(start_paused = true)]
async fn an_upgrade_turns_hostnames_into_modes(#[case] watches_break: bool) {
    let world = serving(ApiVersion::V1_28).await;
    assert_eq!(world.ingress("web"), [HOSTNAME]);
    if watches_break {
        world.replace_api_server(ApiVersion::V1_36);
    } else {
        // Nothing but the version shows it.
        world.kube.set_version(ApiVersion::V1_36);
    }
    world.quiet().await;
    assert_eq!(world.ingress("web"), [HOSTNAME], "the nodes are old");
    world.set_kubelet("node-1", "v1.36.0");
    world.quiet().await;
    assert_eq!(world.ingress("web"), [HOSTNAME], "one node is old");
    world.set_kubelet("node-2", "v1.36.0");
    world.until_ingress("web", BY_MODE).await;
    assert!(world.take_cloud_writes().is_empty());
    assert_eq!(world.annotation("web", ADDRESS).as_deref(), Some("198.19.0.11"));
    let events = world.events("web");
    assert!(events.iter().any(|event| event.contains("LoadBalancerIPModeChanged")), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn a_downgrade_turns_modes_into_hostnames() {
    let world = serving(ApiVersion::V1_36).await;
    assert_eq!(world.ingress("web"), [BY_MODE]);
    world.set_kubelets("v1.28.9");
    world.until_ingress("web", HOSTNAME).await;
    world.replace_api_server(ApiVersion::V1_28);
    world.quiet().await;
    assert_eq!(world.ingress("web"), [HOSTNAME]);
    assert!(world.take_cloud_writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_is_switched_off_is_noticed() {
    let world = serving(ApiVersion::with_gate(31, true).unwrap()).await;
    assert_eq!(world.ingress("web"), [BY_MODE]);
    // The version stays the same, no watch breaks; the field is dropped from answers.
    world.kube.set_version(ApiVersion::with_gate(31, false).unwrap());
    world.until_ingress("web", HOSTNAME).await;
    world.kube.set_version(ApiVersion::with_gate(31, true).unwrap());
    world.until_ingress("web", BY_MODE).await;
}

#[tokio::test(start_paused = true)]
async fn an_old_node_that_joins_turns_services_over_until_it_leaves() {
    let world = serving(ApiVersion::V1_36).await;
    world.add_node("node-3", "v1.27.1");
    world.until_ingress("web", HOSTNAME).await;
    world.kube.delete("nodes", "", "node-3").unwrap();
    world.until_ingress("web", BY_MODE).await;
}

#[tokio::test(start_paused = true)]
async fn many_services_turn_over_without_a_call_to_the_cloud() {
    let world = serving(ApiVersion::V1_28).await;
    for number in 0..20 {
        world.create(&service(&format!("web-{number}"), json!({"metadata": {"annotations": {PROXY: "v1"}}})));
    }
    for number in 0..20 {
        world.until_published(&format!("web-{number}")).await;
    }
    world.quiet().await;
    world.take_calls();
    world.replace_api_server(ApiVersion::V1_36);
    world.set_kubelets("v1.36.0");
    for number in 0..20 {
        let name = format!("web-{number}");
        world.until(&name, |world| world.ingress(&name)[0].ends_with("(Proxy)")).await;
    }
    assert!(world.take_cloud_writes().is_empty());
}
