//! Before each change of `life` a plan is made while the controller stands still; then the controller goes on, and the logs of the
//! real services show what was planned.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::calls::{Calls, Known};
use crate::kubernetes::audit::Audit;
use crate::kubernetes::objects::ServiceSketch;
use crate::machine::wait::until;
use crate::network::NODES;
use crate::openstack::writes::Writes;
use crate::programs::terminal::Terminal;
use crate::scenario::life::{CHANGES, Change, SERVICE};
use crate::scenario::steps::{self, published_through};
use crate::stage::Stage;

const SCENARIO: &str = "25 plan and what follows";
const BYSTANDER: &str = "bystander";
/// As the controller runs.
const FLAGS: [&str; 4] =
    ["-A", "--cluster-name=e2e", "--controllers=service", "--feature-gates=LoadBalancerIPMode=true"];

/// All of it on the present cluster.
pub(super) fn run(stage: &mut Stage, audit: &Audit, reader: &Terminal) -> Result<()> {
    stage.stop_controller()?;
    // A lease would lapse while the controller is held.
    stage.cluster()?.launch.flags = vec!["--leader-elect=false".into()];
    // One that is not touched: where the only load balancer of a cluster is missing, a program that was just started cannot know
    // that it is not in the wrong project, and a plan is as of such a program.
    ServiceSketch::proxy(BYSTANDER, "v1", true).create(&stage.api()?, &[NODES[0], NODES[1]])?;
    stage.start_controller()?;
    published_through(&stage.api()?, BYSTANDER)?;
    for change in CHANGES {
        stage.check(SCENARIO, change.case, |stage| as_planned(stage, audit, reader, &change));
    }
    stage.check(SCENARIO, "clean-up", |stage| steps::release(stage, &[SERVICE, BYSTANDER]));
    stage.stop_controller()?;
    stage.cluster()?.launch.flags.clear();
    Ok(())
}

fn as_planned(stage: &mut Stage, audit: &Audit, reader: &Terminal, change: &Change) -> Result<String> {
    let (writes, before) = (Writes::from_now(&stage.cloud.folders)?, audit.writes()?.len());
    hold(stage, true)?;
    // Whatever comes of it, the controller goes on.
    let planned = (|| {
        let left = (change.make)(stage)?;
        let known = Known::of(&stage.cloud.user, Some(BYSTANDER))?;
        let plan = reader.types(&[&["plan", "-o", "calls"], &FLAGS[..]].concat())?.with_code(&[0, 2])?;
        Ok::<_, anyhow::Error>((left, Calls::planned(&plan, &known)?, known))
    })();
    hold(stage, false)?;
    let (left, planned, known) = planned?;
    (change.seen)(stage, &left)?;
    let made = || -> Result<Calls> {
        let cluster = audit.writes()?.split_off(before);
        Ok(Calls::made(&cluster, &writes.done_by_this_program()?, &known))
    };
    until("what was planned was done", Duration::from_secs(60), || {
        let made = made()?;
        ensure!(made == planned, "planned {planned:#?}, made {made:#?}");
        Ok(())
    })?;
    // Everything is done when another plan is empty, and nothing came on top of it.
    let rest = until("nothing is left to be done", Duration::from_secs(60), || {
        reader.types(&[&["plan"], &FLAGS[..]].concat())?.with_code(&[0])
    })?;
    let all = made()?;
    ensure!(all == planned, "planned {planned:#?}, in the end {all:#?}");
    let last = rest.trim_end().rsplit('\n').next().unwrap_or_default().to_owned();
    Ok(format!(
        "{} calls as planned ({} to Kubernetes, {} to Octavia, {} to Neutron, {} for the other Service); then: {last}",
        planned.len(),
        planned.cluster.len(),
        planned.octavia.len(),
        planned.neutron.len(),
        planned.others.len(),
    ))
}

fn hold(stage: &mut Stage, held: bool) -> Result<()> {
    let controller = stage.cluster()?.controller.as_ref().context("no controller runs")?;
    match held {
        true => controller.hold(),
        false => controller.go_on(),
    }
    Ok(())
}
