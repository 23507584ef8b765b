//! What happens to a Service in its life: changes of ports and nodes, changes of its type, and everything that goes
//! wrong inside the cloud meanwhile.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::CURRENT;
use super::steps::{self, Reach, clients_inside, green, published_through};
use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::objects::{ServiceSketch, delete_service};
use crate::kubernetes::proxy::Mode;
use crate::machine::wait::soon;
use crate::network::ask::from_namespace;
use crate::network::{NEIGHBOUR, NODES, NodePlace};
use crate::openstack::leaks::left_behind;
use crate::openstack::tree::Tree;
use crate::stage::Stage;

/// The Service that all of them are about.
pub(super) const SERVICE: &str = "living";
const SCENARIO: &str = "8 life";
const PLACES: [NodePlace; 2] = [NODES[0], NODES[1]];
/// How the description of a load balancer begins that outlived its Service on purpose.
const MARK: &str = "Retained: ";

/// A change that a user or an operator makes.
pub(super) struct Change {
    /// In words.
    pub case: &'static str,
    /// Makes it, and waits for nothing that the controller does. Returns the id of the load balancer before.
    pub make: fn(&mut Stage) -> Result<String>,
    /// Waits until it is carried out; is given what `make` returned.
    pub seen: fn(&mut Stage, &str) -> Result<String>,
}

/// All of them, one after the other, from a Service that is created to one that has taken over what outlived another.
pub(super) const CHANGES: [Change; 12] = [
    Change { case: "published", make: created, seen: works },
    Change {
        case: "a port is added",
        make: |stage| set_ports(stage, &[80, 8080]),
        seen: |stage, _| {
            has(stage, &[80, 8080], &PLACES)?;
            answers_on(stage, 8080)
        },
    },
    Change {
        case: "a port is removed",
        make: |stage| set_ports(stage, &[8080]),
        seen: |stage, _| {
            has(stage, &[8080], &PLACES)?;
            answers_on(stage, 8080)
        },
    },
    Change {
        case: "a port is replaced",
        make: |stage| set_ports(stage, &[80]),
        seen: |stage, before| {
            has(stage, &[80], &PLACES)?;
            works(stage, before)
        },
    },
    Change { case: "a node joins", make: node_joins, seen: |stage, _| has(stage, &[80], &NODES) },
    Change { case: "a node leaves", make: node_leaves, seen: |stage, _| has(stage, &[80], &PLACES) },
    Change {
        case: "the type changes to ClusterIP",
        make: |stage| set_type(stage, "ClusterIP"),
        seen: released,
    },
    Change { case: "the type changes back", make: |stage| set_type(stage, "LoadBalancer"), seen: works },
    Change {
        case: "the load balancer is deleted behind the controller's back",
        make: deleted_behind_its_back,
        seen: made_anew,
    },
    Change { case: "the load balancer is to be retained", make: to_be_retained, seen: works },
    Change { case: "the Service goes and its load balancer is retained", make: deleted, seen: retained },
    Change {
        case: "a Service of the name takes the retained load balancer over",
        make: created_again,
        seen: taken_over,
    },
];

/// Changes that users and operators make.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    stage.start_controller()?;
    for Change { case, make, seen } in CHANGES {
        stage.check(SCENARIO, case, |stage| {
            let before = make(stage)?;
            seen(stage, &before)
        });
    }
    stage.check(SCENARIO, "clean-up", |stage| steps::release(stage, &[SERVICE]));
    Ok(())
}

fn sketch() -> ServiceSketch {
    ServiceSketch::proxy(SERVICE, "v2", true)
}

fn created(stage: &mut Stage) -> Result<String> {
    sketch().create(&stage.api()?, &PLACES)?;
    Ok(String::new())
}

fn set_ports(stage: &mut Stage, ports: &[u16]) -> Result<String> {
    let mut sketch = sketch();
    sketch.ports = ports.to_vec();
    sketch.update(&stage.api()?, &PLACES)?;
    id(stage)
}

fn node_joins(stage: &mut Stage) -> Result<String> {
    stage.join(NODES[2], CURRENT, Mode::Iptables)?;
    id(stage)
}

fn node_leaves(stage: &mut Stage) -> Result<String> {
    stage.end_proxy(NODES[2])?;
    stage.api()?.delete(&format!("/api/v1/nodes/{}", NODES[2].name()))?;
    id(stage)
}

/// The id of the load balancer; empty where there is none.
fn id(stage: &Stage) -> Result<String> {
    let balancers = stage.cloud.user.load_balancers()?;
    let of_service = |one: &&Value| one["name"].as_str().is_some_and(|name| name.contains(SERVICE));
    Ok(balancers.iter().find(of_service).and_then(|one| one["id"].as_str()).unwrap_or_default().to_owned())
}

/// The load balancer with this id is gone, with its children and its port.
fn nothing_left_of(stage: &Stage, id: &str) -> Result<String> {
    let mut left = left_behind(&stage.cloud.user)?;
    left.retain(|one| one.contains(SERVICE) || one.contains(id));
    ensure!(left.is_empty(), "left behind: {}", left.join(", "));
    Ok("nothing of it is left".to_owned())
}

/// Nothing is left of the load balancer, and the controller has let the Service go: what it publishes next is another one.
fn released(stage: &mut Stage, before: &str) -> Result<String> {
    let left = soon("nothing of it is left", || nothing_left_of(stage, before))?;
    soon("the status is cleared", || {
        let service = stage.api()?.get(&Kubernetes::service_path(SERVICE))?;
        let (ingress, finalizers) =
            (&service["status"]["loadBalancer"]["ingress"], &service["metadata"]["finalizers"]);
        ensure!(ingress.is_null() && finalizers.is_null(), "{ingress} {finalizers}");
        Ok(())
    })?;
    Ok(left)
}

fn works(stage: &mut Stage, _before: &str) -> Result<String> {
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

fn set_type(stage: &mut Stage, kind: &str) -> Result<String> {
    let change = match kind {
        "ClusterIP" => {
            json!({"spec": {"type": kind, "externalTrafficPolicy": null, "allocateLoadBalancerNodePorts": null}})
        }
        _ => json!({"spec": {"type": kind}}),
    };
    stage.api()?.patch(&Kubernetes::service_path(SERVICE), &change)?;
    id(stage)
}

fn annotate(stage: &Stage, key: &str, value: &str) -> Result<()> {
    let annotations = json!({format!("loadbalancer.openstack.org/{key}"): value});
    let change = json!({"metadata": {"annotations": annotations}});
    stage.api()?.patch(&Kubernetes::service_path(SERVICE), &change).map(drop)
}

fn deleted_behind_its_back(stage: &mut Stage) -> Result<String> {
    let before = soon("Octavia is at rest", || Tree::of(&stage.cloud.user, SERVICE))?.id;
    stage
        .cloud
        .user
        .delete("load-balancer", &format!("/v2/lbaas/loadbalancers/{before}?cascade=true"))?
        .success()?;
    soon("the load balancer is gone", || {
        ensure!(id(stage)?.is_empty(), "it is still there");
        Ok(())
    })?;
    // No event reaches the controller: the next change of the Service makes it look.
    annotate(stage, "connection-limit", "1000")?;
    Ok(before)
}

fn made_anew(stage: &mut Stage, before: &str) -> Result<String> {
    soon("another load balancer is there", || {
        let tree = Tree::of(&stage.cloud.user, SERVICE)?;
        ensure!(tree.id != before, "it is the same");
        tree.settled()
    })?;
    // Until the controller has seen that it is finished, the address of the former one is published.
    soon("its address is published", || {
        let vip = stage.cloud.user.load_balancer(SERVICE)?["vip_address"].clone();
        let published = stage.api()?.ingress(SERVICE)?;
        ensure!(published[0]["ip"] == vip, "{published}, the address is {vip}");
        Ok(())
    })?;
    works(stage, before)
}

fn to_be_retained(stage: &mut Stage) -> Result<String> {
    annotate(stage, "reclaim-policy", "retain")?;
    id(stage)
}

fn deleted(stage: &mut Stage) -> Result<String> {
    delete_service(&stage.api()?, SERVICE)?;
    id(stage)
}

fn retained(stage: &mut Stage, before: &str) -> Result<String> {
    steps::until_gone(stage, &[SERVICE])?;
    let after = soon("the load balancer says why it is there", || marked(stage, true))?;
    ensure!(after["id"] == before, "it is another load balancer: {after}");
    Tree::of(&stage.cloud.user, SERVICE)?.settled()?;
    Ok(format!("{} {}", after["vip_address"], after["description"]))
}

fn created_again(stage: &mut Stage) -> Result<String> {
    created(stage)?;
    id(stage)
}

fn taken_over(stage: &mut Stage, before: &str) -> Result<String> {
    has(stage, &[80], &PLACES)?;
    let seen = works(stage, before)?;
    let after = soon("the mark is gone", || marked(stage, false))?;
    ensure!(after["id"] == before, "it is another load balancer: {after}");
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
