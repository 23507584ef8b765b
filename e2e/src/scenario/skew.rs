//! Nodes of different versions under one API server.

use anyhow::{Result, ensure};
use serde_json::json;

use super::fallback::SUFFIX;
use super::fallback::by_name;
use super::steps::{self, Client, Reach, clients_inside, green, published_through, red, warned};
use super::{CURRENT, GATE_OFF};
use crate::kubernetes::objects::{ServiceSketch, set_kubelet};
use crate::kubernetes::proxy::Mode;
use crate::network::NODES;
use crate::stage::Stage;

const SERVICE: &str = "skewed";
const SCENARIO: &str = "4 skew";

/// Server 1.36, one node 1.36, one node 1.29; then the old node leaves.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    let networks = stage.cloud.networks.clone();
    stage.stop_controller()?;
    let api = stage.api()?;
    ServiceSketch::proxy(SERVICE, "v1", true).create(&api, &[NODES[0], NODES[1]])?;
    stage.end_proxy(NODES[1])?;
    stage.join(NODES[1], GATE_OFF, Mode::Iptables)?;
    set_kubelet(&api, NODES[1], GATE_OFF)?;
    stage.start_controller()?;
    stage.check(SCENARIO, "one node on 1.29 and no hostname: Proxy all the same", without_a_hostname);
    stage.stop_controller()?;
    stage
        .cluster()?
        .launch
        .load_balancer_settings(&networks, &format!("ingress-hostname-suffix = {SUFFIX}"))?;
    stage.start_controller()?;
    stage.check(SCENARIO, "one node on 1.29: published by name", |stage| {
        by_name(stage, SERVICE, Reach::Internal)
    });
    stage.stop_controller()?;
    stage.check(SCENARIO, "one node on 1.29, ipMode Proxy written without looking at the nodes", trap);
    stage.start_controller()?;
    stage.check(SCENARIO, "one node on 1.29, with openstack-ccm again", |stage| {
        by_name(stage, SERVICE, Reach::Internal)
    });
    stage.end_proxy(NODES[1])?;
    api.delete(&format!("/api/v1/nodes/{}", NODES[1].name()))?;
    stage.join(NODES[2], CURRENT, Mode::Iptables)?;
    stage.check(SCENARIO, "the old node leaves, another one joins", the_old_node_left);
    stage.check(SCENARIO, "clean-up", |stage| steps::release(stage, &[SERVICE]));
    stage.end_proxy(NODES[2])?;
    api.delete(&format!("/api/v1/nodes/{}", NODES[2].name()))?;
    stage.join(NODES[1], CURRENT, Mode::Iptables)
}

/// The old node loses nothing by it, since it ignores the field, and the new one would lose everything without.
fn without_a_hostname(stage: &mut Stage) -> Result<String> {
    let api = stage.api()?;
    let address = published_through(&api, SERVICE)?;
    let note = warned(&api, SERVICE, "LoadBalancerIPModeNotHonoured", &["node2", "ingress-hostname-suffix"])?;
    Ok(format!("{}; event {note}", red_on_the_old_node(stage, &address)?))
}

/// The field is stored, and the old kube-proxy does not care: the reason why the nodes are looked at.
fn trap(stage: &mut Stage) -> Result<String> {
    let api = stage.api()?;
    let address = steps::address(&api, SERVICE)?;
    let kept = api.write_ingress(SERVICE, &json!([{"ip": address, "ipMode": "Proxy"}]))?;
    ensure!(kept[0]["ipMode"] == "Proxy", "the server did not keep the mode: {kept}");
    red_on_the_old_node(stage, &address)
}

fn red_on_the_old_node(stage: &Stage, address: &str) -> Result<String> {
    let clients = clients_inside(stage, Reach::Internal);
    let on = |node: &str| -> Vec<Client> {
        clients.iter().filter(|client| client.who == format!("pod on {node}")).cloned().collect()
    };
    let old = red(stage, address, &on("node2"))?;
    let new = green(address, &on("node1"))?;
    Ok(format!("RED on the old node as it must be: {old}; the new node: {new}"))
}

fn the_old_node_left(stage: &mut Stage) -> Result<String> {
    let api = stage.api()?;
    // The pod on the node that left is gone too.
    ServiceSketch::proxy(SERVICE, "v1", true).update(&api, &[NODES[0], NODES[2]])?;
    let published = published_through(&api, SERVICE)?;
    let mut clients: Vec<Client> = clients_inside(stage, Reach::Internal);
    clients.retain(|client| !client.who.contains("node2"));
    clients.push(Client {
        who: "pod on node3".into(),
        namespace: NODES[2].client(),
        address: NODES[2].address(),
    });
    let seen = green(&published, &clients)?;
    Ok(format!("GREEN: {published} ipMode Proxy, {seen}"))
}
