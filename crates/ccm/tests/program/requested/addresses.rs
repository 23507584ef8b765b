//! Annotations in place of `spec.loadBalancerIP`, which Kubernetes has deprecated.

use openstack_ccm_kube_sim::ApiVersion;
use serde_json::json;

use crate::contract::setup::{annotated, floating_ip, load_balancer};
use crate::support::{World, service};

const FLOATING_IP: &str = "loadbalancer.openstack.org/floating-ip";
const VIP_ADDRESS: &str = "loadbalancer.openstack.org/vip-address";
const INTERNAL: &str = "service.beta.kubernetes.io/openstack-internal-load-balancer";
const ASKED: &str = "198.19.0.77";
const OTHER: &str = "198.19.0.78";

/// Contract: O18, better: OCCM has `spec.loadBalancerIP` only.
#[tokio::test(start_paused = true)]
async fn a_floating_ip_is_asked_for_by_annotation_and_exchanged_when_that_changes() {
    let world = World::started().await;
    floating_ip(&world.cloud, ASKED, "");
    world.serve(&annotated(&[("floating-ip", ASKED)])).await;
    assert_eq!(world.ingress("web"), [format!("{ASKED}(VIP)")]);
    // Only what the Service got from the program makes way.
    let mut world = World::serving(&service("web", json!({}))).await;
    // A plan does not know what the controller has seen.
    world.settings.plans = false;
    floating_ip(&world.cloud, OTHER, "");
    world.annotate("web", FLOATING_IP, Some(OTHER));
    world.until_ingress("web", &format!("{OTHER}(VIP)")).await;
    world.quiet().await;
    assert!(world.warnings("web").is_empty(), "{:#?}", world.warnings("web"));
}

/// Manifests carry the annotation for other controllers, where it had no effect here so far.
#[tokio::test(start_paused = true)]
async fn an_annotation_that_was_there_before_changes_nothing_at_the_start() {
    let mut world = World::serving(&service("web", json!({}))).await;
    let before = world.ingress("web");
    floating_ip(&world.cloud, ASKED, "");
    floating_ip(&world.cloud, OTHER, "");
    world.stop().await;
    world.annotate("web", FLOATING_IP, Some(ASKED));
    world.annotate("web", VIP_ADDRESS, Some("10.0.0.77"));
    world.start().await;
    world.quiet().await;
    assert!(world.take_cloud_writes().is_empty());
    assert_eq!(world.ingress("web"), before);
    let warnings = world.warnings("web");
    for part in ["floating-ip is 198.19.0.77", "vip-address asks for 10.0.0.77"] {
        assert!(warnings.iter().any(|warning| warning.contains(part)), "{part}: {warnings:#?}");
    }
    world.settings.plans = false;
    world.annotate("web", FLOATING_IP, Some(OTHER));
    world.until_ingress("web", &format!("{OTHER}(VIP)")).await;
}

#[tokio::test(start_paused = true)]
async fn the_field_and_the_annotation_have_to_agree() {
    let world = World::started().await;
    let asks = |annotation: &str| json!({"metadata": {"annotations": {FLOATING_IP: annotation}}, "spec": {"loadBalancerIP": ASKED}});
    floating_ip(&world.cloud, ASKED, "");
    world.create(&service("web", asks(OTHER)));
    world.until_warned("web", "which spec.loadBalancerIP asks for").await;
    assert!(world.cloud.load_balancers().is_empty());
    world.annotate("web", FLOATING_IP, Some(ASKED));
    world.until_ingress("web", &format!("{ASKED}(VIP)")).await;
}

#[tokio::test(start_paused = true)]
async fn an_internal_load_balancer_gets_the_address_of_the_annotation() {
    let mut world = World::new(ApiVersion::V1_36);
    world.settings.cloud_conf = String::new();
    world.start().await;
    let prefix = world.cloud.nodes()[0].addresses[0].rsplit_once('.').unwrap().0.to_owned();
    let asked = format!("{prefix}.200");
    world.serve(&annotated(&[(INTERNAL, "true"), ("vip-address", &asked), ("floating-ip", ASKED)])).await;
    assert_eq!(load_balancer(&world)["vip_address"], json!(asked));
    assert!(world.cloud.floating_ips().is_empty());
    world.until_warned("web", "floating-ip").await;
}
