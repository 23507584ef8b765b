//! Services: addresses and ports, what a change of type takes with it, and `ipMode`.

mod allocation;
mod transition;
mod validation;

pub(crate) use allocation::Allocations;

use serde_json::{Value, json};

use super::{Part, Rules, Write};
use crate::failure::FieldError;
use crate::names::NameRule;
use crate::object::{list, section, text};
use crate::version::ApiVersion;

pub(super) const FIELDS: &str = "spec!{ports[port,protocol=TCP]{name protocol appProtocol* port!:int \
    targetPort!:intstr nodePort:int} selector:map clusterIP clusterIPs[] type externalIPs[] sessionAffinity \
    loadBalancerIP loadBalancerSourceRanges[] externalName externalTrafficPolicy healthCheckNodePort:int \
    publishNotReadyAddresses:flag sessionAffinityConfig{clientIP{timeoutSeconds*:int}} ipFamilies[] \
    ipFamilyPolicy* allocateLoadBalancerNodePorts*:flag loadBalancerClass* internalTrafficPolicy* \
    trafficDistribution*@30} \
    status!{loadBalancer!{ingress[]{ip hostname ipMode*@29 ports[]{port!:int protocol! error*}}} \
    conditions[type]{type! status! observedGeneration:int lastTransitionTime!:time reason! message!}}";

/// Seconds that a client sticks to an endpoint when nothing else is said.
const DEFAULT_AFFINITY_SECONDS: u32 = 10_800;

/// What a type of Service needs.
pub(super) fn service_type(service: &Value) -> &str {
    match text(service, "/spec/type") {
        "" => "ClusterIP",
        given => given,
    }
}

pub(super) fn is_load_balancer(service: &Value) -> bool {
    service_type(service) == "LoadBalancer"
}

pub(super) fn needs_cluster_ip(service: &Value) -> bool {
    service_type(service) != "ExternalName"
}

pub(super) fn needs_node_ports(service: &Value) -> bool {
    match service_type(service) {
        "NodePort" => true,
        "LoadBalancer" => service.pointer("/spec/allocateLoadBalancerNodePorts") != Some(&Value::Bool(false)),
        _ => false,
    }
}

pub(super) fn is_externally_accessible(service: &Value) -> bool {
    matches!(service_type(service), "NodePort" | "LoadBalancer")
        || (service_type(service) == "ClusterIP" && !list(service, "/spec/externalIPs").is_empty())
}

pub(super) fn needs_health_check_port(service: &Value) -> bool {
    is_load_balancer(service) && text(service, "/spec/externalTrafficPolicy") == "Local"
}

pub(super) fn is_headless(service: &Value) -> bool {
    text(service, "/spec/clusterIP") == "None"
}

pub(super) struct Service;

impl Rules for Service {
    fn name_rule(&self, version: ApiVersion) -> NameRule {
        if version.has_relaxed_service_names() { NameRule::Label1123 } else { NameRule::Label1035 }
    }

    fn set_defaults(&self, object: &mut Value, version: ApiVersion) {
        let kind = service_type(object).to_owned();
        let external = is_externally_accessible(object);
        let spec = section(object, "spec");
        spec.insert("type".to_owned(), kind.as_str().into());
        let affinity = spec.entry("sessionAffinity").or_insert_with(|| "None".into()).clone();
        if affinity == "None" {
            spec.remove("sessionAffinityConfig");
        } else if affinity == "ClientIP" {
            let config = spec.entry("sessionAffinityConfig").or_insert_with(|| json!({}));
            if config.pointer("/clientIP/timeoutSeconds").is_none() {
                *config = json!({"clientIP": {"timeoutSeconds": DEFAULT_AFFINITY_SECONDS}});
            }
        }
        if external {
            spec.entry("externalTrafficPolicy").or_insert_with(|| "Cluster".into());
        }
        if kind != "ExternalName" {
            spec.entry("internalTrafficPolicy").or_insert_with(|| "Cluster".into());
        }
        if kind == "LoadBalancer" {
            spec.entry("allocateLoadBalancerNodePorts").or_insert(Value::Bool(true));
        }
        if let Some(ports) = spec.get_mut("ports").and_then(Value::as_array_mut) {
            ports.iter_mut().for_each(set_port_defaults);
        }
        if kind == "LoadBalancer" && version.ip_mode_gate() {
            set_default_ip_modes(object);
        }
    }

    fn before_create(&self, object: &mut Value) {
        object["status"] = json!({"loadBalancer": {}});
        transition::align_cluster_ips(object);
    }

    fn before_update(&self, new: &mut Value, old: &Value, part: Part, version: ApiVersion) {
        match part {
            Part::Main => transition::of_main(new, old),
            Part::Status => transition::of_status(new, old, version),
        }
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        match write.part {
            Part::Main => validation::of_main(write),
            Part::Status => validation::of_status(write.new, write.version),
        }
    }

    fn allocate(
        &self,
        new: &mut Value,
        old: Option<&Value>,
        allocations: &Allocations,
    ) -> Result<(), FieldError> {
        allocation::allocate(new, old, allocations)
    }

    fn creates_on_update(&self) -> bool {
        true
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }

    fn selectable_fields(&self, version: ApiVersion) -> &'static [(&'static str, &'static str)] {
        if !version.has_service_field_labels() {
            return &[];
        }
        &[("spec.clusterIP", "/spec/clusterIP"), ("spec.type", "/spec/type")]
    }
}

fn set_port_defaults(port: &mut Value) {
    if text(port, "/protocol").is_empty() {
        port["protocol"] = "TCP".into();
    }
    if port["targetPort"] == 0 || port["targetPort"] == "" {
        port["targetPort"] = port["port"].clone();
    }
}

/// With the gate on every entry that has an address gets a mode, on writes and on reads.
fn set_default_ip_modes(service: &mut Value) {
    let ingress = service.pointer_mut("/status/loadBalancer/ingress").and_then(Value::as_array_mut);
    for entry in ingress.into_iter().flatten() {
        if !text(entry, "/ip").is_empty() && entry["ipMode"].is_null() {
            entry["ipMode"] = "VIP".into();
        }
    }
}
