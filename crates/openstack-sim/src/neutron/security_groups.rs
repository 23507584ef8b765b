//! `/v2.0/security-groups` and `/v2.0/security-group-rules`.

use serde_json::{Map, Value, json};

use super::fault::NeutronFault;
use super::kind::ResourceKind;
use super::resource::{change, check_quota, insert, merged, project_of, required_id, visible};
use crate::world::World;
use crate::world::identity::Caller;
use crate::world::network::Resource;

/// Makes a security group with the two rules that let everything out.
pub(crate) fn create(
    world: &mut World,
    caller: &Caller,
    body: &Map<String, Value>,
) -> Result<String, NeutronFault> {
    let project_id = project_of(caller, body)?;
    check_quota(world, &project_id, ResourceKind::SecurityGroup)?;
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
    Ok(add_group(world, &project_id, text("name"), text("description")))
}

fn add_group(world: &mut World, project_id: &str, name: &str, description: &str) -> String {
    let attributes = match json!({"name": name, "description": description, "stateful": true, "shared": false})
    {
        Value::Object(attributes) => attributes,
        _ => Map::new(),
    };
    let id = insert(world, ResourceKind::SecurityGroup, project_id, attributes);
    for ethertype in ["IPv4", "IPv6"] {
        let mut rule = rule_defaults(&id);
        rule["ethertype"] = json!(ethertype);
        rule["direction"] = json!("egress");
        rule["description"] = Value::Null;
        if let Value::Object(attributes) = rule {
            insert(world, ResourceKind::SecurityGroupRule, project_id, attributes);
        }
    }
    id
}

/// The group that ports of a project get when nobody names one; made at first use.
pub(crate) fn default_group(world: &mut World, project_id: &str) -> String {
    let groups = world.network.security_groups.values();
    let existing =
        groups.filter(|group| group.project_id == project_id).find(|group| group.text("name") == "default");
    match existing.map(|group| group.id.clone()) {
        Some(id) => id,
        None => add_group(world, project_id, "default", "Default security group"),
    }
}

/// Octavia's own group for a load balancer; it belongs to the service project, so users do not see it.
pub(crate) fn create_for_load_balancer(world: &mut World, load_balancer_id: &str) -> String {
    let project =
        world.identity.project_named("service").map(|project| project.id.clone()).unwrap_or_default();
    add_group(world, &project, &format!("lb-{load_balancer_id}"), "")
}

/// Removes a group that no port has any more.
pub(crate) fn remove_unused(world: &mut World, id: &str) {
    if !in_use(world, id) {
        remove(world, id);
    }
}

fn in_use(world: &World, id: &str) -> bool {
    world.network.ports.values().any(|port| port.list("security_groups").contains(&json!(id)))
}

fn remove(world: &mut World, id: &str) {
    world.network.security_groups.remove(id);
    world.network.security_group_rules.retain(|_, rule| rule.text("security_group_id") != id);
}

/// Removes a group as a user does.
///
/// # Errors
/// A port has it, or it is the default group.
pub(crate) fn delete(world: &mut World, id: &str) -> Result<(), NeutronFault> {
    if in_use(world, id) {
        return Err(NeutronFault::conflict("SecurityGroupInUse", format!("Security Group {id} in use.")));
    }
    let name = world.network.security_groups.get(id).map(|group| group.text("name").to_owned());
    if name.as_deref() == Some("default") {
        let message = "Insufficient rights for removing default security group.";
        return Err(NeutronFault::conflict("SecurityGroupCannotRemoveDefault", message));
    }
    remove(world, id);
    Ok(())
}

fn rule_defaults(group_id: &str) -> Value {
    json!({
        "security_group_id": group_id,
        "direction": null,
        "ethertype": "IPv4",
        "protocol": null,
        "port_range_min": null,
        "port_range_max": null,
        "remote_ip_prefix": null,
        "remote_address_group_id": null,
        "remote_group_id": null,
        "normalized_cidr": null,
        "description": "",
    })
}

/// What makes two rules the same.
const IDENTITY: [&str; 8] = [
    "direction",
    "ethertype",
    "protocol",
    "port_range_min",
    "port_range_max",
    "remote_ip_prefix",
    "remote_group_id",
    "remote_address_group_id",
];

/// Makes a rule.
pub(crate) fn create_rule(
    world: &mut World,
    caller: &Caller,
    body: &Map<String, Value>,
) -> Result<String, NeutronFault> {
    let group_id = required_id(body, "security_group_id")?;
    let group = visible(world, caller, ResourceKind::SecurityGroup, &group_id)?;
    let project_id = group.project_id.clone();
    check_quota(world, &project_id, ResourceKind::SecurityGroupRule)?;
    let mut attributes = merged(rule_defaults(&group_id), body.clone())?;
    check_rule(&attributes)?;
    let prefix = attributes.get("remote_ip_prefix").and_then(Value::as_str).unwrap_or_default();
    let normalized = prefix.parse::<ipnet::IpNet>().map_or(Value::Null, |net| json!(net.trunc().to_string()));
    attributes.insert("normalized_cidr".to_owned(), normalized);
    if let Some(existing) = same_rule(world, &group_id, &attributes) {
        let message = format!("Security group rule already exists. Rule id is {}.", existing.id);
        return Err(NeutronFault::conflict("SecurityGroupRuleExists", message));
    }
    let id = insert(world, ResourceKind::SecurityGroupRule, &project_id, attributes);
    change(world, ResourceKind::SecurityGroup, &group_id, |_| {});
    Ok(id)
}

fn same_rule<'a>(world: &'a World, group_id: &str, attributes: &Map<String, Value>) -> Option<&'a Resource> {
    let rules = world.network.security_group_rules.values();
    rules
        .filter(|rule| rule.text("security_group_id") == group_id)
        .find(|rule| IDENTITY.iter().all(|name| rule.attributes.get(*name) == attributes.get(*name)))
}

fn check_rule(rule: &Map<String, Value>) -> Result<(), NeutronFault> {
    let text = |name: &str| rule.get(name).and_then(Value::as_str).unwrap_or_default();
    if !matches!(text("direction"), "ingress" | "egress") {
        let reason = format!("'{}' is not in ['ingress', 'egress'].", text("direction"));
        return Err(NeutronFault::invalid_input("direction", &reason));
    }
    if !matches!(text("ethertype"), "IPv4" | "IPv6") {
        let message = format!(
            "Security group rule for ethertype '{}' not supported. Allowed values are ['IPv4', 'IPv6'].",
            text("ethertype")
        );
        return Err(NeutronFault::bad_request("SecurityGroupRuleInvalidEtherType", message));
    }
    let prefix = text("remote_ip_prefix");
    if !prefix.is_empty() && prefix.contains(':') != (text("ethertype") == "IPv6") {
        let message = format!("Conflicting value ethertype {} for CIDR {prefix}", text("ethertype"));
        return Err(NeutronFault::bad_request("SecurityGroupRuleParameterConflict", message));
    }
    let port = |name: &str| rule.get(name).and_then(Value::as_i64);
    match (port("port_range_min"), port("port_range_max")) {
        (Some(min), Some(max))
            if min > max && !matches!(text("protocol"), "icmp" | "icmpv6" | "ipv6-icmp") =>
        {
            Err(NeutronFault::bad_request(
                "SecurityGroupInvalidPortRange",
                "For TCP/UDP protocols, port_range_min must be <= port_range_max",
            ))
        }
        (Some(_), _) | (_, Some(_)) if text("protocol").is_empty() => {
            let message = "Must also specify protocol if port range is given.";
            Err(NeutronFault::bad_request("SecurityGroupProtocolRequiredWithPorts", message))
        }
        _ => Ok(()),
    }
}

/// Removes a rule.
pub(crate) fn delete_rule(world: &mut World, id: &str) {
    if let Some(rule) = world.network.security_group_rules.remove(id) {
        change(world, ResourceKind::SecurityGroup, rule.text("security_group_id"), |_| {});
    }
}
