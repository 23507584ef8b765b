//! The Service of the ingress belongs to openstack-ccm.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use super::SCENARIO;
use super::issuance::Issuance;
use crate::kubernetes::objects::ServiceSketch;
use crate::kubernetes::solvers::Solvers;
use crate::machine::wait::soon;
use crate::network::NODES;
use crate::scenario::steps::{
    self, Reach, client_outside, clients_inside, green, publish_as_before, published_through, red,
};
use crate::stage::Stage;

const SERVICE: &str = "ingress";
/// The name that is proved.
const NAME: &str = "www.e2e.test";

/// All cases. At first the status is that of a controller without `ipMode`.
pub(super) fn run(stage: &mut Stage, issuance: &mut Issuance) -> Result<()> {
    let api = stage.api()?;
    ServiceSketch::proxy(SERVICE, "v2", false).create(&api, &[NODES[0], NODES[1]])?;
    stage.start_controller()?;
    let address = published_through(&api, SERVICE)?;
    stage.stop_controller()?;
    publish_as_before(&api, SERVICE, &address)?;
    stage.check(SCENARIO, "openstack-ccm, status as before", |stage| {
        let pods = red(stage, &address, &clients_inside(stage, Reach::Floating))?;
        green(&address, &[client_outside(Reach::Floating)]).context("the client outside")?;
        let seen = issuance.is_red(stage, NAME, &address)?;
        Ok(format!("{} {}: {seen}; other pods: {pods}; outside is well", SERVICE, api.ingress(SERVICE)?))
    });
    stage.start_controller()?;
    stage.check(SCENARIO, "openstack-ccm, the same Certificate", |stage| {
        ensure!(published_through(&api, SERVICE)? == address, "the address has changed");
        let since = Instant::now();
        let ingress = api.ingress(SERVICE)?;
        Ok(format!("GREEN: {ingress}: {}", issuance.is_green(stage, NAME, since)?))
    });
    stage.check(SCENARIO, "openstack-ccm, clean-up", |stage| released(stage, &[SERVICE]));
    Ok(())
}

/// Neither the cluster nor the cloud has anything of them.
pub(super) fn released(stage: &mut Stage, services: &[&str]) -> Result<String> {
    let api = stage.api()?;
    soon("nothing of the challenges is left", || Solvers::nothing_left(&api))?;
    let left = steps::release(stage, services)?;
    Ok(format!("no solver is left; {left}"))
}
