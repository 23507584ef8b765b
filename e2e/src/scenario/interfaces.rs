//! Nodes with an interface in each of two networks: by which of their addresses they become members.

use anyhow::{Result, ensure};
use serde_json::json;

use super::steps::{self, Reach, annotate, clients_inside, green, published_through};
use crate::kubernetes::objects::ServiceSketch;
use crate::machine::wait::soon;
use crate::network::second::SecondNetwork;
use crate::network::{NODES, NodePlace};
use crate::openstack::tree::Tree;
use crate::stage::Stage;

const SCENARIO: &str = "36 several interfaces";
const FIRST: &str = "by-subnet";
const SECOND: &str = "by-network";
const PLACES: [NodePlace; 2] = [NODES[0], NODES[1]];

/// On the present cluster, with nodes 1 and 2. They have the second network meanwhile.
///
/// # Errors
/// The network cannot be made or removed.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    let second = SecondNetwork::add(&stage.cloud.user, &PLACES)?;
    let looked = look(stage, &second);
    second.remove()?;
    looked
}

fn look(stage: &mut Stage, second: &SecondNetwork) -> Result<()> {
    let networks = stage.cloud.networks.clone();
    let line = format!("member-subnet-id = {}", networks.cluster_subnet);
    stage.stop_controller()?;
    stage.cluster()?.launch.load_balancer_settings(&networks, &line)?;
    // The address in the other network comes first, as on many machines.
    set_addresses(stage, ["InternalIP", "InternalIP"])?;
    stage.start_controller()?;
    stage.check(SCENARIO, "cloud.conf names the subnet of members", |stage| {
        ServiceSketch::proxy(FIRST, "v2", true).create(&stage.api()?, &PLACES)?;
        reached_at(stage, FIRST, NodePlace::address)
    });
    stage.check(SCENARIO, "a Service names the subnet of another network", |stage| {
        let annotation = "loadbalancer.openstack.org/member-subnet-id";
        let sketch = ServiceSketch::proxy(SECOND, "v2", true).annotate(annotation, &second.subnet);
        sketch.create(&stage.api()?, &PLACES)?;
        reached_at(stage, SECOND, NodePlace::second_address)
    });
    stage.check(SCENARIO, "node-address-type: InternalIP", |stage| {
        set_addresses(stage, ["ExternalIP", "InternalIP"])?;
        annotate(&stage.api()?, SECOND, &[("node-address-type", json!("InternalIP"))])?;
        reached_at(stage, SECOND, NodePlace::address)
    });
    stage.check(SCENARIO, "node-address-type: ExternalIP", |stage| {
        annotate(&stage.api()?, SECOND, &[("node-address-type", json!("ExternalIP"))])?;
        reached_at(stage, SECOND, NodePlace::second_address)
    });
    stage.check(SCENARIO, "clean-up", |stage| steps::release(stage, &[FIRST, SECOND]));
    Ok(())
}

/// Writes both addresses of each node, with a kind for the one in the second network, and one for the one in the first.
fn set_addresses(stage: &Stage, [second, first]: [&str; 2]) -> Result<()> {
    let api = stage.api()?;
    for place in PLACES {
        let addresses = json!([
            {"type": second, "address": place.second_address()},
            {"type": first, "address": place.address()},
            {"type": "Hostname", "address": place.name()},
        ]);
        let path = format!("/api/v1/nodes/{}/status", place.name());
        api.patch(&path, &json!({"status": {"addresses": addresses}}))?;
    }
    Ok(())
}

/// The nodes are members by these addresses, and requests get through to them.
fn reached_at(stage: &Stage, service: &str, address: fn(NodePlace) -> String) -> Result<String> {
    let wanted = PLACES.map(address);
    soon("the nodes are members by these addresses", || {
        let tree = Tree::of(&stage.cloud.user, service)?;
        ensure!(tree.addresses() == wanted, "members {:?}", tree.addresses());
        tree.settled()
    })?;
    let vip = published_through(&stage.api()?, service)?;
    let seen = green(&vip, &clients_inside(stage, Reach::Internal))?;
    Ok(format!("members {}; {seen}", wanted.join(", ")))
}
