//! cert-manager in a pod: its controllers with the types and rights of its own manifests. Its webhook, which checks what users
//! write, and its injector of authorities are not there.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;
use serde_json::{Value, json};

use super::api::{Kubernetes, NAMESPACE};
use super::authorization::token;
use super::manifests;
use super::server::ControlPlane;
use crate::artifacts::acme::CertManager as Programs;
use crate::machine::process::Daemon;
use crate::machine::wait::soon;
use crate::machine::world::in_namespace;
use crate::network::NodePlace;

/// Its ServiceAccount, and the namespace of that.
const NAME: &str = "cert-manager";
/// What its chart fills in by default where a template asks for one of the signers that it approves.
const SIGNER: &str = "issuers.cert-manager.io/*";

/// A running one.
pub(crate) struct CertManager {
    api: Kubernetes,
    daemon: Daemon,
}

impl CertManager {
    /// Starts it in the pod of a node, on a cluster that has not had it yet.
    pub(crate) fn start(plane: &ControlPlane, programs: &Programs, place: NodePlace) -> Result<Self> {
        let api = &plane.api;
        for object in types(programs)?.iter().chain(&rights(programs)?) {
            manifests::apply(api, object)?;
        }
        for kind in ["certificates", "issuers"] {
            soon(&format!("the server has {kind}"), || api.get(&path(kind)).map(drop))?;
        }
        let token = token(api, NAME, NAME, &json!({"expirationSeconds": 86400}))?;
        let kubeconfig = plane.pki.kubeconfig(NAME, &format!("token: {token}"))?;
        let mut command = in_namespace(&place.client(), programs.controller());
        command.arg("--kubeconfig").arg(kubeconfig).args(["--cluster-resource-namespace", NAME]);
        let daemon = Daemon::start(NAME, plane.folder(), &mut command)?;
        Ok(Self { api: api.clone(), daemon })
    }

    /// Makes an Issuer that proves names by HTTP-01, and waits until it has an account.
    pub(crate) fn add_issuer(&mut self, name: &str, server: &str, authority: &str) -> Result<()> {
        let solver = json!({"http01": {"ingress": {"ingressClassName": "nginx"}}});
        let issuer = json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": {"name": name},
            "spec": {"acme": {
                "server": server, "caBundle": STANDARD.encode(authority), "solvers": [solver],
                "privateKeySecretRef": {"name": format!("{name}-account")},
            }},
        });
        self.api.create(&path("issuers"), &issuer)?;
        soon(&format!("the Issuer {name} is ready"), || {
            self.daemon.check()?;
            let issuer = self.api.get(&format!("{}/{name}", path("issuers")))?;
            ensure!(is_ready(&issuer), "{}", issuer["status"]);
            Ok(())
        })
    }

    /// Asks for a certificate for a DNS name, which is also the name of Certificate and Secret.
    pub(crate) fn request(&self, dns_name: &str, issuer: &str) -> Result<()> {
        let certificate = json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": dns_name},
            "spec": {
                "secretName": dns_name, "dnsNames": [dns_name],
                "issuerRef": {"name": issuer, "kind": "Issuer"},
            },
        });
        self.api.create(&path("certificates"), &certificate).map(drop)
    }

    /// Whether the Certificate for a name is ready, and its conditions.
    pub(crate) fn certificate(&mut self, dns_name: &str) -> Result<(bool, Value)> {
        self.daemon.check()?;
        let certificate = self.api.get(&format!("{}/{dns_name}", path("certificates")))?;
        Ok((is_ready(&certificate), certificate["status"]["conditions"].clone()))
    }

    /// The chain in the Secret for a name; absent where there is no such Secret.
    pub(crate) fn chain(&self, dns_name: &str) -> Result<Option<Vec<u8>>> {
        let answer = self.api.raw(&format!("/api/v1/namespaces/{NAMESPACE}/secrets/{dns_name}"))?;
        if answer.status == 404 {
            return Ok(None);
        }
        let secret = answer.success()?;
        let text = secret["data"]["tls.crt"].as_str().context("the Secret has no certificate")?;
        Ok(Some(STANDARD.decode(text)?))
    }

    pub(crate) fn challenge(&mut self, dns_name: &str) -> Result<Value> {
        self.daemon.check()?;
        let path = format!("/apis/acme.cert-manager.io/v1/namespaces/{NAMESPACE}/challenges");
        let challenges = self.api.get(&path)?["items"].as_array().cloned().unwrap_or_default();
        let found = challenges.into_iter().find(|challenge| challenge["spec"]["dnsName"] == dns_name);
        found.with_context(|| format!("there is no Challenge for {dns_name}"))
    }

    /// Ends it.
    pub(crate) fn stop(self) -> Result<()> {
        self.daemon.stop()
    }
}

fn path(kind: &str) -> String {
    format!("/apis/cert-manager.io/v1/namespaces/{NAMESPACE}/{kind}")
}

fn is_ready(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// The definitions of its types.
fn types(programs: &Programs) -> Result<Vec<Value>> {
    let mut files: Vec<PathBuf> = Vec::new();
    for file in std::fs::read_dir(programs.manifest("deploy/crds"))? {
        files.push(file?.path());
    }
    let yaml = files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    let mut objects = Vec::new();
    for file in yaml {
        let text = std::fs::read_to_string(file)?;
        objects.extend(manifests::parse(text.trim_start_matches("---\n"))?);
    }
    ensure!(!objects.is_empty(), "cert-manager's sources define no types");
    Ok(objects)
}

/// Namespace, ServiceAccount, and the rights of its chart.
fn rights(programs: &Programs) -> Result<Vec<Value>> {
    let file = programs.manifest("deploy/charts/cert-manager/templates/rbac.yaml");
    let roles = rendered(&std::fs::read_to_string(&file).with_context(|| file.display().to_string())?)?;
    let mut objects = vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAME}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": NAME}}),
    ];
    objects.extend(manifests::parse(&roles)?);
    Ok(objects)
}

/// What the chart makes of a template by default, as far as its rights go: every condition holds, and all names are the chart's.
fn rendered(template: &str) -> Result<String> {
    let text = Regex::new(r"(?s)\{\{-?\s*/\*.*?\*/\s*-?\}\}")?.replace_all(template, "");
    let text = Regex::new(r"(?m)^\s*\{\{-.*\}\}\s*$")?.replace_all(&text, "");
    let text = text.replace("{{ .Values.global.leaderElection.namespace }}", "kube-system");
    let text = text.replace("{{ . | quote }}", &format!("{SIGNER:?}"));
    let text = Regex::new(r"\{\{ [^}]*\}\}")?.replace_all(&text, NAME);
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rights_of_a_chart_are_read_from_its_template() {
        let template = r#"{{- if .Values.create }}
kind: ClusterRole
metadata:
  name: {{ template "cert-manager.fullname" . }}-approve
  labels:
    {{- include "labels" . | nindent 4 }}
rules:
  {{- /*
    More than one line.
  */}}
  - resources: ["signers"]
    resourceNames:
    {{- range . }}
    - {{ . | quote }}
    {{- end }}
{{- end }}
"#;
        let objects = manifests::parse(&rendered(template).unwrap()).unwrap();
        assert_eq!(objects[0]["metadata"]["name"], "cert-manager-approve");
        assert_eq!(objects[0]["rules"][0]["resourceNames"], json!([SIGNER]));
    }
}
