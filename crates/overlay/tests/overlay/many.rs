//! A cluster with a thousand Services.

use openstack_ccm_kube_sim::ApiVersion;
use serde_json::json;

use crate::world::{World, settle};

const SERVICES: usize = 1000;

#[tokio::test(start_paused = true)]
async fn a_thousand_services_cost_one_write_each_and_one_more_when_their_owner_restarts() {
    let mut world = World::new(ApiVersion::V1_36);
    for number in 0..SERVICES {
        world.create(&format!("app-{number}"));
    }
    let publish = async |world: &World| {
        for number in 0..SERVICES {
            let address = format!("203.0.{}.{}", 100 + number / 250, 1 + number % 250);
            world.owner_publishes(&format!("app-{number}"), json!([{"ip": address}])).await;
        }
    };
    publish(&world).await;
    world.kube.clear_requests();
    world.start().await;
    settle().await;
    assert_eq!(world.writes().len(), SERVICES);
    let pages = world.kube.count_requests("GET", "/api/v1/services");
    // Few in one answer, for they may be large.
    assert!(pages <= SERVICES / 5 + 2, "{pages} pages and watches");
    assert_eq!(
        world.kube.count_requests("GET", "/namespaces/default/services/"),
        0,
        "no Service is read by itself"
    );
    publish(&world).await;
    settle().await;
    assert_eq!(world.writes().len(), 2 * SERVICES);
    let labels = "ip_mode_overlay_services_published{mode=\"proxy\",reason=\"proxy_protocol\"}";
    assert_eq!(world.metric(labels), SERVICES.to_string());
}
