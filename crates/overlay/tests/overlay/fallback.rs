//! Clusters that do not honour the mode, and those that come to.

use openstack_ccm_kube_sim::ApiVersion;
use openstack_ccm_overlay::cleanup::cleanup;
use serde_json::json;

use crate::world::{World, settle};

#[tokio::test(start_paused = true)]
async fn a_server_that_drops_the_mode_is_reported_and_nothing_is_written() {
    let world = World::started(ApiVersion::V1_28).await;
    world.serve("app").await;
    assert_eq!(world.ingress("app"), json!([{"ip": "203.0.113.10"}]));
    assert_eq!(world.writes().len(), 0);
    let events = world.events("app");
    assert!(
        events.iter().any(|event| event.contains("drops ipMode") && event.contains("--hostname-suffix")),
        "{events:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_hostname_takes_the_place_of_the_address_until_the_cluster_is_fit() {
    let mut world = World::new(ApiVersion::V1_28);
    world.options.hostname_suffix = Some("nip.example".into());
    world.start().await;
    world.serve("app").await;
    assert_eq!(world.ingress("app"), json!([{"hostname": "203.0.113.10.nip.example"}]));
    world.kube.set_version(ApiVersion::V1_36);
    tokio::time::sleep(std::time::Duration::from_secs(120)).await;
    assert_eq!(world.ingress("app"), json!([{"ip": "203.0.113.10", "ipMode": "Proxy"}]));
}

/// A name that stands in the place of more than an address could not be taken back.
#[tokio::test(start_paused = true)]
async fn a_hostname_of_the_owner_is_not_overwritten() {
    let mut world = World::new(ApiVersion::V1_28);
    world.options.hostname_suffix = Some("nip.example".into());
    world.start().await;
    world.create("app");
    world.owner_publishes("app", json!([{"hostname": "lb.example.net", "ip": "203.0.113.10"}])).await;
    settle().await;
    assert_eq!(world.ingress("app"), json!([{"hostname": "lb.example.net", "ip": "203.0.113.10"}]));
    assert_eq!(world.writes().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_hostname_is_given_back_as_the_address_that_it_names() {
    let mut world = World::new(ApiVersion::V1_28);
    world.options.hostname_suffix = Some("nip.example".into());
    world.start().await;
    world.create("app");
    world.owner_publishes("app", json!([{"ip": "2001:db8::5"}])).await;
    settle().await;
    assert_eq!(world.ingress("app"), json!([{"hostname": "2001-db8--5.nip.example"}]));
    world.stop().await;
    cleanup(&world.user, Some("nip.example")).await.unwrap();
    assert_eq!(world.ingress("app"), json!([{"ip": "2001:db8::5"}]));
}

#[tokio::test(start_paused = true)]
async fn one_old_node_is_named_and_takes_the_mode_from_nobody() {
    let world = World::started(ApiVersion::V1_36).await;
    world.serve("app").await;
    world.create_node("old", "10.0.0.13", "v1.29.4");
    settle().await;
    assert_eq!(world.ingress("app"), json!([{"ip": "203.0.113.10", "ipMode": "Proxy"}]));
    assert_eq!(world.metric("ip_mode_overlay_ip_mode_unfit_nodes"), "1");
    let events = world.events("app");
    assert!(events.iter().any(|event| event.contains("node old does not honour ipMode")), "{events:?}");
}
