//! IPv6 in the network `cluster`, for scenarios that need it: a subnet of Neutron, an address for each machine, pods with
//! addresses behind the nodes.
//!
//! ```text
//! cluster fd00:18::/64: node1 ::11, node2 ::12, node3 ::13, neighbour ::30
//! nodeN: pods fd00:244:N::/64 with client ::2 and ingress ::3
//! ```
//! It stays on the link: the router has no part in it.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::machine::process::run_line;
use crate::network::{NEIGHBOUR, NEIGHBOUR_ADDRESS, NODES, Networks, NodePlace};
use crate::openstack::api::OpenStack;

/// The range of all pods.
pub(crate) const PODS: &str = "fd00:244::/32";
/// The address of [`NEIGHBOUR`].
pub(crate) const NEIGHBOUR_ADDRESS_V6: &str = "fd00:18::30";

impl NodePlace {
    /// Its IPv6 address in the Neutron network.
    pub(crate) fn address_v6(self) -> String {
        format!("fd00:18::1{}", self.0)
    }

    /// The IPv6 range of its pods.
    pub(crate) fn pod_range_v6(self) -> String {
        format!("fd00:244:{}::/64", self.0)
    }

    /// The IPv6 address of its ingress pod.
    pub(crate) fn ingress_address_v6(self) -> String {
        format!("fd00:244:{}::3", self.0)
    }
}

/// Whether the kernel speaks it at all.
pub(crate) fn is_there() -> bool {
    Path::new("/proc/net/if_inet6").exists()
}

/// The IPv6 subnet of the network `cluster`.
pub(crate) struct SecondSubnet {
    id: String,
}

impl SecondSubnet {
    /// Makes it, and gives machines and pods addresses.
    pub(crate) fn add(cloud: &OpenStack, networks: &Networks) -> Result<Self> {
        ensure!(is_there(), "this kernel has no IPv6");
        let body = json!({"subnet": {
            "name": "cluster-v6", "network_id": networks.cluster, "ip_version": 6, "cidr": "fd00:18::/64",
            "gateway_ip": null, "enable_dhcp": false,
            "allocation_pools": [{"start": "fd00:18::50", "end": "fd00:18::ff"}],
        }});
        let answer = cloud.post("network", "/v2.0/subnets", &body)?.success()?;
        let id = answer["subnet"]["id"].as_str().context("the subnet has no id")?.to_owned();
        for (name, first, second) in machines() {
            set_addresses(cloud, &name, &[&first, &second])?;
            run_line(&format!("ip -n {name} addr replace {second}/64 dev eth0 nodad"))?;
        }
        for place in NODES {
            forward(place)?;
            for (pod, address) in [
                (place.client(), format!("fd00:244:{}::2", place.0)),
                (place.ingress(), place.ingress_address_v6()),
            ] {
                connect(&place.name(), &pod, &address)?;
            }
            for other in NODES.into_iter().filter(|other| *other != place) {
                let (range, way) = (other.pod_range_v6(), other.address_v6());
                run_line(&format!("ip -n {} route replace {range} via {way}", place.name()))?;
            }
        }
        Ok(Self { id })
    }

    /// Takes it away from Neutron. Addresses in namespaces stay: nobody asks for them any more.
    pub(crate) fn remove(self, cloud: &OpenStack) -> Result<()> {
        for (name, first, _) in machines() {
            set_addresses(cloud, &name, &[&first])?;
        }
        cloud.delete("network", &format!("/v2.0/subnets/{}", self.id))?.success().map(drop)
    }
}

/// Names of the machines in the network with their addresses of both families.
fn machines() -> Vec<(String, String, String)> {
    let mut machines: Vec<_> =
        NODES.iter().map(|place| (place.name(), place.address(), place.address_v6())).collect();
    machines.push((NEIGHBOUR.into(), NEIGHBOUR_ADDRESS.into(), NEIGHBOUR_ADDRESS_V6.into()));
    machines
}

fn set_addresses(cloud: &OpenStack, machine: &str, addresses: &[&str]) -> Result<()> {
    let ports = cloud.list("network", &format!("/v2.0/ports?name={machine}"), "ports")?;
    let id = ports.first().and_then(|port| port["id"].as_str());
    let id = id.with_context(|| format!("{machine} has no port"))?;
    let fixed: Vec<Value> = addresses.iter().map(|address| json!({"ip_address": address})).collect();
    let body = json!({"port": {"fixed_ips": fixed}});
    cloud.put("network", &format!("/v2.0/ports/{id}"), &body)?.success().map(drop)
}

/// What a network plug-in does: the node forwards, and pods that leave the cluster are masked by its address.
fn forward(place: NodePlace) -> Result<()> {
    let (name, range) = (place.name(), place.pod_range_v6());
    run_line(&format!("ip netns exec {name} sysctl -qw net.ipv6.conf.all.forwarding=1"))?;
    run_line(&format!(
        "ip netns exec {name} ip6tables -w -t nat -A POSTROUTING -s {range} ! -d {PODS} -o eth0 -j MASQUERADE"
    ))?;
    Ok(())
}

/// A node answers on a link of its pods for the addresses of that link only, so it has one there that all pods know.
fn connect(node: &str, pod: &str, address: &str) -> Result<()> {
    run_line(&format!("ip -n {node} addr replace fe80::1/64 dev {pod} nodad"))?;
    run_line(&format!("ip -n {node} route replace {address}/128 dev {pod}"))?;
    run_line(&format!("ip -n {pod} addr replace {address}/128 dev eth0 nodad"))?;
    run_line(&format!("ip -n {pod} route replace default via fe80::1 dev eth0"))?;
    Ok(())
}
