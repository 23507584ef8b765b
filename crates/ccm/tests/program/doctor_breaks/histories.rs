//! However a healthy world came to be, doctor raises no alarm.

use http::Method;
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::{Patch, PatchParams};
use rstest::rstest;
use serde_json::{Value, json};

use super::healthy;
use super::stage::{Kind, Stage, lease, served};
use crate::support::{ANNOTATION, World};

/// What happened to a world after it was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum History {
    /// OCCM wrote the status, and this program found nothing to change.
    Migrated,
    /// Another process leads, and the status is from before.
    Led,
    Restarted,
    /// Octavia replaced the machines of the load balancer.
    FailedOver,
    /// Another node came, and the controller took it in.
    Grown,
}

#[rstest]
#[case::migrated(Kind::Proxy, History::Migrated)]
#[case::migrated_plain(Kind::Plain, History::Migrated)]
#[case::led(Kind::Proxy, History::Led)]
#[case::restarted(Kind::Proxy, History::Restarted)]
#[case::restarted_dual_stack(Kind::DualStack, History::Restarted)]
#[case::failed_over(Kind::Proxy, History::FailedOver)]
#[case::failed_over_monitored(Kind::Monitored, History::FailedOver)]
#[case::grown(Kind::Proxy, History::Grown)]
#[case::grown_monitored(Kind::Monitored, History::Grown)]
#[tokio::test(start_paused = true)]
async fn a_healthy_world_raises_no_alarm(#[case] kind: Kind, #[case] history: History) {
    let mut world = served(kind).await;
    match history {
        History::Migrated => {
            occm_publishes(&world).await;
            lease(&world);
            goes_on(&mut world).await;
        }
        History::Led => lease(&world),
        History::Restarted => goes_on(&mut world).await,
        History::FailedOver => {
            let id = world.cloud.load_balancers()[0]["id"].as_str().unwrap().to_owned();
            let path = format!("/v2.0/lbaas/loadbalancers/{id}/failover");
            let (status, answer) =
                world.cloud.admin().send(&Method::PUT, "load-balancer", &path, &Value::Null);
            assert_eq!(status, 202, "{answer}");
            world.cloud.settle();
        }
        History::Grown => {
            world.add_node("node-3", "v1.36.0");
            world.set_ready("node-3", "True");
            super::kube_proxy::run_on(&world, "node-3", &world.cloud.nodes()[2].addresses[0], "v1.36.0");
            super::cluster::guard_nodes(&world, &[super::cluster::open_group(&world)]);
            goes_on(&mut world).await;
        }
    }
    let stage = Stage::look_at(kind, world).await;
    let found = healthy(&stage).await;
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The program starts, does what there is to do, and ends.
async fn goes_on(world: &mut World) {
    world.start_to_rest().await;
    world.stop().await;
    world.cloud.settle();
}

/// The status as OCCM writes it, and none of the annotations of this program alone.
async fn occm_publishes(world: &World) {
    for key in ["owned-load-balancer-id", "settled"] {
        world.annotate("web", &format!("{ANNOTATION}{key}"), None);
    }
    let services: Api<Service> = Api::default_namespaced(kube::Client::new(world.kube.service(), "default"));
    let manager = PatchParams {
        field_manager: Some("openstack-cloud-controller-manager".to_owned()),
        ..PatchParams::default()
    };
    let entries = world.service("web")["status"]["loadBalancer"]["ingress"].clone();
    for entries in [json!([]), entries] {
        let status = Patch::Merge(json!({"status": {"loadBalancer": {"ingress": entries}}}));
        services.patch_status("web", &manager, &status).await.unwrap();
    }
}
