//! What changes cost: the calls of the controller as the access logs of Octavia and Neutron and the audit log of the API
//! server show them, held to what they may be; and, if that is asked for, the same of OCCM.

mod burst;
mod course;
mod meter;
#[path = "../../../../crates/ccm/tests/program/calls/table.rs"]
mod most;

use anyhow::Result;

use crate::report::cost::{Limit, Sender};
use crate::report::{COSTS, COSTS_BESIDE_OCCM};
use crate::stage::Stage;
use course::Course;

/// Internal Services with PROXY protocol and two ports each.
const SERVICES: [&str; 6] = ["counted-1", "counted-2", "counted-3", "counted-4", "counted-5", "counted-6"];
/// What the changes of the second turn are called.
const SECOND_TURN: &str = "second turn, ";
/// Services that are created at once while two controllers are compared.
const BURSTS: &str = "1,15,30";

/// The calls of the controller, held to what they may be.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    let bursts = burst::asked_for("")?;
    Course::begin(stage, COSTS, Sender::OpenstackCcm, "")?.run(stage, &bursts)
}

/// The same changes by the controller and by OCCM in the same cloud, each with a cluster of its own. They take turns, the second time in
/// the other order, so that neither has the quieter machine: only the bursts, which take long, are made once.
pub(crate) fn beside_occm(stage: &mut Stage) -> Result<()> {
    let bursts = burst::asked_for(BURSTS)?;
    for (by, turn) in [
        (Sender::OpenstackCcm, ""),
        (Sender::Occm, ""),
        (Sender::Occm, SECOND_TURN),
        (Sender::OpenstackCcm, SECOND_TURN),
    ] {
        let bursts: &[usize] = if turn.is_empty() { &bursts } else { &[] };
        Course::begin(stage, COSTS_BESIDE_OCCM, by, turn)?.run(stage, bursts)?;
    }
    Ok(())
}

/// What a change may cost. Each listener, pool and batch of members is one write, and so is a whole load balancer.
fn limit(change: &str, count: usize) -> Option<Limit> {
    let writes = match change {
        most::CREATE | most::DELETE | most::NODE_ADDED => count,
        // Pool, listener, and the members of the pool.
        most::PORT_ADDED => 3 * count,
        // For each of three ports a pool, its members, the swap, and the removal of the pool before.
        most::PROXY_OFF => 12 * count,
        _ => 0,
    };
    most::most(change, count).map(|calls| Limit { writes, reads: calls.saturating_sub(writes) })
}
