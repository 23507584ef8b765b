//! Annotations of a Service that serves become wrong, and then its nodes are replaced.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{PLACES, id_of, members, restart};
use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::objects::ServiceSketch;
use crate::kubernetes::proxy::Mode;
use crate::machine::wait::soon;
use crate::network::{NEIGHBOUR_ADDRESS, NODES, NodePlace};
use crate::openstack::picture::Picture;
use crate::openstack::tree::Tree;
use crate::openstack::writes::Writes;
use crate::scenario::CURRENT;
use crate::scenario::steps::{
    self, Client, Reach, client_outside, clients_inside, green, published_through, set_source_ranges,
    shut_out, warned,
};
use crate::stage::Stage;

const SCENARIO: &str = "17 wrong value";
const SERVICE: &str = "mistaken";
const NEW: &str = "mistaken-from-the-start";
const REASON: &str = "SyncLoadBalancerFailed";
/// OCCM takes `V2` for no PROXY protocol at all.
const WRONG: [(&str, &str); 2] = [("timeout-client-data", "50s"), ("proxy-protocol", "V2")];
/// What the event has to name: keys, values and what to write.
const NAMED: [&str; 6] = [
    "loadbalancer.openstack.org/timeout-client-data",
    "\"50s\"",
    "milliseconds",
    "loadbalancer.openstack.org/proxy-protocol",
    "\"V2\"",
    "v2",
];

/// The whole scenario on the present cluster.
pub(super) fn run(stage: &mut Stage) -> Result<()> {
    let api = stage.api()?;
    let sketch = ServiceSketch::proxy(SERVICE, "v2", true);
    sketch.create(&api, &PLACES)?;
    stage.start_controller()?;
    stage.check(SCENARIO, "published", |stage| {
        let address = published_through(&api, SERVICE)?;
        Ok(format!("{address}: {}", green(&address, &everybody_but(stage, &[]))?))
    });
    stage.check(SCENARIO, "two annotations become wrong, and everybody is still answered", become_wrong);
    stage.check(SCENARIO, "proxy-protocol: \"True\" is no value either, and changes nothing", |stage| {
        let writes = Writes::from_now(&stage.cloud.folders)?;
        steps::annotate(&api, SERVICE, &[("proxy-protocol", json!("True"))])?;
        let note = warned(&api, SERVICE, REASON, &["proxy-protocol", "\"True\"", "\"50s\""])?;
        writes.none()?;
        Ok(format!("event {REASON}: {note}"))
    });
    stage.join(NODES[2], CURRENT, Mode::Iptables)?;
    stage.check(SCENARIO, "a node joins and becomes a member", |stage| {
        members(stage, SERVICE, &NODES)?;
        Ok(format!("{} is a member", NODES[2].name()))
    });
    for place in PLACES {
        stage.end_proxy(place)?;
        api.delete(&format!("/api/v1/nodes/{}", place.name()))?;
    }
    stage.check(SCENARIO, "all other nodes leave, and the new one takes the traffic", |stage| {
        sketch.update(&api, &[NODES[2]])?;
        members(stage, SERVICE, &[NODES[2]])?;
        let address = published_through(&api, SERVICE)?;
        green(&address, &[on_the_new_node(), client_outside(Reach::Internal)])
    });
    stage.check(SCENARIO, "source ranges that are set now are applied", source_ranges);
    for place in PLACES {
        stage.join(place, CURRENT, Mode::Iptables)?;
    }
    stage.check(SCENARIO, "the values are corrected", |stage| corrected(stage, &sketch));
    stage.check(SCENARIO, "a new Service with the same faults is refused", refused);
    stage.check(SCENARIO, "clean-up", |stage| steps::release(stage, &[SERVICE, NEW]));
    stage.end_proxy(NODES[2])?;
    api.delete(&format!("/api/v1/nodes/{}", NODES[2].name()))
}

/// Clients inside and outside, without those on some nodes.
fn everybody_but(stage: &Stage, places: &[NodePlace]) -> Vec<Client> {
    let mut clients = clients_inside(stage, Reach::Internal);
    clients.retain(|client| !places.iter().any(|place| client.who.contains(&place.name())));
    clients.push(client_outside(Reach::Internal));
    clients
}

fn on_the_new_node() -> Client {
    let place = NODES[2];
    Client { who: format!("pod on {}", place.name()), namespace: place.client(), address: place.address() }
}

fn become_wrong(stage: &mut Stage) -> Result<String> {
    let api = stage.api()?;
    let (id, address) = (id_of(&api, SERVICE)?, published_through(&api, SERVICE)?);
    let before = Picture::of(&stage.cloud.user, &id)?;
    let writes = Writes::from_now(&stage.cloud.folders)?;
    steps::annotate(&api, SERVICE, &WRONG.map(|(key, value)| (key, json!(value))))?;
    let note = warned(&api, SERVICE, REASON, &NAMED)?;
    restart(stage, 1)?;
    ensure!(published_through(&api, SERVICE)? == address, "another address is published");
    let seen = green(&address, &everybody_but(stage, &[]))?;
    writes.none()?;
    before.is_unchanged(&stage.cloud.user, &id)?;
    Ok(format!("{seen}, also after a restart; event {REASON}: {note}"))
}

fn source_ranges(stage: &mut Stage) -> Result<String> {
    let api = stage.api()?;
    set_source_ranges(&api, SERVICE, &[&format!("{NEIGHBOUR_ADDRESS}/32")])?;
    soon("the listener has the range", || {
        let tree = Tree::of(&stage.cloud.user, SERVICE)?;
        let allowed = tree.listeners.first().map(|listener| listener["allowed_cidrs"].clone());
        ensure!(allowed == Some(json!([format!("{NEIGHBOUR_ADDRESS}/32")])), "{allowed:?}");
        tree.settled()
    })?;
    let address = published_through(&api, SERVICE)?;
    let seen = green(&address, &[client_outside(Reach::Internal)])?;
    shut_out(&address, 80, &[on_the_new_node()])?;
    set_source_ranges(&api, SERVICE, &[])?;
    green(&address, &[on_the_new_node()])?;
    Ok(format!("outside {seen}; pods are not in the list and get nothing"))
}

fn corrected(stage: &mut Stage, sketch: &ServiceSketch) -> Result<String> {
    let api = stage.api()?;
    sketch.update(&api, &NODES)?;
    let values = [("timeout-client-data", json!("61000")), ("proxy-protocol", json!("v1"))];
    steps::annotate(&api, SERVICE, &values)?;
    members(stage, SERVICE, &NODES)?;
    soon("Octavia has what the Service asks for", || {
        let tree = Tree::of(&stage.cloud.user, SERVICE)?;
        let timeout = tree.listeners.first().map(|listener| listener["timeout_client_data"].clone());
        ensure!(timeout == Some(json!(61000)), "{timeout:?}");
        ensure!(tree.protocols == ["PROXY"], "pools {:?}", tree.protocols);
        tree.settled()
    })?;
    let address = published_through(&api, SERVICE)?;
    green(&address, &everybody_but(stage, &[]))
}

fn refused(stage: &mut Stage) -> Result<String> {
    let api = stage.api()?;
    let writes = Writes::from_now(&stage.cloud.folders)?;
    let mut sketch = ServiceSketch::plain(NEW, true);
    for (key, value) in WRONG {
        sketch = sketch.annotate(&format!("{}{key}", super::PREFIX), value);
    }
    sketch.create(&api, &PLACES)?;
    let note = warned(&api, NEW, REASON, &NAMED)?;
    writes.none()?;
    let named =
        api.service(NEW)?["metadata"]["annotations"][format!("{}load-balancer-id", super::PREFIX)].clone();
    ensure!(named == Value::Null, "it names a load balancer: {named}");
    api.delete(&Kubernetes::service_path(NEW))?;
    Ok(format!("nothing was made; event {REASON}: {note}"))
}
