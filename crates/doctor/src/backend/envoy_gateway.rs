//! Envoy Gateway: a ClientTrafficPolicy switches the header on for a Gateway, or for one of its listeners.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::Value;

use super::{Entrance, Expectation, Shown};
use crate::facts::{BackendFacts, CustomResource};
use crate::finding::Evidence;
use crate::policy::is_selected;

const SWITCH: &str =
    "ClientTrafficPolicy: spec.proxyProtocol: {optional: true}, with the Gateway in spec.targetRefs";

fn label<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
    pod.metadata.labels.as_ref()?.get(key).map(String::as_str)
}

/// Returns whether a pod is one of Envoy Gateway's proxies.
pub fn is_envoy_gateway(pod: &Pod) -> bool {
    label(pod, "app.kubernetes.io/managed-by") == Some("envoy-gateway")
}

/// Returns the ports on which a proxy of Envoy Gateway listens, which its pod does not declare: those of the listeners of its Gateway,
/// from 10000 on for those that take privileges.
pub fn listener_ports(facts: &BackendFacts, pod: &Pod) -> Vec<i32> {
    let Ok(gateway) = gateway(facts, pod) else { return Vec::new() };
    let listeners = gateway.spec["listeners"].as_array().into_iter().flatten();
    let ports = listeners.filter_map(|one| i32::try_from(one["port"].as_u64()?).ok());
    ports.flat_map(|port| [port, port + 10_000]).collect()
}

/// Returns the Gateway of a proxy.
fn gateway<'a>(facts: &'a BackendFacts, pod: &Pod) -> Result<&'a CustomResource, Expectation> {
    let owner = |part: &str| label(pod, &format!("gateway.envoyproxy.io/owning-gateway-{part}"));
    let (Some(name), Some(namespace)) = (owner("name"), owner("namespace")) else {
        return Err(Expectation::NotSeen("no label shows its Gateway".to_owned()));
    };
    let gateway =
        resources(facts, "Gateway")?.iter().find(|one| one.name == name && one.namespace == namespace);
    gateway.ok_or_else(|| Expectation::NotSeen(format!("there is no Gateway {namespace}/{name}")))
}

fn resources<'a>(facts: &'a BackendFacts, kind: &'static str) -> Result<&'a [CustomResource], Expectation> {
    match facts.resources.get(kind) {
        Some(Ok(all)) => Ok(all),
        Some(Err(cause)) => Err(Expectation::NotKnown(format!("{kind} objects cannot be read: {cause}"))),
        None => Err(Expectation::NotKnown(format!("{kind} objects were not read"))),
    }
}

pub(super) fn shown(facts: &BackendFacts, pod: &Pod, entrance: Entrance<'_>) -> Shown {
    let gateway = gateway(facts, pod)?;
    let CustomResource { name, namespace, .. } = gateway;
    let listeners = gateway.spec["listeners"].as_array().into_iter().flatten();
    let at_port = |one: &&Value| one["port"].as_u64() == Some(u64::from(entrance.service_port));
    let sections: Vec<&str> = listeners.filter(at_port).filter_map(|one| one["name"].as_str()).collect();
    if sections.is_empty() {
        let text =
            format!("the Gateway {namespace}/{name} has no listener on port {}", entrance.service_port);
        return Err(Expectation::NotSeen(text));
    }
    let policies = resources(facts, "ClientTrafficPolicy")?;
    let of_gateway = || policies.iter().filter(|policy| policy.namespace == *namespace);
    let policy_of = |section: Option<&str>| of_gateway().find(|policy| is_for(policy, gateway, section));
    let answers: Vec<(Expectation, Option<&CustomResource>)> = sections
        .iter()
        .map(|section| {
            let policy = policy_of(Some(section)).or_else(|| policy_of(None));
            (policy.map_or(Expectation::Off, |policy| by_policy(&policy.spec)), policy)
        })
        .collect();
    let (expects, policy) = &answers[0];
    if answers.iter().any(|(other, _)| other != expects) {
        return Err(Expectation::NotSeen("the listeners of its port have different policies".to_owned()));
    }
    let evidence = match policy {
        Some(policy) => {
            let object = format!("ClientTrafficPolicy {}/{}", policy.namespace, policy.name);
            Evidence::new(object, "spec.proxyProtocol", policy.spec["proxyProtocol"].to_string())
        }
        None => Evidence::new(format!("Gateway {namespace}/{name}"), "ClientTrafficPolicy", "none"),
    };
    Ok((expects.clone(), evidence, Some(SWITCH.into())))
}

/// Returns whether a policy is for a Gateway as a whole, or for one of its listeners.
fn is_for(policy: &CustomResource, gateway: &CustomResource, section: Option<&str>) -> bool {
    let spec = &policy.spec;
    let refs = spec["targetRefs"].as_array().into_iter().flatten().chain([&spec["targetRef"]]);
    let by_name = |one: &Value| {
        one["kind"] == "Gateway" && one["name"] == *gateway.name && one["sectionName"].as_str() == section
    };
    let selectors = spec["targetSelectors"].as_array().into_iter().flatten();
    let by_label = |one: &Value| {
        let selector: LabelSelector = serde_json::from_value(one.clone()).unwrap_or_default();
        section.is_none() && one["kind"] == "Gateway" && is_selected(&selector, &gateway.labels)
    };
    refs.into_iter().any(by_name) || selectors.into_iter().any(by_label)
}

fn by_policy(spec: &Value) -> Expectation {
    let proxy = &spec["proxyProtocol"];
    match (proxy.is_null(), spec["enableProxyProtocol"].as_bool()) {
        (false, _) if proxy["optional"].as_bool() == Some(true) => Expectation::Either,
        (false, _) | (true, Some(true)) => Expectation::Required,
        (true, _) => Expectation::Off,
    }
}
