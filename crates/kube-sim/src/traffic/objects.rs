//! The objects that decide what becomes of packets.

use std::net::IpAddr;

use serde_json::Value;

use super::{Transport, text};
use crate::object::list;
use crate::sim::Sim;

pub(super) struct Objects {
    nodes: Vec<Value>,
    pods: Vec<Value>,
    namespaces: Vec<Value>,
    pub(super) services: Vec<Value>,
    pub(super) slices: Vec<Value>,
    pub(super) policies: Vec<Value>,
}

impl Objects {
    pub(super) fn read(sim: &Sim) -> Self {
        let all = |resource: &str| sim.list(resource, "").unwrap_or_default();
        Self {
            nodes: all("nodes"),
            pods: all("pods"),
            namespaces: all("namespaces"),
            services: all("services"),
            slices: all("endpointslices"),
            policies: all("networkpolicies"),
        }
    }

    pub(super) fn node(&self, name: &str) -> Option<&Value> {
        self.nodes.iter().find(|node| node["metadata"]["name"] == name)
    }

    pub(super) fn node_at(&self, address: IpAddr) -> Option<&Value> {
        self.nodes.iter().find(|node| addresses(node).any(|own| own == address))
    }

    pub(super) fn pod(&self, namespace: &str, name: &str) -> Option<&Value> {
        let is_it =
            |pod: &&Value| pod["metadata"]["namespace"] == namespace && pod["metadata"]["name"] == name;
        self.pods.iter().find(is_it)
    }

    pub(super) fn pod_at(&self, address: IpAddr) -> Option<&Value> {
        self.pods.iter().find(|pod| pod_addresses(pod).any(|own| own == address))
    }

    pub(super) fn namespace(&self, name: &str) -> Option<&Value> {
        self.namespaces.iter().find(|namespace| namespace["metadata"]["name"] == name)
    }
}

fn addresses(node: &Value) -> impl Iterator<Item = IpAddr> {
    let entries = list(node, "/status/addresses").iter().filter(|entry| entry["type"] == "InternalIP");
    entries.filter_map(|entry| text(&entry["address"]).parse().ok())
}

/// The address of a node in a family; of another one where it has none.
pub(super) fn address_of(node: &Value, v6: bool) -> Option<IpAddr> {
    addresses(node).find(|own| own.is_ipv6() == v6).or_else(|| addresses(node).next())
}

fn pod_addresses(pod: &Value) -> impl Iterator<Item = IpAddr> {
    let further = list(pod, "/status/podIPs").iter().map(|entry| &entry["ip"]);
    std::iter::once(&pod["status"]["podIP"]).chain(further).filter_map(|ip| text(ip).parse().ok())
}

pub(super) fn pod_address(pod: &Value) -> Option<IpAddr> {
    pod_addresses(pod).next()
}

/// The ports of a pod's containers: name, number, protocol.
pub(super) fn ports(pod: &Value) -> impl Iterator<Item = (&str, u16, &str)> {
    let containers = list(pod, "/spec/containers").iter();
    containers.flat_map(|container| list(container, "/ports")).filter_map(|port| {
        let number = u16::try_from(port["containerPort"].as_u64()?).ok()?;
        Some((text(&port["name"]), number, protocol(port)))
    })
}

/// The protocol of a port: TCP where none is written.
pub(super) fn protocol(port: &Value) -> &str {
    port["protocol"].as_str().unwrap_or("TCP")
}

/// Whether a container listens. One that declares no port at all may listen on every one.
pub(super) fn listens(pod: &Value, number: u16, transport: Transport) -> bool {
    let mut declared = ports(pod).peekable();
    declared.peek().is_none()
        || declared.any(|(_, port, protocol)| port == number && protocol == transport.as_str())
}
