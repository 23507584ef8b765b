//! The network of a cluster: nodes on the bridge of their Neutron network, pods behind nodes, clients outside.
//!
//! ```text
//! fabric (one bridge for each Neutron network; amphorae and routers are plugged in by the drivers for Octavia)
//!   |- cluster 198.18.0.0/24: node1 .11, node2 .12, node3 .13, neighbour .30 (a machine beside the cluster)
//!   `- public  198.19.0.0/24: outside .5
//! nodeN: pods 10.244.N.0/24 with client .2 and ingress .3; management address 10.0.0.1N
//! world: 10.0.0.1, the API server
//! ```

pub(crate) mod ask;
pub(crate) mod datagram;
pub(crate) mod ipv6;
pub(crate) mod second;
pub(crate) mod security;

use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::machine::process::{run, run_line};
use crate::openstack::api::OpenStack;

/// The namespace that holds the bridges.
const FABRIC: &str = "fabric";
/// Where nodes reach the API server.
pub(crate) const API_SERVER: &str = "10.0.0.1";
/// A client in the network `public`.
pub(crate) const OUTSIDE: &str = "outside";
pub(crate) const OUTSIDE_ADDRESS: &str = "198.19.0.5";
/// A client in the cluster's Neutron network that is no node.
pub(crate) const NEIGHBOUR: &str = "neighbour";
pub(crate) const NEIGHBOUR_ADDRESS: &str = "198.18.0.30";

/// A machine of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodePlace(pub u8);

/// Nodes that exist as machines. The third one joins clusters only in scenarios about nodes.
pub(crate) const NODES: [NodePlace; 3] = [NodePlace(1), NodePlace(2), NodePlace(3)];

impl NodePlace {
    /// Its name, which is also that of its namespace.
    pub(crate) fn name(self) -> String {
        format!("node{}", self.0)
    }

    /// Its address in the Neutron network.
    pub(crate) fn address(self) -> String {
        format!("198.18.0.1{}", self.0)
    }

    /// The id of the server that it would be, which stands in its provider id and on its Neutron port.
    pub(crate) fn server(self) -> String {
        format!("00000000-0000-4000-8000-00000000000{}", self.0)
    }

    pub(crate) fn pod_range(self) -> String {
        format!("10.244.{}.0/24", self.0)
    }

    /// The namespace of its pod that asks.
    pub(crate) fn client(self) -> String {
        format!("n{}-client", self.0)
    }

    /// The address of that pod.
    pub(crate) fn client_address(self) -> String {
        format!("10.244.{}.2", self.0)
    }

    /// Whether an IPv4 address is one of its own.
    pub(crate) fn has_address(self, address: &str) -> bool {
        [self.address(), format!("10.0.0.1{}", self.0), format!("10.244.{}.1", self.0)]
            .iter()
            .any(|own| own == address)
    }

    /// The namespace of its ingress pod.
    pub(crate) fn ingress(self) -> String {
        format!("n{}-ingress", self.0)
    }

    /// The address of its ingress pod.
    pub(crate) fn ingress_address(self) -> String {
        format!("10.244.{}.3", self.0)
    }
}

/// The Neutron networks of the cloud.
#[derive(Clone, Debug)]
pub(crate) struct Networks {
    /// The network `cluster`.
    pub cluster: String,
    /// The network `public`.
    pub public: String,
    /// The subnet of `cluster`.
    pub cluster_subnet: String,
}

impl Networks {
    /// Looks them up in Neutron.
    pub(crate) fn find(cloud: &OpenStack) -> Result<Self> {
        let network = |name: &str| {
            let list = cloud.list("network", &format!("/v2.0/networks?name={name}"), "networks")?;
            id_of(list.first()).with_context(|| format!("there is no network {name}"))
        };
        let subnets = cloud.list("network", "/v2.0/subnets?name=cluster-v4", "subnets")?;
        Ok(Self {
            cluster: network("cluster")?,
            public: network("public")?,
            cluster_subnet: id_of(subnets.first()).context("there is no subnet cluster-v4")?,
        })
    }
}

fn id_of(object: Option<&Value>) -> Option<String> {
    Some(object?["id"].as_str()?.to_owned())
}

/// Builds all machines, pods and clients. Each machine gets a Neutron port with its address.
pub(crate) fn build(cloud: &OpenStack, networks: &Networks) -> Result<()> {
    open_default_group(cloud)?;
    run_line("ip link add management type bridge")?;
    run_line(&format!("ip addr add {API_SERVER}/24 dev management"))?;
    run_line("ip link set management up")?;
    for place in NODES {
        node(cloud, networks, place)?;
        for (namespace, last) in [(place.client(), 2), (place.ingress(), 3)] {
            pod(place, &namespace, &format!("10.244.{}.{last}", place.0))?;
        }
    }
    NODES.into_iter().try_for_each(add_routes)?;
    machine(cloud, &networks.cluster, NEIGHBOUR, "machine-neighbour", NEIGHBOUR_ADDRESS)?;
    run_line(&format!("ip -n {NEIGHBOUR} route add default via 198.18.0.1"))?;
    plug(OUTSIDE, &networks.public, None, OUTSIDE_ADDRESS)
}

fn node(cloud: &OpenStack, networks: &Networks, place: NodePlace) -> Result<()> {
    let name = place.name();
    machine(cloud, &networks.cluster, &name, &place.server(), &place.address())?;
    run_line(&format!("ip link add m-{name} type veth peer name management netns {name}"))?;
    run_line(&format!("ip link set m-{name} master management up"))?;
    run_line(&format!("ip -n {name} addr add 10.0.0.1{}/24 dev management", place.0))?;
    run_line(&format!("ip -n {name} link set management up"))?;
    run_line(&format!("ip netns exec {name} sysctl -qw net.ipv4.ip_forward=1"))?;
    // What a network plug-in does: pods that leave the cluster are masked by the address of their node.
    for out in ["eth0", "management"] {
        run_line(&format!(
            "ip netns exec {name} iptables -w -t nat -A POSTROUTING -s {} ! -d 10.244.0.0/16 -o {out} -j MASQUERADE",
            place.pod_range()
        ))?;
    }
    run_line(&format!("ip -n {name} addr add 10.244.{}.1/32 dev lo", place.0))?;
    Ok(())
}

/// To the router and to the pods of the other nodes. They go when the link goes down.
fn add_routes(from: NodePlace) -> Result<()> {
    let name = from.name();
    run_line(&format!("ip -n {name} route add default via 198.18.0.1"))?;
    for to in NODES.into_iter().filter(|to| *to != from) {
        run_line(&format!("ip -n {name} route add {} via {}", to.pod_range(), to.address()))?;
    }
    Ok(())
}

/// Takes the links of a machine down.
pub(crate) fn unplug(place: NodePlace) -> Result<()> {
    set_links(place, "down")
}

/// Undoes [`unplug`].
pub(crate) fn plug_again(place: NodePlace) -> Result<()> {
    set_links(place, "up")?;
    add_routes(place)
}

fn set_links(place: NodePlace, state: &str) -> Result<()> {
    for link in ["eth0", "management"] {
        run_line(&format!("ip -n {} link set {link} {state}", place.name()))?;
    }
    Ok(())
}

/// Their security group is the project's own, which lets everything in: scenarios that are about security groups give the
/// machines others.
fn open_default_group(cloud: &OpenStack) -> Result<()> {
    let groups = cloud.list("network", "/v2.0/security-groups?name=default", "security_groups")?;
    let group = id_of(groups.first()).context("there is no default security group")?;
    for family in ["IPv4", "IPv6"] {
        let rule = json!({"security_group_id": group, "direction": "ingress", "ethertype": family});
        let body = json!({"security_group_rule": rule});
        cloud.post("network", "/v2.0/security-group-rules", &body)?.success()?;
    }
    Ok(())
}

fn machine(cloud: &OpenStack, network: &str, name: &str, device: &str, address: &str) -> Result<()> {
    let wanted = json!({"port": {
        "name": name, "network_id": network, "device_owner": "compute:nova", "device_id": device,
        "fixed_ips": [{"ip_address": address}],
    }});
    let answer = cloud.post("network", "/v2.0/ports", &wanted)?.success()?;
    let mac = answer["port"]["mac_address"].as_str().context("the port has no MAC address")?.to_owned();
    plug(name, network, Some(&mac), address)
}

/// Connects a new namespace to the bridge of a Neutron network, as the drivers for Octavia do it.
fn plug(namespace: &str, network: &str, mac: Option<&str>, address: &str) -> Result<()> {
    let bridge = bridge(network)?;
    run_line(&format!("ip netns add {namespace}"))?;
    run_line(&format!("ip -n {namespace} link set lo up"))?;
    run_line(&format!(
        "ip link add m-{namespace} netns {FABRIC} type veth peer name eth0 netns {namespace}"
    ))?;
    run_line(&format!("ip -n {FABRIC} link set m-{namespace} master {bridge} up"))?;
    if let Some(mac) = mac {
        run_line(&format!("ip -n {namespace} link set eth0 address {mac}"))?;
    }
    run_line(&format!("ip -n {namespace} addr add {address}/24 dev eth0"))?;
    run_line(&format!("ip -n {namespace} link set eth0 up"))?;
    Ok(())
}

/// The bridge of a Neutron network, which is made unless it is there.
fn bridge(network: &str) -> Result<String> {
    let bridge = bridge_name(network);
    if run(Command::new("ip").args(["-n", FABRIC, "link", "show", &bridge])).is_err() {
        if run(Command::new("ip").args(["-n", FABRIC, "link", "show", "lo"])).is_err() {
            run_line(&format!("ip netns add {FABRIC}"))?;
            run_line(&format!("ip -n {FABRIC} link set lo up"))?;
        }
        run_line(&format!("ip -n {FABRIC} link add {bridge} type bridge"))?;
        run_line(&format!("ip -n {FABRIC} link set {bridge} up"))?;
    }
    Ok(bridge)
}

/// Pods are routed, not bridged: replies between pods of one node would bypass conntrack on a bridge.
fn pod(node: NodePlace, namespace: &str, address: &str) -> Result<()> {
    let (name, gateway) = (node.name(), format!("10.244.{}.1", node.0));
    run_line(&format!("ip netns add {namespace}"))?;
    run_line(&format!("ip -n {namespace} link set lo up"))?;
    run_line(&format!("ip -n {name} link add {namespace} type veth peer name eth0 netns {namespace}"))?;
    run_line(&format!("ip -n {name} link set {namespace} up"))?;
    run_line(&format!("ip -n {name} route add {address}/32 dev {namespace} src {gateway}"))?;
    run_line(&format!("ip -n {namespace} addr add {address}/32 dev eth0"))?;
    run_line(&format!("ip -n {namespace} link set eth0 up"))?;
    run_line(&format!("ip -n {namespace} route add {gateway} dev eth0"))?;
    run_line(&format!("ip -n {namespace} route add default via {gateway}"))?;
    Ok(())
}

/// The name that the drivers for Octavia give the bridge of a network.
fn bridge_name(network: &str) -> String {
    let start: String = network.chars().take(12).filter(|character| *character != '-').collect();
    format!("n{start}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bridges_are_named_as_the_drivers_name_them() {
        assert_eq!(bridge_name("0f8fad5b-d9cb-469f-a165-70867728950e"), "n0f8fad5bd9c");
    }
}
