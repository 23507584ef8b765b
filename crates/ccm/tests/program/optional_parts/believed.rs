//! What shows that a cloud lacks a part, and what does not: words that a user wrote, one answer at the start, objects of strangers.

use http::Method;
use openstack_ccm_openstack_sim::{Fault, Lack, OddCloud, Rewrite};
use rstest::rstest;
use serde_json::{Value, json};

use super::LACKING;
use crate::contract::setup::{INTERNAL, annotated, configured, floating_ip, id, load_balancer};
use crate::refused::{leads, on_port_80};
use crate::support::{ANNOTATION, World, lb_name, service};

const LB_ID: &str = "loadbalancer.openstack.org/load-balancer-id";

/// A Service on a port of the load balancer of `web`.
pub(super) fn guest(world: &World, port: u16) -> Value {
    let ports = json!([{"name": "http", "port": port, "protocol": "TCP"}]);
    let annotations = json!({LB_ID: id(&load_balancer(world))});
    service("guest", json!({"metadata": {"annotations": annotations}, "spec": {"ports": ports}}))
}

/// A guest stays one and follows nodes, its port comes back with another number, and goes with it.
async fn the_guest_follows(world: &mut World) {
    world.add_node("node-3", "v1.36.0");
    world.until("both lead to the new node", |world| leads(world, &[80, 81], 3)).await;
    world.kube.delete("nodes", "", "node-1").unwrap();
    world.until("both have lost the node that went", |world| leads(world, &[80, 81], 2)).await;
    let ports = json!([{"name": "http", "port": 82, "protocol": "TCP"}]);
    world.patch("guest", &json!({"spec": {"ports": ports}}));
    world.until("the guest has another port", |world| leads(world, &[80, 82], 2)).await;
    world.quiet_unplanned().await;
    world.release("guest").await;
    assert!(leads(world, &[80], 2), "{}", world.state());
    let tags = load_balancer(world)["tags"].to_string();
    assert!(!tags.contains("guest"), "{tags}");
}

/// A gateway was being set up when the program started, or never forwards the root of Octavia.
#[rstest]
#[case::once(true)]
#[case::never(false)]
#[tokio::test(start_paused = true)]
async fn a_guest_follows_nodes_where_octavias_versions_cannot_be_read(#[case] once: bool) {
    let mut world = World::serving(&on_port_80()).await;
    world.serve(&guest(&world, 81)).await;
    world.stop().await;
    world.settings.plans = false;
    if once {
        let root = Fault::new().service("load-balancer").method(Method::GET).path("^/$");
        world.cloud.faults().add(root.page(404, "<html>nginx</html>").once());
    } else {
        world.cloud.lack(Lack::Versions);
    }
    world.start().await;
    the_guest_follows(&mut world).await;
    let told = super::told(&world, "web").len() + super::told(&world, "guest").len();
    assert_eq!(told, usize::from(!once), "{:#?}", world.events("guest"));
}

/// Octavia repeats the reference of a certificate in another store, in which anybody may write anything.
#[rstest]
#[case::of_the_store("Could not retrieve certificate: ['https://store.example.org/tags/1']")]
#[case::of_the_value(
    "Invalid input for field/attribute default_tls_container_ref. Value: 'tags'. tags is wrong"
)]
#[case::in_the_form("Validation failure: Unknown attribute for argument listener_.listener: tags")]
#[case::of_another_attribute(
    "Unknown attributes for argument listener_.listener: tags_of_mine, alpn_protocols"
)]
#[tokio::test(start_paused = true)]
async fn a_word_of_a_user_in_a_refusal_says_nothing_about_the_cloud(#[case] text: &str) {
    let mut world = configured(|_| "container-store = external".to_owned()).await;
    world.serve(&on_port_80()).await;
    world.serve(&guest(&world, 81)).await;
    world.stop().await;
    world.settings.plans = false;
    world.start().await;
    let body = json!({"faultcode": "Client", "faultstring": text, "debuginfo": null});
    let refused = Fault::new().service("load-balancer").method(Method::POST).with_body("store.example.org");
    world.cloud.faults().add(refused.answer(400, body));
    let mut tenant = annotated(&[("default-tls-container-ref", "https://store.example.org/tags/1")]);
    tenant["metadata"]["name"] = json!("tenant");
    world.create(&tenant);
    world.until_warned("tenant", "SyncLoadBalancerFailed").await;
    world.pass(600).await;
    for name in ["web", "guest", "tenant"] {
        assert!(!world.warnings(name).concat().contains(LACKING), "{:#?}", world.warnings(name));
    }
    world.create(&service("new", json!({})));
    world.until_published("new").await;
    let tags = world.cloud.load_balancer(&lb_name("new")).unwrap()["tags"].to_string();
    assert!(tags.contains("openstack-ccm-cluster=") && tags.contains("openstack-ccm-service="), "{tags}");
    world.release("new").await;
    the_guest_follows(&mut world).await;
}

/// Nobody could tell whose its listeners are, and the owner would remove the load balancer with them.
#[tokio::test(start_paused = true)]
async fn a_guest_that_cannot_announce_itself_gets_no_port() {
    let mut world = World::new(openstack_ccm_kube_sim::ApiVersion::V1_36);
    world.settings.plans = false;
    world.cloud.become_odd(OddCloud::OctaviaWithoutTags);
    world.start().await;
    world.serve(&on_port_80()).await;
    world.create(&guest(&world, 81));
    world.until_warned("guest", "sharing a load balancer requires tags").await;
    // From now on it is not known, when the guest is judged, what the cloud lacks.
    world.restart().await;
    world.pass(7200).await;
    assert!(leads(&world, &[80], 2) && world.ingress("guest").is_empty(), "{}", world.state());
}

/// Whoever shows its tags has them, whatever a gateway says of one request.
#[tokio::test(start_paused = true)]
async fn a_cloud_that_shows_our_tags_has_tags() {
    let mut world = World::serving(&on_port_80()).await;
    world.settings.plans = false;
    world.restart().await;
    world.quiet_unplanned().await;
    let text = "Unknown attribute for argument load_balancer.loadbalancer: tags";
    let body = json!({"faultcode": "Client", "faultstring": text, "debuginfo": null});
    let post = Fault::new().service("load-balancer").method(Method::POST).path("/loadbalancers$");
    world.cloud.faults().add(post.answer(400, body).times(3));
    world.create(&service("new", json!({})));
    world.until_published("new").await;
    let tags = world.cloud.load_balancer(&lb_name("new")).unwrap()["tags"].to_string();
    assert!(tags.contains("openstack-ccm-service="), "{tags}");
}

/// The Event of one namespace has no words and no ids of another.
#[tokio::test(start_paused = true)]
async fn an_event_about_a_part_that_is_missing_repeats_nothing_of_the_answer() {
    let mut world = World::new(openstack_ccm_kube_sim::ApiVersion::V1_36);
    world.settings.plans = false;
    let tags = Fault::new().service("network").method(Method::PUT).path("/floatingips/[^/]+/tags$");
    let body = json!({"NeutronError": {"type": "HTTPNotFound", "message": "no words for team-secret", "detail": ""}});
    world.cloud.faults().add(tags.answer(404, body));
    world.start().await;
    world.create(&on_port_80());
    world.until_warned("web", LACKING).await;
    let floating_ip = id(&world.cloud.floating_ips()[0]);
    let events = world.kube.list("events", "default").unwrap();
    let texts: Vec<String> = events.iter().map(|event| event["message"].to_string()).collect();
    let about: Vec<&String> = texts.iter().filter(|text| text.contains("Tags of floating IPs")).collect();
    assert_eq!(about.len(), 1, "{texts:#?}");
    assert!(about[0].contains("PUT /v2.0/floatingips/*/tags") && about[0].contains("404"), "{about:?}");
    assert!(!about[0].contains("team-secret") && !about[0].contains(&floating_ip), "{about:?}");
}

/// The only load balancer is not shown, and the cloud takes no notice of a filter: a floating IP of a stranger proves nothing.
#[rstest]
#[case::of_floating_ips("network", "/floatingips")]
#[case::of_load_balancers("load-balancer", "/loadbalancers")]
#[tokio::test(start_paused = true)]
async fn objects_of_strangers_are_no_evidence_that_a_load_balancer_is_gone(
    #[case] service: &'static str,
    #[case] path: &'static str,
) {
    let mut world = World::serving(&annotated(&[(INTERNAL, "true")])).await;
    world.settings.plans = false;
    floating_ip(&world.cloud, "198.19.0.77", "of a stranger");
    let before = world.service("web");
    world.stop().await;
    world.cloud.rewrite(Rewrite::IgnoresFilters { service, path, names: &[] });
    let gone = json!({"faultcode": "Client", "faultstring": "Load Balancer not found.", "debuginfo": null});
    let one = Fault::new().service("load-balancer").method(Method::GET).path("/loadbalancers/[^/]+");
    world.cloud.faults().add(one.answer(404, gone));
    let list = Fault::new().service("load-balancer").method(Method::GET).path(r"/loadbalancers(\?.*)?$");
    world.cloud.faults().add(list.answer(200, json!({"loadbalancers": []})));
    world.take_calls();
    world.start().await;
    world.pass(300).await;
    assert_eq!(world.take_cloud_writes(), [""; 0]);
    for key in ["load-balancer-id", "load-balancer-address"] {
        let key = format!("{ANNOTATION}{key}");
        assert_eq!(
            world.service("web")["metadata"]["annotations"][&key],
            before["metadata"]["annotations"][&key]
        );
    }
}

/// A policy that hides a network is no proof that its id is wrong; what Neutron says of an id that it does not have is.
#[rstest]
#[case::floating_network("floating-network-id")]
#[case::network("network-id")]
#[tokio::test(start_paused = true)]
async fn a_network_that_may_not_be_looked_at_is_used(#[case] key: &str) {
    let mut world = World::new(openstack_ccm_kube_sim::ApiVersion::V1_36);
    world.settings.plans = false;
    let seed = world.cloud.seed().clone();
    let network = if key == "network-id" { seed.network_id } else { seed.public_network_id };
    world.settings.cloud_conf = format!("{key} = {network}");
    let body = json!({"NeutronError": {"type": "HTTPNotFound", "message": "The resource could not be found.", "detail": ""}});
    let get = Fault::new().service("network").method(Method::GET).path("^/v2.0/networks/[^/]+$");
    world.cloud.faults().add(get.answer(404, body));
    let list = Fault::new().service("network").method(Method::GET).path(r"^/v2.0/networks(\?.*)?$");
    world.cloud.faults().add(list.answer(200, json!({"networks": []})));
    world.start().await;
    world.create(&on_port_80());
    world.until_published("web").await;
}

#[rstest]
#[case::shown(true)]
#[case::not_shown(false)]
#[tokio::test(start_paused = true)]
async fn an_id_that_neutron_does_not_have_is_told_before_anything_is_made_unless_the_list_has_it(
    #[case] is_listed: bool,
) {
    let mut world = World::new(openstack_ccm_kube_sim::ApiVersion::V1_36);
    world.settings.plans = false;
    let network = world.cloud.seed().public_network_id.clone();
    world.settings.cloud_conf = format!("floating-network-id = {network}");
    let text = format!("Network {network} could not be found.");
    let body = json!({"NeutronError": {"type": "NetworkNotFound", "message": text, "detail": ""}});
    let get = Fault::new().service("network").method(Method::GET).path("^/v2.0/networks/[^/]+$");
    world.cloud.faults().add(get.answer(404, body));
    if !is_listed {
        let list = Fault::new().service("network").method(Method::GET).path(r"^/v2.0/networks(\?.*)?$");
        world.cloud.faults().add(list.answer(200, json!({"networks": []})));
    }
    world.start().await;
    world.create(&on_port_80());
    if is_listed {
        world.until_published("web").await;
    } else {
        world.until_warned("web", "floating-network-id").await;
        world.quiet_unplanned().await;
        assert_eq!(world.take_cloud_writes(), [""; 0]);
    }
}
