//! Real nodes: kubelets and containerd run the image of `make image`, which Helm installs with the chart as the pages say.
//! Nothing stands in for a kubelet or a scheduler here; what pods run is pulled from a registry.

mod canary;
mod front;
mod loss;
mod proxy;
mod quickstart;
mod release;
mod rotation;
mod site;
mod token;

use anyhow::{Result, ensure};

use crate::artifacts::Minor;
use crate::kubernetes::kubelet::UNINITIALIZED;
use crate::machine::wait::soon;
use crate::network::{NODES, NodePlace};
use crate::scenario::machines::{has_taint, node_path};
use crate::stage::Stage;
use site::Site;

const SCENARIO: &str = "38 kubelet";
/// The machines that are nodes.
const PLACES: [NodePlace; 2] = [NODES[0], NODES[1]];

/// The whole scenario, with a cluster of its own.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    let mut site = Site::build(stage)?;
    let looked = look(stage, &mut site);
    site.end(stage)?;
    looked
}

fn look(stage: &mut Stage, site: &mut Site) -> Result<()> {
    let ready = stage.check(SCENARIO, "two kubelets make two nodes, which wait for a cloud", |_| nodes(site));
    ensure!(ready, "there are no nodes");
    let before = release::everything(site)?;
    quickstart::run(stage, site)?;
    proxy::run(stage, site);
    release::upgrade(stage, site);
    token::shorten(stage, site);
    canary::run(stage, site);
    rotation::run(stage, site);
    token::renewed(stage, site);
    loss::kubelet(stage, site);
    release::uninstall(stage, site, &before);
    // Last, because a node is gone after it.
    quickstart::install_again(stage, site)?;
    loss::node(stage, site)
}

/// Both are ready, and keep the taint for as long as nobody initialises them.
fn nodes(site: &Site) -> Result<String> {
    for place in PLACES {
        soon(&format!("{} is ready", place.name()), || {
            let node = site.api.get(&node_path(place))?;
            let conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let ready = conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == "True");
            ensure!(ready, "{conditions:?}");
            ensure!(has_taint(&node, UNINITIALIZED), "it has no taint: {}", node["spec"]);
            ensure!(node["spec"]["providerID"].is_null(), "it has a provider id: {}", node["spec"]);
            let version = &node["status"]["nodeInfo"]["kubeletVersion"];
            ensure!(*version == Minor::V1_36.kubelet_version(), "its kubelet is {version}");
            Ok(())
        })?;
    }
    Ok(format!("Ready, {UNINITIALIZED}, no provider id"))
}
