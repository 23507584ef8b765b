//! What an update of a Service keeps, and what a change of type takes with it.

use serde_json::{Map, Value, json};

use super::{
    is_externally_accessible, is_load_balancer, needs_cluster_ip, needs_health_check_port, needs_node_ports,
};
use crate::object::{carry_over, integer, list, section, text};
use crate::version::ApiVersion;

/// A write of the main resource: allocated values stay, `status` is the old one.
pub(super) fn of_main(new: &mut Value, old: &Value) {
    carry_over("status", old, new);
    align_cluster_ips_with(new, old);
    keep_allocated(new, old);
    drop_what_the_old_type_needed(new, old);
    if !is_load_balancer(new) {
        section(new, "status").insert("loadBalancer".to_owned(), json!({}));
    }
}

/// A write of `status`: `spec` is the old one, and with the gate off `ipMode` survives only where the stored
/// status already has one.
pub(super) fn of_status(new: &mut Value, old: &Value, version: ApiVersion) {
    carry_over("spec", old, new);
    let in_use = list(old, "/status/loadBalancer/ingress").iter().any(|entry| entry.get("ipMode").is_some());
    if version.ip_mode_gate() || in_use {
        return;
    }
    let ingress = new.pointer_mut("/status/loadBalancer/ingress").and_then(Value::as_array_mut);
    for entry in ingress.into_iter().flatten().filter_map(Value::as_object_mut) {
        entry.remove("ipMode");
    }
}

/// Makes `clusterIPs` say what a lone `clusterIP` says, and the other way round.
pub(super) fn align_cluster_ips(service: &mut Value) {
    let single = text(service, "/spec/clusterIP").to_owned();
    let first = text(service, "/spec/clusterIPs/0").to_owned();
    let spec = section(service, "spec");
    if !single.is_empty() && first.is_empty() {
        spec.insert("clusterIPs".to_owned(), json!([single]));
    } else if single.is_empty() && !first.is_empty() {
        spec.insert("clusterIP".to_owned(), first.into());
    }
}

/// As [`align_cluster_ips`], for a client that knows only one of the two fields and changed that one.
fn align_cluster_ips_with(new: &mut Value, old: &Value) {
    align_cluster_ips(new);
    let (before, now) = (text(old, "/spec/clusterIP"), text(new, "/spec/clusterIP").to_owned());
    if before != now && new["spec"]["clusterIPs"] == old["spec"]["clusterIPs"] {
        let spec = section(new, "spec");
        if now.is_empty() {
            spec.remove("clusterIPs");
        } else {
            spec.insert("clusterIPs".to_owned(), json!([now]));
        }
    }
}

/// Takes over addresses and ports that the server gave out and the client left out.
fn keep_allocated(new: &mut Value, old: &Value) {
    if needs_cluster_ip(new) && needs_cluster_ip(old) && text(new, "/spec/clusterIP").is_empty() {
        copy_fields(new, old, &["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"]);
    }
    if needs_health_check_port(new)
        && needs_health_check_port(old)
        && integer(new, "/spec/healthCheckNodePort") == 0
    {
        copy_fields(new, old, &["healthCheckNodePort"]);
    }
    if !(needs_node_ports(new) && needs_node_ports(old)) {
        return;
    }
    let mut taken: Vec<Value> =
        list(new, "/spec/ports").iter().filter_map(|port| port.get("nodePort").cloned()).collect();
    let old_ports = list(old, "/spec/ports");
    let ports = new.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
        if port.contains_key("nodePort") {
            continue;
        }
        let same = |other: &&Value| {
            Some(&other["port"]) == port.get("port") && Some(&other["protocol"]) == port.get("protocol")
        };
        let before = old_ports.iter().find(same).and_then(|other| other.get("nodePort")).cloned();
        if let Some(node_port) = before.filter(|node_port| !taken.contains(node_port)) {
            taken.push(node_port.clone());
            port.insert("nodePort".to_owned(), node_port);
        }
    }
}

fn copy_fields(new: &mut Value, old: &Value, names: &[&str]) {
    for name in names {
        if let Some(value) = old["spec"].get(*name) {
            section(new, "spec").insert((*name).to_owned(), value.clone());
        }
    }
}

/// Clears fields that the new type does not allow, unless the client changed them in the same request: then
/// validation reports the mistake.
fn drop_what_the_old_type_needed(new: &mut Value, old: &Value) {
    let mut dropped: Vec<&str> = Vec::new();
    if needs_cluster_ip(old) && !needs_cluster_ip(new) {
        dropped.extend(["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"]);
    }
    if needs_health_check_port(old) && !needs_health_check_port(new) {
        dropped.push("healthCheckNodePort");
    }
    if is_load_balancer(old) && !is_load_balancer(new) {
        dropped.extend(["allocateLoadBalancerNodePorts", "loadBalancerClass"]);
    }
    if is_externally_accessible(old) && !is_externally_accessible(new) {
        dropped.push("externalTrafficPolicy");
    }
    let drops_node_ports =
        needs_node_ports(old) && !needs_node_ports(new) && node_ports(new) == node_ports(old);
    let spec = section(new, "spec");
    for name in dropped {
        if spec.get(name) == old["spec"].get(name) {
            spec.remove(name);
        }
    }
    if drops_node_ports {
        let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
        ports.into_iter().flatten().filter_map(Value::as_object_mut).for_each(forget_node_port);
    }
}

fn forget_node_port(port: &mut Map<String, Value>) {
    port.remove("nodePort");
}

fn node_ports(service: &Value) -> Vec<i64> {
    list(service, "/spec/ports").iter().map(|port| integer(port, "/nodePort")).collect()
}
