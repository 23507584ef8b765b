//! The cluster changes its version under a published Service: up and down, server and nodes in the order that
//! Kubernetes prescribes, on one etcd.

use anyhow::Result;

use super::detection::by_ip;
use super::fallback::SUFFIX;
use super::fallback::by_name;
use super::steps::{self, Reach, publish_as_before, published_through, red};
use super::{CURRENT, GATE_OFF, GATE_ON};
use crate::kubernetes::objects::ServiceSketch;
use crate::kubernetes::proxy::Mode;
use crate::kubernetes::server::ServerKind;
use crate::network::NODES;
use crate::programs::kept;
use crate::stage::Stage;

const SERVICE: &str = "lasting";
const SCENARIO: &str = "4 upgrade";

/// From 1.29 with the gate off to 1.36 and back.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    let networks = stage.cloud.networks.clone();
    let settings = format!("ingress-hostname-suffix = {SUFFIX}");
    stage.cluster()?.launch.load_balancer_settings(&networks, &settings)?;
    let api = stage.api()?;
    ServiceSketch::proxy(SERVICE, "v2", false).create(&api, &[NODES[0], NODES[1]])?;
    stage.start_controller()?;
    look(stage, "1.29 gate off", by_name);
    servers(stage, GATE_ON)?;
    stage.replace_proxies(GATE_ON, Mode::Iptables)?;
    look(stage, "1.29 gate on, kubelets 1.29 are in doubt", by_name);
    nodes_are_reported_fit(stage)?;
    gate_off_over_stored_values(stage)?;
    servers(stage, CURRENT)?;
    look(stage, "server 1.36, nodes still 1.29", by_name);
    stage.replace_proxies(CURRENT, Mode::Iptables)?;
    look(stage, "server and nodes 1.36", by_ip);
    stage.replace_proxies(GATE_OFF, Mode::Iptables)?;
    look(stage, "nodes back on 1.29", by_name);
    servers(stage, GATE_OFF)?;
    stage.replace_proxies(GATE_OFF, Mode::Iptables)?;
    look(stage, "server back on 1.29 gate off", by_name);
    stage.check(SCENARIO, "clean-up", |stage| steps::release(stage, &[SERVICE]));
    Ok(())
}

fn look(stage: &mut Stage, case: &str, expectation: fn(&Stage, &str, Reach) -> Result<String>) {
    stage.check(SCENARIO, case, |stage| expectation(stage, SERVICE, Reach::Floating));
}

/// Replaces the API server while the controller runs. One that lost its lease meanwhile is started again, which this scenario has
/// brought about and not the machine.
fn servers(stage: &mut Stage, kind: ServerKind) -> Result<()> {
    stage.cluster()?.plane.replace_server(kind)?;
    kept::count_anew();
    Ok(())
}

/// Scenario 1 on 1.29: the operator knows that kube-proxy has the gate on, and says so by the flag.
fn nodes_are_reported_fit(stage: &mut Stage) -> Result<()> {
    let api = stage.api()?;
    stage.stop_controller()?;
    stage.check("1 hairpin", "1.29 gate on, status as before", |stage| {
        let address = steps::address(&api, SERVICE)?;
        publish_as_before(&api, SERVICE, &address)?;
        Ok(format!(
            "RED as it must be: {}",
            red(stage, &address, &steps::clients_inside(stage, Reach::Floating))?
        ))
    });
    stage.cluster()?.launch.flags = vec!["--feature-gates=LoadBalancerIPMode=true".into()];
    stage.start_controller()?;
    stage.check("1 hairpin", "1.29 gate on, with openstack-ccm and its gate flag", |stage| {
        let address = published_through(&api, SERVICE)?;
        let seen = steps::green(&address, &steps::clients_inside(stage, Reach::Floating))?;
        Ok(format!("GREEN: ip and ipMode Proxy, {seen}"))
    });
    Ok(())
}

/// The server forgets the field, but shows what it has stored: a naive question gets a false yes.
fn gate_off_over_stored_values(stage: &mut Stage) -> Result<()> {
    stage.stop_controller()?;
    stage.cluster()?.launch.flags.clear();
    servers(stage, GATE_OFF)?;
    stage.replace_proxies(GATE_OFF, Mode::Iptables)?;
    stage.start_controller()?;
    stage.check("3 detection", "1.29, gate switched off over a stored ipMode", |stage| {
        by_name(stage, SERVICE, Reach::Floating)
    });
    Ok(())
}
