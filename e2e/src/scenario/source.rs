//! Who the application believes to talk to, and who may talk to it at all.

use anyhow::{Result, ensure};
use serde_json::json;

use super::steps::{
    self, Reach, client_outside, clients_inside, green, published_through, set_source_ranges, shut_out,
};
use crate::kubernetes::objects::ServiceSketch;
use crate::machine::wait::soon;
use crate::network::ask::from_namespace;
use crate::network::{NEIGHBOUR, NEIGHBOUR_ADDRESS, NODES, NodePlace};
use crate::openstack::tree::Tree;
use crate::stage::Stage;

const SCENARIO: &str = "7 source";
const LOCAL: &str = "local";
const RANGES: &str = "ranges";
const FORWARDED: &str = "forwarded";

/// The whole scenario on the present cluster.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    let api = stage.api()?;
    let mut local = ServiceSketch::proxy(LOCAL, "v2", true)
        .annotate("loadbalancer.openstack.org/enable-health-monitor", "true")
        .annotate("loadbalancer.openstack.org/health-monitor-delay", "2")
        .annotate("loadbalancer.openstack.org/health-monitor-timeout", "1")
        .annotate("loadbalancer.openstack.org/health-monitor-max-retries-down", "1");
    local.policy = "Local";
    local.create(&api, &[NODES[0]])?;
    let mut ranges = ServiceSketch::proxy(RANGES, "v1", true);
    ranges.source_ranges = vec!["192.0.2.0/24".into()];
    ranges.create(&api, &[NODES[0], NODES[1]])?;
    let mut forwarded =
        ServiceSketch::plain(FORWARDED, true).annotate("loadbalancer.openstack.org/x-forwarded-for", "true");
    forwarded.target = 81;
    forwarded.create(&api, &[NODES[0], NODES[1]])?;
    stage.start_controller()?;
    stage.check(SCENARIO, "externalTrafficPolicy Local: only the node with the pod", |stage| {
        only(stage, NODES[0])
    });
    stage.check(SCENARIO, "externalTrafficPolicy Local: the pod moves", |stage| {
        local.update(&api, &[NODES[1]])?;
        only(stage, NODES[1])
    });
    stage.check(SCENARIO, "loadBalancerSourceRanges without our clients", ranges_closed);
    stage.check(SCENARIO, "loadBalancerSourceRanges with a client outside", |stage| {
        set_source_ranges(&api, RANGES, &[&format!("{NEIGHBOUR_ADDRESS}/32")])?;
        let address = published_through(&api, RANGES)?;
        let seen = green(&address, &[client_outside(Reach::Internal)])?;
        shut_out(&address, 80, &clients_inside(stage, Reach::Internal))?;
        Ok(format!("outside {seen}; pods and nodes are not in the list and get nothing"))
    });
    stage.check(SCENARIO, "loadBalancerSourceRanges with the nodes", |stage| {
        set_source_ranges(&api, RANGES, &["198.18.0.0/28"])?;
        let address = published_through(&api, RANGES)?;
        green(&address, &clients_inside(stage, Reach::Internal))
    });
    stage.check(SCENARIO, "X-Forwarded-For", forwarded_for);
    stage.check(SCENARIO, "clean-up", |stage| steps::release(stage, &[LOCAL, RANGES, FORWARDED]));
    Ok(())
}

/// Octavia's monitor holds exactly this node up, and everybody is answered by its pod.
fn only(stage: &mut Stage, place: NodePlace) -> Result<String> {
    let address = published_through(&stage.api()?, LOCAL)?;
    soon(&format!("only {} is ONLINE", place.name()), || {
        let tree = Tree::of(&stage.cloud.user, LOCAL)?;
        for member in &tree.members {
            let wanted = if member["address"] == json!(place.address()) { "ONLINE" } else { "ERROR" };
            ensure!(
                member["operating_status"] == wanted,
                "{} is {}",
                member["address"],
                member["operating_status"]
            );
        }
        Ok(())
    })?;
    let mut clients = clients_inside(stage, Reach::Internal);
    clients.push(client_outside(Reach::Internal));
    let seen = green(&address, &clients)?;
    for client in &clients {
        let outcome = from_namespace(&client.namespace, &address, 80)?;
        ensure!(outcome.pod() == Some(&place.ingress()), "{}: {outcome}", client.who);
    }
    Ok(format!("{seen}, all by the pod on {}", place.name()))
}

fn ranges_closed(stage: &mut Stage) -> Result<String> {
    let address = published_through(&stage.api()?, RANGES)?;
    let mut clients = clients_inside(stage, Reach::Internal);
    clients.push(client_outside(Reach::Internal));
    shut_out(&address, 80, &clients)?;
    Ok("nobody gets through".into())
}

/// The load balancer speaks HTTP; the application reads the client's address from the header.
fn forwarded_for(stage: &mut Stage) -> Result<String> {
    let address = published_through(&stage.api()?, FORWARDED)?;
    let clients = all_forwarded(stage, &address)?;
    Ok(format!("ipMode Proxy, {clients} clients forwarded with their addresses"))
}

/// Everybody who asks there is named to the application; answers how many clients that were.
pub(crate) fn all_forwarded(stage: &Stage, address: &str) -> Result<usize> {
    let mut clients = vec![(NEIGHBOUR.to_owned(), NEIGHBOUR_ADDRESS.to_owned())];
    clients.extend(
        clients_inside(stage, Reach::Internal).into_iter().map(|client| (client.namespace, client.address)),
    );
    for (namespace, seen_as) in &clients {
        soon(&format!("{namespace} is forwarded as {seen_as}"), || {
            let outcome = from_namespace(namespace, address, 80)?;
            ensure!(outcome.to_string().ends_with(&format!("forwarded={seen_as}")), "{outcome}");
            Ok(())
        })?;
    }
    Ok(clients.len())
}
