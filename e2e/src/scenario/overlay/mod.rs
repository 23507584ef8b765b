//! `ipMode: Proxy` beside the load balancer controller of another cloud, which does not know the field and stays as it is: by
//! a policy of the API server, and by the overlay that writes afterwards. The load balancers are real ones that openstack-ccm
//! made before; it does not run meanwhile, and their Services belong to the other controller.
//!
//! | module | holds |
//! | --- | --- |
//! | `owned` | the Services, and their owner in one version after another |
//! | `policy` | API server 1.36 with the policy |
//! | `controller` | API server 1.29 with the overlay |
//! | `blink` | what a restart of the owner costs without the policy |
//! | `quiet` | nobody writes as long as nobody changes anything |
//! | `canary` | what follows from verdicts on nodes |
//! | `occm` | statuses as the Go openstack-cloud-controller-manager writes them |

mod blink;
mod canary;
mod controller;
mod occm;
pub(super) mod owned;
mod policy;
mod quiet;

use anyhow::Result;

use super::{CURRENT, GATE_ON};
use crate::kubernetes::proxy::Mode;
use crate::network::NODES;
use crate::stage::Stage;

const SCENARIO: &str = "22 overlay";

/// All of it, on two clusters one after the other.
///
/// # Errors
/// A part cannot be set up.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    let audit = stage.start_audited_cluster("overlay", CURRENT)?;
    for place in [NODES[0], NODES[1]] {
        stage.join(place, CURRENT, Mode::Iptables)?;
    }
    policy::run(stage, &audit)?;
    occm::run(stage)?;
    stage.start_cluster("overlay on 1.29", GATE_ON, Mode::Iptables)?;
    controller::run(stage)
}
