//! What is looked at. A group is a sequence of scenarios on one cluster, because clusters are what costs time.

pub(crate) mod choice;
pub(crate) mod detection;
pub(crate) mod fallback;
pub(crate) mod hairpin;
pub(crate) mod killed;
pub(crate) mod life;
pub(crate) mod skew;
pub(crate) mod source;
pub(crate) mod steps;
pub(crate) mod tls;
pub(crate) mod toggle;
pub(crate) mod trouble;
pub(crate) mod upgrade;

use anyhow::Result;

use crate::artifacts::Minor;
use crate::kubernetes::proxy::Mode;
use crate::kubernetes::server::ServerKind;
use crate::stage::Stage;

/// Scenarios on one cluster.
pub(crate) struct Group {
    /// Its name, for `--only`.
    pub name: &'static str,
    /// Versions whose programs it needs.
    pub needs: &'static [Minor],
    /// What it does.
    pub run: fn(&mut Stage) -> Result<()>,
}

/// API server 1.36.
const CURRENT: ServerKind = ServerKind { minor: Minor::V1_36, gate: None };
/// API server 1.28, which does not know the field.
const OLD: ServerKind = ServerKind { minor: Minor::V1_28, gate: None };
/// API server 1.29 as it is by default.
const GATE_OFF: ServerKind = ServerKind { minor: Minor::V1_29, gate: Some(false) };
/// API server 1.29 with the alpha feature.
const GATE_ON: ServerKind = ServerKind { minor: Minor::V1_29, gate: Some(true) };

/// All groups, in the order of their value.
pub(crate) const GROUPS: &[Group] = &[
    Group { name: "current", needs: &[Minor::V1_36], run: current },
    Group { name: "nodes", needs: &[Minor::V1_36, Minor::V1_29], run: nodes },
    Group { name: "old", needs: &[Minor::V1_28], run: old },
    Group { name: "gate", needs: &[Minor::V1_29, Minor::V1_36], run: gate },
    Group { name: "traffic", needs: &[Minor::V1_36], run: traffic },
    Group { name: "life", needs: &[Minor::V1_36], run: life },
];

fn current(stage: &mut Stage) -> Result<()> {
    stage.start_cluster("current", CURRENT, Mode::Iptables)?;
    hairpin::run(stage)
}

fn traffic(stage: &mut Stage) -> Result<()> {
    stage.start_cluster("traffic", CURRENT, Mode::Iptables)?;
    source::run(stage)?;
    tls::run(stage)?;
    toggle::run(stage)
}

fn nodes(stage: &mut Stage) -> Result<()> {
    stage.start_cluster("nodes", CURRENT, Mode::Iptables)?;
    choice::run(stage)?;
    skew::run(stage)
}

fn life(stage: &mut Stage) -> Result<()> {
    stage.start_cluster("life", CURRENT, Mode::Iptables)?;
    life::run(stage)?;
    trouble::run(stage)?;
    killed::run(stage)
}

fn old(stage: &mut Stage) -> Result<()> {
    stage.start_cluster("old", OLD, Mode::Iptables)?;
    fallback::run(stage)
}

fn gate(stage: &mut Stage) -> Result<()> {
    stage.start_cluster("gate", GATE_OFF, Mode::Iptables)?;
    fallback::run(stage)?;
    upgrade::run(stage)
}
