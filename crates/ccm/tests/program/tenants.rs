//! What a namespace learns of another one, and gets from it: Events are read by whoever has access to their namespace.

use openstack_ccm_openstack_sim::OctaviaRelease;
use rstest::rstest;
use serde_json::{Value, json};

use crate::contract::setup::{configured_on, floating_ip};
use crate::support::{ANNOTATION, LB_ID, World, service};

const ASKED: &str = "198.19.0.77";

/// A Service of this namespace with annotations of the usual prefix.
fn of(namespace: &str, name: &str, port: u16, annotations: &[(&str, &str)]) -> Value {
    let ports = json!([{"name": "one", "port": port, "protocol": "TCP"}]);
    let mut service = service(name, json!({"metadata": {"namespace": namespace}, "spec": {"ports": ports}}));
    for (key, value) in annotations {
        let key = if key.contains('/') { (*key).to_owned() } else { format!("{ANNOTATION}{key}") };
        service["metadata"]["annotations"][key] = json!(value);
    }
    service
}

fn addresses(world: &World, namespace: &str, name: &str) -> Vec<String> {
    let service = world.kube.get("services", namespace, name).unwrap_or_default();
    let entries = service["status"]["loadBalancer"]["ingress"].as_array().cloned().unwrap_or_default();
    entries.iter().map(|entry| entry["ip"].as_str().unwrap_or_default().to_owned()).collect()
}

/// A cluster in which the Service `till` of the namespace `shop` is published.
async fn with_shop(octavia: OctaviaRelease, cloud_conf: &str, annotations: &[(&str, &str)]) -> World {
    let mut world = configured_on(octavia, |_| cloud_conf.to_owned()).await;
    world.settings.plans = false;
    world.restart().await;
    floating_ip(&world.cloud, ASKED, "");
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    world.kube.create(&namespace).unwrap();
    world.create(&of("shop", "till", 80, annotations));
    let published = |world: &World| !addresses(world, "shop", "till").is_empty();
    world.until("the shop is published", published).await;
    world.quiet().await;
    world
}

/// A value that is refused is used by nothing, not even to find whom to share with.
#[rstest]
#[case::in_the_annotation(true)]
#[case::in_the_field(false)]
#[tokio::test(start_paused = true)]
async fn an_address_that_a_namespace_may_not_ask_for_is_not_shared(#[case] is_annotated: bool) {
    let closed = "[LoadBalancerNamespace \"default\"]\nallowed-addresses = 198.19.0.128/25\n";
    let octavia = OctaviaRelease::default();
    let world = with_shop(octavia, closed, &[("floating-ip", ASKED), ("share-by-address", "true")]).await;
    let before = world.cloud_state();
    let mut wish = of("default", "web", 8443, &[("share-by-address", "true")]);
    if is_annotated {
        wish["metadata"]["annotations"][format!("{ANNOTATION}floating-ip")] = json!(ASKED);
    } else {
        wish["spec"]["loadBalancerIP"] = json!(ASKED);
    }
    world.create(&wish);
    world.until_warned("web", "is not allowed in this namespace").await;
    world.pass(900).await;
    assert_eq!(world.cloud_state(), before);
    assert!(world.annotation("web", LB_ID).is_none() && world.ingress("web").is_empty());
}
