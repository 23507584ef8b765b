//! The rules as a MutatingAdmissionPolicy: the API server itself sets the mode in every write of a status.
//!
//! The list of entries is atomic, so the policy uses JSONPatch and not an apply configuration. It fails open: a policy that cannot
//! be evaluated must not keep an owner from publishing an address. The policy does not know the nodes: neither whether their
//! service proxies honour the mode, nor their addresses.

use std::collections::BTreeMap;

use crate::cloud::{AnnotationRule, CLOUDS, Cloud, Key, Value};
use crate::names::{MODE_ANNOTATION, PROGRAM};
use crate::rules::{Pair, Rules};
use crate::untouched::{LB_IPAM_CONDITION, VIP_ANNOTATIONS, VIP_CLASSES};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiVersion {
    /// Kubernetes 1.36 and newer.
    V1,
    /// Kubernetes 1.34 and 1.35 with the feature gate and the API switched on.
    V1Beta1,
}

impl ApiVersion {
    /// The version as the API spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V1Beta1 => "v1beta1",
        }
    }
}

/// Entries of one status that the policy looks at; a load balancer has one or two.
const MAX_ENTRIES: usize = 8;

/// The policy with its binding, with placeholders for what depends on the rules and on the version of the API.
const TEMPLATE: &str = r#"# Sets ipMode: Proxy in every write of the status of the Services below, so that pods reach them through their load balancer.
# It needs an API server that serves @VERSION@ of this API, and service proxies that honour the field on every node (kube-proxy 1.30).
apiVersion: admissionregistration.k8s.io/@VERSION@
kind: MutatingAdmissionPolicy
metadata:
  name: @PROGRAM@
spec:
  # A policy that cannot be evaluated keeps nobody from publishing an address.
  failurePolicy: Ignore
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
      - apiGroups: [""]
        apiVersions: [v1]
        operations: [UPDATE]
        resources: [services/status]
  matchConditions:
    - name: load-balancer
      expression: object.spec.type == 'LoadBalancer'
    - name: chosen
      expression: >-
        @CHOSEN@
    - name: not-announced-by-nodes
      expression: >-
        @LEFT_ALONE@
    - name: has-addresses
      expression: object.?status.loadBalancer.ingress.orValue([]).exists(entry, has(entry.ip))
  mutations:
    - patchType: JSONPatch
      jsonPatch:
        expression: >-
          [@INDEXES@].filter(i, i < size(object.status.loadBalancer.ingress)
          && has(object.status.loadBalancer.ingress[i].ip))
          .map(i, JSONPatch{op: "add", path: "/status/loadBalancer/ingress/" + string(i) + "/ipMode", value: "Proxy"})
---
apiVersion: admissionregistration.k8s.io/@VERSION@
kind: MutatingAdmissionPolicyBinding
metadata:
  name: @PROGRAM@
spec:
  policyName: @PROGRAM@
"#;

/// Returns the policy with its binding, as YAML. It ignores the rules' labels and uses only their annotations.
pub fn yaml(rules: &Rules, version: ApiVersion) -> String {
    template().replace("@VERSION@", version.as_str()).replace("@CHOSEN@", &chosen(rules))
}

/// Returns the parts from which the chart makes the same policy, as JSON: the template with its placeholders `@VERSION@` and
/// `@CHOSEN@`, the conditions on a Service's own annotation, and the conditions of each cloud.
pub fn chart_parts() -> String {
    let conditions = |cloud: &Cloud| cloud.annotations.iter().map(of_rule).collect::<Vec<_>>();
    let clouds: BTreeMap<&str, Vec<String>> =
        CLOUDS.iter().map(|cloud| (cloud.name, conditions(cloud))).collect();
    let parts = serde_json::json!({
        "template": template(), "own": own(), "undecided": undecided(), "or": OR, "clouds": clouds,
    });
    // Strings and lists can always be serialized.
    serde_json::to_string_pretty(&parts).unwrap_or_default() + "\n"
}

fn template() -> String {
    let indexes = (0..MAX_ENTRIES).map(|index| index.to_string()).collect::<Vec<_>>().join(", ");
    TEMPLATE
        .replace("@PROGRAM@", PROGRAM)
        .replace("@LEFT_ALONE@", &left_alone())
        .replace("@INDEXES@", &indexes)
}

/// The separator of two conditions, which puts each on a line of its own.
const OR: &str = "\n        || ";

fn chosen(rules: &Rules) -> String {
    let of_clouds = rules.clouds.iter().copied().flat_map(|cloud: &Cloud| cloud.annotations).map(of_rule);
    let terms: Vec<String> = of_clouds.chain(rules.annotations.iter().map(of_pair)).collect();
    if terms.is_empty() {
        return own();
    }
    format!("{}{OR}{} && (\n        {})", own(), undecided(), terms.join(OR))
}

/// Returns the condition that the Service's own annotation asks for the mode.
fn own() -> String {
    format!("{}.lowerAscii() == 'proxy'", annotation(MODE_ANNOTATION))
}

/// Returns the condition that the Service's own annotation leaves the choice to the rules.
fn undecided() -> String {
    format!("{}.lowerAscii() in ['', 'auto']", annotation(MODE_ANNOTATION))
}

/// Returns the CEL expression for the value of an annotation, empty where it is missing.
fn annotation(key: &str) -> String {
    format!("object.metadata.?annotations[?{}].orValue('')", quoted(key))
}

fn of_rule(rule: &AnnotationRule) -> String {
    match (rule.key, rule.value) {
        (Key::Exactly(key), value) => of_value(&annotation(key), value),
        (Key::Prefix(prefix), value) => {
            let value = of_value("object.metadata.annotations[key]", value);
            format!(
                "object.metadata.?annotations.orValue({{}}).exists(key, key.startsWith({}) && {value})",
                quoted(prefix)
            )
        }
    }
}

fn of_value(found: &str, value: Value) -> String {
    match value {
        Value::OneOf(values) => format!("{found} in [{}]", list(values)),
        Value::NoneOf(values) => format!("!({found} in [{}])", list(values)),
        Value::Contains(parts) => {
            let term = |part: &&str| format!("{found}.replace(' ', '').contains({})", quoted(part));
            format!("({})", parts.iter().map(term).collect::<Vec<_>>().join(" || "))
        }
    }
}

fn of_pair(pair: &Pair) -> String {
    let found = annotation(&pair.key);
    match &pair.value {
        Some(value) => format!("{found} == {}", quoted(value)),
        None => format!("{found} != ''"),
    }
}

fn list(values: &[&str]) -> String {
    values.iter().map(|value| quoted(value)).collect::<Vec<_>>().join(", ")
}

/// Returns a CEL string literal.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// Returns the condition that nodes do not announce the address: where they do, the short circuit is intended.
fn left_alone() -> String {
    let classes: Vec<&str> = VIP_CLASSES.iter().map(|(class, _)| *class).collect();
    let annotations: Vec<&str> = VIP_ANNOTATIONS.iter().map(|(key, _)| *key).collect();
    format!(
        "!(object.spec.?loadBalancerClass.orValue('') in [{}])\n        \
         && ![{}].exists(key, key in object.metadata.?annotations.orValue({{}}))\n        \
         && !object.?status.conditions.orValue([]).exists(condition, condition.type == {})",
        list(&classes),
        list(&annotations),
        quoted(LB_IPAM_CONDITION)
    )
}
