//! What users of OpenStack clusters have asked for: tags of their own, a health monitor where a Service is `Local`, and the load
//! balancer's own metrics.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::steps::{
    self, Reach, annotate, at_rest, client_outside, clients_inside, green, published_through,
};
use super::{CURRENT, interfaces};
use crate::kubernetes::objects::ServiceSketch;
use crate::kubernetes::proxy::Mode;
use crate::machine::wait::soon;
use crate::network::ask::{Outcome, page};
use crate::network::{NODES, NodePlace};
use crate::openstack::tree::Tree;
use crate::stage::Stage;

const SCENARIO: &str = "32 requested";
const SERVICE: &str = "requested";
const LOCAL: &str = "requested-local";
const PLACES: [NodePlace; 2] = [NODES[0], NODES[1]];
/// Port of the metrics.
const METRICS: u16 = 9100;
/// A tag that somebody gives by hand.
const FOREIGN: &str = "billing=42";

/// On a cluster of 1.36.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    stage.start_cluster("requested", CURRENT, Mode::Iptables)?;
    let networks = stage.cloud.networks.clone();
    stage.cluster()?.launch.load_balancer_settings(&networks, "create-monitor = local\ntags = team-a")?;
    let api = stage.api()?;
    ServiceSketch::proxy(SERVICE, "v2", true).create(&api, &PLACES)?;
    stage.start_controller()?;
    stage.check(SCENARIO, "tags of cloud.conf are on all that is made", tags_of_cloud_conf);
    stage.check(SCENARIO, "a tag is added, and one that somebody gave by hand stays", foreign_tags);
    stage.check(SCENARIO, "the load balancer shows its metrics to those who may read them", metrics);
    stage.check(SCENARIO, "without the annotation it shows them to nobody", no_metrics);
    stage.check(SCENARIO, "a Service that is Local gets a health monitor", local);
    stage.check(SCENARIO, "clean-up", |stage| steps::release(stage, &[SERVICE, LOCAL]));
    interfaces::run(stage)
}

/// Load balancer, listeners and pools have the tag.
fn tagged(stage: &Stage, tag: &str) -> Result<usize> {
    let cloud = &stage.cloud.user;
    let balancer = cloud.load_balancer(SERVICE)?;
    let of = balancer["id"].as_str().unwrap_or_default();
    let mut all = vec![balancer.clone()];
    for (kind, filter) in [("listeners", "load_balancer_id"), ("pools", "loadbalancer_id")] {
        all.extend(cloud.list("load-balancer", &format!("/v2/lbaas/{kind}?{filter}={of}"), kind)?);
    }
    for one in &all {
        let tags = one["tags"].as_array().cloned().unwrap_or_default();
        ensure!(tags.iter().any(|found| found == tag), "{}: {tags:?}", one["name"]);
    }
    Ok(all.len())
}

fn tags_of_cloud_conf(stage: &mut Stage) -> Result<String> {
    let address = published_through(&stage.api()?, SERVICE)?;
    let count = soon("everything has the tag", || tagged(stage, "team-a"))?;
    let seen = green(&address, &clients_inside(stage, Reach::Internal))?;
    Ok(format!("team-a on {count} objects; {seen}"))
}

fn foreign_tags(stage: &mut Stage) -> Result<String> {
    let cloud = &stage.cloud.user;
    at_rest(cloud, SERVICE)?;
    let balancer = cloud.load_balancer(SERVICE)?;
    let mut tags = balancer["tags"].as_array().cloned().unwrap_or_default();
    tags.push(json!(FOREIGN));
    let path = format!("/v2/lbaas/loadbalancers/{}", balancer["id"].as_str().unwrap_or_default());
    cloud.put("load-balancer", &path, &json!({"loadbalancer": {"tags": tags}}))?.success()?;
    annotate(&stage.api()?, SERVICE, &[("tags", json!("tier=front"))])?;
    soon("everything has the new tag", || tagged(stage, "tier=front"))?;
    at_rest(cloud, SERVICE)?;
    let tags = cloud.load_balancer(SERVICE)?["tags"].clone();
    let has = |tag: &str| tags.as_array().is_some_and(|all| all.iter().any(|one| one == tag));
    ensure!(has(FOREIGN) && has("team-a"), "{tags}");
    Ok(format!("tags {tags}"))
}

fn scrape(stage: &Stage, namespace: &str) -> Result<Outcome> {
    page(namespace, &steps::address(&stage.api()?, SERVICE)?, METRICS, "/metrics")
}

fn metrics(stage: &mut Stage) -> Result<String> {
    let outside = client_outside(Reach::Internal);
    let wish = [
        ("metrics-enable", json!("true")),
        ("metrics-port", json!(METRICS.to_string())),
        ("metrics-allow-cidrs", json!(format!("{}/32", outside.address))),
    ];
    annotate(&stage.api()?, SERVICE, &wish)?;
    let lines = soon("the metrics are shown", || match scrape(stage, &outside.namespace)? {
        Outcome::Answered { status: 200, body } => {
            ensure!(body.contains("octavia_"), "{body}");
            Ok(body.lines().filter(|line| line.starts_with("octavia_")).count())
        }
        other => anyhow::bail!("{other}"),
    })?;
    let stranger = scrape(stage, &NODES[0].client())?;
    not_shown("a pod", &stranger)?;
    let address = published_through(&stage.api()?, SERVICE)?;
    let seen = green(&address, &clients_inside(stage, Reach::Internal))?;
    Ok(format!("{lines} values for {}; a pod is {stranger}; {seen}", outside.who))
}

fn no_metrics(stage: &mut Stage) -> Result<String> {
    let keys = ["metrics-enable", "metrics-port", "metrics-allow-cidrs"];
    annotate(&stage.api()?, SERVICE, &keys.map(|key| (key, Value::Null)))?;
    soon("the listener is gone", || {
        let ports = Tree::of(&stage.cloud.user, SERVICE)?.ports();
        ensure!(ports == [80], "{ports:?}");
        Ok(())
    })?;
    at_rest(&stage.cloud.user, SERVICE)?;
    let seen = scrape(stage, &client_outside(Reach::Internal).namespace)?;
    not_shown("the client outside", &seen)?;
    Ok(format!("metrics: {seen}"))
}

fn not_shown(who: &str, outcome: &Outcome) -> Result<()> {
    if let Outcome::Answered { status, body } = outcome {
        anyhow::bail!("{who} is answered: {status}, {} lines", body.lines().count());
    }
    Ok(())
}

fn local(stage: &mut Stage) -> Result<String> {
    let api = stage.api()?;
    let mut sketch = ServiceSketch::proxy(LOCAL, "v2", true);
    sketch.policy = "Local";
    sketch.create(&api, &[NODES[0]])?;
    let address = published_through(&api, LOCAL)?;
    let monitor = soon("there is a monitor", || {
        at_rest(&stage.cloud.user, LOCAL)?;
        let all = stage.cloud.user.list("load-balancer", "/v2/lbaas/healthmonitors", "healthmonitors")?;
        Ok(all.first().context("there is none")?.clone())
    })?;
    soon("the node with the pod is the only one that is up", || {
        let members = Tree::of(&stage.cloud.user, LOCAL)?.members;
        let up = members.iter().filter(|member| member["operating_status"] == "ONLINE");
        let up: Vec<&str> = up.filter_map(|member| member["address"].as_str()).collect();
        ensure!(up == [NODES[0].address()], "{up:?}");
        Ok(())
    })?;
    let seen = green(&address, &[client_outside(Reach::Internal)])?;
    Ok(format!("{} monitor of {LOCAL}; one member of two is up; {seen}", monitor["type"]))
}
