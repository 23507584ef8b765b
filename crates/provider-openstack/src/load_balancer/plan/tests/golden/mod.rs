//! The plan for each kind of change, as text.

mod address;
mod change;
mod drift;
mod failure;
mod refused;
mod release;
mod retain;

use super::cloud::Cloud;
use super::shape::Shape;
use crate::load_balancer::plan::{Plan, serve};

/// The plan for an unchanged Service in a changed cloud.
fn drift(shape: &Shape, change: impl FnOnce(&mut Cloud)) -> Plan {
    let mut cloud = Cloud::serving(&shape.desired());
    change(&mut cloud);
    serve(&shape.desired(), &cloud.observed)
}

fn notices(plan: &Plan) -> String {
    let lines = plan.notices.iter().map(|notice| format!("{}: {}", notice.reason, notice.message));
    lines.collect::<Vec<_>>().join("\n")
}
