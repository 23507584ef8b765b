//! The ServiceAccount of the controller, with exactly the rights of the Helm chart.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::api::Kubernetes;
use crate::artifacts::source;

/// Namespace of the release.
const NAMESPACE: &str = "kube-system";

/// Makes the ServiceAccount and the chart's roles, and returns a token for it.
///
/// # Errors
/// The chart cannot be read, or the server refuses an object.
pub(crate) fn controller_token(api: &Kubernetes) -> Result<String> {
    let values = values()?;
    let account = values["serviceAccountName"].as_str().context("values.yaml has no serviceAccountName")?;
    let accounts = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts");
    let object = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}});
    api.ensure(&accounts, &object)?;
    let template = std::fs::read_to_string(source("../charts/openstack-ccm/templates/rbac.yaml"))?;
    for object in rights(&template, &values)? {
        let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
        let scope = object["metadata"]["namespace"]
            .as_str()
            .map_or(String::new(), |namespace| format!("/namespaces/{namespace}"));
        api.ensure(&format!("/apis/rbac.authorization.k8s.io/v1{scope}/{kind}s"), &object)?;
    }
    let request = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 86400},
    });
    let answer = api.create(&format!("{accounts}/{account}/token"), &request)?;
    Ok(answer["status"]["token"].as_str().context("the answer has no token")?.to_owned())
}

fn values() -> Result<Value> {
    let text = std::fs::read_to_string(source("../charts/openstack-ccm/values.yaml"))?;
    serde_saphyr::from_str(&text).context("values.yaml of the chart cannot be read")
}

/// The objects of the chart's template. Labels and annotations do not matter here: their lines are left out.
fn rights(template: &str, values: &Value) -> Result<Vec<Value>> {
    let mut text = String::new();
    for line in template.lines().filter(|line| !line.contains("{{- include") && line.trim() != "labels:") {
        text.push_str(&substitute(line, values)?);
        text.push('\n');
    }
    text.split("\n---")
        .filter(|document| document.contains("kind:"))
        .map(|document| serde_saphyr::from_str(document).context("rbac.yaml of the chart cannot be read"))
        .collect()
}

fn substitute(line: &str, values: &Value) -> Result<String> {
    let mut line = line.to_owned();
    while let Some((before, rest)) = line.split_once("{{") {
        let (expression, after) = rest.split_once("}}").context("an expression does not end on its line")?;
        let value = match expression.trim() {
            ".Release.Namespace" => NAMESPACE,
            path => {
                let key = path.strip_prefix(".Values.").with_context(|| format!("cannot render {path}"))?;
                values[key].as_str().with_context(|| format!("values.yaml has no {key}"))?
            }
        };
        line = format!("{before}{value}{after}");
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chart_grants_the_lease_and_the_status() {
        let template =
            std::fs::read_to_string(source("../charts/openstack-ccm/templates/rbac.yaml")).unwrap();
        let objects = rights(&template, &values().unwrap()).unwrap();
        let text = serde_json::to_string(&objects).unwrap();
        assert!(text.contains("services/status") && text.contains("leases"), "{text}");
        assert!(!text.contains("{{"), "{text}");
    }
}
