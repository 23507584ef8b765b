//! The overlay decides by the verdicts of its canary: they stand above what the versions of nodes say.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::SCENARIO;
use super::owned::{CLOUDS, DIGITAL_OCEAN, LINODE, Owned};
use crate::kubernetes::canary::{CanaryPods, Whose};
use crate::kubernetes::overlay::{OverlayLaunch, Replica};
use crate::kubernetes::proxy::Mode;
use crate::machine::wait::{soon, until};
use crate::network::{NODES, NodePlace};
use crate::scenario::fallback::{SUFFIX, green_by_name};
use crate::scenario::steps::{Reach, warned};
use crate::scenario::{GATE_OFF, GATE_ON};
use crate::stage::Stage;

/// The node whose kube-proxy changes.
const NODE: NodePlace = NODES[1];
/// Longest time until a pod has its verdict: these are in a hurry.
const FOLLOWS: Duration = Duration::from_secs(60);

/// All cases, on a cluster of 1.29 whose service proxies have the gate on: by their version they would be unfit.
pub(super) fn run(stage: &mut Stage, owned: &Owned, launch: &OverlayLaunch) -> Result<()> {
    let program = stage.program().to_owned();
    let logs = stage.cluster()?.plane.folder().to_owned();
    let canary = CanaryPods::prepare(&owned.api, Whose::Overlay, &program, &logs)?;
    for place in [NODES[0], NODES[1]] {
        canary.start(place, false)?;
    }
    let reads = ["--canary-namespace=ip-mode-overlay-canary".to_owned(), CLOUDS.to_owned()];
    // The first one writes the status of the canary's Services; the second one finds verdicts that stand.
    let first = launch.start(0, &reads)?;
    said(&canary, NODES[0], (true, true))?;
    said(&canary, NODE, (true, true))?;
    first.stop()?;
    let [namespace, clouds] = reads;
    let replica = launch.start(0, &[namespace, clouds, format!("--hostname-suffix={SUFFIX}")])?;
    stage.check(
        SCENARIO,
        "canary: nodes of 1.29 with the gate on are fit, whatever their version",
        |stage| {
            unfit(&replica, 0)?;
            Ok(format!("GREEN: {}", owned.is_green(stage, DIGITAL_OCEAN.name)?))
        },
    );
    stage.end_proxy(NODE)?;
    stage.start_proxy(NODE, GATE_OFF, Mode::Iptables)?;
    stage.check(SCENARIO, "canary: a node is measured unfit, and the hostname takes over", |stage| {
        said(&canary, NODE, (true, false))?;
        unfit(&replica, 1)?;
        let seen = green_by_name(stage, DIGITAL_OCEAN.name, Reach::Internal)?;
        let note =
            warned(&owned.api, LINODE.name, "LoadBalancerIPModeNotHonoured", &[&NODE.name(), "canary"])?;
        Ok(format!("{seen}; {}, which has a hostname already, is warned of: {note}", LINODE.name))
    });
    stage.end_proxy(NODE)?;
    stage.start_proxy(NODE, GATE_ON, Mode::Iptables)?;
    stage.check(SCENARIO, "canary: its kube-proxy is replaced, and the address comes back", |stage| {
        said(&canary, NODE, (true, true))?;
        Ok(format!("GREEN: {}", owned.is_green(stage, DIGITAL_OCEAN.name)?))
    });
    replica.stop()
}

fn said(canary: &CanaryPods, place: NodePlace, expected: (bool, bool)) -> Result<()> {
    until(&format!("the canary on {} has its verdict", place.name()), FOLLOWS, || {
        let said = canary.said(place);
        ensure!(said == Some(expected), "conclusive and fit: {said:?}");
        Ok(())
    })
}

/// The overlay counts so many nodes that do not honour the mode.
fn unfit(replica: &Replica, count: usize) -> Result<()> {
    soon(&format!("{count} nodes are unfit"), || {
        let lines = replica.metrics("ip_mode_overlay_ip_mode_unfit_nodes")?;
        ensure!(lines.iter().any(|line| line.ends_with(&format!(" {count}"))), "{lines:?}");
        Ok(())
    })
}
