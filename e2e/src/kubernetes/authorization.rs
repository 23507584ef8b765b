//! The ServiceAccount of the controller, with exactly the rights of the Helm chart.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::api::Kubernetes;
use super::manifests;

/// How long a token is good for that nobody renews, in seconds.
const LONG: u64 = 86400;

/// Makes the ServiceAccount and the chart's roles, and returns a token for it.
pub(crate) fn controller_token(api: &Kubernetes) -> Result<String> {
    for object in manifests::all()?.iter().filter(|object| object["kind"] != "DaemonSet") {
        manifests::apply(api, object)?;
    }
    let account = manifests::of_kind("ServiceAccount")?;
    let text =
        |key: &str| account["metadata"][key].as_str().with_context(|| format!("an account without {key}"));
    token(api, text("namespace")?, text("name")?, &json!({"expirationSeconds": LONG}))
}

/// A token for a ServiceAccount; `spec` is that of a TokenRequest.
pub(crate) fn token(api: &Kubernetes, namespace: &str, account: &str, spec: &Value) -> Result<String> {
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
    let answer = api.create(&path, &request)?;
    Ok(answer["status"]["token"].as_str().context("the answer has no token")?.to_owned())
}
