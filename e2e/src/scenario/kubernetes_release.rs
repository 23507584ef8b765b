//! A version of Kubernetes between those of the other groups: hairpin red and green, the canary's verdict, the overlay beside the
//! controller of another cloud.

use anyhow::Result;

use super::{canary, hairpin, overlay};
use crate::artifacts::Minor;
use crate::kubernetes::proxy::Mode;
use crate::kubernetes::server::ServerKind;
use crate::stage::Stage;

/// All of it; the policy where the version has it.
pub(super) fn run(stage: &mut Stage, minor: Minor) -> Result<()> {
    let kind = ServerKind { minor, gate: None, dual_stack: false };
    stage.start_cluster(&format!("kubernetes-{}", minor.text()), kind, Mode::Iptables)?;
    hairpin::run(stage)?;
    for mode in [Mode::Iptables, Mode::Nftables] {
        stage.start_cluster(&format!("canary-{}-{}", minor.text(), mode.text()), kind, mode)?;
        canary::on_one_version(stage, kind, mode)?;
    }
    if minor.has_mutating_policy() {
        stage.start_cluster(&format!("policy-{}", minor.text()), kind, Mode::Iptables)?;
        overlay::by_policy(stage)?;
    }
    stage.start_cluster(&format!("overlay-{}", minor.text()), kind, Mode::Iptables)?;
    overlay::by_controller(stage)
}
