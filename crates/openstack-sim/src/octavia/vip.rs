//! Where a load balancer gets its addresses: subnet, network, own port, and further subnets beside the first.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::fault::OctaviaFault;
use crate::neutron;
use crate::neutron::ports::{NewPort, Wanted};
use crate::world::World;
use crate::world::identity::Caller;
use crate::world::load_balancing::{Entity, Vip};

/// The addresses that a POST asks for, references resolved.
#[derive(Debug)]
pub(crate) struct Plan {
    network_id: String,
    subnet_id: String,
    address: Option<String>,
    /// A port that the user made.
    own_port_id: Option<String>,
    /// Subnet and, where chosen, address.
    additional: Vec<(String, Option<String>)>,
}

/// What became of the plan.
#[derive(Debug)]
pub(crate) struct Allocated {
    pub(crate) vip: Vip,
    pub(crate) additional: Vec<(String, String)>,
    pub(crate) owns_port: bool,
}

/// Resolves the VIP attributes of a POST.
///
/// # Errors
/// Nothing is given, something does not exist for the caller, or additional VIPs do not fit the first.
pub(crate) fn plan(world: &World, caller: &Caller, given: &Map<String, Value>) -> Result<Plan, OctaviaFault> {
    let text = |name: &str| given.get(name).and_then(Value::as_str).map(str::to_owned);
    let mut plan = if let Some(port) = text("vip_port_id") {
        from_port(world, caller, &port, text("vip_subnet_id").as_deref(), text("vip_address").as_deref())?
    } else if let Some(network) = text("vip_network_id") {
        from_network(world, caller, &network, text("vip_subnet_id"), text("vip_address"))?
    } else if let Some(subnet) = text("vip_subnet_id") {
        let network_id = subnet_network(world, caller, &subnet)?;
        Plan {
            network_id,
            subnet_id: subnet,
            address: text("vip_address"),
            own_port_id: None,
            additional: Vec::new(),
        }
    } else {
        return Err(OctaviaFault::validation(
            "VIP must contain one of: vip_port_id, vip_network_id, vip_subnet_id.",
        ));
    };
    plan.additional = additional(world, caller, given, &plan)?;
    check_security_groups(world, caller, given)?;
    Ok(plan)
}

fn missing(kind: &'static str, id: &str) -> OctaviaFault {
    OctaviaFault::InvalidReference { kind, id: id.to_owned() }
}

fn subnet_network(world: &World, caller: &Caller, subnet_id: &str) -> Result<String, OctaviaFault> {
    neutron::visible_subnet(world, caller, subnet_id)
        .map(|subnet| subnet.text("network_id").to_owned())
        .ok_or_else(|| missing("Subnet", subnet_id))
}

fn from_port(
    world: &World,
    caller: &Caller,
    port_id: &str,
    subnet_id: Option<&str>,
    address: Option<&str>,
) -> Result<Plan, OctaviaFault> {
    let port = world
        .network
        .ports
        .get(port_id)
        .filter(|port| caller.owns(&port.project_id))
        .ok_or_else(|| missing("Port", port_id))?;
    let fixed_ips = port.fixed_ips();
    let chosen = fixed_ips
        .iter()
        .find(|ip| subnet_id == Some(ip.subnet_id.as_str()) || address == Some(ip.ip_address.as_str()));
    let chosen = chosen.or(if fixed_ips.len() == 1 { fixed_ips.first() } else { None }).ok_or_else(|| {
        OctaviaFault::validation(
            "VIP port's subnet could not be determined. Please specify either a VIP subnet or address.",
        )
    })?;
    Ok(Plan {
        network_id: port.text("network_id").to_owned(),
        subnet_id: chosen.subnet_id.clone(),
        address: Some(chosen.ip_address.clone()),
        own_port_id: Some(port_id.to_owned()),
        additional: Vec::new(),
    })
}

fn from_network(
    world: &World,
    caller: &Caller,
    network_id: &str,
    subnet_id: Option<String>,
    address: Option<String>,
) -> Result<Plan, OctaviaFault> {
    if neutron::visible_network(world, caller, network_id).is_none() {
        return Err(missing("Network", network_id));
    }
    let subnets = neutron::subnets_of(world, network_id);
    let subnet_id = match subnet_id {
        Some(subnet_id) => {
            if subnet_network(world, caller, &subnet_id)? != network_id {
                return Err(OctaviaFault::validation(
                    "Supplied VIP subnet doesn't belong to the supplied network.",
                ));
            }
            subnet_id
        }
        None => {
            let holds =
                |cidr: &str| address.as_deref().is_none_or(|address| neutron::cidr_holds(cidr, address));
            let mut fitting: Vec<_> = subnets.iter().filter(|subnet| holds(subnet.text("cidr"))).collect();
            fitting.sort_by_key(|subnet| subnet.text("cidr").contains(':'));
            let chosen = fitting.first().map(|subnet| subnet.id.clone());
            chosen.ok_or_else(|| OctaviaFault::validation("Supplied network does not contain a subnet."))?
        }
    };
    Ok(Plan {
        network_id: network_id.to_owned(),
        subnet_id,
        address,
        own_port_id: None,
        additional: Vec::new(),
    })
}

fn additional(
    world: &World,
    caller: &Caller,
    given: &Map<String, Value>,
    plan: &Plan,
) -> Result<Vec<(String, Option<String>)>, OctaviaFault> {
    let mut found: Vec<(String, Option<String>)> = Vec::new();
    let mut subnets = BTreeSet::from([plan.subnet_id.clone()]);
    for entry in given.get("additional_vips").and_then(Value::as_array).into_iter().flatten() {
        let field = |name: &str| entry.get(name).and_then(Value::as_str).map(str::to_owned);
        let subnet_id = field("subnet_id")
            .ok_or_else(|| OctaviaFault::validation("Additional VIPs must contain a subnet_id."))?;
        if !subnets.insert(subnet_id.clone()) {
            return Err(OctaviaFault::validation(
                "Duplicate VIP subnet(s) specified. Only one IP can be bound per subnet.",
            ));
        }
        found.push((subnet_id, field("ip_address")));
    }
    for (subnet_id, _) in &found {
        // In other words than those about the first subnet.
        let release = world.load_balancing.release;
        let network_id = subnet_network(world, caller, subnet_id)
            .map_err(|_| OctaviaFault::unknown_additional_subnet(release, subnet_id))?;
        if network_id != plan.network_id {
            return Err(OctaviaFault::validation("All VIP subnets must belong to the same network."));
        }
    }
    Ok(found)
}

fn check_security_groups(
    world: &World,
    caller: &Caller,
    given: &Map<String, Value>,
) -> Result<(), OctaviaFault> {
    let groups =
        given.get("vip_sg_ids").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    for group in groups {
        let known =
            world.network.security_groups.get(group).is_some_and(|found| caller.owns(&found.project_id));
        if !known {
            return Err(missing("Security Group", group));
        }
    }
    Ok(())
}

/// Makes the VIP port in Neutron, or takes the user's own.
///
/// # Errors
/// Neutron has no address, no quota, or does not accept the chosen address.
pub(crate) fn allocate(
    world: &mut World,
    load_balancer: &Entity,
    plan: Plan,
) -> Result<Allocated, OctaviaFault> {
    let (port_id, owns_port) = match plan.own_port_id {
        Some(port_id) => (port_id, false),
        None => {
            let mut wanted =
                vec![Wanted { subnet_id: Some(plan.subnet_id.clone()), ip_address: plan.address.clone() }];
            wanted.extend(plan.additional.iter().map(|(subnet, address)| Wanted {
                subnet_id: Some(subnet.clone()),
                ip_address: address.clone(),
            }));
            let port = vip_port(load_balancer, &plan.network_id, wanted);
            let port_id = neutron::ports::create(world, port).map_err(|fault| {
                OctaviaFault::refused_port(world.load_balancing.release, &fault, &world.new_id())
            })?;
            (port_id, true)
        }
    };
    let fixed_ips = world
        .network
        .ports
        .get(&port_id)
        .map(super::super::world::network::Resource::fixed_ips)
        .unwrap_or_default();
    let address_in = |subnet: &str| {
        fixed_ips.iter().find(|ip| ip.subnet_id == subnet).map(|ip| ip.ip_address.clone()).unwrap_or_default()
    };
    let additional = plan.additional.iter().map(|(subnet, _)| (subnet.clone(), address_in(subnet))).collect();
    let vip = Vip {
        address: address_in(&plan.subnet_id),
        port_id,
        subnet_id: plan.subnet_id,
        network_id: plan.network_id,
    };
    Ok(Allocated { vip, additional, owns_port })
}

/// The port that Octavia makes for a VIP: never administratively up with amphora, so DOWN for ever.
pub(crate) fn vip_port(load_balancer: &Entity, network_id: &str, wanted: Vec<Wanted>) -> NewPort {
    let id = &load_balancer.id;
    let is_ovn = load_balancer.text("provider") == "ovn";
    NewPort {
        project_id: load_balancer.project_id.clone(),
        network_id: network_id.to_owned(),
        name: format!("{}-{id}", if is_ovn { "ovn-lb-vip" } else { "octavia-lb" }),
        device_id: format!("lb-{id}"),
        device_owner: if is_ovn { "ovn-lb:vip" } else { "Octavia" }.to_owned(),
        admin_state_up: is_ovn,
        wanted,
        ..NewPort::default()
    }
}
