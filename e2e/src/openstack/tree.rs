//! A load balancer with its children, as Octavia shows it.

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::api::OpenStack;

/// One load balancer.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub id: String,
    /// `provisioning_status`.
    pub status: String,
    pub listeners: Vec<Value>,
    /// Protocols of its pools.
    pub protocols: Vec<String>,
    /// The members of all its pools.
    pub members: Vec<Value>,
}

impl Tree {
    /// The load balancer of a Service, when Octavia is at rest.
    ///
    /// # Errors
    /// There is not exactly one, Octavia is at work on it, or cannot be asked.
    pub(crate) fn of(cloud: &OpenStack, service: &str) -> Result<Self> {
        let balancer = cloud.load_balancer(service)?;
        let (id, status) = (text(&balancer, "id"), text(&balancer, "provisioning_status"));
        if status.starts_with("PENDING") {
            bail!("load balancer {id} is {status}");
        }
        let listeners = cloud.list(
            "load-balancer",
            &format!("/v2/lbaas/listeners?load_balancer_id={id}"),
            "listeners",
        )?;
        let pools = cloud.list("load-balancer", &format!("/v2/lbaas/pools?loadbalancer_id={id}"), "pools")?;
        let protocols = pools.iter().map(|pool| text(pool, "protocol")).collect();
        let mut members = Vec::new();
        for pool in &pools {
            let path = format!("/v2/lbaas/pools/{}/members", text(pool, "id"));
            members.extend(cloud.list("load-balancer", &path, "members")?);
        }
        Ok(Self { id, status, listeners, protocols, members })
    }

    /// Ports of the listeners, sorted.
    pub(crate) fn ports(&self) -> Vec<u64> {
        let mut ports: Vec<u64> =
            self.listeners.iter().filter_map(|listener| listener["protocol_port"].as_u64()).collect();
        ports.sort_unstable();
        ports
    }

    /// Addresses of the members, sorted and once each.
    pub(crate) fn addresses(&self) -> Vec<String> {
        let mut addresses: Vec<String> = self.members.iter().map(|member| text(member, "address")).collect();
        addresses.sort();
        addresses.dedup();
        addresses
    }

    /// Fails unless the load balancer and all its children are in order.
    ///
    /// # Errors
    /// One of them is not `ACTIVE`.
    pub(crate) fn settled(&self) -> Result<()> {
        ensure!(self.status == "ACTIVE", "the load balancer is {}", self.status);
        let bad = |object: &&Value| object["provisioning_status"] != "ACTIVE";
        let first = self.listeners.iter().chain(&self.members).find(bad);
        let description =
            first.map(|object| format!("{} is {}", object["name"], object["provisioning_status"]));
        ensure!(first.is_none(), "{}", description.context("no description")?);
        Ok(())
    }
}

fn text(object: &Value, key: &str) -> String {
    object[key].as_str().unwrap_or_default().to_owned()
}
