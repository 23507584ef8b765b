//! What changes cost: the calls of the controller as the access logs of Octavia and Neutron and the audit log of the API
//! server show them, beside what they may be.

mod burst;
mod meter;

use anyhow::Result;

use super::CURRENT;
use super::serving::annotate;
use super::steps::{self, published_through, remove};
use crate::cost::Cost;
use crate::kubernetes::objects::ServiceSketch;
use crate::kubernetes::proxy::Mode;
use crate::network::{NODES, NodePlace};
use crate::stage::Stage;
use meter::{Meter, Rest};

const SCENARIO: &str = "24 calls";
const PLACES: [NodePlace; 2] = [NODES[0], NODES[1]];
/// Internal Services with PROXY protocol and two ports each.
const SERVICES: [&str; 6] = ["counted-1", "counted-2", "counted-3", "counted-4", "counted-5", "counted-6"];

/// All of it on a cluster of its own, because the audit log begins with its server.
///
/// # Errors
/// A part cannot be set up.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    let audit = stage.start_audited_cluster("calls", CURRENT)?;
    for place in PLACES {
        stage.join(place, CURRENT, Mode::Iptables)?;
    }
    stage.start_controller()?;
    // A log that shows no request at all would show none of the controller either.
    stage.cloud.user.load_balancers()?;
    let meter = Meter::new(audit);
    burst::run(stage, &meter)?;
    let first = SERVICES[0];
    let mut sketch = sketch(first);
    let api = stage.api()?;
    measure(stage, &meter, "create 1", "8", |stage| create(stage, &SERVICES[..1]));
    measure(stage, &meter, "create 5 at once", "22", |stage| create(stage, &SERVICES[1..]));
    measure(stage, &meter, "port added", "9", |_| {
        sketch.ports.push(8080);
        sketch.update(&api, &PLACES)
    });
    let whole = "13 writes, 9 reads with those of the next row";
    measure(stage, &meter, "node added, 13 pools", whole, |stage| {
        stage.join(NODES[2], CURRENT, Mode::Iptables)
    });
    stage.measure(SCENARIO, "and verified", |stage| {
        meter.measure(stage, "within the row above", Rest::Verified, |_| Ok(()))
    });
    measure(stage, &meter, "PROXY protocol off, three ports", "12 writes, 14 reads", |_| {
        annotate(&api, first, &[("proxy-protocol", "false".into())])
    });
    stage.stop_controller()?;
    measure(stage, &meter, "restart", "8", Stage::start_controller);
    stage.stop_controller()?;
    measure(stage, &meter, "restart again", "2", Stage::start_controller);
    measure(stage, &meter, "delete 6", "18", |stage| remove(stage, &SERVICES));
    stage.check(SCENARIO, "clean-up", |stage| steps::nothing_left(stage));
    stage.end_proxy(NODES[2])
}

fn measure(
    stage: &mut Stage,
    meter: &Meter,
    change: &str,
    target: &str,
    make: impl FnOnce(&mut Stage) -> Result<()>,
) {
    stage.measure(SCENARIO, change, |stage| -> Result<Cost> {
        meter.measure(stage, target, Rest::Calm, make)
    });
}

fn sketch(name: &str) -> ServiceSketch {
    let mut sketch = ServiceSketch::proxy(name, "v2", true);
    sketch.ports = vec![80, 443];
    sketch
}

/// Creates Services at once and waits until all are published.
fn create(stage: &mut Stage, services: &[&str]) -> Result<()> {
    let api = stage.api()?;
    for service in services {
        sketch(service).create(&api, &PLACES)?;
    }
    services.iter().try_for_each(|service| published_through(&api, service).map(drop))
}
