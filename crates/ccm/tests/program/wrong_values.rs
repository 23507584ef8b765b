//! A wrong value degrades its own wish and nothing else: each annotation in turn, on a load balancer that exists and on one
//! that does not.

use std::collections::BTreeSet;

use openstack_ccm_provider_openstack::load_balancer::annotations::{ALL, Annotation, Form};
use rstest::rstest;
use serde_json::{Value, json};

use crate::bad_input::{short, unknown, wrong};
use crate::contract::setup::annotated;
use crate::support::{ANNOTATION, Side, World, service};

const INTERNAL: &str = "service.beta.kubernetes.io/openstack-internal-load-balancer";
const RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";

/// The whole key of an annotation.
fn full(key: &str) -> String {
    if key.contains('/') { key.to_owned() } else { format!("{ANNOTATION}{key}") }
}

/// A certificate that Barbican has.
fn certificate(world: &World) -> String {
    let body = json!({"name": "ours", "type": "generic", "secret_refs": []});
    let answer = world.cloud.user().make("key-manager", "/v1/containers", &body);
    answer["container_ref"].as_str().unwrap().to_owned()
}

/// What a Service says before the annotation becomes wrong: a value that is not the default, with what it needs, so that a
/// load balancer that falls back to the default is seen.
fn right(world: &World, key: &str) -> Vec<(String, String)> {
    let seed = world.cloud.seed();
    let own: Vec<(&str, String)> = match short(key) {
        "openstack-internal-load-balancer" => vec![(INTERNAL, "true".into())],
        "proxy-protocol" => vec![("proxy-protocol", "v2".into())],
        "x-forwarded-for" | "x-forwarded-port" | "x-forwarded-proto" => vec![(short(key), "true".into())],
        "default-tls-container-ref" => vec![("default-tls-container-ref", certificate(world))],
        "sni-container-refs" | "tls-versions" | "tls-ciphers" | "alpn-protocols" | "tls-revision" => {
            let value = match short(key) {
                "sni-container-refs" => certificate(world),
                "tls-versions" => "TLSv1.3".into(),
                "tls-ciphers" => "ECDHE-RSA-AES128-GCM-SHA256".into(),
                "alpn-protocols" => "http/1.1".into(),
                _ => "7".into(),
            };
            vec![("default-tls-container-ref", certificate(world)), (short(key), value)]
        }
        "connection-limit" => vec![("connection-limit", "100".into())],
        "timeout-client-data" | "timeout-member-connect" | "timeout-member-data" | "timeout-tcp-inspect" => {
            vec![(short(key), "61000".into())]
        }
        "node-selector" => {
            let label = json!({"metadata": {"labels": {"pool": "edge"}}});
            world.kube.patch("nodes", "", "node-1", &label).unwrap();
            vec![("node-selector", "pool=edge".into())]
        }
        "lb-method" => vec![("lb-method", "LEAST_CONNECTIONS".into())],
        "enable-health-monitor" => vec![("enable-health-monitor", "true".into())],
        "health-monitor-delay"
        | "health-monitor-timeout"
        | "health-monitor-max-retries"
        | "health-monitor-max-retries-down" => {
            vec![("enable-health-monitor", "true".into()), (short(key), "4".into())]
        }
        "health-monitor-type"
        | "health-monitor-path"
        | "health-monitor-method"
        | "health-monitor-expected-codes" => vec![
            ("enable-health-monitor", "true".into()),
            ("health-monitor-type", "HTTP".into()),
            ("health-monitor-path", "/ready".into()),
            ("health-monitor-method", "HEAD".into()),
            ("health-monitor-expected-codes", "204".into()),
        ],
        "load-balancer-source-ranges" => vec![(RANGES, "10.0.0.0/8".into())],
        "allow-cluster-sources" => {
            vec![(RANGES, "10.0.0.0/8".into()), ("allow-cluster-sources", "true".into())]
        }
        "hostname" => vec![("hostname", "app.example.org".into())],
        "ip-mode" => vec![("ip-mode", "proxy".into())],
        "keep-floatingip" => vec![("keep-floatingip", "true".into())],
        "subnet-id" | "member-subnet-id" => vec![(short(key), seed.subnet_id.clone())],
        "network-id" => vec![("network-id", seed.network_id.clone())],
        "floating-network-id" => vec![("floating-network-id", seed.public_network_id.clone())],
        _ => Vec::new(),
    };
    own.into_iter().map(|(key, value)| (full(key), value)).collect()
}

/// What carries traffic, and what it does: everything but members and source ranges.
fn what_serves(world: &World) -> Vec<Value> {
    let without = |mut object: Value, keys: &[&str]| {
        for key in keys {
            object.as_object_mut().unwrap().remove(*key);
        }
        object
    };
    let times = ["updated_at", "created_at", "operating_status", "provisioning_status"];
    let listeners = world.cloud.listeners().into_iter();
    let listeners = listeners.map(|one| without(without(one, &times), &["allowed_cidrs"]));
    let pools = world.cloud.pools().into_iter();
    let pools = pools.map(|one| without(without(one, &times), &["members"]));
    let floating_ips = world.cloud.floating_ips().into_iter();
    let floating_ips = floating_ips.map(|one| without(one, &["updated_at", "revision_number"]));
    listeners.chain(pools).chain(floating_ips).chain([json!(world.ingress("web"))]).collect()
}

/// The addresses of the members, of each pool alike.
fn members(world: &World) -> BTreeSet<String> {
    let pools = world.cloud.pools();
    let of = |pool: &Value| -> BTreeSet<String> {
        let members = world.cloud.members(pool["id"].as_str().unwrap());
        members.iter().map(|member| member["address"].as_str().unwrap().to_owned()).collect()
    };
    let mut all = pools.iter().map(of);
    let first = all.next().unwrap_or_default();
    assert!(all.all(|members| members == first));
    first
}

fn addresses(world: &World, nodes: &[String]) -> BTreeSet<String> {
    let all = world.cloud.nodes();
    let of = |name: &String| all.iter().find(|node| node.name == *name).unwrap().addresses[0].clone();
    nodes.iter().map(of).collect()
}

async fn until_members(world: &World, what: &str, nodes: &[String]) {
    let expected = addresses(world, nodes);
    world.until(what, |world| members(world) == expected).await;
}

/// Nothing that serves is removed, replaced or made by the writes since the last time.
fn assert_harmless(world: &World, what: &str, before: &[Value]) {
    let calls = world.take_calls().into_iter();
    let writes = calls.filter(|call| call.side == Side::OpenStack && call.write).map(|call| call.name);
    for write in writes {
        let is_harmless = write.contains("pools/ID/members") || write == "PUT listeners/ID";
        assert!(is_harmless, "{what}: {write}");
    }
    assert_eq!(what_serves(world), before, "{what}");
}

/// On a Service that serves, the value changes nothing; nodes and source ranges are followed, also after a restart.
async fn goes_on(annotation: &Annotation, value: &str) {
    let what = format!("{}: {value:?}", annotation.key);
    let mut world = World::started().await;
    let right = right(&world, annotation.key);
    let right: Vec<(&str, &str)> = right.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    world.serve(&annotated(&right)).await;
    let before = what_serves(&world);
    world.annotate_to_rest("web", annotation.key, Some(value)).await;
    assert_harmless(&world, &format!("{what} itself"), &before);

    world.add_node("node-3", "v1.36.0");
    let names = world.cloud.nodes().iter().map(|node| node.name.clone()).collect::<Vec<_>>();
    let [first, second, third] = names.as_slice() else { panic!("{names:?}") };
    // Which nodes are meant is what cannot be read of a selector: the members stay.
    let keeps = short(annotation.key) == "node-selector";
    let expected = |nodes: &[&str]| match keeps {
        true => vec![first.clone()],
        false => nodes.iter().map(|node| (*node).to_owned()).collect(),
    };
    until_members(&world, &format!("{what}: a node joins"), &expected(&[first, second, third])).await;
    world.kube.delete("nodes", "", first).unwrap();
    until_members(&world, &format!("{what}: a node leaves"), &expected(&[second, third])).await;
    world.patch("web", &json!({"spec": {"loadBalancerSourceRanges": ["192.0.2.0/24"]}}));
    let narrowed = |world: &World| {
        let listeners = world.cloud.listeners();
        let cidrs = |listener: &Value| listener["allowed_cidrs"].as_array().cloned().unwrap_or_default();
        listeners.iter().map(cidrs).all(|cidrs| {
            cidrs.contains(&json!("192.0.2.0/24"))
                && !cidrs.contains(&json!("0.0.0.0/0"))
                && !cidrs.contains(&json!("10.0.0.0/8"))
        })
    };
    world.until(&format!("{what}: source ranges are applied"), narrowed).await;
    world.quiet().await;
    assert_harmless(&world, &what, &before);

    world.restart_to_rest().await;
    world.add_node("node-4", "v1.36.0");
    let expected = expected(&[second, third, "node-4"]);
    until_members(&world, &format!("{what}: a node joins after a restart"), &expected).await;
    world.quiet().await;
    assert_eq!(members(&world), addresses(&world, &expected), "{what}");
    assert_harmless(&world, &format!("{what} after a restart"), &before);
}

/// In parts, which run side by side.
#[rstest]
#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_exists_goes_on_following_whatever_one_annotation_says(
    #[values(0, 1, 2, 3)] part: usize,
) {
    for annotation in ALL.iter().skip(part).step_by(4) {
        for value in wrong(annotation.key, annotation.form) {
            goes_on(annotation, &value).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_an_annotation_names_and_nothing_has_does_not_stop_a_load_balancer_that_exists() {
    for annotation in ALL {
        if let Some(value) = unknown(annotation.key, annotation.form) {
            goes_on(annotation, &value).await;
        }
    }
}

/// OCCM's words for off are ours on a load balancer that OCCM made with them: nothing changes at the switch.
#[tokio::test(start_paused = true)]
async fn a_bool_in_another_case_changes_nothing_on_what_was_made_without_it() {
    for annotation in ALL.iter().filter(|annotation| annotation.form == Form::Bool) {
        let world = World::serving(&service("web", json!({}))).await;
        let before = what_serves(&world);
        world.annotate("web", annotation.key, Some("True"));
        world.until_warned_at_rest("web", "write \"true\" or \"false\"").await;
        assert_harmless(&world, annotation.key, &before);
    }
}

/// Nothing is made with a guess: a new Service with the value is refused with key, value and fix. A bool counts as absent,
/// as it does for OCCM.
#[tokio::test(start_paused = true)]
async fn what_does_not_exist_yet_is_refused() {
    let world = World::started().await;
    for annotation in ALL {
        for value in wrong(annotation.key, annotation.form) {
            let web = service("web", json!({"metadata": {"annotations": {annotation.key: value}}}));
            let shown: String = value.chars().take(80).collect();
            world.create(&web);
            world.until_warned_at_rest("web", &shown).await;
            let warnings = world.warnings("web");
            let named =
                |one: &&String| one.contains(annotation.key) && one.contains(&shown) && one.contains("; ");
            assert_eq!(warnings.iter().filter(named).count(), 1, "{}: {warnings:?}", annotation.key);
            // A wrong value of a setting that has no effect is no reason to refuse.
            let without_effect =
                warnings.iter().any(|one| one.contains("LoadBalancerSettingWrongWithoutEffect"));
            let made = usize::from(annotation.form == Form::Bool || without_effect);
            assert_eq!(world.cloud.load_balancers().len(), made, "{}: {value:?}", annotation.key);
            world.release("web").await;
            for event in world.kube.list("events", "default").unwrap() {
                world.kube.delete("events", "default", event["metadata"]["name"].as_str().unwrap()).unwrap();
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn all_that_is_wrong_is_reported_in_one_event() {
    let wrong = [("timeout-client-data", "50s"), ("proxy-protocol", "V2"), ("lb-method", "FOO")];
    let world = World::serving(&service("web", json!({}))).await;
    let annotations: Value = wrong.iter().map(|(key, value)| (full(key), json!(value))).collect();
    world.patch("web", &json!({"metadata": {"annotations": annotations}}));
    world.until_warned("web", "3 settings are invalid").await;
    tokio::time::sleep(std::time::Duration::from_secs(1000)).await;
    let warnings = world.warnings("web");
    let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
    assert!(wrong.iter().all(|(key, value)| warning.contains(key) && warning.contains(value)), "{warning}");
}

/// A port that is new follows its siblings in what cannot be read.
#[tokio::test(start_paused = true)]
async fn a_new_port_takes_from_its_siblings_what_cannot_be_read() {
    let world = World::serving(&annotated(&[("connection-limit", "100"), ("proxy-protocol", "v2")])).await;
    let ports = json!([{"name": "http", "port": 80, "protocol": "TCP"},
        {"name": "https", "port": 443, "protocol": "TCP"}]);
    let annotations = json!({full("connection-limit"): "none", full("proxy-protocol"): "V2"});
    world.patch("web", &json!({"metadata": {"annotations": annotations}, "spec": {"ports": ports}}));
    world.until("the new port is there", |world| world.cloud.listeners().len() == 2).await;
    world.quiet().await;
    assert!(world.cloud.listeners().iter().all(|listener| listener["connection_limit"] == 100));
    assert!(world.cloud.pools().iter().all(|pool| pool["protocol"] == "PROXYV2"));
}

/// What fails closed stays closed: a port that is new waits where it is not known who may connect.
#[tokio::test(start_paused = true)]
async fn source_ranges_that_cannot_be_read_open_nothing() {
    let world = World::serving(&annotated(&[(RANGES, "10.0.0.0/8")])).await;
    let ports = json!([{"name": "http", "port": 80, "protocol": "TCP"},
        {"name": "https", "port": 443, "protocol": "TCP"}]);
    let annotations = json!({RANGES: "10.0.0.0/8,everybody"});
    world.patch("web", &json!({"metadata": {"annotations": annotations}, "spec": {"ports": ports}}));
    world.until_warned_at_rest("web", "LoadBalancerPortWaits").await;
    let listeners = world.cloud.listeners();
    assert_eq!(listeners.len(), 1);
    assert_eq!(listeners[0]["allowed_cidrs"], json!(["10.0.0.0/8"]));
    world.annotate("web", RANGES, Some("10.0.0.0/8"));
    world.until("the new port is there", |world| world.cloud.listeners().len() == 2).await;
}

/// A Service whose settings are wrong costs no call to the cloud while nothing else happens.
#[tokio::test(start_paused = true)]
async fn a_degraded_service_is_cheap() {
    let world = World::serving(&service("web", json!({}))).await;
    world.annotate("web", &full("timeout-client-data"), Some("50s"));
    world.until_warned_at_rest("web", "50s").await;
    world.take_calls();
    tokio::time::sleep(std::time::Duration::from_secs(600)).await;
    let calls = world.take_calls().into_iter();
    let calls: Vec<String> =
        calls.filter(|call| call.side == Side::OpenStack).map(|call| call.name).collect();
    assert!(calls.is_empty(), "{calls:?}");
    assert_eq!(world.warnings("web").len(), 1);
}

/// Timeouts up to 24 days, and checks that overlap, are taken as Octavia takes them.
#[tokio::test(start_paused = true)]
async fn what_octavia_takes_is_taken() {
    let world = World::serving(&annotated(&[
        ("timeout-client-data", "2073600000"),
        ("enable-health-monitor", "true"),
        ("health-monitor-timeout", "9"),
        ("health-monitor-delay", "4"),
        ("node-selector", "kubernetes.io/os=windows,kubernetes.io/os=linux,"),
    ]))
    .await;
    assert_eq!(world.cloud.listeners()[0]["timeout_client_data"], 2_073_600_000_u32);
    assert!(world.warnings("web").iter().any(|warning| warning.contains("LoadBalancerChecksOverlap")));
}

#[tokio::test(start_paused = true)]
async fn what_was_changed_in_the_cloud_is_put_right_beside_a_wrong_value() {
    let world = World::serving(&service("web", json!({}))).await;
    world.annotate("web", &full("timeout-client-data"), Some("50s"));
    world.until_warned_at_rest("web", "50s").await;
    let id = world.cloud.listeners()[0]["id"].as_str().unwrap().to_owned();
    let path = format!("/v2.0/lbaas/listeners/{id}");
    let body = json!({"listener": {"connection_limit": 7, "timeout_client_data": 9000}});
    world.cloud.user().change("load-balancer", &path, &body);
    world.cloud.settle();
    world.until("the limit is put right", |world| world.cloud.listeners()[0]["connection_limit"] == -1).await;
    assert_eq!(
        world.cloud.listeners()[0]["timeout_client_data"],
        9000,
        "what cannot be read is not put right"
    );
}
