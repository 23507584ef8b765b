//! A load balancer with everything below it and its floating IP, to see later what has become of it.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::api::OpenStack;

/// One line for each object: whose it is by id, name, description and tags, and where it is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Picture {
    lines: Vec<String>,
}

impl Picture {
    /// Of the load balancer with this id.
    ///
    /// # Errors
    /// It is not there, or a service cannot be asked.
    pub(crate) fn of(cloud: &OpenStack, id: &str) -> Result<Self> {
        let balancer = cloud.get("load-balancer", &format!("/v2/lbaas/loadbalancers/{id}"))?;
        let balancer = &balancer["loadbalancer"];
        let mut lines = vec![line("load balancer", balancer, &["vip_address", "vip_port_id"])];
        for (kind, path, key) in [
            ("listener", format!("/v2/lbaas/listeners?load_balancer_id={id}"), "listeners"),
            ("pool", format!("/v2/lbaas/pools?loadbalancer_id={id}"), "pools"),
        ] {
            for one in cloud.list("load-balancer", &path, key)? {
                lines.push(line(kind, &one, &["protocol", "protocol_port"]));
            }
        }
        let port = balancer["vip_port_id"].as_str().context("the load balancer has no port")?;
        for one in cloud.list("network", &format!("/v2.0/floatingips?port_id={port}"), "floatingips")? {
            lines.push(line("floating IP", &one, &["floating_ip_address", "fixed_ip_address"]));
        }
        lines.sort();
        Ok(Self { lines })
    }

    /// Fails unless the load balancer looks the same now.
    ///
    /// # Errors
    /// It names what is not as before.
    pub(crate) fn is_unchanged(&self, cloud: &OpenStack, id: &str) -> Result<()> {
        let now = Self::of(cloud, id)?;
        let missing = |from: &Self, other: &Self| -> Vec<String> {
            from.lines.iter().filter(|line| !other.lines.contains(line)).cloned().collect()
        };
        let (gone, came) = (missing(self, &now), missing(&now, self));
        ensure!(gone.is_empty() && came.is_empty(), "gone: {}; came: {}", gone.join(", "), came.join(", "));
        Ok(())
    }
}

fn line(kind: &str, object: &Value, more: &[&str]) -> String {
    let mut tags = object["tags"].as_array().cloned().unwrap_or_default();
    tags.sort_by_key(Value::to_string);
    let more: Vec<String> = more.iter().map(|key| object[*key].to_string()).collect();
    format!(
        "{kind} {} {} {} {} {}",
        object["id"],
        object["name"],
        object["description"],
        Value::from(tags),
        more.join(" ")
    )
}
