//! Nodes that leave it to the cloud what they are, and servers that come and go behind them.

use anyhow::{Context as _, Result, ensure};

use super::{CONTROL_PLANE, Deployment, SCENARIO, WORKER};
use crate::machine::wait::soon;
use crate::network::{NODES, NodePlace};
use crate::openstack::compute;
use crate::scenario::machines::{SHUT_DOWN, give_back, has_taint, initialised, node_path, routed};
use crate::stage::Stage;

/// All cases. In the end the worker has no server any more.
pub(super) fn run(stage: &mut Stage, cluster: &Deployment, machines: &[(NodePlace, String)]) -> Result<()> {
    for (place, server) in machines {
        stage.check(SCENARIO, &format!("{} is initialised, and no taint is left", place.name()), |_| {
            let seen = initialised(&cluster.api, *place, server)?;
            without_taints(cluster, *place)?;
            Ok(seen)
        });
    }
    stage.check(SCENARIO, "routes to the pods of all nodes", |stage| routed(stage, &NODES));
    let server = machines.iter().find(|(place, _)| *place == WORKER);
    let (_, server) = server.context("the worker has no server")?;
    stage.check(SCENARIO, "a server is shut down: its node is tainted, until it is back", |stage| {
        shut_down(stage, cluster, server)
    });
    stage.check(SCENARIO, "a server is deleted: its node goes, and the route to it", |stage| {
        compute::remove_server(&stage.cloud.user, server)?;
        cluster.kubelets.fall_silent(WORKER);
        soon("the node is gone", || cluster.api.gone(&node_path(WORKER)))?;
        routed(stage, &CONTROL_PLANE)
    });
    give_back(&stage.cloud.user, WORKER)
}

fn without_taints(cluster: &Deployment, place: NodePlace) -> Result<()> {
    soon("no taint is left", || {
        let taints = cluster.node(place)?["spec"]["taints"].clone();
        ensure!(taints.as_array().is_none_or(Vec::is_empty), "{taints}");
        Ok(())
    })
}

/// The kubelet of a server that is shut down falls silent; kube-controller-manager notices, and asks nobody why.
fn shut_down(stage: &Stage, cluster: &Deployment, server: &str) -> Result<String> {
    compute::act(&stage.cloud.user, server, "os-stop")?;
    cluster.kubelets.fall_silent(WORKER);
    soon("the node is tainted", || {
        let node = cluster.node(WORKER)?;
        ensure!(has_taint(&node, SHUT_DOWN), "{}", node["spec"]["taints"]);
        Ok(())
    })?;
    compute::act(&stage.cloud.user, server, "os-start")?;
    cluster.kubelets.live(WORKER);
    without_taints(cluster, WORKER)?;
    Ok(format!("{SHUT_DOWN} came and went, the node stayed"))
}
