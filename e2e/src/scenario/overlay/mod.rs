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

use owned::Owned;

use super::{CURRENT, GATE_ON};
use crate::kubernetes::manifests;
use crate::kubernetes::overlay::{self, OverlayLaunch};
use crate::kubernetes::proxy::Mode;
use crate::network::NODES;
use crate::stage::Stage;

const SCENARIO: &str = "22 overlay";

/// All of it, on two clusters one after the other.
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

/// Red with the owner alone, green with the overlay's controller, on the present cluster.
pub(crate) fn by_controller(stage: &mut Stage) -> Result<()> {
    let mut owned = Owned::prepare(stage)?;
    owned::red_alone(stage, &owned);
    let binary = stage.program().to_owned();
    let launch = OverlayLaunch::prepare(&stage.cluster()?.plane, &binary)?;
    let replica = launch.start(0, &[owned::CLOUDS.to_owned()])?;
    owned::green_with(stage, &owned, "overlay");
    replica.stop()?;
    owned::clean_up(stage, &mut owned, &owned::NAMES);
    Ok(())
}

/// The same with the policy, as `v1beta1`.
pub(crate) fn by_policy(stage: &mut Stage) -> Result<()> {
    let mut owned = Owned::prepare(stage)?;
    owned::red_alone(stage, &owned);
    for object in overlay::policy(stage.program(), &[owned::CLOUDS, "--api", "v1beta1"])? {
        manifests::apply(&owned.api, &object)?;
    }
    stage.check(
        SCENARIO,
        &format!("{}, policy: an empty write turns what is stored", owned::kind(stage)),
        |_| policy::in_force(&owned),
    );
    owned::green_with(stage, &owned, "policy");
    owned::clean_up(stage, &mut owned, &owned::NAMES);
    overlay::remove_policy(&stage.api()?)
}
