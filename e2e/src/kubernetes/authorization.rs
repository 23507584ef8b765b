//! The ServiceAccount of the controller, with exactly the rights of the Helm chart.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::api::Kubernetes;
use crate::artifacts::source;

/// What the chart renders by default; a test of the chart keeps it fresh.
const RIGHTS: &str = "../manifests/rbac.yaml";

/// Makes the ServiceAccount and the chart's roles, and returns a token for it.
///
/// # Errors
/// The manifest cannot be read, or the server refuses an object.
pub(crate) fn controller_token(api: &Kubernetes) -> Result<String> {
    let objects = rights()?;
    let subject = objects.iter().find_map(|object| object["subjects"].get(0)).context("nobody is bound")?;
    let (account, namespace) = (text(subject, "name")?, text(subject, "namespace")?);
    let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
    let object = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}});
    api.ensure(&accounts, &object)?;
    for object in &objects {
        let kind = text(object, "kind")?.to_lowercase();
        let scope = object["metadata"]["namespace"]
            .as_str()
            .map_or(String::new(), |namespace| format!("/namespaces/{namespace}"));
        api.ensure(&format!("/apis/rbac.authorization.k8s.io/v1{scope}/{kind}s"), object)?;
    }
    let request = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 86400},
    });
    let answer = api.create(&format!("{accounts}/{account}/token"), &request)?;
    Ok(answer["status"]["token"].as_str().context("the answer has no token")?.to_owned())
}

fn text<'a>(object: &'a Value, key: &str) -> Result<&'a str> {
    object[key].as_str().with_context(|| format!("{RIGHTS}: an object has no {key}"))
}

fn rights() -> Result<Vec<Value>> {
    let text = std::fs::read_to_string(source(RIGHTS)).with_context(|| format!("{RIGHTS} cannot be read"))?;
    text.split("\n---\n")
        .map(|document| serde_saphyr::from_str(document).with_context(|| format!("{RIGHTS} is not YAML")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chart_grants_the_lease_and_the_status() {
        let text = serde_json::to_string(&rights().unwrap()).unwrap();
        assert!(text.contains("services/status") && text.contains("leases"), "{text}");
    }
}
