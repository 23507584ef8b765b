//! What only pods that dial can see.

use anyhow::{Result, ensure};

use super::Fault;
use super::patient::Ends;
use crate::machine::process::run;
use crate::machine::world::in_namespace;
use crate::network::NODES;
use crate::network::ask::{Outcome, from_namespace};
use crate::scenario::fallback::{add_name, forget_name};

/// A node that nobody answers.
pub(super) const DROPPED: Fault = Fault {
    name: "a firewall on one node drops what its pods send to the load balancer",
    codes: &["D403"],
    ends: Ends::EndOnSecondNode,
    provoke: |_, patient| {
        firewall("-I", &patient.address)?;
        let outcome = from_namespace(&NODES[1].client(), &patient.address, 80)?;
        ensure!(outcome == Outcome::TimedOut, "{outcome}");
        Ok(())
    },
    mend: |_, patient| firewall("-D", &patient.address),
};

/// A name that has no record inside.
pub(super) const WITHOUT_NAME: Fault = Fault {
    name: "the published hostname has no record",
    codes: &["D102"],
    ends: Ends::EndForPods,
    provoke: |stage, patient| forget_name(stage, &patient.host),
    mend: |stage, patient| add_name(stage, &patient.host, &patient.address),
};

fn firewall(verb: &str, address: &str) -> Result<()> {
    let mut iptables = in_namespace(&NODES[1].name(), "iptables");
    iptables.args(["-w", verb, "FORWARD", "-s", &NODES[1].client_address(), "-d", address, "-j", "DROP"]);
    run(&mut iptables).map(drop)
}
