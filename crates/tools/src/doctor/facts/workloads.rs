//! Gathers the pod templates of Deployments, DaemonSets, StatefulSets and CronJobs.

use kube::Client;
use kube::api::DynamicObject;
use kube::core::GroupVersionKind;
use openstack_ccm_doctor::facts::{Container, ContainerPort, Looked, Workload};
use serde_json::Value;

use super::reading::all_of;

/// Group, kind, plural, and the path of the pod template.
const KINDS: [(&str, &str, &str, &str); 4] = [
    ("apps", "Deployment", "deployments", "/spec/template/spec"),
    ("apps", "DaemonSet", "daemonsets", "/spec/template/spec"),
    ("apps", "StatefulSet", "statefulsets", "/spec/template/spec"),
    ("batch", "CronJob", "cronjobs", "/spec/jobTemplate/spec/template/spec"),
];

pub(super) async fn gather(client: &Client) -> Looked<Vec<Workload>> {
    let mut workloads = Vec::new();
    for (group, kind, plural, place) in KINDS {
        let objects = all_of(client, &GroupVersionKind::gvk(group, "v1", kind), plural).await?;
        workloads.extend(objects.iter().map(|object| workload(object, kind, place)));
    }
    Ok(workloads)
}

fn workload(object: &DynamicObject, kind: &str, place: &str) -> Workload {
    let empty = Value::Null;
    let spec = object.data.pointer(place).unwrap_or(&empty);
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    let aliases = spec["hostAliases"].as_array().into_iter().flatten();
    Workload {
        kind: kind.to_owned(),
        namespace: part(&object.metadata.namespace),
        name: part(&object.metadata.name),
        host_aliases: aliases.map(|alias| (text(&alias["ip"]), words(&alias["hostnames"]))).collect(),
        containers: containers(spec),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn words(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

/// Returns the containers of a pod.
pub(super) fn containers(spec: &Value) -> Vec<Container> {
    let containers = spec["containers"].as_array().into_iter().flatten();
    containers
        .map(|container| Container {
            image: text(&container["image"]),
            words: words(&container["command"]).into_iter().chain(words(&container["args"])).collect(),
            ports: container["ports"].as_array().into_iter().flatten().filter_map(port).collect(),
        })
        .collect()
}

fn port(port: &Value) -> Option<ContainerPort> {
    let number = u16::try_from(port["containerPort"].as_u64()?).ok()?;
    let protocol = port["protocol"].as_str().unwrap_or("TCP").to_owned();
    Some(ContainerPort { name: text(&port["name"]), number, protocol })
}
