//! What is said beforehand is what happens: `plan` beside a controller at work and before each change, with credentials that
//! cannot write; and `orphans` after a creation that was cut short.

pub(super) mod calls;
mod cut_short;
mod foretold;
mod onlooker;

use std::path::Path;

use anyhow::Result;

use crate::kubernetes::audit::Audit;
use crate::kubernetes::proxy::Mode;
use crate::network::NODES;
use crate::programs::terminal::Terminal;
use crate::stage::Stage;

/// All of it, with a cluster of its own, which is gone in the end.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    let audit = cluster(stage, "plan")?;
    let reader = onlooker::run(stage, &audit)?;
    foretold::run(stage, &audit, &reader)?;
    cut_short::run(stage)
}

/// A cluster of two nodes whose API server says who did what.
pub(super) fn cluster(stage: &mut Stage, name: &str) -> Result<Audit> {
    let audit = stage.start_audited_cluster(name, super::CURRENT)?;
    for place in [NODES[0], NODES[1]] {
        stage.join(place, super::CURRENT, Mode::Iptables)?;
    }
    Ok(audit)
}

/// The terminal of an operator who may do everything.
pub(in crate::scenario) fn operator(stage: &mut Stage) -> Result<Terminal> {
    let program = stage.program().to_owned();
    let cluster = stage.cluster()?;
    let certificate = |part: &str| cluster.plane.pki.file(&format!("admin.{part}"));
    let user = format!(
        "client-certificate: {}, client-key: {}",
        shown(&certificate("crt")),
        shown(&certificate("key"))
    );
    Ok(Terminal {
        program,
        kubeconfig: cluster.plane.pki.kubeconfig("operator", &user)?,
        cloud_config: cluster.launch.cloud_config().to_owned(),
    })
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
