//! What this program writes in the cloud when it takes over what OCCM has made.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{PLACES, all_reach, id_of};
use crate::machine::wait::until;
use crate::network::NEIGHBOUR;
use crate::network::ask::from_namespace;
use crate::openstack::api::OpenStack;
use crate::openstack::writes::Writes;
use crate::scenario::steps::{self, at_rest, create_both, published_through};
use crate::stage::Stage;

const SCENARIO: &str = "19 takeover";
const PUBLIC: &str = "left-public";
const INTERNAL: &str = "left-internal";
/// For so long after the start nothing is marked; the length of the measure, with a margin for a slow start.
const CALM: Duration = Duration::from_secs(40);
/// What OCCM's tags on load balancers and listeners begin with.
const GENERATED: &str = "kube_service_";
/// What ours begin with.
const OURS: &str = "openstack-ccm-cluster=";

/// The whole scenario on the present cluster.
pub(super) fn run(stage: &mut Stage) -> Result<()> {
    let api = stage.api()?;
    create_both(&api, PUBLIC, INTERNAL, &PLACES)?;
    stage.start_controller()?;
    stage.check(SCENARIO, "as OCCM leaves it", |stage| {
        for service in [PUBLIC, INTERNAL] {
            published_through(&api, service)?;
            at_rest(&stage.cloud.user, service)?;
        }
        stage.stop_controller()?;
        for service in [PUBLIC, INTERNAL] {
            as_occm_leaves_it(stage, service)?;
        }
        let unmarked = marked(stage)?.is_empty();
        ensure!(unmarked, "still marked: {:?}", marked(stage)?);
        Ok("tags with identities are gone".into())
    });
    let writes = Writes::from_now(&stage.cloud.folders)?;
    let reloads = reloads(stage)?;
    stage.start_controller()?;
    stage.check(SCENARIO, "nothing is written at first", |stage| {
        std::thread::sleep(CALM);
        writes.none()?;
        answers(stage)
    });
    stage.check(SCENARIO, "then load balancers and the floating IP get their tags", |stage| {
        marked_later(stage, &writes, reloads)
    });
    stage.check(SCENARIO, "clean-up", |stage| steps::release(stage, &[PUBLIC, INTERNAL]));
    Ok(())
}

/// One write for each load balancer and each floating IP, and none for listeners and pools.
fn marked_later(stage: &Stage, writes: &Writes, reloads_before: usize) -> Result<String> {
    until("all are marked", Duration::from_secs(300), || {
        let marked = marked(stage)?;
        ensure!(marked.len() == 3, "marked: {marked:?}");
        Ok(())
    })?;
    let seen = answers(stage)?;
    let mut written = writes.so_far()?;
    // Octavia itself writes its ports whenever a load balancer changes.
    written.retain(|request| !request.starts_with("PUT /ports/"));
    ensure!(written.len() == 3, "{written:?}");
    let cost = reloads(stage)? - reloads_before;
    Ok(format!("{}; {cost} reloads of HAProxy for two load balancers; {seen}", written.join(", ")))
}

fn answers(stage: &Stage) -> Result<String> {
    let api = stage.api()?;
    let inside = published_through(&api, INTERNAL)?;
    let outcome = from_namespace(NEIGHBOUR, &inside, 80)?;
    ensure!(outcome.client().is_some(), "{outcome}");
    all_reach(stage, &published_through(&api, PUBLIC)?)
}

/// Takes away what OCCM does not give: tags with uids, tags on pools, and the annotations of our own.
fn as_occm_leaves_it(stage: &Stage, service: &str) -> Result<()> {
    let (api, cloud) = (stage.api()?, &stage.cloud.user);
    let id = id_of(&api, service)?;
    let balancer = cloud.load_balancer(service)?;
    let kept = json!({"loadbalancer": {"tags": generated(&balancer)}});
    change(cloud, service, &format!("/v2/lbaas/loadbalancers/{id}"), &kept)?;
    for (key, kind, list) in [
        ("listener", "listeners", format!("/v2/lbaas/listeners?load_balancer_id={id}")),
        ("pool", "pools", format!("/v2/lbaas/pools?loadbalancer_id={id}")),
    ] {
        for one in cloud.list("load-balancer", &list, kind)? {
            let tags = if kind == "pools" { Vec::new() } else { generated(&one) };
            let path = format!("/v2/lbaas/{kind}/{}", one["id"].as_str().context("no id")?);
            change(cloud, service, &path, &json!({key: {"tags": tags}}))?;
        }
    }
    let port = balancer["vip_port_id"].as_str().context("the load balancer has no port")?;
    for one in cloud.list("network", &format!("/v2.0/floatingips?port_id={port}"), "floatingips")? {
        let path = format!("/v2.0/floatingips/{}/tags", one["id"].as_str().context("no id")?);
        cloud.put("network", &path, &json!({"tags": []}))?.success()?;
    }
    steps::annotate(&api, service, &["owned-load-balancer-id", "settled"].map(|key| (key, Value::Null)))
}

fn generated(object: &Value) -> Vec<Value> {
    let tags = object["tags"].as_array().cloned().unwrap_or_default();
    tags.into_iter().filter(|tag| tag.as_str().is_some_and(|tag| tag.starts_with(GENERATED))).collect()
}

/// One change after another, because Octavia refuses two at once.
fn change(cloud: &OpenStack, service: &str, path: &str, body: &Value) -> Result<()> {
    cloud.put("load-balancer", path, body)?.success()?;
    at_rest(cloud, service)
}

/// Names of what carries our tag.
fn marked(stage: &Stage) -> Result<Vec<String>> {
    let cloud = &stage.cloud.user;
    let mut all = cloud.load_balancers()?;
    for (service, path, key) in [
        ("load-balancer", "/v2/lbaas/listeners", "listeners"),
        ("load-balancer", "/v2/lbaas/pools", "pools"),
        ("network", "/v2.0/floatingips", "floatingips"),
    ] {
        all.extend(cloud.list(service, path, key)?);
    }
    let ours = |tag: &Value| tag.as_str().is_some_and(|tag| tag.starts_with(OURS));
    all.retain(|one| one["tags"].as_array().is_some_and(|tags| tags.iter().any(ours)));
    Ok(all.iter().map(|one| format!("{} {}", one["name"], one["id"])).collect())
}

/// How often Octavia has had an amphora reload its HAProxy.
fn reloads(stage: &Stage) -> Result<usize> {
    let log = stage.cloud.folders.state.join("state/octavia/calls.log");
    Ok(std::fs::read_to_string(log)?.lines().filter(|line| line.contains(" reload_listener ")).count())
}
