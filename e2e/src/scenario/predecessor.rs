//! The red that users have: not a status that the test writes, but that of OCCM itself, in the releases that people run. Then this program
//! takes over, nothing else changes, and it is green.

use anyhow::{Result, ensure};

use super::fallback::{SUFFIX, green_by_name};
use super::steps::{self, Reach, client_outside, clients_inside, green, published_through, red};
use super::{CURRENT, OLD, tls};
use crate::artifacts::OccmRelease;
use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::objects::ServiceSketch;
use crate::kubernetes::proxy::Mode;
use crate::kubernetes::server::ServerKind;
use crate::machine::process::Daemon;
use crate::machine::wait::soon;
use crate::network::NODES;
use crate::programs::occm;
use crate::stage::Stage;

const SCENARIO: &str = "37 predecessor";
const SERVICE: &str = "made-by-predecessor";

/// Each release of OCCM where it leaves pods cut off.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    // Before 1.30 OCCM knows no mode, and `v2` is no value of the annotation: it takes it for `false`.
    proxy(stage, OccmRelease::V1_29, CURRENT, "true")?;
    // The API server drops the mode that OCCM writes.
    proxy(stage, OccmRelease::V1_36, OLD, "v2")?;
    termination(stage, OccmRelease::V1_36)
}

/// A Service with PROXY protocol, asked for with the annotation's `value`.
fn proxy(stage: &mut Stage, release: OccmRelease, kind: ServerKind, value: &str) -> Result<()> {
    let label = format!("OCCM {} on {}", release.text(), kind.text());
    stage.start_cluster(
        &format!("predecessor-{}-{}", release.text(), kind.minor.text()),
        kind,
        Mode::Iptables,
    )?;
    let api = stage.api()?;
    ServiceSketch::proxy(SERVICE, value, true).create(&api, &[NODES[0], NODES[1]])?;
    let occm = start(stage, release)?;
    let mut address = String::new();
    stage.check(SCENARIO, &format!("{label}, PROXY protocol"), |stage| {
        address = published_by_occm(&api, SERVICE)?;
        steps::at_rest(&stage.cloud.user, SERVICE)?;
        let seen = red(stage, &address, &clients_inside(stage, Reach::Internal))?;
        green(&address, &[client_outside(Reach::Internal)])?;
        Ok(format!("RED as it must be: {seen}; outside is well; status {}", api.ingress(SERVICE)?))
    });
    occm.stop()?;
    stage.check(SCENARIO, &format!("{label}, PROXY protocol, then openstack-ccm"), |stage| {
        take_over(stage, kind, &address)
    });
    stage.start_controller()?;
    stage.check(SCENARIO, &format!("{label}, clean-up"), |stage| steps::release(stage, &[SERVICE]));
    Ok(())
}

/// The same load balancer, by an address with the mode or by a name.
fn take_over(stage: &mut Stage, kind: ServerKind, address: &str) -> Result<String> {
    if kind == OLD {
        let networks = stage.cloud.networks.clone();
        let settings = format!("ingress-hostname-suffix = {SUFFIX}");
        stage.cluster()?.launch.load_balancer_settings(&networks, &settings)?;
        stage.start_controller()?;
        return green_by_name(stage, SERVICE, Reach::Internal);
    }
    stage.start_controller()?;
    ensure!(published_through(&stage.api()?, SERVICE)? == address, "the address has changed");
    let mut clients = clients_inside(stage, Reach::Internal);
    clients.push(client_outside(Reach::Internal));
    Ok(format!("GREEN: {}", green(address, &clients)?))
}

/// A Service whose TLS ends at the load balancer, for which OCCM writes no mode to this day.
fn termination(stage: &mut Stage, release: OccmRelease) -> Result<()> {
    let label = format!("OCCM {} on {}, TLS termination", release.text(), CURRENT.text());
    stage.start_cluster("predecessor-tls", CURRENT, Mode::Iptables)?;
    let api = stage.api()?;
    let authority = tls::create(stage, &[])?;
    let occm = start(stage, release)?;
    stage.check(SCENARIO, &label, |stage| {
        tls::resolves(stage, &published_by_occm(&api, tls::SERVICE)?)?;
        steps::at_rest(&stage.cloud.user, tls::SERVICE)?;
        Ok(format!("RED as it must be: {}", tls::is_red(stage, &authority)?))
    });
    occm.stop()?;
    stage.start_controller()?;
    stage.check(SCENARIO, &format!("{label}, then openstack-ccm"), |stage| {
        tls::published(stage)?;
        Ok(format!("GREEN: {}", tls::is_green(stage, &authority)?))
    });
    stage.check(SCENARIO, &format!("{label}, clean-up"), |stage| steps::release(stage, &[tls::SERVICE]));
    Ok(())
}

fn start(stage: &mut Stage, release: OccmRelease) -> Result<Daemon> {
    occm::allow(&stage.api()?)?;
    let program = stage.artifacts.occm(release)?;
    let cluster = stage.cluster()?;
    let folder = cluster.plane.folder();
    occm::start(&program, folder, cluster.launch.kubeconfig(), cluster.launch.cloud_config())
}

/// Waits until OCCM has published one address, which has to be without a mode that leads through the load balancer.
fn published_by_occm(api: &Kubernetes, service: &str) -> Result<String> {
    soon(&format!("OCCM publishes {service}"), || {
        let ingress = api.ingress(service)?;
        let address = ingress[0]["ip"].as_str().unwrap_or_default();
        ensure!(!address.is_empty(), "{ingress}");
        ensure!(ingress[0]["ipMode"] != "Proxy", "it is well already: {ingress}");
        Ok(address.to_owned())
    })
}
