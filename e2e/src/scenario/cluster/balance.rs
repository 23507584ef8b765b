//! A load balancer with the PROXY protocol: red with the status of an old controller, green with this one.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::{CONTROL_PLANE, Deployment, SCENARIO};
use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::objects::ServiceSketch;
use crate::kubernetes::proxy::Mode;
use crate::machine::wait::soon;
use crate::openstack::tree::Tree;
use crate::scenario::steps::{
    Reach, address, client_outside, clients_inside, green, publish_as_before, published_through, red,
};
use crate::stage::Stage;

/// The Service of this and later scenarios.
pub(super) const SERVICE: &str = "answering";

/// All cases, after the nodes have their addresses.
pub(super) fn run(stage: &mut Stage, cluster: &mut Deployment) -> Result<()> {
    let kind = stage.cluster()?.plane.kind;
    for place in CONTROL_PLANE {
        stage.start_proxy(place, kind, Mode::Iptables)?;
    }
    stage.check(SCENARIO, "a load balancer with PROXY v2 is published", |stage| {
        ServiceSketch::proxy(SERVICE, "v2", false).create(&cluster.api, &CONTROL_PLANE)?;
        works(stage)
    });
    stage.check(SCENARIO, "nobody runs, status as before", |stage| {
        cluster.stop()?;
        let address = address(&cluster.api, SERVICE)?;
        publish_as_before(&cluster.api, SERVICE, &address)?;
        let seen = red(stage, &address, &clients_inside(stage, Reach::Floating))?;
        green(&address, &[client_outside(Reach::Floating)]).context("the client outside")?;
        Ok(format!("RED as it must be: {seen}; outside is well"))
    });
    stage.check(SCENARIO, "openstack-ccm runs again", |stage| {
        cluster.start()?;
        works(stage)
    });
    Ok(())
}

/// Everybody reaches the Service.
pub(super) fn works(stage: &Stage) -> Result<String> {
    let address = published_through(&stage.api()?, SERVICE)?;
    let mut clients = clients_inside(stage, Reach::Floating);
    clients.push(client_outside(Reach::Floating));
    Ok(format!("GREEN: {address} ipMode Proxy, {}, right client addresses", green(&address, &clients)?))
}

/// Asks for another timeout, in milliseconds.
pub(super) fn change(api: &Kubernetes, timeout: u32) -> Result<()> {
    let annotations = json!({"loadbalancer.openstack.org/timeout-client-data": timeout.to_string()});
    let change = json!({"metadata": {"annotations": annotations}});
    api.patch(&Kubernetes::service_path(SERVICE), &change).map(drop)
}

/// Octavia has the timeout that was asked for.
pub(super) fn has_changed(stage: &Stage, timeout: u32) -> Result<()> {
    soon("the change reaches Octavia", || {
        let tree = Tree::of(&stage.cloud.user, SERVICE)?;
        let listener = tree.listeners.first().context("there is no listener")?;
        ensure!(listener["timeout_client_data"] == timeout, "{}", listener["timeout_client_data"]);
        tree.settled()
    })
}
