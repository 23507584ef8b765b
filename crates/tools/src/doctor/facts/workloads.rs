//! Gathers the pod templates of Deployments, DaemonSets, StatefulSets and CronJobs.

use futures::future::try_join_all;
use kube::Client;
use kube::api::DynamicObject;
use kube::core::GroupVersionKind;
use openstack_ccm_doctor::facts::{Looked, Workload};

use super::reading::all_of;

/// Group, kind, plural, and the path of the pod template.
const KINDS: [(&str, &str, &str, &str); 4] = [
    ("apps", "Deployment", "deployments", "/spec/template/spec"),
    ("apps", "DaemonSet", "daemonsets", "/spec/template/spec"),
    ("apps", "StatefulSet", "statefulsets", "/spec/template/spec"),
    ("batch", "CronJob", "cronjobs", "/spec/jobTemplate/spec/template/spec"),
];

pub(super) async fn gather(client: &Client) -> Looked<Vec<Workload>> {
    let of_kind = |(group, kind, plural, place): (&'static str, &'static str, &'static str, &'static str)| async move {
        let objects = all_of(client, &GroupVersionKind::gvk(group, "v1", kind), plural).await?;
        Ok::<_, String>(objects.iter().map(|object| workload(object, kind, place)).collect::<Vec<_>>())
    };
    Ok(try_join_all(KINDS.map(of_kind)).await?.concat())
}

fn workload(object: &DynamicObject, kind: &str, place: &str) -> Workload {
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    let template = object.data.pointer(place).cloned().unwrap_or_default();
    Workload {
        kind: kind.to_owned(),
        namespace: part(&object.metadata.namespace),
        name: part(&object.metadata.name),
        pods: serde_json::from_value(template).unwrap_or_default(),
    }
}
