//! What a controller may have left behind in the cloud.

use anyhow::Result;
use serde_json::Value;

use super::api::OpenStack;

/// Everything in the project that was not there before the controller: load balancers, floating IPs, ports that belong to
/// Octavia or to nobody, security groups.
///
/// # Errors
/// A service cannot be asked.
pub(crate) fn left_behind(cloud: &OpenStack) -> Result<Vec<String>> {
    let mut found = Vec::new();
    found.extend(named("load balancer", &cloud.load_balancers()?));
    found.extend(named("listener", &cloud.list("load-balancer", "/v2/lbaas/listeners", "listeners")?));
    found.extend(named("pool", &cloud.list("load-balancer", "/v2/lbaas/pools", "pools")?));
    let monitors = cloud.list("load-balancer", "/v2/lbaas/healthmonitors", "healthmonitors")?;
    found.extend(named("health monitor", &monitors));
    for address in cloud.list("network", "/v2.0/floatingips", "floatingips")? {
        found.push(format!("floating IP {}", address["floating_ip_address"]));
    }
    let mut ports = cloud.list("network", "/v2.0/ports", "ports")?;
    ports.retain(|port| !belongs_to_the_world(port));
    found.extend(named("port", &ports));
    let mut groups = cloud.list("network", "/v2.0/security-groups", "security_groups")?;
    groups.retain(|group| group["name"] != "default");
    found.extend(named("security group", &groups));
    Ok(found)
}

fn belongs_to_the_world(port: &Value) -> bool {
    let owner = port["device_owner"].as_str().unwrap_or_default();
    owner.starts_with("network:router") || owner.starts_with("compute:")
}

fn named(kind: &str, objects: &[Value]) -> Vec<String> {
    objects.iter().map(|object| format!("{kind} {} ({})", object["name"], object["id"])).collect()
}
