//! What serves is not taken down: not for a status, not for a wrong value, and not by a copy of its Service in another cluster.

mod copied;
mod in_error;
mod takeover;
mod wrong_value;

use anyhow::{Context as _, Result, ensure};

use super::steps::{Client, Reach, client_outside, clients_inside, green};
use crate::backends::stream::{Stream, Tally};
use crate::kubernetes::api::Kubernetes;
use crate::machine::wait::soon;
use crate::network::{NODES, NodePlace, OUTSIDE};
use crate::openstack::tree::Tree;
use crate::programs::controller::Controller;
use crate::stage::Stage;

/// Nodes that the cluster has from the beginning.
const PLACES: [NodePlace; 2] = [NODES[0], NODES[1]];
/// How annotations of the product begin.
const PREFIX: &str = "loadbalancer.openstack.org/";

/// All of it on the present cluster.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    in_error::run(stage)?;
    wrong_value::run(stage)?;
    copied::run(stage)?;
    takeover::run(stage)
}

/// Pods on both nodes, a process on a node, and somebody outside, who use a floating IP.
pub(crate) fn everybody(stage: &Stage) -> Vec<Client> {
    let mut clients = clients_inside(stage, Reach::Floating);
    clients.push(client_outside(Reach::Floating));
    clients
}

/// Ends the controller and starts another, and waits until that has looked at each of so many Services.
fn restart(stage: &mut Stage, services: u64) -> Result<()> {
    stage.stop_controller()?;
    stage.start_controller()?;
    let controller = stage.cluster()?.controller.as_ref().context("no controller runs")?;
    has_looked(controller, services)
}

/// A controller that was just started has looked at each of so many Services.
pub(crate) fn has_looked(controller: &Controller, services: u64) -> Result<()> {
    soon("the controller has looked at all Services", || {
        let lines = controller.metrics("workqueue_work_duration_seconds_count{name=\"service\"}")?;
        let looks = lines.first().and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        ensure!(looks.is_some_and(|looks| looks >= services), "{lines:?}");
        Ok(())
    })
}

/// The id of a Service's load balancer.
fn id_of(api: &Kubernetes, service: &str) -> Result<String> {
    let service = api.service(service)?;
    let id = service["metadata"]["annotations"][format!("{PREFIX}load-balancer-id")].as_str();
    Ok(id.context("the Service does not name its load balancer")?.to_owned())
}

/// Octavia has these nodes as members, and everything is in order.
fn members(stage: &Stage, service: &str, places: &[NodePlace]) -> Result<()> {
    let addresses: Vec<String> = places.iter().map(|place| place.address()).collect();
    soon(&format!("the members are {addresses:?}"), || {
        let tree = Tree::of(&stage.cloud.user, service)?;
        ensure!(tree.addresses() == addresses, "members {:?}", tree.addresses());
        tree.settled()
    })
}

/// Sends connections from outside during some work, of which none may fail.
fn without_a_break(
    stage: &mut Stage,
    address: &str,
    work: impl FnOnce(&mut Stage) -> Result<String>,
) -> Result<String> {
    let folder = stage.cluster()?.plane.folder().to_owned();
    let stream = Stream::start(OUTSIDE, address, &folder)?;
    let worked = work(stage);
    let Tally { answered, failed } = stream.end()?;
    let worked = worked?;
    ensure!(failed == 0 && answered > 0, "{answered} connections answered, {failed} failed");
    Ok(format!("{worked}; {answered} connections meanwhile, all answered"))
}

/// Everybody reaches a floating IP, and the pods see the right clients.
pub(crate) fn all_reach(stage: &Stage, address: &str) -> Result<String> {
    green(address, &everybody(stage))
}
