//! Nodes.

use serde_json::{Value, json};

use super::{Rules, Write};
use crate::failure::FieldError;
use crate::object::{list, text};
use crate::version::ApiVersion;

pub(super) const FIELDS: &str = "spec!{podCIDR podCIDRs[=] externalID providerID unschedulable:flag \
    taints[]{key! value effect! timeAdded:time} configSource:any} \
    status!{capacity:any allocatable:any phase \
    conditions[type]{type! status! lastHeartbeatTime!:time lastTransitionTime!:time reason message} \
    addresses[type]{type! address!} daemonEndpoints!{kubeletEndpoint!{Port!:int}} \
    nodeInfo!{machineID! systemUUID! bootID! kernelVersion! osImage! containerRuntimeVersion! kubeletVersion! \
    kubeProxyVersion! operatingSystem! architecture! swap@34:any} \
    images[]{names[] sizeBytes:int} volumesInUse[] volumesAttached[]{name! devicePath!} config:any \
    runtimeHandlers@30:any features@30:any declaredFeatures@35[]}";

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

pub(super) struct Node;

impl Rules for Node {
    /// Admission marks every new node as not ready; the node lifecycle controller lifts the mark.
    fn before_create(&self, object: &mut Value) {
        let marked = list(object, "/spec/taints")
            .iter()
            .any(|taint| taint["key"] == NOT_READY && taint["effect"] == "NoSchedule");
        if marked {
            return;
        }
        let taint = json!({"key": NOT_READY, "effect": "NoSchedule"});
        match object["spec"]["taints"].as_array_mut() {
            Some(taints) => taints.push(taint),
            None => object["spec"]["taints"] = json!([taint]),
        }
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let Write { new, old, .. } = *write;
        let mut problems = taint_problems(new);
        let Some(old) = old else { return problems };
        let provider_id = text(old, "/spec/providerID");
        if !provider_id.is_empty() && provider_id != text(new, "/spec/providerID") {
            let rule = "node updates may not change providerID except from \"\" to valid";
            problems.push(FieldError::forbidden("spec.providerID", rule));
        }
        let pod_networks = list(old, "/spec/podCIDRs");
        if !pod_networks.is_empty() && pod_networks != list(new, "/spec/podCIDRs") {
            let rule = "node updates may not change podCIDR except from \"\" to valid";
            problems.push(FieldError::forbidden("spec.podCIDRs", rule));
        }
        problems
    }

    fn selectable_fields(&self, _version: ApiVersion) -> &'static [(&'static str, &'static str)] {
        &[("spec.unschedulable", "/spec/unschedulable")]
    }
}

fn taint_problems(node: &Value) -> Vec<FieldError> {
    let mut problems = Vec::new();
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for (index, taint) in list(node, "/spec/taints").iter().enumerate() {
        let path = format!("metadata.taints[{index}]");
        let (key, effect) = (text(taint, "/key"), text(taint, "/effect"));
        if let Some(problem) = crate::names::qualified_name_problem(key) {
            problems.push(FieldError::invalid(format!("{path}.key"), &key.into(), &problem));
        }
        if !EFFECTS.contains(&effect) {
            let value = Value::from(effect).to_string();
            problems.push(FieldError::not_supported(format!("{path}.effect"), &value, &EFFECTS));
        }
        if seen.contains(&(key, effect)) {
            problems.push(FieldError::duplicate(path, &format!("{key}:{effect}").into()));
        }
        seen.push((key, effect));
    }
    problems
}
