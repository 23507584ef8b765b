//! Cluster addresses and node ports.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use serde_json::{Value, json};

use super::{is_headless, needs_cluster_ip, needs_health_check_port, needs_node_ports};
use crate::failure::FieldError;
use crate::object::{integer, list, section, text, texts};

/// `--service-node-port-range`, where nobody sets it.
const NODE_PORTS: RangeInclusive<u16> = 30_000..=32_767;
/// First port that is given out; the ones below are left to those who ask for a port by number.
const FIRST_DYNAMIC_PORT: u16 = 30_086;
/// `--service-cluster-ip-range` 10.96.0.0/16,fd00:10:96::/112.
const NETWORK_V4: u32 = u32::from_be_bytes([10, 96, 0, 0]);
const NETWORK_V6: u128 = 0xfd00_0010_0096_0000_0000_0000_0000_0000;
/// First host number that is given out.
const FIRST_DYNAMIC_HOST: u16 = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    V4,
    V6,
}

impl Family {
    fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    fn named(name: &str) -> Option<Self> {
        [Self::V4, Self::V6].into_iter().find(|family| family.name() == name)
    }

    fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    fn other(self) -> Self {
        match self {
            Self::V4 => Self::V6,
            Self::V6 => Self::V4,
        }
    }

    fn address(self, host: u16) -> IpAddr {
        match self {
            Self::V4 => Ipv4Addr::from(NETWORK_V4 | u32::from(host)).into(),
            Self::V6 => Ipv6Addr::from(NETWORK_V6 | u128::from(host)).into(),
        }
    }
}

/// What is given out to the stored Services. Ports and addresses are given out in rising order, so that a test sees
/// the same ones in each run, and a freed one is not given out again at once.
#[derive(Debug, Clone)]
pub(crate) struct Allocations {
    /// `--service-node-port-range`
    pub(crate) node_ports: RangeInclusive<u16>,
    /// Uses of each port: one Service may use a port for two protocols.
    ports: BTreeMap<u16, usize>,
    addresses: BTreeSet<IpAddr>,
    last_port: u16,
    last_host: u16,
}

impl Default for Allocations {
    fn default() -> Self {
        let (ports, addresses) = (BTreeMap::new(), BTreeSet::new());
        Self { node_ports: NODE_PORTS, ports, addresses, last_port: 0, last_host: 0 }
    }
}

impl Allocations {
    /// Takes note of a stored change.
    pub(crate) fn replace(&mut self, old: Option<&Value>, new: Option<&Value>) {
        for port in old.map(used_ports).unwrap_or_default() {
            match self.ports.get_mut(&port) {
                Some(uses) if *uses > 1 => *uses -= 1,
                Some(_) | None => drop(self.ports.remove(&port)),
            }
        }
        for address in old.map(used_addresses).unwrap_or_default() {
            self.addresses.remove(&address);
        }
        for port in new.map(used_ports).unwrap_or_default() {
            *self.ports.entry(port).or_default() += 1;
            self.last_port = self.last_port.max(port);
        }
        for address in new.map(used_addresses).unwrap_or_default() {
            self.addresses.insert(address);
            self.last_host = self.last_host.max(host(address));
        }
    }

    fn next_port(&self, also_taken: &[u16]) -> Option<u16> {
        let start = self.last_port.saturating_add(1).max(FIRST_DYNAMIC_PORT);
        (start..=*self.node_ports.end())
            .chain(self.node_ports.clone())
            .find(|port| !self.ports.contains_key(port) && !also_taken.contains(port))
    }

    fn next_address(&self, family: Family) -> Option<IpAddr> {
        let start = self.last_host.saturating_add(1).max(FIRST_DYNAMIC_HOST);
        (start..u16::MAX)
            .chain(1..start)
            .map(|host| family.address(host))
            .find(|address| !self.addresses.contains(address))
    }
}

fn host(address: IpAddr) -> u16 {
    match address {
        IpAddr::V4(address) => {
            let [.., high, low] = address.octets();
            u16::from_be_bytes([high, low])
        }
        IpAddr::V6(address) => {
            let [.., low] = address.segments();
            low
        }
    }
}

fn used_ports(service: &Value) -> Vec<u16> {
    let of_ports = list(service, "/spec/ports").iter().map(|port| integer(port, "/nodePort"));
    of_ports
        .chain([integer(service, "/spec/healthCheckNodePort")])
        .filter_map(|port| u16::try_from(port).ok().filter(|port| *port != 0))
        .collect()
}

fn used_addresses(service: &Value) -> Vec<IpAddr> {
    texts(service, "/spec/clusterIPs").iter().filter_map(|text| text.parse().ok()).collect()
}

/// Gives a Service what its type needs and it does not have yet.
pub(super) fn allocate(
    new: &mut Value,
    old: Option<&Value>,
    allocations: &Allocations,
) -> Result<(), FieldError> {
    if needs_cluster_ip(new) {
        let families = choose_families(new)?;
        choose_addresses(new, old, &families, allocations)?;
    }
    choose_node_ports(new, old, allocations)
}

/// One or two families: as asked for, else as the given address says, else IPv4.
fn choose_families(service: &mut Value) -> Result<Vec<Family>, FieldError> {
    let policy = text(service, "/spec/ipFamilyPolicy").to_owned();
    let mut families: Vec<Family> =
        texts(service, "/spec/ipFamilies").into_iter().filter_map(Family::named).collect();
    if families.is_empty() {
        families = used_addresses(service).into_iter().map(Family::of).collect();
    }
    if families.is_empty() {
        families.push(Family::V4);
    }
    let dual = match policy.as_str() {
        "PreferDualStack" | "RequireDualStack" => true,
        "SingleStack" if families.len() > 1 => {
            let rule = "may only hold one value when `ipFamilyPolicy` is 'SingleStack'";
            return Err(FieldError::invalid("spec.ipFamilies", &service["spec"]["ipFamilies"], rule));
        }
        _ => false,
    };
    if dual && families.len() == 1 {
        families.extend(families.first().map(|family| family.other()));
    }
    let names: Vec<&str> = families.iter().map(|family| family.name()).collect();
    let spec = section(service, "spec");
    spec.insert("ipFamilies".to_owned(), json!(names));
    if policy.is_empty() {
        let policy = if families.len() > 1 { "RequireDualStack" } else { "SingleStack" };
        spec.insert("ipFamilyPolicy".to_owned(), policy.into());
    }
    Ok(families)
}

fn choose_addresses(
    service: &mut Value,
    old: Option<&Value>,
    families: &[Family],
    allocations: &Allocations,
) -> Result<(), FieldError> {
    if is_headless(service) {
        return Ok(());
    }
    let own = old.map(used_addresses).unwrap_or_default();
    let given = used_addresses(service);
    let mut chosen = Vec::new();
    for (index, family) in families.iter().enumerate() {
        let address = match given.get(index) {
            Some(address) if own.contains(address) => *address,
            Some(address) if allocations.addresses.contains(address) => {
                let rule = format!("failed to allocate IP {address}: provided IP is already allocated");
                return Err(FieldError::invalid("spec.clusterIPs", &service["spec"]["clusterIPs"], &rule));
            }
            Some(address) if family.address(host(*address)) != *address => {
                let rule =
                    format!("failed to allocate IP {address}: the provided IP is not in the valid range");
                return Err(FieldError::invalid("spec.clusterIPs", &service["spec"]["clusterIPs"], &rule));
            }
            Some(address) => *address,
            None => allocations
                .next_address(*family)
                .ok_or_else(|| FieldError::required("spec.clusterIPs", "range is full"))?,
        };
        chosen.push(address.to_string());
    }
    let spec = section(service, "spec");
    spec.insert("clusterIP".to_owned(), chosen.first().cloned().unwrap_or_default().into());
    spec.insert("clusterIPs".to_owned(), chosen.into());
    Ok(())
}

fn choose_node_ports(
    service: &mut Value,
    old: Option<&Value>,
    allocations: &Allocations,
) -> Result<(), FieldError> {
    let own = old.map(used_ports).unwrap_or_default();
    for (index, port) in list(service, "/spec/ports").iter().enumerate() {
        check_asked_for(&port["nodePort"], &format!("spec.ports[{index}].nodePort"), &own, allocations)?;
    }
    let health_check = needs_health_check_port(service);
    if health_check {
        let asked_for = &service["spec"]["healthCheckNodePort"];
        check_asked_for(asked_for, "spec.healthCheckNodePort", &own, allocations)?;
    }
    let all = needs_node_ports(service);
    let mut taken = used_ports(service);
    let full = || FieldError::required("spec.ports", "no node port is left");
    let spec = section(service, "spec");
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten() {
        if all && integer(port, "/nodePort") == 0 {
            let chosen = allocations.next_port(&taken).ok_or_else(full)?;
            taken.push(chosen);
            port["nodePort"] = chosen.into();
        }
    }
    if health_check && !spec.contains_key("healthCheckNodePort") {
        let chosen = allocations.next_port(&taken).ok_or_else(full)?;
        spec.insert("healthCheckNodePort".to_owned(), chosen.into());
    }
    Ok(())
}

fn check_asked_for(
    value: &Value,
    field: &str,
    own: &[u16],
    allocations: &Allocations,
) -> Result<(), FieldError> {
    let Some(asked_for) = value.as_u64().filter(|port| *port != 0) else { return Ok(()) };
    let valid = &allocations.node_ports;
    match u16::try_from(asked_for).ok().filter(|port| valid.contains(port)) {
        None => {
            let rule = format!(
                "provided port is not in the valid range. The range of valid ports is {}-{}",
                valid.start(),
                valid.end()
            );
            Err(FieldError::invalid(field, value, &rule))
        }
        Some(port) if !own.contains(&port) && allocations.ports.contains_key(&port) => {
            Err(FieldError::invalid(field, value, "provided port is already allocated"))
        }
        Some(_) => Ok(()),
    }
}
