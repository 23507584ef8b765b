//! What Kubernetes would say to an object, without an API server: its types, read strictly.

use k8s_openapi::api::{
    admissionregistration::v1 as admission, apps::v1 as apps, batch::v1 as batch, core::v1 as core,
    networking::v1 as networking, policy::v1 as policy, rbac::v1 as rbac,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads an object as its type and writes it again: a field that Kubernetes does not know is lost on the way.
fn read_as<T: DeserializeOwned + Serialize>(object: &Value) -> Result<Value, serde_json::Error> {
    serde_json::to_value(serde_json::from_value::<T>(object.clone())?)
}

/// Whether every field of an object is one of its kind, and of the right type.
pub(crate) fn knows(object: &Value) -> Result<(), String> {
    let read = match object["kind"].as_str().unwrap_or_default() {
        "ConfigMap" => read_as::<core::ConfigMap>(object),
        "Secret" => read_as::<core::Secret>(object),
        "Namespace" => read_as::<core::Namespace>(object),
        "NetworkPolicy" => read_as::<networking::NetworkPolicy>(object),
        "ValidatingAdmissionPolicy" => read_as::<admission::ValidatingAdmissionPolicy>(object),
        "ValidatingAdmissionPolicyBinding" => read_as::<admission::ValidatingAdmissionPolicyBinding>(object),
        "Job" => read_as::<batch::Job>(object),
        "Pod" => read_as::<core::Pod>(object),
        "Service" => read_as::<core::Service>(object),
        "ServiceAccount" => read_as::<core::ServiceAccount>(object),
        "DaemonSet" => read_as::<apps::DaemonSet>(object),
        "Deployment" => read_as::<apps::Deployment>(object),
        "PodDisruptionBudget" => read_as::<policy::PodDisruptionBudget>(object),
        "ClusterRole" => read_as::<rbac::ClusterRole>(object),
        "ClusterRoleBinding" => read_as::<rbac::ClusterRoleBinding>(object),
        "Role" => read_as::<rbac::Role>(object),
        "RoleBinding" => read_as::<rbac::RoleBinding>(object),
        // Types of the Prometheus operator, which k8s-openapi does not have.
        "ServiceMonitor" | "PodMonitor" | "PrometheusRule" => return Ok(()),
        kind => return Err(format!("what is a {kind}?\n{object:#}")),
    };
    let read = read.map_err(|error| format!("{error}\n{object:#}"))?;
    let (written, read) = (comparable(object), comparable(&read));
    if written == read { Ok(()) } else { Err(format!("{written:#}\nis read as\n{read:#}")) }
}

/// Without fields that hold nothing, which the types leave out, and with quantities as text.
fn comparable(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key.clone(), comparable(value)))
            .collect(),
        Value::Array(list) => list.iter().map(comparable).collect(),
        Value::Number(number) => Value::String(number.to_string()),
        other => other.clone(),
    }
}
