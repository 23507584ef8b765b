//! IPv6: a Service with that family alone, and one with both.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::DUAL_STACK;
use super::steps::{
    self, Reach, all_published_through, client_outside, clients_inside, green, published_through, red,
    set_source_ranges, shut_out,
};
use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::objects::ServiceSketch;
use crate::kubernetes::proxy::Mode;
use crate::machine::wait::soon;
use crate::network::ipv6::NEIGHBOUR_ADDRESS_V6;
use crate::network::{NODES, NodePlace};
use crate::openstack::tree::Tree;
use crate::stage::Stage;

const SCENARIO: &str = "12 families";
/// Internal, IPv6 alone.
const SIX: &str = "six";
/// IPv4 at a floating IP, IPv6 at the VIP.
const BOTH: &str = "both";
const PLACES: [NodePlace; 2] = [NODES[0], NODES[1]];

/// The whole scenario on a cluster with addresses of both families.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    let api = stage.api()?;
    let mut six = ServiceSketch::proxy(SIX, "v1", true);
    six.families = &["IPv6"];
    six.create(&api, &PLACES)?;
    let mut both = ServiceSketch::proxy(BOTH, "v2", false);
    both.families = &["IPv4", "IPv6"];
    both.create(&api, &PLACES)?;
    stage.start_controller()?;
    let mut addresses = Vec::new();
    if stage.check(SCENARIO, "publish", |stage| {
        addresses = publish(stage)?;
        let list: Vec<&str> = addresses.iter().map(|(address, _, _)| address.as_str()).collect();
        Ok(format!("ip and ipMode Proxy published: {SIX} {}; {BOTH} {} and {}", list[0], list[1], list[2]))
    }) {
        red_then_green(stage, Mode::Iptables, &addresses)?;
        stage.replace_proxies(DUAL_STACK, Mode::Nftables)?;
        red_then_green(stage, Mode::Nftables, &addresses)?;
        source_ranges(stage, &api);
    }
    stage.check(SCENARIO, "clean-up", |stage| {
        steps::remove(stage, &[SIX, BOTH]).map(|()| "the Services are gone".into())
    });
    stage.replace_proxies(DUAL_STACK, Mode::Iptables)
}

/// An address, the Service that it belongs to, how it is reached.
type Published = (String, &'static str, Reach);

fn publish(stage: &mut Stage) -> Result<Vec<Published>> {
    let api = stage.api()?;
    let six = published_through(&api, SIX)?;
    let [first, second] = all_published_through(&api, BOTH)?;
    ensure!(six.contains(':') && second.contains(':') && !first.contains(':'), "{six}, {first}, {second}");
    has_members(stage, SIX, &PLACES.map(NodePlace::address_v6))?;
    has_members(stage, BOTH, &PLACES.map(NodePlace::address))?;
    let balancer = stage.cloud.user.load_balancer(BOTH)?;
    ensure!(balancer["additional_vips"][0]["ip_address"] == second.as_str(), "{balancer}");
    Ok(vec![(six, SIX, Reach::Ipv6), (first, BOTH, Reach::Floating), (second, BOTH, Reach::Ipv6)])
}

fn has_members(stage: &Stage, service: &str, addresses: &[String]) -> Result<()> {
    soon(&format!("{service} has its members"), || {
        let tree = Tree::of(&stage.cloud.user, service)?;
        ensure!(tree.addresses() == addresses, "members {:?}", tree.addresses());
        tree.settled()
    })
}

/// Red with the status of a controller without `ipMode`, green with ours, at each address.
fn red_then_green(stage: &mut Stage, mode: Mode, addresses: &[Published]) -> Result<()> {
    let api = stage.api()?;
    stage.stop_controller()?;
    for service in [SIX, BOTH] {
        let own = addresses.iter().filter(|(_, owner, _)| *owner == service);
        let ingress: Vec<Value> = own.map(|(address, _, _)| json!({"ip": address})).collect();
        api.write_ingress(service, &json!(ingress))?;
    }
    for (address, service, reach) in addresses {
        let case = format!("{}, {service} at {}, status as before", mode.text(), family(address));
        stage.check(SCENARIO, &case, |stage| {
            let seen = red(stage, address, &clients_inside(stage, *reach))?;
            green(address, &[client_outside(*reach)]).context("the client outside")?;
            Ok(format!("RED as it must be: {seen}; outside is well"))
        });
    }
    stage.start_controller()?;
    for (address, service, reach) in addresses {
        let case = format!("{}, {service} at {}, with openstack-ccm", mode.text(), family(address));
        stage.check(SCENARIO, &case, |stage| {
            let wanted = addresses.iter().filter(|(_, owner, _)| owner == service);
            let wanted: Vec<&str> = wanted.map(|(address, _, _)| address.as_str()).collect();
            published_again(&api, service, &wanted)?;
            let mut clients = clients_inside(stage, *reach);
            clients.push(client_outside(*reach));
            Ok(format!("GREEN: {}, right client addresses", green(address, &clients)?))
        });
    }
    Ok(())
}

fn family(address: &str) -> &'static str {
    if address.contains(':') { "IPv6" } else { "IPv4" }
}

fn published_again(api: &Kubernetes, service: &str, addresses: &[&str]) -> Result<()> {
    let wanted: Vec<Value> =
        addresses.iter().map(|address| json!({"ip": address, "ipMode": "Proxy"})).collect();
    soon(&format!("{service} is published with ipMode Proxy"), || {
        let ingress = api.ingress(service)?;
        ensure!(ingress == json!(wanted), "{ingress}");
        Ok(())
    })
}

fn source_ranges(stage: &mut Stage, api: &Kubernetes) {
    stage.check(SCENARIO, "IPv6 alone: loadBalancerSourceRanges with a client outside", |stage| {
        set_source_ranges(api, SIX, &[&format!("{NEIGHBOUR_ADDRESS_V6}/128")])?;
        let address = published_through(api, SIX)?;
        soon("pods and nodes are shut out", || shut_out(&address, 80, &clients_inside(stage, Reach::Ipv6)))?;
        let seen = green(&address, &[client_outside(Reach::Ipv6)])?;
        Ok(format!("outside {seen}; pods and nodes are not in the list and get nothing"))
    });
    stage.check(SCENARIO, "IPv6 alone: loadBalancerSourceRanges with the nodes", |stage| {
        set_source_ranges(api, SIX, &["fd00:18::10/124"])?;
        let address = published_through(api, SIX)?;
        let outside = client_outside(Reach::Ipv6);
        soon("the client outside is shut out", || shut_out(&address, 80, std::slice::from_ref(&outside)))?;
        Ok(format!("{}; outside gets nothing", green(&address, &clients_inside(stage, Reach::Ipv6))?))
    });
    stage.check(SCENARIO, "both: loadBalancerSourceRanges of IPv6 alone", |stage| {
        set_source_ranges(api, BOTH, &["fd00:18::/64"])?;
        let [first, second] = all_published_through(api, BOTH)?;
        let mut clients = clients_inside(stage, Reach::Floating);
        clients.push(client_outside(Reach::Floating));
        soon("nobody gets through by IPv4", || shut_out(&first, 80, &clients))?;
        let mut clients = clients_inside(stage, Reach::Ipv6);
        clients.push(client_outside(Reach::Ipv6));
        Ok(format!("IPv6 {}; nobody gets through by IPv4", green(&second, &clients)?))
    });
}
