//! The cases of Kubernetes' source-IP tutorial without a load balancer: which address a pod sees by which way.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::steps;
use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::objects::{ServiceSketch, delete_service};
use crate::machine::wait::until;
use crate::network::ask::{Outcome, from_namespace};
use crate::network::{NEIGHBOUR, NEIGHBOUR_ADDRESS, NODES};
use crate::stage::Stage;

const SCENARIO: &str = "7 source";
const INSIDE: &str = "inside";
const OPEN: &str = "open";
const NARROW: &str = "narrow";
/// Longest time until kube-proxy has written rules.
const RULES: Duration = Duration::from_secs(15);
/// Requests that must all be seen alike: kube-proxy picks an endpoint at random.
const ROUNDS: usize = 8;

/// The whole scenario on the present cluster. The controller has nothing to do with it, and must not.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    let api = stage.api()?;
    let places = [NODES[0], NODES[1]];
    for (name, kind, policy) in
        [(INSIDE, "ClusterIP", ""), (OPEN, "NodePort", "Cluster"), (NARROW, "NodePort", "Local")]
    {
        let mut sketch = ServiceSketch::plain(name, true);
        (sketch.kind, sketch.policy, sketch.target) = (kind, policy, 81);
        sketch.create(&api, if name == NARROW { &places[..1] } else { &places })?;
    }
    stage.check(SCENARIO, "ClusterIP: pods are seen with their own addresses", |_| cluster_ip(&api));
    stage.check(SCENARIO, "NodePort: a client outside is seen as a node", |_| node_port(&api));
    stage.check(SCENARIO, "NodePort, Local: a client outside is seen as itself", |_| local_node_port(&api));
    stage.check(SCENARIO, "ClusterIP and NodePort leave no trace in the cloud", |stage| {
        for name in [INSIDE, OPEN, NARROW] {
            delete_service(&api, name)?;
        }
        steps::nothing_left(stage)
    });
    Ok(())
}

fn number(api: &Kubernetes, service: &str) -> Result<u16> {
    let port = &api.service(service)?["spec"]["ports"][0]["nodePort"];
    port.as_u64().and_then(|port| u16::try_from(port).ok()).context("the Service has no node port")
}

/// All requests are answered, and the pods saw one of these addresses. Returns which ones.
fn seen_as(namespace: &str, host: &str, port: u16, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<String>> {
    let ask = || {
        let outcome = from_namespace(namespace, host, port)?;
        let client = outcome.client().with_context(|| format!("{namespace} asked {host}: {outcome}"))?;
        ensure!(wanted(client), "{namespace} asked {host} and was seen as {client}");
        Ok(client.to_owned())
    };
    let mut seen = vec![until(&format!("{namespace} reaches {host}:{port}"), RULES, ask)?];
    for _ in 1..ROUNDS {
        seen.push(ask()?);
    }
    seen.sort();
    seen.dedup();
    Ok(seen)
}

fn cluster_ip(api: &Kubernetes) -> Result<String> {
    let service = api.service(INSIDE)?;
    let address = service["spec"]["clusterIP"].as_str().context("no cluster IP")?;
    let mut all = Vec::new();
    for place in [NODES[0], NODES[1]] {
        let own = place.client_address();
        all.extend(seen_as(&place.client(), address, 80, &|client| client == own)?);
    }
    Ok(format!("seen as {}", all.join(", ")))
}

fn node_port(api: &Kubernetes) -> Result<String> {
    let port = number(api, OPEN)?;
    let mut all = Vec::new();
    for place in [NODES[0], NODES[1]] {
        // Masked, so that the answer comes back the same way; by which of its addresses depends on where the pod is.
        let node = |client: &str| place.has_address(client);
        all.extend(seen_as(NEIGHBOUR, &place.address(), port, &node)?);
    }
    Ok(format!("{NEIGHBOUR_ADDRESS} is seen as {}", all.join(", ")))
}

fn local_node_port(api: &Kubernetes) -> Result<String> {
    let port = number(api, NARROW)?;
    let seen = seen_as(NEIGHBOUR, &NODES[0].address(), port, &|client| client == NEIGHBOUR_ADDRESS)?;
    let elsewhere = from_namespace(NEIGHBOUR, &NODES[1].address(), port)?;
    ensure!(elsewhere == Outcome::TimedOut, "a node without a pod answers: {elsewhere}");
    let check = &api.service(NARROW)?["spec"]["healthCheckNodePort"];
    ensure!(*check == Value::Null || *check == 0, "a NodePort Service has a health check port: {check}");
    Ok(format!("seen as {}; the node without a pod drops", seen.join(", ")))
}
