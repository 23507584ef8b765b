//! OpenStack with the Go openstack-cloud-controller-manager, which publishes `VIP` where the load balancer ends TLS or names
//! the client in X-Forwarded-For: the overlay serves these Services, and that controller stays.

use anyhow::{Context as _, Result, ensure};

use super::SCENARIO;
use super::owned::start;
use crate::artifacts::Framework;
use crate::kubernetes::objects::ServiceSketch;
use crate::kubernetes::overlay::OverlayLaunch;
use crate::kubernetes::owner::INGRESS;
use crate::machine::wait::soon;
use crate::network::NODES;
use crate::network::ask::from_namespace;
use crate::scenario::source::all_forwarded;
use crate::scenario::steps::{self, Reach, clients_inside, published_through};
use crate::scenario::tls;
use crate::stage::Stage;

const FORWARDED: &str = "occm-forwarded";
/// As it writes it since 1.30 wherever there is no PROXY protocol.
const WRITTEN: &str = r#"[{"ip": "{address}", "ipMode": "VIP"}]"#;
const FLAGS: [&str; 2] = [
    "--annotation=loadbalancer.openstack.org/x-forwarded-for=true",
    "--annotation=loadbalancer.openstack.org/default-tls-container-ref",
];

/// All cases, on a cluster of 1.36 without a policy.
pub(super) fn run(stage: &mut Stage) -> Result<()> {
    let api = stage.api()?;
    let mut sketch = ServiceSketch::plain(FORWARDED, true)
        .annotate("loadbalancer.openstack.org/x-forwarded-for", "true")
        .annotate(INGRESS, WRITTEN);
    sketch.target = 81;
    sketch.create(&api, &[NODES[0], NODES[1]])?;
    let authority = tls::create(stage, &[(INGRESS, WRITTEN)])?;
    stage.start_controller()?;
    let address = published_through(&api, FORWARDED)?;
    let by_name = tls::published(stage)?;
    stage.stop_controller()?;
    let mut owner = start(stage, Framework::V0_36)?;
    owner.looked(&[FORWARDED, tls::SERVICE], 1)?;
    stage.check(SCENARIO, "OpenStack, statuses as the Go controller writes them", |stage| {
        for client in clients_inside(stage, Reach::Internal) {
            soon(&format!("{} is short-circuited", client.who), || {
                let outcome = from_namespace(&client.namespace, &address, 80)?;
                ensure!(outcome.to_string().ends_with("forwarded="), "{}: {outcome}", client.who);
                Ok(())
            })?;
        }
        let seen = tls::is_red(stage, &authority)?;
        Ok(format!("RED as it must be: {address} names nobody in X-Forwarded-For; {by_name}: {seen}"))
    });
    let binary = stage.program().to_owned();
    let launch = OverlayLaunch::prepare(&stage.cluster()?.plane, &binary)?;
    let replica = launch.start(0, &FLAGS.map(str::to_owned))?;
    stage.check(SCENARIO, "OpenStack, the same with the overlay", |stage| {
        published_through(&api, FORWARDED)?;
        let forwarded = all_forwarded(stage, &address)?;
        let seen = tls::is_green(stage, &authority)?;
        let said = launch.command(&["check", FLAGS[0], FLAGS[1]]).context("check is not content")?;
        ensure!(said.contains(FORWARDED), "check says {said}");
        Ok(format!("GREEN: {forwarded} clients named in X-Forwarded-For; TLS: {seen}; check ends with 0"))
    });
    replica.stop()?;
    owner.stop()?;
    stage.check(SCENARIO, "OpenStack, clean-up", |stage| {
        stage.start_controller()?;
        let left = steps::release(stage, &[FORWARDED, tls::SERVICE])?;
        stage.stop_controller()?;
        Ok(left)
    });
    Ok(())
}
