//! Somebody who has the role of `--print-rbac`, and no other right.

use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::kubernetes::authorization::token;
use crate::kubernetes::manifests;
use crate::programs::terminal::Terminal;
use crate::scenario::plan::operator;
use crate::stage::Stage;

const ACCOUNT: &str = "doctor-reader";

/// Their terminal, with the cloud.conf of the operator.
pub(super) fn reader(stage: &mut Stage) -> Result<Terminal> {
    let printed = Command::new(stage.program()).args(["doctor", "--print-rbac"]).output()?;
    let text = String::from_utf8(printed.stdout).context("no text")?;
    let role: Value = serde_saphyr::from_str(&text)?;
    let api = stage.api()?;
    manifests::apply(&api, &role)?;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}});
    api.ensure("/api/v1/namespaces/kube-system/serviceaccounts", &account)?;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": ACCOUNT},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role["metadata"]["name"]},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": "kube-system"}],
    });
    manifests::apply(&api, &binding)?;
    let token = token(&api, "kube-system", ACCOUNT, &json!({"expirationSeconds": 86400}))?;
    let kubeconfig = stage.cluster()?.plane.pki.kubeconfig(ACCOUNT, &format!("token: {token}"))?;
    Ok(Terminal { kubeconfig, ..operator(stage)? })
}
