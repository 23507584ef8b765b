//! Gathers the pod templates of Deployments, DaemonSets, StatefulSets and CronJobs.

use futures::future::try_join_all;
use kube::Client;
use kube::api::DynamicObject;
use openstack_ccm_doctor::facts::{Looked, Workload};

use super::reading::{Named, all_of};

/// Kinds, each with the path of the pod template.
const KINDS: [(Named, &str); 4] = [
    (("apps", "v1", "Deployment", "deployments"), "/spec/template/spec"),
    (("apps", "v1", "DaemonSet", "daemonsets"), "/spec/template/spec"),
    (("apps", "v1", "StatefulSet", "statefulsets"), "/spec/template/spec"),
    (("batch", "v1", "CronJob", "cronjobs"), "/spec/jobTemplate/spec/template/spec"),
];

pub(super) async fn gather(client: &Client) -> Looked<Vec<Workload>> {
    let of_kind = |(of, place): (Named, &'static str)| async move {
        let objects = all_of(client, of).await?;
        Ok::<_, String>(objects.iter().map(|object| workload(object, of.2, place)).collect::<Vec<_>>())
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
