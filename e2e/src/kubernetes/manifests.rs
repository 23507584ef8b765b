//! The manifests of the repository, applied as `kubectl apply --kustomize manifests` does it. A test of the chart keeps them
//! what the chart renders by default.

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::api::Kubernetes;
use crate::artifacts::source;

const FOLDER: &str = "../manifests";

/// All objects, in the order of the kustomization.
pub(crate) fn all() -> Result<Vec<Value>> {
    let kustomization = documents("kustomization.yaml")?;
    let files = kustomization.first().and_then(|document| document["resources"].as_array());
    let mut objects = Vec::new();
    for file in files.context("the kustomization lists no resources")? {
        objects.extend(documents(file.as_str().context("a resource is no file")?)?);
    }
    Ok(objects)
}

/// Those of the canary.
pub(crate) fn canary() -> Result<Vec<Value>> {
    documents("canary/canary.yaml")
}

/// Those of the overlay beside the controllers of other clouds.
pub(crate) fn overlay() -> Result<Vec<Value>> {
    documents("ip-mode-overlay/controller.yaml")
}

/// Those of its canary.
pub(crate) fn canary_of_overlay() -> Result<Vec<Value>> {
    documents("ip-mode-overlay/canary/canary.yaml")
}

/// The objects of a YAML text.
pub(crate) fn parse(text: &str) -> Result<Vec<Value>> {
    text.split("\n---\n").map(|document| Ok(serde_saphyr::from_str(document)?)).collect()
}

pub(crate) fn text(file: &str) -> Result<String> {
    let path = source(FOLDER).join(file);
    std::fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))
}

/// The only object of a kind.
pub(crate) fn of_kind(kind: &str) -> Result<Value> {
    let found = all()?.into_iter().find(|object| object["kind"] == kind);
    found.with_context(|| format!("{FOLDER} has no {kind}"))
}

/// Creates an object, unless it is there. The server refuses fields that it does not know.
pub(crate) fn apply(api: &Kubernetes, object: &Value) -> Result<()> {
    api.ensure(&format!("{}?fieldValidation=Strict", collection(object)?), object)
}

/// Deletes an object, if it is there.
pub(crate) fn remove(api: &Kubernetes, object: &Value) -> Result<()> {
    let name = object["metadata"]["name"].as_str().context("an object has no name")?;
    api.delete(&format!("{}/{name}", collection(object)?))
}

/// The path of an object's siblings.
fn collection(object: &Value) -> Result<String> {
    let text = |key: &str| object[key].as_str().with_context(|| format!("{FOLDER}: an object has no {key}"));
    let version = text("apiVersion")?;
    let root = if version.contains('/') { "/apis" } else { "/api" };
    let namespace = object["metadata"]["namespace"].as_str();
    let scope = namespace.map_or(String::new(), |namespace| format!("/namespaces/{namespace}"));
    let kind = text("kind")?.to_lowercase();
    let plural = kind.strip_suffix('y').map_or_else(|| format!("{kind}s"), |stem| format!("{stem}ies"));
    Ok(format!("{root}/{version}{scope}/{plural}"))
}

fn documents(file: &str) -> Result<Vec<Value>> {
    parse(&text(file)?).with_context(|| format!("{FOLDER}/{file} is not YAML"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifests_hold_rights_and_workload() {
        let kinds: Vec<String> = all()
            .unwrap()
            .iter()
            .map(|object| object["kind"].as_str().unwrap_or_default().to_owned())
            .collect();
        assert!(
            ["ServiceAccount", "ClusterRole", "DaemonSet"].iter().all(|kind| kinds.contains(&(*kind).into()))
        );
        let text = serde_json::to_string(&all().unwrap()).unwrap();
        assert!(text.contains("services/status") && text.contains("leases"), "{text}");
    }

    #[test]
    fn objects_go_where_the_server_expects_them() {
        assert_eq!(
            collection(&of_kind("DaemonSet").unwrap()).unwrap(),
            "/apis/apps/v1/namespaces/kube-system/daemonsets"
        );
        assert_eq!(
            collection(&of_kind("ClusterRole").unwrap()).unwrap(),
            "/apis/rbac.authorization.k8s.io/v1/clusterroles"
        );
    }
}
