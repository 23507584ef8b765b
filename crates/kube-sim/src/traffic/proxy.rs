//! The service proxy of a node.
//!
//! kube-proxy adds, for each address in `status.loadBalancer.ingress`, a rule that sends what leaves its node for that address to a pod
//! at once, unless it honours `ipMode: Proxy`. Hostnames never make a rule, and addresses in `spec.externalIPs` of any Service always do:
//! source ranges do not count there.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::Value;

use super::kube_proxy::KubeProxy;
use super::objects::{Objects, protocol};
use super::{Destination, text};
use crate::object::{list, texts};

/// The label with which a Service is left to another service proxy.
const OTHER_PROXY: &str = "service.kubernetes.io/service-proxy-name";

/// An address and port behind a Service.
pub(super) struct Endpoint {
    pub(super) address: IpAddr,
    pub(super) port: u16,
}

/// The Service, and its port, whose rule sends a packet of a node to a pod at once.
pub(super) struct Captured<'a> {
    pub(super) service: &'a Value,
    pub(super) port: &'a Value,
    /// The address is one of `externalIPs`.
    pub(super) external: bool,
}

/// What sends a packet of this node to a pod at once.
pub(super) fn captured<'a>(objects: &'a Objects, node: &Value, to: Destination) -> Option<Captured<'a>> {
    let honours = KubeProxy::of(objects, node).honours_ip_mode;
    let by_external = |service: &Value| {
        let mut addresses = texts(service, "/spec/externalIPs").into_iter();
        service["spec"]["clusterIP"] != "None" && addresses.any(|address| address.parse() == Ok(to.address))
    };
    let by_status = |service: &Value| {
        let is_rule = |entry: &Value| {
            let left_alone = honours && entry["ipMode"] == "Proxy";
            !left_alone && text(&entry["ip"]).parse() == Ok(to.address)
        };
        list(service, "/status/loadBalancer/ingress").iter().any(is_rule)
    };
    let find = |external: bool, is_captured: &dyn Fn(&Value) -> bool| {
        served(objects).filter(|service| is_captured(service)).find_map(|service| {
            let port = port_where(service, to, |port| port["port"] == to.port)?;
            Some(Captured { service, port, external })
        })
    };
    find(true, &by_external).or_else(|| find(false, &by_status))
}

/// The Service, and its port, that has a node port.
pub(super) fn behind_node_port(objects: &Objects, to: Destination) -> Option<(&Value, &Value)> {
    served(objects).find_map(|service| {
        let exposed = matches!(text(&service["spec"]["type"]), "LoadBalancer" | "NodePort");
        port_where(service, to, |port| exposed && port["nodePort"] == to.port).map(|port| (service, port))
    })
}

fn served(objects: &Objects) -> impl Iterator<Item = &Value> {
    objects.services.iter().filter(|service| service["metadata"]["labels"].get(OTHER_PROXY).is_none())
}

fn port_where(service: &Value, to: Destination, is_it: impl Fn(&Value) -> bool) -> Option<&Value> {
    let mut ports = list(service, "/spec/ports").iter();
    ports.find(|port| protocol(port) == to.transport.as_str() && is_it(port))
}

/// Whether the source ranges of a Service hold a client.
pub(super) fn in_ranges(service: &Value, source: IpAddr) -> bool {
    let ranges = texts(service, "/spec/loadBalancerSourceRanges");
    ranges.is_empty()
        || ranges.iter().any(|range| range.trim().parse::<IpNet>().is_ok_and(|range| range.contains(&source)))
}

/// The endpoints of a Service's port in a family, those on one node only where that is asked for. Pods that end serve while no other
/// is left.
pub(super) fn endpoints(
    objects: &Objects,
    service: &Value,
    port: &Value,
    v6: bool,
    node: Option<&str>,
) -> Vec<Endpoint> {
    let metadata = &service["metadata"];
    let family = if v6 { "IPv6" } else { "IPv4" };
    let slices = objects.slices.iter().filter(|slice| {
        slice["metadata"]["namespace"] == metadata["namespace"]
            && slice["metadata"]["labels"]["kubernetes.io/service-name"] == metadata["name"]
            && slice["addressType"] == family
    });
    let (mut ready, mut ending) = (Vec::new(), Vec::new());
    for slice in slices {
        let is_port =
            |one: &&Value| text(&one["name"]) == text(&port["name"]) && protocol(one) == protocol(port);
        let number = list(slice, "/ports").iter().find(is_port).and_then(|one| one["port"].as_u64());
        let Some(number) = number.and_then(|number| u16::try_from(number).ok()) else { continue };
        for endpoint in list(slice, "/endpoints") {
            if node.is_some_and(|node| endpoint["nodeName"] != node) {
                continue;
            }
            let conditions = &endpoint["conditions"];
            let addresses = texts(endpoint, "/addresses").into_iter().filter_map(|one| one.parse().ok());
            let found = addresses.map(|address| Endpoint { address, port: number });
            if conditions["ready"] != false {
                ready.extend(found);
            } else if conditions["serving"] == true && conditions["terminating"] == true {
                ending.extend(found);
            }
        }
    }
    if ready.is_empty() { ending } else { ready }
}
