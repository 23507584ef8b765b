//! Clusters that cannot honour `ipMode`: a hostname is published, and pods reach the ingress by it.

use anyhow::{Context as _, Result, ensure};

use super::detection::verdict_is_right;
use super::steps::{self, Reach, client_outside, clients_inside, green, publish_as_before, red};
use crate::kubernetes::objects::ServiceSketch;
use crate::kubernetes::proxy::rules_for;
use crate::machine::wait::{soon, until};
use crate::network::NODES;
use crate::stage::Stage;

/// Suffix that the operator configured.
pub(crate) const SUFFIX: &str = "lb.e2e.test";
/// The name in the annotation.
const ANNOTATED: &str = "ingress.e2e.test";

/// Waits until the status lists exactly a hostname, and returns it.
pub(crate) fn published_by_name(stage: &Stage, service: &str) -> Result<String> {
    let api = stage.api()?;
    soon(&format!("{service} is published by name"), || {
        let ingress = api.ingress(service)?;
        ensure!(ingress.as_array().is_some_and(|entries| entries.len() == 1), "{ingress}");
        ensure!(ingress[0]["ip"].is_null(), "there is an ip: {ingress}");
        Ok(ingress[0]["hostname"].as_str().with_context(|| format!("no hostname: {ingress}"))?.to_owned())
    })
}

/// Makes a name resolve, as the operator's DNS would.
pub(crate) fn add_name(stage: &Stage, name: &str, address: &str) -> Result<()> {
    forget_name(stage, name)?;
    let mut text = std::fs::read_to_string(&stage.hosts)?;
    text.push_str(&format!("{address} {name}\n"));
    // Written in place: it is mounted.
    Ok(std::fs::write(&stage.hosts, text)?)
}

/// The opposite.
pub(crate) fn forget_name(stage: &Stage, name: &str) -> Result<()> {
    let known = std::fs::read_to_string(&stage.hosts)?;
    let own = format!(" {name}");
    let others = known.lines().filter(|line| !line.ends_with(&own));
    let text: String = others.map(|line| format!("{line}\n")).collect();
    Ok(std::fs::write(&stage.hosts, text)?)
}

/// Pods reach the load balancer by the name, and no node has a rule for its address.
pub(crate) fn green_by_name(stage: &Stage, service: &str, reach: Reach) -> Result<String> {
    let name = published_by_name(stage, service)?;
    let address = steps::address(&stage.api()?, service)?;
    add_name(stage, &name, &address)?;
    for place in [NODES[0], NODES[1]] {
        until(
            &format!("{} has no rule for {address}", place.name()),
            std::time::Duration::from_secs(15),
            || {
                let rules = rules_for(place, &address)?;
                ensure!(rules.is_empty(), "{}", rules.join("; "));
                Ok(())
            },
        )?;
    }
    let mut clients = clients_inside(stage, reach);
    clients.push(client_outside(reach));
    Ok(format!("GREEN: {name}, {}, no rule for {address} on the nodes", green(&name, &clients)?))
}

/// The Service is published by name, everybody inside reaches it, and the verdict is right.
pub(crate) fn by_name(stage: &Stage, service: &str, reach: Reach) -> Result<String> {
    published_by_name(stage, service)?;
    let verdict = verdict_is_right(stage, service)?;
    Ok(format!("{}; {verdict}", green_by_name(stage, service, reach)?))
}

/// The whole scenario on the present cluster.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    let label = stage.cluster()?.plane.kind.text();
    let networks = stage.cloud.networks.clone();
    let settings = format!("ingress-hostname-suffix = {SUFFIX}");
    stage.cluster()?.launch.load_balancer_settings(&networks, &settings)?;
    let api = stage.api()?;
    let places = [NODES[0], NODES[1]];
    ServiceSketch::proxy("by-suffix", "v1", false).create(&api, &places)?;
    ServiceSketch::proxy("by-annotation", "v2", true)
        .annotate("loadbalancer.openstack.org/hostname", ANNOTATED)
        // With it the name is a fallback only, and not what is always published.
        .annotate("loadbalancer.openstack.org/ip-mode", "auto")
        .create(&api, &places)?;
    stage.start_controller()?;
    let services = [("by-suffix", Reach::Floating), ("by-annotation", Reach::Internal)];
    for (service, _) in services {
        stage.check("2 fallback", &format!("{label}, {service}, publish"), |stage| {
            let name = published_by_name(stage, service)?;
            let wanted = if service == "by-annotation" {
                ANNOTATED.to_owned()
            } else {
                format!("{}.{SUFFIX}", steps::address(&stage.api()?, service)?)
            };
            ensure!(name == wanted, "{name} in place of {wanted}");
            Ok(format!("hostname {name} published"))
        });
    }
    red_then_green(stage, &label, services)?;
    stage.check("3 detection", &label, |stage| verdict_is_right(stage, "by-suffix"));
    stage.check("2 fallback", &format!("{label}, clean-up"), |stage| {
        steps::release(stage, &services.map(|(name, _)| name))
    });
    Ok(())
}

fn red_then_green(stage: &mut Stage, label: &str, services: [(&str, Reach); 2]) -> Result<()> {
    stage.stop_controller()?;
    let api = stage.api()?;
    for (service, reach) in services {
        stage.check("2 fallback", &format!("{label}, {service}, status as before"), |stage| {
            let address = steps::address(&api, service)?;
            publish_as_before(&api, service, &address)?;
            Ok(format!("RED as it must be: {}", red(stage, &address, &clients_inside(stage, reach))?))
        });
    }
    stage.start_controller()?;
    for (service, reach) in services {
        stage.check("2 fallback", &format!("{label}, {service}, with openstack-ccm"), |stage| {
            green_by_name(stage, service, reach)
        });
    }
    Ok(())
}
