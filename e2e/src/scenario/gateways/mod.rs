//! Gateways that users have instead of ingress-nginx: red or not without `ipMode`, green with it, and what they do without the
//! PROXY header. Those that take both can be switched without a lost connection.

mod shown;

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::steps::{
    self, Client, Reach, client_outside, clients_inside, publish_as_before, published_through,
};
use super::{CURRENT, toggle};
use crate::backends::gateway::{Gateway, PORT};
use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::objects::ServiceSketch;
use crate::kubernetes::proxy::Mode;
use crate::machine::process::Daemon;
use crate::machine::wait::{soon, until};
use crate::network::NODES;
use crate::network::ask::{Outcome, from_namespace};
use crate::openstack::tree::Tree;
use crate::stage::Stage;

const SCENARIO: &str = "31 gateways";
const SERVICE: &str = "gateway";
/// The file with the table for the page about gateways.
pub(crate) const TABLE: &str = "gateways.table";
const FOLLOWS: Duration = Duration::from_secs(20);

/// What is seen of one gateway.
#[derive(Clone, Debug, Default)]
struct Row {
    without_header: String,
    short_circuited: String,
    through: String,
    switched: String,
}

/// All gateways on a cluster of 1.36.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    stage.start_cluster("gateways", CURRENT, Mode::Iptables)?;
    let mut lines = vec![
        "| Gateway | Setting | A connection without the header | A pod whose node short-circuits | With `ipMode: Proxy` | PROXY switched off and on under load |".to_owned(),
        "| --- | --- | --- | --- | --- | --- |".to_owned(),
    ];
    for gateway in Gateway::ALL {
        let row = one(stage, gateway)?;
        let version = gateway.version(&stage.artifacts)?;
        lines.push(format!(
            "| {} {version} | {} | {} | {} | {} | {} |",
            gateway.name(),
            gateway.setting(),
            row.without_header,
            row.short_circuited,
            row.through,
            row.switched
        ));
    }
    Ok(std::fs::write(stage.folder().join(TABLE), lines.join("\n"))?)
}

fn one(stage: &mut Stage, gateway: Gateway) -> Result<Row> {
    let folder = stage.cluster()?.plane.folder().to_owned();
    let artifacts = stage.artifacts.clone();
    let places = [NODES[0], NODES[1]];
    let start = |reads: bool| -> Result<Vec<Daemon>> {
        places.into_iter().map(|place| gateway.start(&artifacts, place, &folder, reads)).collect()
    };
    let started = start(true)?;
    let api = stage.api()?;
    let mut row = Row::default();
    let mut sketch = ServiceSketch::proxy(SERVICE, "v1", true)
        .annotate("loadbalancer.openstack.org/enable-health-monitor", "true");
    sketch.target = PORT;
    sketch.create(&api, &places)?;
    stage.start_controller()?;
    let case = |what: &str| format!("{gateway:?}, {what}");
    stage.check(SCENARIO, &case("without the header"), |_| {
        row.without_header = without_header(gateway)?;
        Ok(row.without_header.clone())
    });
    for version in ["v1", "v2"] {
        stage.check(SCENARIO, &case(&format!("PROXY {version}, short-circuited")), |stage| {
            row.short_circuited = short_circuited(stage, gateway, version)?;
            Ok(row.short_circuited.clone())
        });
        stage.check(SCENARIO, &case(&format!("PROXY {version}, with openstack-ccm")), |stage| {
            stage.start_controller()?;
            let address = published_through(&api, SERVICE)?;
            let mut clients = clients_inside(stage, Reach::Internal);
            clients.push(client_outside(Reach::Internal));
            answered(&address, &clients)?;
            row.through = "reached, right client address".into();
            Ok(format!("GREEN: {} clients, right addresses, health monitor on", clients.len()))
        });
    }
    if gateway.takes_both() {
        stage.check(SCENARIO, &case("PROXY off and on under load"), |stage| {
            row.switched = switched(stage)?;
            Ok(row.switched.clone())
        });
    } else {
        row.switched = "not without a gap: it requires the header".into();
    }
    for shape in shown::shapes(gateway) {
        let what = format!("doctor, {}", shape.name());
        stage.check(SCENARIO, &case(&what), |stage| shown::examined(stage, gateway, shape, true));
    }
    started.into_iter().try_for_each(Daemon::stop)?;
    let started = start(false)?;
    for shape in shown::shapes(gateway) {
        let what = format!("doctor, {}, the header switched off in the application", shape.name());
        stage.check(SCENARIO, &case(&what), |stage| {
            let address = published_through(&api, SERVICE)?;
            for client in clients_inside(stage, Reach::Internal) {
                let outcome = from_namespace(&client.namespace, &address, 80)?;
                ensure!(
                    !matches!(outcome, Outcome::Answered { status: 200, .. }),
                    "{}: {outcome}",
                    client.who
                );
            }
            shown::examined(stage, gateway, shape, false)
        });
    }
    stage.check(SCENARIO, &case("clean-up"), |stage| steps::release(stage, &[SERVICE]));
    started.into_iter().try_for_each(Daemon::stop)?;
    Ok(row)
}

/// What a client that goes to the pod itself is answered.
fn without_header(gateway: Gateway) -> Result<String> {
    // A gateway that has just started may not have read its routes yet.
    let outcome = until("the gateway is as it should be", FOLLOWS, || {
        let outcome = from_namespace(&NODES[0].client(), &NODES[1].ingress_address(), PORT)?;
        let is_answered = matches!(outcome, Outcome::Answered { status: 200, .. });
        ensure!(is_answered == gateway.takes_both(), "{outcome}");
        Ok(outcome)
    })?;
    Ok(match outcome {
        Outcome::Answered { status: 200, .. } => "taken".into(),
        Outcome::Answered { status, .. } => format!("status {status}"),
        other => other.to_string(),
    })
}

/// With the status that a controller without `ipMode` writes.
fn short_circuited(stage: &mut Stage, gateway: Gateway, version: &str) -> Result<String> {
    let api = stage.api()?;
    stage.start_controller()?;
    let wish = json!({"metadata": {"annotations": {"loadbalancer.openstack.org/proxy-protocol": version}}});
    api.patch(&Kubernetes::service_path(SERVICE), &wish)?;
    let protocol = if version == "v1" { "PROXY" } else { "PROXYV2" };
    soon(&format!("the pool speaks {protocol}"), || speaks(stage, protocol))?;
    let address = published_through(&api, SERVICE)?;
    stage.stop_controller()?;
    publish_as_before(&api, SERVICE, &address)?;
    let clients = clients_inside(stage, Reach::Internal);
    if gateway.takes_both() {
        // Service proxies give the connection the address of a node.
        let seen = until("a pod gets through", FOLLOWS, || forwarded(&clients[0], &address))?;
        ensure!(NODES.iter().any(|place| place.has_address(&seen)), "{seen} is no address of a node");
        return Ok("reached, with the address of a node".into());
    }
    for client in &clients {
        until(&format!("{} is cut off", client.who), FOLLOWS, || {
            let outcome = from_namespace(&client.namespace, &address, 80)?;
            ensure!(!matches!(outcome, Outcome::Answered { status: 200, .. }), "{}: {outcome}", client.who);
            Ok(())
        })?;
    }
    Ok("cut off".into())
}

fn speaks(stage: &Stage, protocol: &str) -> Result<()> {
    let tree = Tree::of(&stage.cloud.user, SERVICE)?;
    ensure!(tree.protocols == [protocol], "{:?}", tree.protocols);
    tree.settled()
}

/// The backend gets the address of each client from the gateway.
fn answered(address: &str, clients: &[Client]) -> Result<()> {
    for client in clients {
        until(&format!("{} is answered", client.who), FOLLOWS, || {
            let seen = forwarded(client, address)?;
            ensure!(seen == client.address, "{} should be {}: {seen}", client.who, client.address);
            Ok(())
        })?;
    }
    Ok(())
}

/// The address of the client that the gateway passes on.
fn forwarded(client: &Client, address: &str) -> Result<String> {
    let outcome = from_namespace(&client.namespace, address, 80)?;
    let Outcome::Answered { status: 200, body } = &outcome else {
        anyhow::bail!("{}: {outcome}", client.who)
    };
    Ok(body.split("forwarded=").nth(1).context("nothing is forwarded")?.trim().to_owned())
}

/// Off and on again, under a stream of connections.
fn switched(stage: &mut Stage) -> Result<String> {
    let api = stage.api()?;
    let tally = toggle::streamed(stage, SERVICE, |stage| {
        for (value, protocol) in [("false", "TCP"), ("v2", "PROXYV2")] {
            let wish =
                json!({"metadata": {"annotations": {"loadbalancer.openstack.org/proxy-protocol": value}}});
            api.patch(&Kubernetes::service_path(SERVICE), &wish)?;
            soon(&format!("the pool speaks {protocol}"), || speaks(stage, protocol))?;
        }
        Ok(())
    })?;
    ensure!(tally.failed == 0, "{} answered, {} failed", tally.answered, tally.failed);
    Ok(format!("{} connections, none lost", tally.answered))
}
