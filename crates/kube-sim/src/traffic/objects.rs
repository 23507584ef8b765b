//! The objects that decide what becomes of packets.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::Value;

use super::{Transport, text};
use crate::object::list;
use crate::sim::Sim;

/// The annotation of a pod that says what its ports make of the header; nobody but this simulator reads it.
pub const READS_HEADER: &str = "simulator.openstack-ccm.example/reads-header";

pub(super) struct Objects {
    nodes: Vec<Value>,
    pods: Vec<Value>,
    namespaces: Vec<Value>,
    pub(super) services: Vec<Value>,
    pub(super) slices: Vec<Value>,
    pub(super) policies: Vec<Value>,
    config_maps: Vec<Value>,
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
            config_maps: all("configmaps"),
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

    /// kube-proxy's pod on a node.
    pub(super) fn kube_proxy(&self, node: &Value) -> Option<&Value> {
        self.pods.iter().find(|pod| {
            let metadata = &pod["metadata"];
            metadata["namespace"] == "kube-system"
                && metadata["labels"]["k8s-app"] == "kube-proxy"
                && pod["spec"]["nodeName"] == node["metadata"]["name"]
        })
    }

    pub(super) fn config_map(&self, namespace: &Value, name: &Value) -> Option<&Value> {
        let is_it =
            |map: &&Value| map["metadata"]["namespace"] == *namespace && map["metadata"]["name"] == *name;
        self.config_maps.iter().find(is_it)
    }

    pub(super) fn namespace(&self, name: &str) -> Option<&Value> {
        self.namespaces.iter().find(|namespace| namespace["metadata"]["name"] == name)
    }
}

pub(super) fn addresses(node: &Value) -> impl Iterator<Item = IpAddr> {
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

/// What a port of a pod makes of the PROXY protocol header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// It takes the header for a broken request.
    Never,
    /// It reads one, and does without.
    Optional,
    /// It takes no connection without one.
    Required,
}

/// What a port makes of the header of a connection from this address: a test writes it into the annotation [`READS_HEADER`], by port:
/// `optional`, `required`, or `required from CIDR,CIDR`.
pub(super) fn reading(pod: &Value, port: u16, from: IpAddr) -> Reading {
    let Some(word) = written(pod, port) else { return Reading::Never };
    let holds = |range: &str| range.trim().parse::<IpNet>().is_ok_and(|range| range.contains(&from));
    match word.split_once(" from ") {
        Some((_, ranges)) if !ranges.split(',').any(holds) => Reading::Never,
        _ if word == "optional" => Reading::Optional,
        _ if word == "never" => Reading::Never,
        _ => Reading::Required,
    }
}

fn written(pod: &Value, port: u16) -> Option<String> {
    let annotation = text(pod["metadata"]["annotations"].get(READS_HEADER)?);
    let ports: Value = serde_json::from_str(annotation).ok()?;
    ports[port.to_string()].as_str().map(str::to_owned)
}

/// Whether a pod has not ended, and its containers run.
pub(super) fn runs(pod: &Value) -> bool {
    let containers = list(pod, "/status/containerStatuses");
    !matches!(text(&pod["status"]["phase"]), "Failed" | "Succeeded")
        && (containers.is_empty() || containers.iter().any(|one| one["state"].get("running").is_some()))
}

/// Whether a container listens. One that declares no port at all may listen on every one.
pub(super) fn listens(pod: &Value, number: u16, transport: Transport) -> bool {
    if written(pod, number).is_some() && transport == Transport::Tcp {
        return true;
    }
    let mut declared = ports(pod).peekable();
    declared.peek().is_none()
        || declared.any(|(_, port, protocol)| port == number && protocol == transport.as_str())
}
