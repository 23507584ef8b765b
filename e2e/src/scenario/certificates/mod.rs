//! Certificates arrive: cert-manager in a pod proves a name to an ACME server on the internet by HTTP-01, through a load balancer
//! with PROXY protocol. Before it asks the server to look, it looks itself, and what its node makes of that is in the status of
//! the Service.
//!
//! | module | holds |
//! | --- | --- |
//! | `issuance` | cert-manager, the ACME server, and what red and green mean |
//! | `own` | the Service belongs to openstack-ccm |
//! | `beside` | it belongs to the controller of another cloud, and there is a policy, or the overlay runs |

mod beside;
mod issuance;
mod own;

use anyhow::Result;

use super::CURRENT;
use crate::kubernetes::proxy::Mode;
use crate::stage::Stage;
use issuance::Issuance;

const SCENARIO: &str = "27 certificates";

/// All of it, on one cluster.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    stage.start_cluster("certificates", CURRENT, Mode::Iptables)?;
    let mut issuance = Issuance::start(stage)?;
    if stage.check(SCENARIO, "cert-manager in a pod gets an account of the ACME server", |_| {
        issuance.open_account()
    }) {
        own::run(stage, &mut issuance)?;
        beside::run(stage, &mut issuance)?;
    }
    issuance.end()
}
