//! A second network behind some nodes, such as one for storage, for scenarios about nodes with several interfaces.
//!
//! ```text
//! storage 198.20.0.0/24: node1 .11, node2 .12, each with the interface eth1; no router
//! ```

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::machine::process::run_line;
use crate::network::{FABRIC, NodePlace, bridge};
use crate::openstack::api::OpenStack;

/// The network, as long as a scenario needs it.
pub(crate) struct SecondNetwork {
    /// The id of its subnet.
    pub subnet: String,
    network: String,
    /// Nodes with their ports.
    ports: Vec<(NodePlace, String)>,
}

impl NodePlace {
    /// Its address in the second network.
    pub(crate) fn second_address(self) -> String {
        format!("198.20.0.1{}", self.0)
    }
}

impl SecondNetwork {
    /// Makes it, and connects nodes.
    ///
    /// # Errors
    /// Neutron refuses, or a command fails.
    pub(crate) fn add(cloud: &OpenStack, places: &[NodePlace]) -> Result<Self> {
        let make = |path: &str, key: &str, body: &Value| -> Result<Value> {
            Ok(cloud.post("network", &format!("/v2.0/{path}"), &json!({key: body}))?.success()?[key].clone())
        };
        let id = |made: &Value| Ok::<_, anyhow::Error>(made["id"].as_str().context("no id")?.to_owned());
        let network = id(&make("networks", "network", &json!({"name": "storage"}))?)?;
        let subnet = json!({
            "name": "storage-v4", "network_id": network, "ip_version": 4, "cidr": "198.20.0.0/24", "gateway_ip": null,
            "allocation_pools": [{"start": "198.20.0.50", "end": "198.20.0.99"}],
        });
        let mut made = Self { subnet: id(&make("subnets", "subnet", &subnet)?)?, network, ports: Vec::new() };
        for place in places {
            let port = json!({
                "name": format!("storage-{}", place.name()), "network_id": made.network, "device_owner": "compute:nova",
                "device_id": place.server(), "fixed_ips": [{"ip_address": place.second_address()}],
            });
            let port = make("ports", "port", &port)?;
            made.ports.push((*place, id(&port)?));
            made.connect(*place, port["mac_address"].as_str().context("the port has no MAC address")?)?;
        }
        Ok(made)
    }

    fn connect(&self, place: NodePlace, mac: &str) -> Result<()> {
        let (name, bridge) = (place.name(), bridge(&self.network)?);
        run_line(&format!("ip link add s-{name} netns {FABRIC} type veth peer name eth1 netns {name}"))?;
        run_line(&format!("ip -n {FABRIC} link set s-{name} master {bridge} up"))?;
        run_line(&format!("ip -n {name} link set eth1 address {mac}"))?;
        run_line(&format!("ip -n {name} addr add {}/24 dev eth1", place.second_address()))?;
        run_line(&format!("ip -n {name} link set eth1 up"))?;
        Ok(())
    }

    /// Takes it away, from Neutron and from the nodes.
    ///
    /// # Errors
    /// Neutron refuses, or a command fails.
    pub(crate) fn remove(self) -> Result<()> {
        // Users may not delete ports of servers.
        let cloud = OpenStack::log_in("admin")?;
        for (place, port) in &self.ports {
            run_line(&format!("ip -n {} link del eth1", place.name()))?;
            cloud.delete("network", &format!("/v2.0/ports/{port}"))?.success()?;
        }
        // With the subnet.
        cloud.delete("network", &format!("/v2.0/networks/{}", self.network))?.success().map(drop)
    }
}
