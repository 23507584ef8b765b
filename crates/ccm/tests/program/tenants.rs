//! What a namespace learns of another one, and gets from it: Events are read by whoever has access to their namespace.

use openstack_ccm_openstack_sim::OctaviaRelease;
use rstest::rstest;
use serde_json::{Value, json};

use crate::contract::setup::{INTERNAL, configured_on, floating_ip, id};
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

/// All Events about the Service `web` in `default`, with their ids.
fn events(world: &World) -> String {
    let mut events = world.kube.list("events", "default").unwrap();
    events.retain(|event| event["involvedObject"]["name"] == "web");
    events.iter().map(|event| format!("{}\n", event["message"])).collect()
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

/// How a tenant may ask for what another namespace has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    FloatingIp,
    Field,
    InternalAddress,
    /// The address of an external load balancer in its subnet, which no status shows.
    Vip,
    Port,
    /// The id of a load balancer that has as many users as it may have.
    IdOfAFullOne,
    /// The id, with a port that is taken.
    IdAndATakenPort,
}

/// The ids are known to who reads the Services of the shop, and the way by an id needs no word of the shop.
#[rstest]
#[case(By::FloatingIp, "is the floating IP of a Service of another namespace")]
#[case(By::Field, "is the floating IP of a Service of another namespace")]
#[case(By::InternalAddress, "is the address of a Service of another namespace")]
#[case(By::Vip, "is in use by the VIP port of a load balancer")]
#[case(By::Port, "is already the VIP port of a load balancer of another namespace")]
#[case(By::IdOfAFullOne, "a load balancer of another namespace is already used by 1 Services")]
#[case(By::IdAndATakenPort, "port TCP:80 is already used by a listener of another namespace")]
#[tokio::test(start_paused = true)]
async fn events_name_nothing_of_other_namespaces(#[case] by: By, #[case] said: &str) {
    let cloud_conf = if by == By::IdOfAFullOne { "max-shared-lb = 1\n" } else { "" };
    let is_internal = by == By::InternalAddress;
    let theirs = if is_internal { (INTERNAL, "true") } else { ("floating-ip", ASKED) };
    // Newer ones say themselves what is in the way.
    let octavia = if by == By::Vip { OctaviaRelease::V14 } else { OctaviaRelease::default() };
    let world = with_shop(octavia, cloud_conf, &[theirs]).await;
    let there = world.cloud.load_balancer("kube_service_c1_shop_till").unwrap();
    let [their_id, vip, port] =
        ["id", "vip_address", "vip_port_id"].map(|key| there[key].as_str().unwrap().to_owned());
    let (key, value) = match by {
        By::FloatingIp | By::Field => ("floating-ip", ASKED),
        By::InternalAddress | By::Vip => ("vip-address", vip.as_str()),
        By::Port => ("port-id", port.as_str()),
        By::IdOfAFullOne | By::IdAndATakenPort => ("load-balancer-id", their_id.as_str()),
    };
    let mut wish = of("default", "web", if by == By::IdAndATakenPort { 80 } else { 8443 }, &[(key, value)]);
    if by == By::Field {
        wish["metadata"]["annotations"] = json!({});
        wish["spec"]["loadBalancerIP"] = json!(value);
    }
    if matches!(by, By::InternalAddress | By::Vip) {
        wish["metadata"]["annotations"][INTERNAL] = json!("true");
    }
    let before = world.cloud_state();
    world.create(&wish);
    world.until_warned("web", said).await;
    world.pass(900).await;
    assert_eq!(world.cloud_state(), before);
    let listeners = world.cloud.listeners();
    let secret =
        listeners.iter().map(id).chain([their_id.clone(), port.clone()]).filter(|secret| secret != value);
    let events = events(&world);
    for secret in secret.chain(["till".to_owned(), "shop".to_owned()]) {
        assert!(!events.contains(&secret), "{secret} in {events}");
    }
}
