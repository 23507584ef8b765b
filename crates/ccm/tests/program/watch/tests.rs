//! The watch sees what it is there for, and nothing else: each removal once without a wish for it, once with one.

use bytes::Bytes;
use rstest::rstest;
use serde_json::{Value, json};

use super::Watch;
use crate::contract::setup::{INTERNAL, id, load_balancer, only_floating_ip};
use crate::support::{PROXY, World, service};

/// A write of the program that the test plays.
async fn write(world: &World, service: &str, method: &str, path: &str, body: &Value) {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("x-auth-token", world.cloud.token())
        .header("user-agent", "c1")
        .body(Bytes::from(body.to_string()))
        .unwrap();
    let answer = world.cloud.call(service, request).await.unwrap();
    assert!(answer.status().is_success(), "{answer:?}");
    world.cloud.settle();
}

/// A Service that was served, and whose program is stopped.
async fn served() -> (World, Watch) {
    let mut world = World::serving(&service("web", json!({}))).await;
    world.stop().await;
    let watch = Watch::over(&world.cloud);
    watch.cluster("c1", &world.kube);
    (world, watch)
}

#[derive(Clone, Copy, Debug)]
enum Removal {
    LoadBalancer,
    Listener,
    Pool,
    Member,
    FloatingIp,
    Address,
}

async fn remove(world: &World, removal: Removal) {
    let lbaas = |path: &str| format!("/v2.0/lbaas/{path}");
    let pool = id(&world.cloud.pools()[0]);
    let (method, path, body) = match removal {
        Removal::LoadBalancer => {
            ("DELETE", format!("loadbalancers/{}?cascade=true", id(&load_balancer(world))), Value::Null)
        }
        Removal::Listener => {
            ("DELETE", format!("listeners/{}", id(&world.cloud.listeners()[0])), Value::Null)
        }
        Removal::Pool => ("DELETE", format!("pools/{pool}"), Value::Null),
        Removal::Member => ("PUT", format!("pools/{pool}/members"), json!({"members": []})),
        Removal::FloatingIp => {
            let path = format!("/v2.0/floatingips/{}", id(&only_floating_ip(world)));
            let detached = json!({"floatingip": {"port_id": null}});
            return write(world, "network", "PUT", &path, &detached).await;
        }
        Removal::Address => {
            let patch = json!({"status": {"loadBalancer": {"ingress": [{"ip": "198.19.0.99"}]}}});
            world.kube.patch_status("services", "default", "web", &patch).unwrap();
            return;
        }
    };
    write(world, "load-balancer", method, &lbaas(&path), &body).await;
}

#[rstest]
#[case::load_balancer(Removal::LoadBalancer, "wants it")]
#[case::listener(Removal::Listener, "is removed")]
#[case::pool(Removal::Pool, "is replaced")]
#[case::member(Removal::Member, "is removed")]
#[case::floating_ip(Removal::FloatingIp, "is taken from")]
#[case::address(Removal::Address, "taken out of its status")]
#[tokio::test(start_paused = true)]
async fn what_nobody_asked_for_is_a_breach(#[case] removal: Removal, #[case] expected: &str) {
    let (world, watch) = served().await;
    // Asks for nothing: values of the wrong form, and keys that decide something else.
    for (key, value) in [(INTERNAL, "True"), (PROXY, "V2"), ("loadbalancer.openstack.org/lb-method", "FOO")] {
        world.annotate("web", key, Some(value));
    }
    assert!(watch.take_breaches().is_empty());
    remove(&world, removal).await;
    let breaches = watch.take_breaches();
    assert!(!breaches.is_empty() && breaches.iter().all(|breach| breach.contains(expected)), "{breaches:?}");
}

#[rstest]
#[case::load_balancer(Removal::LoadBalancer, json!({"spec": {"type": "ClusterIP"}}))]
#[case::listener(Removal::Listener, json!({"spec": {"ports": [{"port": 81, "protocol": "TCP"}]}}))]
#[case::pool(Removal::Pool, json!({"metadata": {"annotations": {PROXY: "v2"}}}))]
#[case::member(Removal::Member, json!({"spec": {"ports": [{"port": 80, "protocol": "TCP", "nodePort": 31234}]}}))]
#[case::floating_ip(Removal::FloatingIp, json!({"metadata": {"annotations": {INTERNAL: "true"}}}))]
#[case::address(Removal::Address, json!({"metadata": {"annotations": {INTERNAL: "true"}}}))]
#[tokio::test(start_paused = true)]
async fn what_the_service_asked_for_is_none(#[case] removal: Removal, #[case] wish: Value) {
    let (world, watch) = served().await;
    world.patch("web", &wish);
    // Asked for once is asked for: the program may be late.
    world.patch("web", &json!({"metadata": {"labels": {"a": "b"}}}));
    remove(&world, removal).await;
    assert_eq!(watch.take_breaches(), Vec::<String>::new());
}

/// A hostname that the Service had named before it was published may be taken back; one that it never named may not.
#[rstest]
#[case::named_before(true)]
#[case::never_named(false)]
#[tokio::test(start_paused = true)]
async fn a_hostname_that_came_late_may_be_taken_back(#[case] was_named: bool) {
    let (world, watch) = served().await;
    let publish = |entry: Value| {
        let patch = json!({"status": {"loadBalancer": {"ingress": [entry]}}});
        world.kube.patch_status("services", "default", "web", &patch).unwrap();
    };
    if was_named {
        world.annotate("web", "loadbalancer.openstack.org/hostname", Some("web.example.org"));
        world.annotate("web", "loadbalancer.openstack.org/hostname", None);
    }
    let address = world.service("web")["status"]["loadBalancer"]["ingress"][0].clone();
    publish(json!({"hostname": "web.example.org"}));
    watch.take_breaches();
    publish(address);
    assert_eq!(watch.take_breaches().is_empty(), was_named);
}

/// What was published by a run that had begun before an edit may give way to what the edit asks for. That is so once: what came
/// after the answer to the edit stays.
#[rstest]
#[case::begun_before_the_edit(false)]
#[case::after_the_answer(true)]
#[tokio::test(start_paused = true)]
async fn what_was_published_late_may_give_way_to_the_last_wish(
    #[values(json!({"hostname": "web.example.org"}), json!({"ip": "198.19.0.78"}))] answer: Value,
    #[case] is_answered: bool,
) {
    let (world, watch) = served().await;
    let publish = |entry: &Value| {
        let patch = json!({"status": {"loadBalancer": {"ingress": [entry]}}});
        world.kube.patch_status("services", "default", "web", &patch).unwrap();
    };
    world.annotate("web", INTERNAL, Some("true"));
    world.annotate("web", INTERNAL, None);
    world.annotate("web", "loadbalancer.openstack.org/hostname", Some("web.example.org"));
    if is_answered {
        publish(&answer);
    }
    publish(&json!({"ip": "198.19.0.77"}));
    watch.take_breaches();
    publish(&answer);
    assert_eq!(watch.take_breaches().is_empty(), !is_answered);
}

/// Members of a node that is gone, or is taken out of load balancing, may go.
#[rstest]
#[case::gone(true)]
#[case::excluded(false)]
#[tokio::test(start_paused = true)]
async fn members_go_with_their_nodes(#[case] gone: bool) {
    let (world, watch) = served().await;
    for node in world.cloud.nodes() {
        if gone {
            world.kube.delete("nodes", "", &node.name).unwrap();
        } else {
            let label = json!({"node.kubernetes.io/exclude-from-external-load-balancers": ""});
            world.kube.patch("nodes", "", &node.name, &json!({"metadata": {"labels": label}})).unwrap();
        }
    }
    remove(&world, Removal::Member).await;
    assert_eq!(watch.take_breaches(), Vec::<String>::new());
}

/// A pool of another protocol has members before the listener gets it, unless the Service wants none.
#[rstest]
#[case::all_nodes(json!({PROXY: "v2"}), 1)]
#[case::no_node(json!({PROXY: "v2", "loadbalancer.openstack.org/node-selector": "absent"}), 0)]
#[tokio::test(start_paused = true)]
async fn a_listener_gets_no_empty_pool(#[case] annotations: Value, #[case] breaches: usize) {
    let (world, watch) = served().await;
    world.patch("web", &json!({"metadata": {"annotations": annotations}}));
    let owned = |kind: &str| format!("{kind}_0_kube_service_kubernetes_default_web");
    let pool = json!({"pool": {"name": owned("pool"), "protocol": "PROXYV2", "lb_algorithm": "ROUND_ROBIN",
        "loadbalancer_id": id(&load_balancer(&world))}});
    write(&world, "load-balancer", "POST", "/v2.0/lbaas/pools", &pool).await;
    let new = world.cloud.pools().into_iter().find(|pool| pool["protocol"] == "PROXYV2").unwrap();
    let path = format!("/v2.0/lbaas/listeners/{}", id(&world.cloud.listeners()[0]));
    let swapped = json!({"listener": {"default_pool_id": id(&new)}});
    write(&world, "load-balancer", "PUT", &path, &swapped).await;
    let found = watch.take_breaches();
    assert_eq!(found.len(), breaches, "{found:?}");
    assert!(found.iter().all(|breach| breach.contains("gets a pool without members")), "{found:?}");
}

/// Of two load balancers of a name the one may go to which no client was ever led.
#[rstest]
#[case::the_one_that_nobody_uses(true)]
#[case::the_one_that_is_published(false)]
#[tokio::test(start_paused = true)]
async fn a_duplicate_goes_only_where_nobody_uses_it(#[case] is_unused: bool) {
    let (world, watch) = served().await;
    let published = load_balancer(&world);
    let body =
        json!({"loadbalancer": {"name": published["name"], "vip_subnet_id": world.cloud.seed().subnet_id}});
    write(&world, "load-balancer", "POST", "/v2.0/lbaas/loadbalancers", &body).await;
    let duplicate =
        world.cloud.load_balancers().into_iter().find(|one| one["id"] != published["id"]).unwrap();
    let goes = id(if is_unused { &duplicate } else { &published });
    let path = format!("/v2.0/lbaas/loadbalancers/{goes}?cascade=true");
    write(&world, "load-balancer", "DELETE", &path, &Value::Null).await;
    let breaches = watch.take_breaches();
    assert_eq!(breaches.is_empty(), is_unused, "{breaches:?}");
}

/// What is somebody else's is not even marked, whoever names it.
#[tokio::test(start_paused = true)]
async fn a_tag_on_what_is_another_clusters_is_a_breach() {
    let (world, watch) = served().await;
    let body = json!({"loadbalancer": {"name": "kube_service_c2_default_web",
        "vip_subnet_id": world.cloud.seed().subnet_id}});
    let (_, made) = world.cloud.user().post("load-balancer", "/v2.0/lbaas/loadbalancers", &body);
    world.cloud.settle();
    let theirs = id(&made["loadbalancer"]);
    world.annotate("web", "loadbalancer.openstack.org/load-balancer-id", Some(&theirs));
    let tags = json!({"loadbalancer": {"tags": ["mine"]}});
    write(&world, "load-balancer", "PUT", &format!("/v2.0/lbaas/loadbalancers/{theirs}"), &tags).await;
    let breaches = watch.take_breaches();
    assert!(breaches.len() == 1 && breaches[0].contains("somebody else's"), "{breaches:?}");
}

/// A cluster was replaced by another one of its name, which has taken the load balancer over.
#[tokio::test(start_paused = true)]
async fn what_has_the_identity_of_another_cluster_is_not_written() {
    let (world, watch) = served().await;
    let path = format!("/v2.0/lbaas/loadbalancers/{}", id(&load_balancer(&world)));
    let tags =
        json!({"loadbalancer": {"tags": ["kube_service_c1_default_web", "openstack-ccm-cluster=another"]}});
    write(&world, "load-balancer", "PUT", &path, &tags).await;
    assert_eq!(watch.take_breaches(), Vec::<String>::new());
    let limit = json!({"listener": {"connection_limit": 7}});
    let listener = format!("/v2.0/lbaas/listeners/{}", id(&world.cloud.listeners()[0]));
    write(&world, "load-balancer", "PUT", &listener, &limit).await;
    let breaches = watch.take_breaches();
    assert!(breaches.len() == 1 && breaches[0].contains("is somebody else's"), "{breaches:?}");
}
