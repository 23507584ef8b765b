//! A load balancer of two amphorae (topology ACTIVE_STANDBY, by a flavor of Octavia): keepalived gives the VIP to one of them, and to
//! the other when that one fails. The controller has nothing to do with it.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::CURRENT;
use super::steps::{self, Reach, at_rest, clients_inside, green, published_through};
use crate::kubernetes::objects::ServiceSketch;
use crate::kubernetes::proxy::Mode;
use crate::machine::process::run_line;
use crate::machine::wait::soon;
use crate::network::{NODES, NodePlace};
use crate::openstack::api::OpenStack;
use crate::openstack::tree::Tree;
use crate::openstack::writes::Writes;
use crate::stage::Stage;

const SCENARIO: &str = "35 two amphorae";
const SERVICE: &str = "pair";
const PLACES: [NodePlace; 2] = [NODES[0], NODES[1]];

/// On the present cluster, with nodes 1 and 2 and the controller at work.
///
/// # Errors
/// Octavia refuses the flavor.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    let flavor = flavor(&OpenStack::log_in("admin")?)?;
    stage.check(SCENARIO, "a Service", |stage| {
        let annotation = "loadbalancer.openstack.org/flavor-id";
        let sketch = ServiceSketch::proxy(SERVICE, "v2", true).annotate(annotation, &flavor);
        sketch.create(&stage.api()?, &PLACES)?;
        let address = published_through(&stage.api()?, SERVICE)?;
        let holder = holder(stage, &address)?;
        Ok(format!("the VIP is on the {holder}; {}", serves(stage)?))
    });
    stage.check(SCENARIO, "a node joins, and leaves", |stage| {
        stage.join(NODES[2], CURRENT, Mode::Iptables)?;
        has(stage, &NODES)?;
        stage.end_proxy(NODES[2])?;
        stage.api()?.delete(&format!("/api/v1/nodes/{}", NODES[2].name()))?;
        has(stage, &PLACES)?;
        serves(stage)
    });
    stage.check(SCENARIO, "one of them fails", failed);
    stage.check(SCENARIO, "deleted", |stage| {
        let left = steps::release(stage, &[SERVICE])?;
        soon("both amphorae are gone", || {
            let namespaces = run_line("ip netns list")?;
            ensure!(!namespaces.contains("amp-"), "{namespaces}");
            Ok(())
        })?;
        Ok(left)
    });
    Ok(())
}

/// A flavor of load balancers of two amphorae.
fn flavor(admin: &OpenStack) -> Result<String> {
    let make = |path: &str, key: &str, body: &Value| -> Result<String> {
        let made =
            admin.post("load-balancer", &format!("/v2/lbaas/{path}"), &json!({key: body}))?.success()?;
        Ok(made[key]["id"].as_str().context("no id")?.to_owned())
    };
    let data = json!({"loadbalancer_topology": "ACTIVE_STANDBY"}).to_string();
    let profile = json!({"name": "pair", "provider_name": "amphora", "flavor_data": data});
    let profile = make("flavorprofiles", "flavorprofile", &profile)?;
    make("flavors", "flavor", &json!({"name": "pair", "flavor_profile_id": profile, "enabled": true}))
}

fn serves(stage: &Stage) -> Result<String> {
    let address = published_through(&stage.api()?, SERVICE)?;
    green(&address, &clients_inside(stage, Reach::Internal))
}

/// Role and id of each amphora of the load balancer.
fn amphorae(stage: &Stage) -> Result<Vec<(String, String)>> {
    let id = stage.cloud.user.load_balancer(SERVICE)?["id"].as_str().unwrap_or_default().to_owned();
    let path = format!("/v2/octavia/amphorae?loadbalancer_id={id}");
    let found = OpenStack::log_in("admin")?.list("load-balancer", &path, "amphorae")?;
    let text = |amphora: &Value, key: &str| amphora[key].as_str().unwrap_or_default().to_owned();
    let mut all: Vec<_> = found.iter().map(|one| (text(one, "role"), text(one, "id"))).collect();
    all.sort();
    let roles: Vec<&str> = all.iter().map(|(role, _)| role.as_str()).collect();
    ensure!(roles == ["BACKUP", "MASTER"], "{roles:?}");
    Ok(all)
}

/// The role of the only amphora that has an address, when there is one.
fn holder(stage: &Stage, address: &str) -> Result<String> {
    let all = amphorae(stage)?;
    soon("one amphora has the VIP", || {
        let mut holders = Vec::new();
        for (role, id) in &all {
            let own = run_line(&format!("ip netns exec amp-{id} ip -br addr show dev eth1"))?;
            if own.contains(&format!(" {address}/")) {
                holders.push(role.clone());
            }
        }
        ensure!(holders.len() == 1, "{address} is on {holders:?}");
        Ok(holders.remove(0))
    })
}

/// Octavia and both amphorae have these nodes as members.
fn has(stage: &Stage, places: &[NodePlace]) -> Result<()> {
    let addresses: Vec<String> = places.iter().map(|place| place.address()).collect();
    soon("the nodes are members", || {
        let tree = Tree::of(&stage.cloud.user, SERVICE)?;
        ensure!(tree.addresses() == addresses, "members {:?}", tree.addresses());
        tree.settled()
    })?;
    for (role, id) in amphorae(stage)? {
        let file = stage.cloud.folders.state.join("state/octavia/amphorae").join(id).join("haproxy.cfg");
        let text = std::fs::read_to_string(file)?;
        let has = |place: &NodePlace| text.contains(&format!(" {}:", place.address()));
        ensure!(
            NODES.iter().all(|place| has(place) == places.contains(place)),
            "the {role} has other members"
        );
    }
    Ok(())
}

/// The HAProxy of the one with the VIP ends; the other one serves, and the controller writes nothing.
fn failed(stage: &mut Stage) -> Result<String> {
    at_rest(&stage.cloud.user, SERVICE)?;
    let writes = Writes::from_now(&stage.cloud.folders)?;
    let address = published_through(&stage.api()?, SERVICE)?;
    let before = holder(stage, &address)?;
    let all = amphorae(stage)?;
    let (_, id) = all.iter().find(|(role, _)| *role == before).context("no such amphora")?;
    let file = stage.cloud.folders.state.join("state/octavia/amphorae").join(id).join("haproxy.pid");
    run_line(&format!("kill {}", std::fs::read_to_string(file)?.trim()))?;
    let after = soon("the other one has the VIP", || {
        let after = holder(stage, &address)?;
        ensure!(after != before, "the {after} has it");
        Ok(after)
    })?;
    let seen = serves(stage)?;
    let written = writes.by_this_program()?;
    ensure!(written.is_empty(), "{written:?}");
    Ok(format!("the VIP went from the {before} to the {after}, nothing was written; {seen}"))
}
