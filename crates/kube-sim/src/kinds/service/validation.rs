//! What a Service may look like.

use std::net::IpAddr;

use serde_json::Value;

use super::{
    is_externally_accessible, is_headless, is_load_balancer, needs_cluster_ip, needs_health_check_port,
    service_type,
};
use crate::failure::FieldError;
use crate::go_text;
use crate::kinds::Write;
use crate::names::{NameRule, address_problem, subdomain_problem};
use crate::object::{integer, list, text, texts};
use crate::version::ApiVersion;

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const POLICIES: [&str; 2] = ["Cluster", "Local"];
const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";
const ONLY_LOAD_BALANCER: &str = "may only be used when `type` is 'LoadBalancer'";

/// Problems of a write of the main resource.
pub(super) fn of_main(write: &Write<'_>) -> Vec<FieldError> {
    let Write { new, old, version, .. } = *write;
    let mut problems = Vec::new();
    if list(new, "/spec/ports").is_empty() && needs_cluster_ip(new) && !is_headless(new) {
        problems.push(FieldError::required("spec.ports", ""));
    }
    type_problems(new, &mut problems);
    let several = list(new, "/spec/ports").len() > 1;
    for (index, port) in list(new, "/spec/ports").iter().enumerate() {
        port_problems(port, index, several, &mut problems);
    }
    duplicate_ports(new, &mut problems);
    choice(new, "sessionAffinity", &["ClientIP", "None"], &mut problems);
    address_list_problems(new, version, &mut problems);
    external_traffic_problems(new, &mut problems);
    load_balancer_problems(new, version, &mut problems);
    if let Some(old) = old {
        changed_fields(new, old, version, &mut problems);
    }
    problems
}

fn choice(service: &Value, field: &str, known: &[&str], problems: &mut Vec<FieldError>) {
    let given = text(service, &format!("/spec/{field}"));
    if !given.is_empty() && !known.contains(&given) {
        let value = Value::from(given).to_string();
        problems.push(FieldError::not_supported(format!("spec.{field}"), &value, known));
    }
}

fn type_problems(service: &Value, problems: &mut Vec<FieldError>) {
    choice(service, "type", &TYPES, problems);
    match service_type(service) {
        "LoadBalancer" | "NodePort" if is_headless(service) => {
            let rule = format!("may not be set to 'None' for {} services", service_type(service));
            problems.push(FieldError::invalid("spec.clusterIPs[0]", &"None".into(), &rule));
        }
        "ExternalName" => {
            if !text(service, "/spec/clusterIP").is_empty() {
                let rule = "may not be set for ExternalName services";
                problems.push(FieldError::forbidden("spec.clusterIPs", rule));
            }
            match text(service, "/spec/externalName") {
                "" => problems.push(FieldError::required("spec.externalName", "")),
                name => {
                    if let Some(rule) = subdomain_problem(name.strip_suffix('.').unwrap_or(name)) {
                        problems.push(FieldError::invalid("spec.externalName", &name.into(), &rule));
                    }
                }
            }
        }
        _ => {}
    }
}

fn port_problems(port: &Value, index: usize, several: bool, problems: &mut Vec<FieldError>) {
    let path = format!("spec.ports[{index}]");
    match text(port, "/name") {
        "" if several => problems.push(FieldError::required(format!("{path}.name"), "")),
        "" => {}
        name => {
            if let Some(rule) = NameRule::Label1123.problem(name) {
                problems.push(FieldError::invalid(format!("{path}.name"), &name.into(), &rule));
            }
        }
    }
    let is_port = |number: i64| (1..=65_535).contains(&number);
    if !is_port(integer(port, "/port")) {
        problems.push(FieldError::invalid(format!("{path}.port"), &port["port"], PORT_RANGE));
    }
    let protocol = text(port, "/protocol");
    if !PROTOCOLS.contains(&protocol) {
        let value = Value::from(protocol).to_string();
        problems.push(FieldError::not_supported(format!("{path}.protocol"), &value, &PROTOCOLS));
    }
    let target = &port["targetPort"];
    if let Some(number) = target.as_i64().filter(|number| !is_port(*number)) {
        problems.push(FieldError::invalid(format!("{path}.targetPort"), &number.into(), PORT_RANGE));
    }
    if let Some(name) = target.as_str() {
        let fits = name.len() <= 15
            && NameRule::Label1123.problem(name).is_none()
            && name.contains(|character: char| character.is_ascii_lowercase());
        if !fits {
            let rule = "must contain at least one letter (a-z), only letters, digits and '-', and no more than \
                        15 characters";
            problems.push(FieldError::invalid(format!("{path}.targetPort"), target, rule));
        }
    }
}

fn duplicate_ports(service: &Value, problems: &mut Vec<FieldError>) {
    let ports = list(service, "/spec/ports");
    for (index, port) in ports.iter().enumerate() {
        let before = ports.get(..index).unwrap_or_default();
        let name = text(port, "/name");
        if !name.is_empty() && before.iter().any(|other| text(other, "/name") == name) {
            problems.push(FieldError::duplicate(format!("spec.ports[{index}].name"), &name.into()));
        }
        let same = |other: &&Value| other["port"] == port["port"] && other["protocol"] == port["protocol"];
        if before.iter().find(same).is_some() {
            let value = serde_json::json!({"port": port["port"], "protocol": port["protocol"]});
            problems.push(FieldError::duplicate(format!("spec.ports[{index}]"), &value));
        }
    }
}

fn address_list_problems(service: &Value, version: ApiVersion, problems: &mut Vec<FieldError>) {
    for (field, allowed) in [("clusterIPs", Some("None")), ("externalIPs", None)] {
        for (index, address) in texts(service, &format!("/spec/{field}")).into_iter().enumerate() {
            let rule = address_problem(address, version.has_strict_addresses());
            if let Some(rule) = rule.filter(|_| allowed != Some(address)) {
                problems.push(FieldError::invalid(format!("spec.{field}[{index}]"), &address.into(), rule));
            }
        }
    }
    choice(service, "ipFamilyPolicy", &["PreferDualStack", "RequireDualStack", "SingleStack"], problems);
    for (index, family) in texts(service, "/spec/ipFamilies").into_iter().enumerate() {
        if !["IPv4", "IPv6"].contains(&family) {
            let value = Value::from(family).to_string();
            let field = format!("spec.ipFamilies[{index}]");
            problems.push(FieldError::not_supported(field, &value, &["IPv4", "IPv6"]));
        }
    }
}

fn external_traffic_problems(service: &Value, problems: &mut Vec<FieldError>) {
    choice(service, "externalTrafficPolicy", &POLICIES, problems);
    choice(service, "internalTrafficPolicy", &POLICIES, problems);
    let policy = &service["spec"]["externalTrafficPolicy"];
    if !policy.is_null() && !is_externally_accessible(service) {
        let rule = "may only be set for externally-accessible services";
        problems.push(FieldError::invalid("spec.externalTrafficPolicy", policy, rule));
    }
    let port = &service["spec"]["healthCheckNodePort"];
    if !port.is_null() && !needs_health_check_port(service) {
        let rule = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        problems.push(FieldError::invalid("spec.healthCheckNodePort", port, rule));
    }
}

fn load_balancer_problems(service: &Value, version: ApiVersion, problems: &mut Vec<FieldError>) {
    for (index, range) in texts(service, "/spec/loadBalancerSourceRanges").into_iter().enumerate() {
        if !is_network(range.trim()) {
            let rule = if version.has_strict_addresses() {
                "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
            } else {
                "must be a list of IP ranges. For example, 10.240.0.0/24,10.250.0.0/24"
            };
            let field = format!("spec.loadBalancerSourceRanges[{index}]");
            problems.push(FieldError::invalid(field, &range.into(), rule));
        }
    }
    if is_load_balancer(service) {
        let class = text(service, "/spec/loadBalancerClass");
        if let Some(rule) = crate::names::qualified_name_problem(class).filter(|_| !class.is_empty()) {
            problems.push(FieldError::invalid("spec.loadBalancerClass", &class.into(), &rule));
        }
        return;
    }
    for field in ["loadBalancerSourceRanges", "loadBalancerClass", "allocateLoadBalancerNodePorts"] {
        if service["spec"].get(field).is_some() {
            problems.push(FieldError::forbidden(format!("spec.{field}"), ONLY_LOAD_BALANCER));
        }
    }
}

fn is_network(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    match (address.parse::<IpAddr>(), length.parse::<u8>()) {
        (Ok(address), Ok(length)) => length <= if address.is_ipv4() { 32 } else { 128 },
        _ => false,
    }
}

/// Fields that stay as they are while the type stays.
fn changed_fields(new: &Value, old: &Value, version: ApiVersion, problems: &mut Vec<FieldError>) {
    let rule = "may not change once set";
    let before = text(old, "/spec/clusterIP");
    let same_need = needs_cluster_ip(old) && needs_cluster_ip(new);
    if same_need && !before.is_empty() && before != text(new, "/spec/clusterIP") {
        let value = &new["spec"]["clusterIPs"];
        let written = if version.writes_lists_as_json() {
            value.to_string()
        } else {
            let addresses = list(new, "/spec/clusterIPs").iter().filter_map(Value::as_str);
            go_text::string_list(&addresses.collect::<Vec<_>>())
        };
        problems.push(FieldError::invalid_as_written("spec.clusterIPs[0]", &written, rule));
    }
    if is_load_balancer(old) && is_load_balancer(new) {
        let class = |service: &Value| service["spec"]["loadBalancerClass"].clone();
        if class(old) != class(new) {
            problems.push(FieldError::invalid("spec.loadBalancerClass", &class(new), rule));
        }
    }
    if needs_health_check_port(old) && needs_health_check_port(new) {
        let port = |service: &Value| service["spec"]["healthCheckNodePort"].clone();
        if port(old) != port(new) {
            let rule = "field is immutable";
            problems.push(FieldError::invalid("spec.healthCheckNodePort", &port(new), rule));
        }
    }
}

/// Problems of a write of `status`.
pub(super) fn of_status(new: &Value, version: ApiVersion) -> Vec<FieldError> {
    let ingress = list(new, "/status/loadBalancer/ingress");
    let field = "status.loadBalancer.ingress";
    if !ingress.is_empty() && !is_load_balancer(new) && version.forbids_ingress_of_other_types() {
        return vec![FieldError::forbidden(field, "may only be used when `spec.type` is 'LoadBalancer'")];
    }
    let mut problems = Vec::new();
    for (index, entry) in ingress.iter().enumerate() {
        ingress_problems(entry, &format!("{field}[{index}]"), version, &mut problems);
    }
    problems
}

fn ingress_problems(entry: &Value, path: &str, version: ApiVersion, problems: &mut Vec<FieldError>) {
    let ip = text(entry, "/ip");
    let rule = address_problem(ip, version.has_strict_addresses());
    if let Some(rule) = rule.filter(|_| !ip.is_empty()) {
        problems.push(FieldError::invalid(format!("{path}.ip"), &ip.into(), rule));
    }
    let mode_path = format!("{path}.ipMode");
    match entry.get("ipMode").and_then(Value::as_str) {
        None if version.ip_mode_gate() && !ip.is_empty() => {
            problems.push(FieldError::required(mode_path, "must be specified when `ip` is set"));
        }
        Some(_) if ip.is_empty() => {
            problems.push(FieldError::forbidden(mode_path, "may not be specified when `ip` is not set"));
        }
        Some(mode) if !["Proxy", "VIP"].contains(&mode) => {
            let value = Value::from(mode).to_string();
            problems.push(FieldError::not_supported(mode_path, &value, &["Proxy", "VIP"]));
        }
        None | Some(_) => {}
    }
    let hostname = text(entry, "/hostname");
    if hostname.is_empty() {
        return;
    }
    let rule = if hostname.parse::<IpAddr>().is_ok() {
        Some("must be a DNS name, not an IP address".to_owned())
    } else {
        subdomain_problem(hostname)
    };
    if let Some(rule) = rule {
        problems.push(FieldError::invalid(format!("{path}.hostname"), &hostname.into(), &rule));
    }
}
