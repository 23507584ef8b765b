//! Who may read what the endpoints answer: asked of the real API server, with the rights that the manifests grant for it.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use reqwest::Identity;
use reqwest::blocking::Client;
use serde_json::json;

use super::{Deployment, SCENARIO};
use crate::kubernetes::api::NAMESPACE;
use crate::kubernetes::authorization::token;
use crate::kubernetes::pod::Pod;
use crate::machine::wait::soon;
use crate::stage::Stage;

/// A ServiceAccount that may read the metrics, and one that may not.
const ACCOUNTS: [&str; 2] = ["reader", "stranger"];
/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// All cases.
pub(super) fn run(stage: &mut Stage, cluster: &Deployment) {
    stage.check(SCENARIO, "who may read the metrics is asked of the API server", |stage| {
        let pod = cluster.pods.first().context("there is no pod")?;
        let own = metrics(cluster, pod)?;
        ensure!(own.contains("leader_election_master_status"), "no metrics for the reader");
        let stranger = token(&cluster.api, NAMESPACE, ACCOUNTS[1], &json!({}))?;
        let status = |client: &Client, token: Option<&str>| -> Result<u16> {
            let request = client.get(address(pod)?);
            let request = if let Some(token) = token { request.bearer_auth(token) } else { request };
            Ok(request.send()?.status().as_u16())
        };
        for (who, token, wanted) in
            [("the stranger", Some(stranger.as_str()), 403), ("a forged token", Some("forged"), 401), ("nobody", None, 403)]
        {
            let seen = status(&client()?, token)?;
            ensure!(seen == wanted, "{who}: {seen}");
        }
        let seen = status(&with_certificate(stage)?, None)?;
        ensure!(seen == 403, "a client certificate, which says nothing here: {seen}");
        Ok("a token with the right 200, one without 403, a forged one 401, none 403, nor does a client certificate help".into())
    });
}

fn allow_reader(cluster: &Deployment) -> Result<()> {
    for account in ACCOUNTS {
        let object = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}});
        cluster.api.ensure(&format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts"), &object)?;
    }
    let group = "rbac.authorization.k8s.io";
    let role = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": "metrics-reader"},
        "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
    });
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "metrics-reader"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "metrics-reader"},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNTS[0], "namespace": NAMESPACE}],
    });
    cluster.api.ensure(&format!("/apis/{group}/v1/clusterroles"), &role)?;
    cluster.api.ensure(&format!("/apis/{group}/v1/clusterrolebindings"), &binding)
}

/// A client without credentials, which each request makes anew: connections keep the identity that they were made with.
fn client() -> Result<Client> {
    Ok(Client::builder().danger_accept_invalid_certs(true).timeout(PATIENCE).build()?)
}

/// A client with the administrator's certificate.
fn with_certificate(stage: &Stage) -> Result<Client> {
    let pki = &stage.cluster.as_ref().context("no cluster runs")?.plane.pki;
    let mut identity = std::fs::read(pki.file("admin.crt"))?;
    identity.extend(std::fs::read(pki.file("admin.key"))?);
    let builder = Client::builder().use_rustls_tls().danger_accept_invalid_certs(true).timeout(PATIENCE);
    Ok(builder.identity(Identity::from_pem(&identity)?).build()?)
}

fn address(pod: &Pod) -> Result<String> {
    Ok(format!("{}/metrics", pod.endpoints()?))
}

/// The metrics of a pod, read with the token of an account that may.
fn metrics(cluster: &Deployment, pod: &Pod) -> Result<String> {
    allow_reader(cluster)?;
    let reader = token(&cluster.api, NAMESPACE, ACCOUNTS[0], &json!({}))?;
    // The authorizer of the server learns of a new role a moment later; a refusal is remembered for ten seconds.
    soon("the reader may read", || {
        let response = client()?.get(address(pod)?).bearer_auth(&reader).send()?;
        ensure!(response.status().is_success(), "{}", response.status());
        Ok(response.text()?)
    })
}

/// The value of a metric of the election.
pub(super) fn metric(cluster: &Deployment, pod: &Pod, name: &str) -> Result<u64> {
    let text = metrics(cluster, pod)?;
    let line =
        text.lines().find(|line| line.starts_with(name)).with_context(|| format!("no metric {name}"))?;
    let value = line.rsplit(' ').next().unwrap_or_default();
    value.parse().with_context(|| line.to_owned())
}
