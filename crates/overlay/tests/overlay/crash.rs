//! The overlay is killed at every call, and started again.

use std::time::Duration;

use openstack_ccm_kube_sim::ApiVersion;
use serde_json::json;

use crate::world::{World, settle};

#[tokio::test(start_paused = true)]
async fn killed_at_every_call_it_ends_where_it_would_have() {
    for calls in 1.. {
        let mut world = World::new(ApiVersion::V1_36);
        world.create("app");
        world.owner_publishes("app", json!([{"ip": "203.0.113.10"}])).await;
        world.create_with("plain", &json!({}));
        world.owner_publishes("plain", json!([{"ip": "203.0.113.20"}])).await;
        world.kube.clear_requests();
        world.spawn();
        let start = tokio::time::Instant::now();
        let all_made = loop {
            if world.kube.requests().len() >= calls {
                break false;
            }
            if start.elapsed() > Duration::from_secs(60) {
                break true;
            }
            tokio::task::yield_now().await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        };
        world.kill().await;
        world.start().await;
        settle().await;
        assert_eq!(
            world.ingress("app"),
            json!([{"ip": "203.0.113.10", "ipMode": "Proxy"}]),
            "after {calls} calls"
        );
        assert_eq!(world.ingress("plain"), json!([{"ip": "203.0.113.20", "ipMode": "VIP"}]));
        if all_made || calls > 30 {
            assert!(calls > 4, "it makes more calls than that");
            return;
        }
    }
}
