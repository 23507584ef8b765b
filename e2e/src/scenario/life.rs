//! What happens to a Service in its life: changes of ports and nodes, changes of its type, and everything that goes
//! wrong inside the cloud meanwhile.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::CURRENT;
use super::steps::{self, Reach, clients_inside, green, published_through};
use crate::ask::from_namespace;
use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::objects::ServiceSketch;
use crate::kubernetes::proxy::Mode;
use crate::network::{NEIGHBOUR, NODES, NodePlace};
use crate::openstack::tree::Tree;
use crate::stage::Stage;
use crate::wait::soon;

const SERVICE: &str = "living";
const SCENARIO: &str = "8 life";
const PLACES: [NodePlace; 2] = [NODES[0], NODES[1]];
/// How the description of a load balancer begins that outlived its Service on purpose.
const MARK: &str = "Retained: ";

/// Changes that users and operators make.
///
/// # Errors
/// The Service cannot be made.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    let api = stage.api()?;
    let mut sketch = ServiceSketch::proxy(SERVICE, "v2", true);
    sketch.create(&api, &PLACES)?;
    stage.start_controller()?;
    stage.check(SCENARIO, "published", works);
    stage.check(SCENARIO, "a port is added", |stage| {
        sketch.ports = vec![80, 8080];
        sketch.update(&api, &PLACES)?;
        has(stage, &[80, 8080], &PLACES)?;
        answers_on(stage, 8080)
    });
    stage.check(SCENARIO, "a port is removed", |stage| {
        sketch.ports = vec![8080];
        sketch.update(&api, &PLACES)?;
        has(stage, &[8080], &PLACES)?;
        answers_on(stage, 8080)
    });
    stage.check(SCENARIO, "a port is replaced", |stage| {
        sketch.ports = vec![80];
        sketch.update(&api, &PLACES)?;
        has(stage, &[80], &PLACES)?;
        works(stage)
    });
    stage.join(NODES[2], CURRENT, Mode::Iptables)?;
    stage.check(SCENARIO, "a node joins", |stage| has(stage, &[80], &NODES));
    stage.end_proxy(NODES[2])?;
    api.delete(&format!("/api/v1/nodes/{}", NODES[2].name()))?;
    stage.check(SCENARIO, "a node leaves", |stage| has(stage, &[80], &PLACES));
    stage.check(SCENARIO, "the type changes to ClusterIP", |stage| {
        set_type(&api, "ClusterIP")?;
        soon("the load balancer is gone", || steps::nothing_left(stage))
    });
    stage.check(SCENARIO, "the type changes back", |stage| {
        set_type(&api, "LoadBalancer")?;
        works(stage)
    });
    stage.check(
        SCENARIO,
        "the load balancer is deleted behind the controller's back",
        deleted_behind_its_back,
    );
    stage.check(SCENARIO, "the Service goes and its load balancer is retained", retained);
    stage.check(SCENARIO, "a Service of the name takes the retained load balancer over", taken_over);
    stage.check(SCENARIO, "clean-up", |stage| steps::release(stage, &[SERVICE]));
    Ok(())
}

fn works(stage: &mut Stage) -> Result<String> {
    let address = published_through(&stage.api()?, SERVICE)?;
    Ok(format!("{address}: {}", green(&address, &clients_inside(stage, Reach::Internal))?))
}

fn answers_on(stage: &Stage, port: u16) -> Result<String> {
    let address = published_through(&stage.api()?, SERVICE)?;
    soon(&format!("port {port} answers"), || {
        let outcome = from_namespace(NEIGHBOUR, &address, port)?;
        ensure!(outcome.client().is_some(), "{outcome}");
        Ok(())
    })?;
    Ok(format!("port {port} answers"))
}

/// Octavia has exactly these listeners and members, all in order.
fn has(stage: &Stage, ports: &[u64], places: &[NodePlace]) -> Result<String> {
    let addresses: Vec<String> = places.iter().map(|place| place.address()).collect();
    soon("Octavia has what the Service asks for", || {
        let tree = Tree::of(&stage.cloud.user, SERVICE)?;
        ensure!(tree.ports() == ports, "listeners {:?}", tree.ports());
        ensure!(tree.addresses() == addresses, "members {:?}", tree.addresses());
        tree.settled()
    })?;
    Ok(format!("listeners {ports:?}, members {addresses:?}"))
}

fn set_type(api: &Kubernetes, kind: &str) -> Result<()> {
    let change = match kind {
        "ClusterIP" => {
            json!({"spec": {"type": kind, "externalTrafficPolicy": null, "allocateLoadBalancerNodePorts": null}})
        }
        _ => json!({"spec": {"type": kind}}),
    };
    api.patch(&Kubernetes::service_path(SERVICE), &change).map(drop)
}

fn deleted_behind_its_back(stage: &mut Stage) -> Result<String> {
    let before = soon("Octavia is at rest", || Tree::of(&stage.cloud.user, SERVICE))?.id;
    stage
        .cloud
        .user
        .delete("load-balancer", &format!("/v2/lbaas/loadbalancers/{before}?cascade=true"))?
        .success()?;
    soon("the load balancer is gone", || {
        ensure!(stage.cloud.user.load_balancers()?.is_empty(), "it is still there");
        Ok(())
    })?;
    // Nobody tells the controller: the next change of the Service makes it look.
    let change =
        json!({"metadata": {"annotations": {"loadbalancer.openstack.org/connection-limit": "1000"}}});
    stage.api()?.patch(&Kubernetes::service_path(SERVICE), &change)?;
    soon("another load balancer is there", || {
        let tree = Tree::of(&stage.cloud.user, SERVICE)?;
        ensure!(tree.id != before, "it is the same");
        tree.settled()
    })?;
    works(stage)
}

fn retained(stage: &mut Stage) -> Result<String> {
    let change =
        json!({"metadata": {"annotations": {"loadbalancer.openstack.org/reclaim-policy": "retain"}}});
    stage.api()?.patch(&Kubernetes::service_path(SERVICE), &change)?;
    let before = stage.cloud.user.load_balancer(SERVICE)?;
    steps::remove(stage, &[SERVICE])?;
    let after = soon("the load balancer says why it is there", || marked(stage, true))?;
    ensure!(after["id"] == before["id"], "it is another load balancer: {after}");
    Tree::of(&stage.cloud.user, SERVICE)?.settled()?;
    Ok(format!("{} {}", after["vip_address"], after["description"]))
}

fn taken_over(stage: &mut Stage) -> Result<String> {
    let before = stage.cloud.user.load_balancer(SERVICE)?;
    ServiceSketch::proxy(SERVICE, "v2", true).create(&stage.api()?, &PLACES)?;
    has(stage, &[80], &PLACES)?;
    let seen = works(stage)?;
    let after = soon("the mark is gone", || marked(stage, false))?;
    ensure!(after["id"] == before["id"], "it is another load balancer: {after}");
    Ok(format!("the same load balancer, {seen}"))
}

/// The load balancer at rest, with or without the mark.
fn marked(stage: &Stage, is_marked: bool) -> Result<Value> {
    let balancer = stage.cloud.user.load_balancer(SERVICE)?;
    let description = balancer["description"].as_str().unwrap_or_default();
    ensure!(description.starts_with(MARK) == is_marked, "description {description:?}");
    ensure!(balancer["provisioning_status"] == "ACTIVE", "{}", balancer["provisioning_status"]);
    Ok(balancer)
}
