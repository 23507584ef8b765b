//! One packet through the cloud, without a socket: what a floating IP, a listener, its pool and the security groups of the members
//! do with it now. Pure, for TCP and UDP.
//!
//! It shows where packets end, also those that a real client would only miss: at the listener, at a security group.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::Value;

use super::route;
use crate::octavia::status;
use crate::sim::Sim;
use crate::world::World;
use crate::world::load_balancing::{Listener, LoadBalancer};
use crate::world::network::Resource;

/// A transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transport {
    Tcp,
    Udp,
}

/// The first packet of a connection, or a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// The address of the machine that sends it.
    pub from: IpAddr,
    pub to: IpAddr,
    pub port: u16,
    pub transport: Transport,
}

/// A packet at a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The address of the member.
    pub address: IpAddr,
    /// The port of the member.
    pub port: u16,
    /// From where the member sees it come.
    pub from: IpAddr,
    /// Whether the header of the PROXY protocol comes before it.
    pub header: bool,
}

/// Where a packet ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Loss {
    /// The security groups of the sender's port do not let it out.
    Egress,
    /// Nothing has the address, or no way leads there.
    Address,
    /// The load balancer has no listener there that is up.
    Listener,
    /// `allowed_cidrs` of the listener lack the client.
    Client,
    /// The listener has no pool that is up.
    Pool,
    /// The pool has no member that takes connections.
    Member,
    /// No machine that runs has the address of the member.
    Machine,
    /// The security groups of the member's port do not let it in.
    SecurityGroup,
}

impl Sim {
    /// Has health monitors look at each member once, and finds well those that can be reached and of which `answers` says so, by
    /// address and port of the check. From then on `operating_status` of monitored members is what was found last.
    pub fn check_health(&self, answers: impl Fn(IpAddr, u16) -> bool) {
        self.write(|world| {
            let results = checks(world, answers);
            let state = &mut world.load_balancing;
            state.real_health_checks = true;
            state.check_results.extend(results);
            status::refresh_all(state);
        });
    }

    /// What becomes of a packet: of each member that may get it, whether it arrives there. There is at least one result.
    pub fn send(&self, packet: &Packet) -> Vec<Result<Delivery, Loss>> {
        self.read(|world| send(world, packet).unwrap_or_else(|loss| vec![Err(loss)]))
    }
}

fn send(world: &World, packet: &Packet) -> Result<Vec<Result<Delivery, Loss>>, Loss> {
    if !lets_out(world, packet) {
        return Err(Loss::Egress);
    }
    let (client, vip) = way(world, packet).ok_or(Loss::Address)?;
    let lb = world.load_balancing.load_balancers.values().find(|lb| has_vip(lb, vip)).ok_or(Loss::Address)?;
    let mut listeners = world.load_balancing.listeners_of(&lb.entity.id).into_iter();
    let listener = listeners
        .find(|one| route::serves(lb) && listens(one, packet.transport, packet.port))
        .ok_or(Loss::Listener)?;
    let route = route::route(world, &listener.entity.id).ok_or(Loss::Listener)?;
    if !route.allows(client) {
        return Err(Loss::Client);
    }
    if !route.has_pool {
        return Err(Loss::Pool);
    }
    if route.members.is_empty() {
        return Err(Loss::Member);
    }
    let deliver = |(address, port): &(String, u16)| {
        let address = address.parse().map_err(|_| Loss::Machine)?;
        let at = At { address, port: *port, transport: packet.transport };
        let from = enter(world, lb, at, client)?;
        Ok(Delivery { address, port: *port, from, header: route.proxy.is_some() })
    };
    Ok(route.members.iter().map(deliver).collect())
}

/// What a check of each monitored member finds.
fn checks(world: &World, answers: impl Fn(IpAddr, u16) -> bool) -> BTreeMap<String, bool> {
    let state = &world.load_balancing;
    let mut results = BTreeMap::new();
    for monitor in state.health_monitors.values().filter(|monitor| monitor.entity.is_up()) {
        let Some(pool) = state.pools.get(&monitor.pool_id) else { continue };
        let Some(lb) = state.load_balancers.get(&pool.load_balancer_id) else { continue };
        for member in state.members_of(&monitor.pool_id) {
            let address: Option<IpAddr> = member.entity.text("address").parse().ok();
            let port = member.entity.port("monitor_port").or_else(|| member.entity.port("protocol_port"));
            let healthy = address.zip(port).is_some_and(|(address, port)| {
                let transport = match monitor.entity.text("type") {
                    "UDP-CONNECT" => Transport::Udp,
                    _ => Transport::Tcp,
                };
                let at = At { address, port, transport };
                enter(world, lb, at, address).is_ok() && answers(address, port)
            });
            results.insert(member.entity.id.clone(), healthy);
        }
    }
    results
}

fn listens(listener: &Listener, transport: Transport, port: u16) -> bool {
    let udp = matches!(listener.entity.text("protocol"), "UDP" | "SCTP");
    let fits = match transport {
        Transport::Tcp => !udp,
        Transport::Udp => listener.entity.text("protocol") == "UDP",
    };
    fits && listener.entity.port("protocol_port") == Some(port) && route::is_open(listener)
}

fn has_vip(lb: &LoadBalancer, vip: IpAddr) -> bool {
    route::vips(lb).any(|own| own.parse() == Ok(vip))
}

/// As whom the load balancer sees the client, and the VIP to which the packet comes.
fn way(world: &World, packet: &Packet) -> Option<(IpAddr, IpAddr)> {
    let inside = router_of(world, packet.from);
    let is_it = |one: &&Resource| one.text("floating_ip_address").parse() == Ok(packet.to);
    let Some(floating) = world.network.floating_ips.values().find(is_it) else {
        // Nobody outside has a way to a private IPv4 address.
        return (inside.is_some() || packet.to.is_ipv6()).then_some((packet.from, packet.to));
    };
    let port = world.network.ports.get(floating.text("port_id"))?;
    let fixed: IpAddr = floating.text("fixed_ip_address").parse().ok()?;
    port.fixed_ips().iter().find(|own| own.ip_address.parse() == Ok(fixed))?;
    // A router sends what comes from inside back in with an address of its own, or with the sender's floating IP.
    let client = match inside {
        None => packet.from,
        Some(router) => own_floating_ip(world, packet.from).or_else(|| outer_address(router))?,
    };
    Some((client, fixed))
}

/// The router of the subnet of an address; nothing for an address outside.
fn router_of(world: &World, address: IpAddr) -> Option<&Resource> {
    let network = &world.network;
    let of_router = |router: &&Resource| {
        let own = network.ports.values().filter(|port| {
            port.text("device_id") == router.id
                && port.text("device_owner").starts_with("network:router_interface")
        });
        let subnets = own.flat_map(Resource::fixed_ips).filter_map(|ip| network.subnets.get(&ip.subnet_id));
        subnets.filter_map(cidr).any(|cidr| cidr.contains(&address))
    };
    network.routers.values().find(of_router)
}

fn cidr(subnet: &Resource) -> Option<IpNet> {
    subnet.text("cidr").parse().ok()
}

fn own_floating_ip(world: &World, address: IpAddr) -> Option<IpAddr> {
    let own = |one: &&Resource| one.text("fixed_ip_address").parse() == Ok(address);
    world.network.floating_ips.values().find(own)?.text("floating_ip_address").parse().ok()
}

fn outer_address(router: &Resource) -> Option<IpAddr> {
    router.attributes["external_gateway_info"]["external_fixed_ips"][0]["ip_address"].as_str()?.parse().ok()
}

/// A member, and how packets come to it.
#[derive(Clone, Copy)]
struct At {
    address: IpAddr,
    port: u16,
    transport: Transport,
}

/// Whether a member gets a packet, and from where it sees it come.
fn enter(world: &World, lb: &LoadBalancer, at: At, client: IpAddr) -> Result<IpAddr, Loss> {
    let is_it = |one: &&Resource| one.fixed_ips().iter().any(|ip| ip.ip_address.parse() == Ok(at.address));
    let machine = world.network.ports.values().find(is_it).ok_or(Loss::Machine)?;
    let server = world.compute.servers.get(machine.text("device_id"));
    if server.is_some_and(|server| server.status != "ACTIVE") {
        return Err(Loss::Machine);
    }
    let from = match lb.entity.text("provider") {
        "ovn" => client,
        _ => amphora(world, lb, at.address).ok_or(Loss::Machine)?,
    };
    if lets_in(world, lb, machine, at, from) { Ok(from) } else { Err(Loss::SecurityGroup) }
}

/// The address from which an amphora sends: not the VIP, but one of its own in the subnet of the VIP, or in that of the member.
/// There are no amphorae here, so it is the last of the subnet.
fn amphora(world: &World, lb: &LoadBalancer, member: IpAddr) -> Option<IpAddr> {
    let subnets = &world.network.subnets;
    let near = subnets.values().filter(|one| one.text("network_id") == lb.vip.network_id);
    let near = near.filter_map(cidr).find(|cidr| cidr.contains(&member));
    let far = || subnets.get(&lb.vip.subnet_id).and_then(cidr);
    match near.or_else(far)? {
        IpNet::V4(net) => Some(IpAddr::from((u32::from(net.broadcast()) - 1).to_be_bytes())),
        IpNet::V6(net) => Some(IpAddr::from((u128::from(net.broadcast()) - 1).to_be_bytes())),
    }
}

/// Whether the security groups of a machine's port let a new packet in.
fn lets_in(world: &World, lb: &LoadBalancer, machine: &Resource, at: At, from: IpAddr) -> bool {
    rules(world, machine, "ingress", from).is_none_or(|rules| {
        rules.iter().any(|rule| {
            is_protocol(rule.text("protocol"), at.transport)
                && is_port(rule, at.port)
                && is_source(rule, lb, from)
        })
    })
}

/// Whether the security groups of the sender's port let it out; whoever has no port here is not asked.
fn lets_out(world: &World, packet: &Packet) -> bool {
    let is_sender =
        |one: &&Resource| one.fixed_ips().iter().any(|ip| ip.ip_address.parse() == Ok(packet.from));
    let Some(machine) = world.network.ports.values().find(is_sender) else { return true };
    rules(world, machine, "egress", packet.to).is_none_or(|rules| {
        rules.iter().any(|rule| {
            let prefix = rule.text("remote_ip_prefix");
            is_protocol(rule.text("protocol"), packet.transport)
                && is_port(rule, packet.port)
                && rule.text("remote_group_id").is_empty()
                && (prefix.is_empty()
                    || prefix.parse::<IpNet>().is_ok_and(|prefix| prefix.contains(&packet.to)))
        })
    })
}

/// The rules of a port's groups in a direction, of the family of the other side; nothing without port security.
fn rules<'a>(
    world: &'a World,
    machine: &Resource,
    direction: &str,
    other: IpAddr,
) -> Option<Vec<&'a Resource>> {
    if !machine.flag("port_security_enabled") {
        return None;
    }
    let groups: Vec<&str> = machine.list("security_groups").iter().filter_map(Value::as_str).collect();
    let rules = world.network.security_group_rules.values().filter(|rule| {
        groups.contains(&rule.text("security_group_id"))
            && rule.text("direction") == direction
            && (rule.text("ethertype") == "IPv6") == other.is_ipv6()
    });
    Some(rules.collect())
}

fn is_protocol(name: &str, transport: Transport) -> bool {
    let known: [&str; 2] = match transport {
        Transport::Tcp => ["tcp", "6"],
        Transport::Udp => ["udp", "17"],
    };
    name.is_empty() || name.eq_ignore_ascii_case("any") || known.contains(&name.to_ascii_lowercase().as_str())
}

fn is_port(rule: &Resource, port: u16) -> bool {
    let bound = |name: &str| rule.attributes.get(name).and_then(Value::as_u64);
    let (first, last) = (bound("port_range_min"), bound("port_range_max"));
    first.is_none_or(|first| first <= u64::from(port)) && last.is_none_or(|last| u64::from(port) <= last)
}

/// The ports of amphorae are in the group of their load balancer and in no other.
fn is_source(rule: &Resource, lb: &LoadBalancer, from: IpAddr) -> bool {
    let prefix = rule.text("remote_ip_prefix");
    let group = rule.text("remote_group_id");
    if !group.is_empty() {
        return lb.security_group_id.as_deref() == Some(group);
    }
    prefix.is_empty() || prefix.parse::<IpNet>().is_ok_and(|prefix| prefix.contains(&from))
}
