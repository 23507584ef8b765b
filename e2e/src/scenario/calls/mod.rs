//! What changes cost: the calls of the controller as the access logs of Octavia and Neutron and the audit log of the API
//! server show them, beside what they may be; and, if that is asked for, the same of OCCM.

mod burst;
mod course;
mod meter;
#[path = "../../../../crates/ccm/tests/program/calls/table.rs"]
mod most;

use anyhow::Result;

use crate::report::cost::Sender;
use crate::report::{COSTS, COSTS_BESIDE_OCCM};
use crate::stage::Stage;
use course::Course;

/// Internal Services with PROXY protocol and two ports each.
const SERVICES: [&str; 6] = ["counted-1", "counted-2", "counted-3", "counted-4", "counted-5", "counted-6"];
/// Services that are created at once while two controllers are compared.
const BURSTS: &str = "1,15,30";

/// The calls of the controller beside what they may be.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    let bursts = burst::asked_for("")?;
    Course::begin(stage, COSTS, Sender::OpenstackCcm)?.run(stage, &bursts)
}

/// The same changes by the controller and by OCCM, one after another in the same cloud, each with a cluster of its own.
pub(crate) fn beside_occm(stage: &mut Stage) -> Result<()> {
    let bursts = burst::asked_for(BURSTS)?;
    for by in [Sender::OpenstackCcm, Sender::Occm] {
        Course::begin(stage, COSTS_BESIDE_OCCM, by)?.run(stage, &bursts)?;
    }
    Ok(())
}
