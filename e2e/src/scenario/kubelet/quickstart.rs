//! The quickstart, command for command.

use anyhow::{Context as _, Result, bail, ensure};

use super::site::Site;
use super::{PLACES, SCENARIO};
use crate::machine::wait::soon;
use crate::programs::guide;
use crate::scenario::machines::initialised;
use crate::stage::Stage;

const PAGE: &str = "tutorials/quickstart.md";
/// The DaemonSet of the chart.
pub(super) const WORKLOAD: &str =
    "/apis/apps/v1/namespaces/kube-system/daemonsets/openstack-cloud-controller-manager";

/// All cases.
pub(super) fn run(stage: &mut Stage, site: &Site) -> Result<()> {
    let [check, install, look, ask, wait, delete]: [String; 6] = guide::commands(PAGE)?
        .try_into()
        .map_err(|other: Vec<String>| anyhow::anyhow!("{PAGE} has {} blocks to type", other.len()))?;
    let operator = &site.operator;
    operator.saves("web.yaml", &guide::file(PAGE, "web.yaml")?)?;
    stage.check(SCENARIO, "quickstart: cloud.conf is checked before anything is installed", |_| {
        let said = operator.types(&check)?;
        ensure!(said.contains("cloud.conf is valid"), "{said}");
        Ok(said.trim().to_owned())
    });
    let installed =
        stage.check(SCENARIO, "quickstart: helm installs the chart, pods are ready by its probes", |_| {
            operator.types(&install)?;
            all_ready(site)
        });
    ensure!(installed, "the chart is not installed");
    stage.check(SCENARIO, "quickstart: the nodes are initialised, and no taint is left", |_| {
        for (place, server) in &site.servers {
            initialised(&site.api, *place, server)?;
        }
        let seen = operator.types(&look)?;
        let lines = |text: &str| seen.lines().filter(|line| line.contains(text)).count();
        ensure!(lines("openstack:///") == PLACES.len(), "{seen}");
        Ok(seen.lines().filter(|line| line.contains("openstack:///")).collect::<Vec<_>>().join("; "))
    });
    stage.check(
        SCENARIO,
        "a pod has what the chart grants: user 1001, no capability, nothing to write to",
        |_| {
            site.nodes
                .iter()
                .map(|node| node.confinement("/bin/openstack-ccm"))
                .collect::<Result<Vec<_>>>()
                .map(|seen| seen.join("; "))
        },
    );
    stage.check(SCENARIO, "quickstart: a Service gets an address, and answers", |_| {
        operator.types(&ask)?;
        let said = operator.types(&wait)?;
        ensure!(said.contains("<title>Welcome to nginx!</title>"), "{said}");
        Ok(said.lines().last().unwrap_or_default().trim().to_owned())
    });
    stage.check(SCENARIO, "quickstart: the Service is deleted, and nothing is left in the cloud", |stage| {
        operator.types(&delete)?;
        crate::scenario::steps::nothing_left(stage)
    });
    Ok(())
}

/// The chart once more, after it was uninstalled.
pub(super) fn install_again(stage: &mut Stage, site: &Site) -> Result<()> {
    let commands = guide::commands(PAGE)?;
    let install =
        commands.iter().find(|command| command.starts_with("helm")).context("the page installs nothing")?;
    let ready = stage.check(SCENARIO, "helm installs the chart again: somebody leads", |_| {
        site.operator.types(install)?;
        all_ready(site)?;
        let (pod, place) = site.leader()?;
        Ok(format!("{pod} leads, on {}", place.name()))
    });
    ensure!(ready, "the chart is not installed again");
    Ok(())
}

/// Waits until the DaemonSet has a pod of its present template on each node, each ready by its probes.
pub(super) fn all_ready(site: &Site) -> Result<String> {
    soon("the pods are ready", || {
        let set = site.api.get(WORKLOAD)?;
        let status = &set["status"];
        let count = |key: &str| status[key].as_u64().unwrap_or_default();
        if count("observedGeneration") != set["metadata"]["generation"].as_u64().context("no generation")? {
            bail!("the DaemonSet is not seen yet");
        }
        let wanted = u64::try_from(PLACES.len())?;
        let counts = [count("numberReady"), count("updatedNumberScheduled"), count("desiredNumberScheduled")];
        ensure!(counts.iter().all(|count| *count == wanted), "{status}; {}", waiting(site));
        Ok(format!("{wanted} of {wanted} pods ready"))
    })
}

/// Why pods are not ready, as far as their status and Events tell.
fn waiting(site: &Site) -> String {
    let events = site.api.get("/apis/events.k8s.io/v1/namespaces/kube-system/events").unwrap_or_default();
    let warnings = events["items"].as_array().cloned().unwrap_or_default();
    let last = warnings.iter().rev().find(|event| event["type"] == "Warning");
    last.map_or("no warning".to_owned(), |event| format!("{}: {}", event["reason"], event["note"]))
}
