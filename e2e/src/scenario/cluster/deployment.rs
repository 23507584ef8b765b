//! From the manifests to pods that run.

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{CONTROL_PLANE, Deployment, SCENARIO};
use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::audit::Audit;
use crate::kubernetes::kubelet::Kubelets;
use crate::kubernetes::manager::Manager;
use crate::kubernetes::manifests;
use crate::kubernetes::pod::Pod;
use crate::machine::wait::soon;
use crate::network::NODES;
use crate::programs::controller::configuration;
use crate::scenario::machines::routes;
use crate::stage::Stage;

/// What operators add to the arguments for cloud routes, as docs/guides/cloud-routes.md says.
const ROUTES: &str = "--cluster-cidr=10.244.0.0/16";
const NAMESPACE: &str = "/api/v1/namespaces/kube-system";
const WORKLOADS: &str = "/apis/apps/v1/namespaces/kube-system/daemonsets/openstack-cloud-controller-manager";

/// Applies the manifests, makes the pods' processes and looks at them.
pub(super) fn run(stage: &mut Stage, audit: Audit) -> Result<Deployment> {
    let api = stage.api()?;
    let artifacts = stage.artifacts.clone();
    let plane = &stage.cluster()?.plane;
    let (kind, manager) = (plane.kind, Manager::start(plane, &artifacts)?);
    let kubelets = Kubelets::new(&api);
    for place in NODES {
        kubelets.register(place, kind, CONTROL_PLANE.contains(&place))?;
    }
    let mut cluster = Deployment { api, pods: Vec::new(), kubelets, audit, _manager: manager };
    stage.check(SCENARIO, "the manifests make a pod on each tainted node of the control plane", |stage| {
        apply(stage, &cluster.api)?;
        cluster.pods = pods(stage, &cluster.api)?;
        let names: Vec<&str> = cluster.pods.iter().map(|pod| pod.name.as_str()).collect();
        Ok(names.join(", "))
    });
    ensure!(cluster.pods.len() == CONTROL_PLANE.len(), "{} pods", cluster.pods.len());
    stage.check(SCENARIO, "both pods get ready with the arguments of the manifests", |_| {
        cluster.start()?;
        all_ready(&cluster.api)?;
        Ok(cluster.pods.iter().map(|pod| pod.command_line().join(" ")).collect::<Vec<_>>().join("; "))
    });
    stage.check(SCENARIO, "no pod has more than the manifests say: no root, nothing to write to", |_| {
        let seen: Vec<String> = cluster.pods.iter().map(Pod::is_confined).collect::<Result<_>>()?;
        Ok(seen.join("; "))
    });
    Ok(cluster)
}

/// The Secret that an operator makes, and all manifests.
fn apply(stage: &Stage, api: &Kubernetes) -> Result<()> {
    let text = configuration(&stage.cloud.networks, "") + &routes(stage)?;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cloud-config", "namespace": "kube-system"},
        "data": {"cloud.conf": STANDARD.encode(text)},
    });
    manifests::apply(api, &secret)?;
    for mut object in manifests::all()? {
        if object["kind"] == "DaemonSet" {
            let arguments = object.pointer_mut("/spec/template/spec/containers/0/args");
            arguments
                .and_then(Value::as_array_mut)
                .context("the DaemonSet has no arguments")?
                .push(json!(ROUTES));
        }
        manifests::apply(api, &object)?;
    }
    Ok(())
}

/// The pods of the DaemonSet, put on the nodes that its controller has made them for.
fn pods(stage: &Stage, api: &Kubernetes) -> Result<Vec<Pod>> {
    let list = format!("{NAMESPACE}/pods?labelSelector=app%3Dopenstack-cloud-controller-manager");
    let made = soon("the DaemonSet has its pods", || {
        let pods = api.get(&list)?["items"].as_array().cloned().unwrap_or_default();
        ensure!(pods.len() == CONTROL_PLANE.len(), "{} pods", pods.len());
        Ok(pods)
    })?;
    let folder = stage.cluster.as_ref().context("no cluster runs")?.plane.folder();
    let mut pods = Vec::new();
    for pod in made {
        let node = pod.pointer(concat!(
            "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution",
            "/nodeSelectorTerms/0/matchFields/0/values/0",
        ));
        let place = CONTROL_PLANE.into_iter().find(|place| node.is_some_and(|node| *node == place.name()));
        let place = place.with_context(|| format!("a pod is meant for {node:?}"))?;
        let path = format!("{NAMESPACE}/pods/{}", pod["metadata"]["name"].as_str().unwrap_or_default());
        bind(api, &path, &pod, &place.name())?;
        pods.push(Pod::new(api, api.get(&path)?, place, stage.program(), folder));
    }
    pods.sort_by_key(|pod| pod.place.0);
    Ok(pods)
}

/// What the scheduler does.
fn bind(api: &Kubernetes, path: &str, pod: &Value, node: &str) -> Result<()> {
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod["metadata"]["name"]},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    });
    api.create(&format!("{path}/binding"), &binding).map(drop)
}

fn all_ready(api: &Kubernetes) -> Result<()> {
    soon("the DaemonSet counts its pods as ready", || {
        let status = api.get(WORKLOADS)?["status"].clone();
        let (ready, wanted) = (&status["numberReady"], &status["desiredNumberScheduled"]);
        ensure!(ready == wanted && *wanted == CONTROL_PLANE.len(), "{ready} of {wanted}");
        Ok(())
    })
}
