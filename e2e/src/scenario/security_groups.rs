//! Nodes whose security groups keep the load balancer out, and the groups of Services that let it in.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::DUAL_STACK;
use super::steps::{self, Client, Reach, client_outside, clients_inside, green, published_through, shut_out};
use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::objects::ServiceSketch;
use crate::kubernetes::proxy::Mode;
use crate::machine::wait::soon;
use crate::network::ask::{Outcome, from_namespace};
use crate::network::security::{Closed, Port};
use crate::network::{NEIGHBOUR, NODES, NodePlace};
use crate::openstack::api::OpenStack;
use crate::openstack::tree::Tree;
use crate::stage::Stage;

const SCENARIO: &str = "14 security groups";
const SERVICE: &str = "guarded";
/// Has node ports, and no load balancer.
const OTHER: &str = "other";
const PLACES: [NodePlace; 2] = [NODES[0], NODES[1]];

/// The whole scenario on the present cluster. The machines have groups of their own meanwhile.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    stage.stop_controller()?;
    let closed = Closed::around(&stage.cloud.user, &NODES)?;
    let looked = guarded(stage, &closed);
    closed.open(&stage.cloud.user)?;
    stage.check(SCENARIO, "clean-up", |stage| steps::nothing_left(stage));
    looked
}

fn guarded(stage: &mut Stage, closed: &Closed) -> Result<()> {
    let api = stage.api()?;
    let mut sketch = ServiceSketch::proxy(SERVICE, "v1", true);
    sketch.create(&api, &PLACES)?;
    let mut other = ServiceSketch::plain(OTHER, true);
    (other.kind, other.target) = ("NodePort", 81);
    other.create(&api, &PLACES)?;
    manage(stage, false)?;
    stage.check(SCENARIO, "the nodes let nobody in", |stage| {
        let address = kept_out(stage, &api)?;
        has_groups(stage, closed, &[])?;
        Ok(format!("RED as it must be: nobody gets through {address} to the pods"))
    });
    manage(stage, true)?;
    stage.check(SCENARIO, "with manage-security-groups", |stage| {
        has_groups(stage, closed, &PLACES)?;
        let rules = opens(stage, &api)?;
        Ok(format!("GREEN: {}; {rules}", let_in(stage, &api)?))
    });
    stage.check(SCENARIO, "a node port of another Service stays closed", |_| open_for_its_own(&api));
    stage.check(SCENARIO, "a port is added and removed", |stage| {
        sketch.ports = vec![80, 8080];
        sketch.update(&api, &PLACES)?;
        let more = opens(stage, &api)?;
        sketch.ports = vec![80];
        sketch.update(&api, &PLACES)?;
        Ok(format!("{more}; then {}", opens(stage, &api)?))
    });
    joins_and_leaves(stage, &api, closed)?;
    switched_off_and_on(stage, &api, closed)?;
    stage.check(SCENARIO, "the Service is deleted", |stage| {
        steps::remove(stage, &[SERVICE, OTHER])?;
        has_groups(stage, closed, &[])?;
        Ok("its group is gone, and the ports of the nodes have what they had before".into())
    });
    stage.stop_controller()
}

/// The node port of the Service answers to the subnet of the load balancer; that of the other Service does not.
fn open_for_its_own(api: &Kubernetes) -> Result<String> {
    let (own, foreign) = (node_port(api, SERVICE)?, node_port(api, OTHER)?);
    for place in PLACES {
        let outcome = from_namespace(NEIGHBOUR, &place.address(), foreign)?;
        ensure!(outcome == Outcome::TimedOut, "port {foreign} of {}: {outcome}", place.name());
        // The pods want a PROXY header: it is their connection that is closed.
        let outcome = from_namespace(NEIGHBOUR, &place.address(), own)?;
        ensure!(outcome == Outcome::Closed, "port {own} of {}: {outcome}", place.name());
    }
    Ok(format!("from the load balancer's subnet {own} is open and {foreign} is not"))
}

fn switched_off_and_on(stage: &mut Stage, api: &Kubernetes, closed: &Closed) -> Result<()> {
    manage(stage, false)?;
    stage.check(SCENARIO, "manage-security-groups is switched off", |stage| {
        has_groups(stage, closed, &[])?;
        kept_out(stage, api)?;
        Ok("the group is gone; RED again".into())
    });
    manage(stage, true)?;
    stage.check(SCENARIO, "and on again", |stage| {
        has_groups(stage, closed, &PLACES)?;
        let_in(stage, api)
    });
    Ok(())
}

fn joins_and_leaves(stage: &mut Stage, api: &Kubernetes, closed: &Closed) -> Result<()> {
    stage.join(NODES[2], DUAL_STACK, Mode::Iptables)?;
    stage.check(SCENARIO, "a node joins", |stage| {
        has_groups(stage, closed, &NODES)?;
        soon("it is a member", || {
            let tree = Tree::of(&stage.cloud.user, SERVICE)?;
            ensure!(tree.addresses().len() == NODES.len(), "members {:?}", tree.addresses());
            tree.settled()
        })?;
        Ok(format!("its port has the group; {}", let_in(stage, api)?))
    });
    stage.end_proxy(NODES[2])?;
    api.delete(&format!("/api/v1/nodes/{}", NODES[2].name()))?;
    stage.check(SCENARIO, "a node leaves", |stage| {
        has_groups(stage, closed, &PLACES)?;
        Ok(format!("its port has lost the group and kept its own; {}", let_in(stage, api)?))
    });
    Ok(())
}

fn manage(stage: &mut Stage, on: bool) -> Result<()> {
    stage.stop_controller()?;
    let networks = stage.cloud.networks.clone();
    let line = format!("manage-security-groups = {on}");
    stage.cluster()?.launch.load_balancer_settings(&networks, &line)?;
    stage.start_controller()
}

fn everybody(stage: &Stage) -> Vec<Client> {
    let mut clients = clients_inside(stage, Reach::Internal);
    clients.push(client_outside(Reach::Internal));
    clients
}

fn let_in(stage: &Stage, api: &Kubernetes) -> Result<String> {
    green(&published_through(api, SERVICE)?, &everybody(stage))
}

fn kept_out(stage: &Stage, api: &Kubernetes) -> Result<String> {
    let address = published_through(api, SERVICE)?;
    soon("nobody gets through", || shut_out(&address, 80, &everybody(stage)))?;
    Ok(address)
}

fn node_port(api: &Kubernetes, service: &str) -> Result<u16> {
    let port = &api.service(service)?["spec"]["ports"][0]["nodePort"];
    port.as_u64().and_then(|port| u16::try_from(port).ok()).context("the Service has no node port")
}

/// The group of the Service.
fn own_group(cloud: &OpenStack) -> Result<Option<String>> {
    let groups = cloud.list("network", "/v2.0/security-groups", "security_groups")?;
    let own = groups.iter().filter(|group| {
        group["name"].as_str().is_some_and(|name| name.starts_with("lb-sg-") && name.ends_with(SERVICE))
    });
    let ids: Vec<&str> = own.filter_map(|group| group["id"].as_str()).collect();
    ensure!(ids.len() <= 1, "{} groups for one Service", ids.len());
    Ok(ids.first().map(|id| (*id).to_owned()))
}

/// The ports of exactly these nodes have the group of the Service, and all have the others that they had before. If no port
/// has it there is no such group.
fn has_groups(stage: &Stage, closed: &Closed, places: &[NodePlace]) -> Result<()> {
    soon(&format!("{} ports have the group of the Service", places.len()), || {
        let own = own_group(&stage.cloud.user)?;
        ensure!(own.is_some() != places.is_empty(), "group {own:?}");
        for place in NODES {
            let mut wanted = closed.groups_of(place);
            wanted.extend(own.clone().filter(|_| places.contains(&place)));
            wanted.sort();
            let seen = Port::of(&stage.cloud.user, place)?.groups;
            ensure!(seen == wanted, "{} has {seen:?}, not {wanted:?}", place.name());
        }
        Ok(())
    })
}

/// The rules of the group are exactly what the ports of the Service need.
fn opens(stage: &Stage, api: &Kubernetes) -> Result<String> {
    soon("the rules are those of the ports", || {
        let ports = api.service(SERVICE)?["spec"]["ports"].as_array().cloned().unwrap_or_default();
        let mut wanted: Vec<String> = ports
            .iter()
            .map(|port| format!("ingress IPv4 tcp {0} to {0} from \"198.18.0.0/24\"", port["nodePort"]))
            .collect();
        wanted.sort();
        let group = own_group(&stage.cloud.user)?.context("there is no group")?;
        let path = format!("/v2.0/security-group-rules?security_group_id={group}");
        let rules = stage.cloud.user.list("network", &path, "security_group_rules")?;
        let mut seen: Vec<String> = rules.iter().map(rule).collect();
        seen.sort();
        ensure!(seen == wanted, "{seen:?}, not {wanted:?}");
        Ok(format!("rules: {}", seen.join(", ")))
    })
}

fn rule(rule: &Value) -> String {
    let word = |key: &str| rule[key].as_str().unwrap_or_default().to_owned();
    let (direction, family, protocol) = (word("direction"), word("ethertype"), word("protocol"));
    let from = match &rule["remote_ip_prefix"] {
        Value::Null => json!("anywhere"),
        prefix => prefix.clone(),
    };
    format!(
        "{direction} {family} {protocol} {} to {} from {from}",
        rule["port_range_min"], rule["port_range_max"]
    )
}
