//! Datagrams beside connections with the PROXY header, on one port of one Service, as HTTP/3 wants it.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::steps::{
    self, Client, Reach, client_outside, clients_inside, green_on, publish_as_before, published_through,
    red_on, set_source_ranges,
};
use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::objects::ServiceSketch;
use crate::kubernetes::proxy::rules_for;
use crate::machine::process::Daemon;
use crate::machine::wait::soon;
use crate::network::ask::Outcome;
use crate::network::datagram::{from_namespace, start_backend};
use crate::network::{NEIGHBOUR_ADDRESS, NODES, NodePlace};
use crate::openstack::api::OpenStack;
use crate::openstack::tree::Tree;
use crate::stage::Stage;

const SCENARIO: &str = "13 datagrams";
const SERVICE: &str = "mixed";
/// Of both protocols.
const PORT: u16 = 443;
const PLACES: [NodePlace; 2] = [NODES[0], NODES[1]];

/// What the Service looks like.
fn sketch() -> ServiceSketch {
    let mut sketch = ServiceSketch::proxy(SERVICE, "v2", true);
    (sketch.ports, sketch.datagrams) = (vec![PORT], vec![PORT]);
    // So that pods see where datagrams come from: with `Cluster` they see a node in any case.
    sketch.policy = "Local";
    sketch
}

/// Creates the Service. Octavia has time until the scenario begins.
pub(crate) fn create(stage: &Stage) -> Result<()> {
    sketch().create(&stage.api()?, &PLACES)
}

/// The whole scenario on the present cluster.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    let folder = stage.cluster()?.plane.folder().to_owned();
    let mut backends: Vec<Daemon> = Vec::new();
    for place in PLACES {
        backends.push(start_backend(&place.ingress(), &folder)?);
    }
    let api = stage.api()?;
    let mut sketch = sketch();
    stage.start_controller()?;
    stage.check(SCENARIO, "published", |stage| {
        let address = published_through(&api, SERVICE)?;
        let pools = has(stage, &["TCP", "UDP"], &["PROXYV2", "UDP"])?;
        let events = api.events(SERVICE)?;
        let event = events.into_iter().find(|(reason, _)| reason == "LoadBalancerTcpPortsOnly");
        let (_, note) = event.context("no event says that the header is for TCP")?;
        Ok(format!("{address} with ipMode Proxy; {pools}; event {note}"))
    });
    stage.stop_controller()?;
    stage.check(SCENARIO, "status as before", |stage| short_circuited(stage, &api));
    stage.start_controller()?;
    stage.check(SCENARIO, "with openstack-ccm", |stage| through_the_load_balancer(stage, &api));
    stage.check(SCENARIO, "loadBalancerSourceRanges hold for datagrams", |stage| ranges(stage, &api));
    stage.check(SCENARIO, "the port for datagrams goes and comes back", |stage| {
        sketch.datagrams.clear();
        sketch.update(&api, &PLACES)?;
        has(stage, &["TCP"], &["PROXYV2"])?;
        sketch.datagrams.push(PORT);
        sketch.update(&api, &PLACES)?;
        has(stage, &["TCP", "UDP"], &["PROXYV2", "UDP"])?;
        through_the_load_balancer(stage, &api)
    });
    stage.check(SCENARIO, "clean-up", |stage| steps::release(stage, &[SERVICE]));
    Ok(())
}

/// Octavia has exactly these listeners, all on one port, and pools of these protocols, all in order.
fn has(stage: &Stage, listeners: &[&str], pools: &[&str]) -> Result<String> {
    soon("Octavia has what the Service asks for", || {
        let mut tree = Tree::of(&stage.cloud.user, SERVICE)?;
        ensure!(tree.ports() == vec![u64::from(PORT); listeners.len()], "listeners {:?}", tree.ports());
        let mut protocols: Vec<&str> =
            tree.listeners.iter().filter_map(|listener| listener["protocol"].as_str()).collect();
        protocols.sort_unstable();
        ensure!(protocols == listeners, "listeners {protocols:?}");
        tree.protocols.sort_unstable();
        ensure!(tree.protocols == pools, "pools {:?}", tree.protocols);
        ensure!(tree.members.len() == PLACES.len() * pools.len(), "{} members", tree.members.len());
        tree.settled()
    })?;
    Ok(format!("listeners {}, pools {}", listeners.join(" and "), pools.join(" and ")))
}

/// A datagram is answered, and the pod sees an address as it should.
fn answered(client: &Client, address: &str, seen_as: &dyn Fn(&str) -> bool) -> Result<String> {
    soon(&format!("a datagram of the {} is answered", client.who), || {
        let outcome = from_namespace(&client.namespace, address, PORT)?;
        let seen = outcome.client().with_context(|| format!("{outcome}"))?;
        ensure!(seen_as(seen), "{} is seen as {seen}", client.who);
        Ok(seen.to_owned())
    })
}

/// The pods that ask, without the process on a node: it has the node's address either way.
fn pods(stage: &Stage) -> Vec<(NodePlace, Client)> {
    PLACES.into_iter().zip(clients_inside(stage, Reach::Internal)).collect()
}

/// Without `ipMode` connections break, and datagrams do not notice that they never leave the cluster.
fn short_circuited(stage: &mut Stage, api: &Kubernetes) -> Result<String> {
    let address = steps::address(api, SERVICE)?;
    publish_as_before(api, SERVICE, &address)?;
    let red = red_on(stage, &address, PORT, &clients_inside(stage, Reach::Internal))?;
    for (place, pod) in pods(stage) {
        answered(&pod, &address, &|seen| seen == place.client_address())?;
    }
    green_on(&address, PORT, &[client_outside(Reach::Internal)]).context("the client outside")?;
    Ok(format!("RED as it must be: {red}; datagrams of pods go straight to pods; outside is well"))
}

/// Connections and datagrams of pods reach the pods by way of the load balancer, which sends to node ports.
fn through_the_load_balancer(stage: &mut Stage, api: &Kubernetes) -> Result<String> {
    let address = published_through(api, SERVICE)?;
    let mut clients = clients_inside(stage, Reach::Internal);
    clients.push(client_outside(Reach::Internal));
    let streams = green_on(&address, PORT, &clients)?;
    let amphora = amphora_address(&stage.cloud.user)?;
    for client in &clients {
        answered(client, &address, &|seen| seen == amphora)?;
    }
    for place in PLACES {
        let rules = rules_for(place, &address)?;
        ensure!(rules.is_empty(), "{} has rules for {address}: {rules:?}", place.name());
    }
    Ok(format!("GREEN: {streams}; datagrams of {} clients are seen as the amphora {amphora}", clients.len()))
}

/// The address from which the amphora of the Service sends.
fn amphora_address(cloud: &OpenStack) -> Result<String> {
    let balancer = cloud.load_balancer(SERVICE)?;
    let id = balancer["id"].as_str().context("the load balancer has no id")?;
    let path = format!("/v2/octavia/amphorae?loadbalancer_id={id}");
    let amphorae = OpenStack::log_in("admin")?.list("load-balancer", &path, "amphorae")?;
    let address = amphorae.first().and_then(|amphora| amphora["vrrp_ip"].as_str());
    Ok(address.context("the amphora has no address")?.to_owned())
}

fn ranges(stage: &mut Stage, api: &Kubernetes) -> Result<String> {
    let address = published_through(api, SERVICE)?;
    set_source_ranges(api, SERVICE, &[&format!("{NEIGHBOUR_ADDRESS}/32")])?;
    for (_, pod) in pods(stage) {
        soon(&format!("the {} is shut out", pod.who), || {
            let outcome = from_namespace(&pod.namespace, &address, PORT)?;
            ensure!(outcome == Outcome::TimedOut, "{outcome}");
            Ok(())
        })?;
    }
    answered(&client_outside(Reach::Internal), &address, &|_| true)?;
    let open = json!({"spec": {"loadBalancerSourceRanges": null}});
    api.patch(&Kubernetes::service_path(SERVICE), &open)?;
    for (_, pod) in pods(stage) {
        answered(&pod, &address, &|_| true)?;
    }
    Ok("only the client outside is answered; without the list all are".into())
}
