//! Security groups that an operator gives to machines: they let the machines of the cluster talk to each other, and nobody else.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::NodePlace;
use crate::openstack::api::OpenStack;

/// The Neutron port of a machine.
pub(crate) struct Port {
    pub id: String,
    /// Ids of its security groups, sorted.
    pub groups: Vec<String>,
}

impl Port {
    /// Looks it up.
    pub(crate) fn of(cloud: &OpenStack, place: NodePlace) -> Result<Self> {
        let path = format!("/v2.0/ports?name={}", place.name());
        let ports = cloud.list("network", &path, "ports")?;
        let port = ports.first().with_context(|| format!("{} has no port", place.name()))?;
        let groups = port["security_groups"].as_array().cloned().unwrap_or_default();
        let mut groups: Vec<String> = groups.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        groups.sort();
        Ok(Self { id: port["id"].as_str().context("the port has no id")?.to_owned(), groups })
    }

    fn set_groups(&self, cloud: &OpenStack, groups: &[String]) -> Result<()> {
        let body = json!({"port": {"security_groups": groups}});
        cloud.put("network", &format!("/v2.0/ports/{}", self.id), &body)?.success().map(drop)
    }
}

/// Machines that let in nobody but each other.
pub(crate) struct Closed {
    /// Ids of the groups that were made for it: the one of all machines, and one that only the first has.
    made: [String; 2],
    machines: Vec<(NodePlace, Port)>,
}

impl Closed {
    /// Makes the groups, and gives them to the machines instead of those that they have.
    pub(crate) fn around(cloud: &OpenStack, places: &[NodePlace]) -> Result<Self> {
        let (nodes, extra) = (group(cloud, "nodes")?, group(cloud, "of the first node")?);
        let pods = ["IPv4", "IPv6"].map(|family| (family, json!({"remote_group_id": nodes})));
        let routed = [("IPv4", json!({"remote_ip_prefix": "10.244.0.0/16"}))];
        for (family, origin) in pods.into_iter().chain(routed) {
            let mut rule = origin;
            rule["security_group_id"] = json!(nodes);
            rule["direction"] = json!("ingress");
            rule["ethertype"] = json!(family);
            let body = json!({"security_group_rule": rule});
            cloud.post("network", "/v2.0/security-group-rules", &body)?.success()?;
        }
        let ports = places.iter().map(|place| Ok((*place, Port::of(cloud, *place)?)));
        let closed = Self { made: [nodes, extra], machines: ports.collect::<Result<_>>()? };
        for (place, port) in &closed.machines {
            port.set_groups(cloud, &closed.groups_of(*place))?;
        }
        Ok(closed)
    }

    /// What was given to a machine.
    pub(crate) fn groups_of(&self, place: NodePlace) -> Vec<String> {
        let first = self.machines.first().is_some_and(|(machine, _)| *machine == place);
        self.made.iter().take(if first { 2 } else { 1 }).cloned().collect()
    }

    /// Gives the machines back what they had.
    pub(crate) fn open(self, cloud: &OpenStack) -> Result<()> {
        for (_, port) in &self.machines {
            port.set_groups(cloud, &port.groups)?;
        }
        for id in &self.made {
            cloud.delete("network", &format!("/v2.0/security-groups/{id}"))?.success()?;
        }
        Ok(())
    }
}

fn group(cloud: &OpenStack, name: &str) -> Result<String> {
    let body = json!({"security_group": {"name": name}});
    let answer = cloud.post("network", "/v2.0/security-groups", &body)?.success()?;
    Ok(answer["security_group"]["id"].as_str().context("the group has no id")?.to_owned())
}
