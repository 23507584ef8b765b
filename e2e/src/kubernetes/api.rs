//! Calls to the API server as a test makes them: raw JSON, as the administrator.

use std::io::{BufRead, BufReader};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use reqwest::blocking::Client;
use reqwest::{Certificate, Identity, Method};
use serde_json::{Value, json};

use super::pki::Pki;
use crate::machine::answer::Answer;

/// The namespace of the Services of all scenarios.
pub(crate) const NAMESPACE: &str = "default";

/// For how long a watch is followed.
const WATCH: Duration = Duration::from_secs(900);

/// A client with all rights.
#[derive(Clone)]
pub(crate) struct Kubernetes {
    http: Client,
    url: String,
}

impl Kubernetes {
    /// A client with the administrator's certificate. Nothing is asked yet.
    pub(crate) fn administrator(pki: &Pki) -> Result<Self> {
        let mut identity = std::fs::read(pki.file("admin.crt"))?;
        identity.extend(std::fs::read(pki.file("admin.key"))?);
        let http = Client::builder()
            .use_rustls_tls()
            .tls_built_in_root_certs(false)
            .add_root_certificate(Certificate::from_pem(&std::fs::read(pki.file("ca.crt"))?)?)
            .identity(Identity::from_pem(&identity)?)
            .timeout(Duration::from_secs(30))
            // A server that is replaced leaves dead connections behind.
            .pool_max_idle_per_host(0)
            .build()?;
        Ok(Self { http, url: pki.server_url() })
    }

    /// The connections, for calls that are not of this type.
    pub(crate) fn http(&self) -> Client {
        self.http.clone()
    }

    fn call(&self, method: Method, path: &str, body: Option<(&str, &Value)>) -> Result<Answer> {
        let request = format!("{method} {path}");
        let mut builder = self.http.request(method, format!("{}{path}", self.url));
        if let Some((kind, body)) = body {
            builder = builder.header("Content-Type", kind).body(body.to_string());
        }
        let response = builder.send().with_context(|| request.clone())?;
        Answer::read(request, response)
    }

    /// GET, whatever the answer.
    pub(crate) fn raw(&self, path: &str) -> Result<Answer> {
        self.call(Method::GET, path, None)
    }

    /// GET of an object.
    pub(crate) fn get(&self, path: &str) -> Result<Value> {
        self.raw(path)?.success()
    }

    /// POST.
    pub(crate) fn create(&self, path: &str, object: &Value) -> Result<Value> {
        self.call(Method::POST, path, Some(("application/json", object)))?.success()
    }

    /// POST of an object that may be there already.
    pub(crate) fn ensure(&self, path: &str, object: &Value) -> Result<()> {
        let answer = self.call(Method::POST, path, Some(("application/json", object)))?;
        if answer.status == 409 { Ok(()) } else { answer.success().map(drop) }
    }

    /// PUT.
    pub(crate) fn replace(&self, path: &str, object: &Value) -> Result<Value> {
        self.call(Method::PUT, path, Some(("application/json", object)))?.success()
    }

    /// A merge patch.
    pub(crate) fn patch(&self, path: &str, change: &Value) -> Result<Value> {
        self.call(Method::PATCH, path, Some(("application/merge-patch+json", change)))?.success()
    }

    /// A strategic merge patch: lists with keys, such as conditions, are merged.
    pub(crate) fn patch_list(&self, path: &str, change: &Value) -> Result<()> {
        let kind = "application/strategic-merge-patch+json";
        self.call(Method::PATCH, path, Some((kind, change)))?.success().map(drop)
    }

    /// DELETE; an object that is not there is fine.
    pub(crate) fn delete(&self, path: &str) -> Result<()> {
        let answer = self.call(Method::DELETE, path, None)?;
        if answer.status == 404 { Ok(()) } else { answer.success().map(drop) }
    }

    /// GET of what the server goes on to send, line by line, for a quarter of an hour.
    pub(crate) fn watch(&self, path: &str) -> Result<impl BufRead + Send + use<>> {
        let answer = self.http.get(format!("{}{path}", self.url)).timeout(WATCH).send()?;
        Ok(BufReader::new(answer.error_for_status()?))
    }

    pub(crate) fn service_path(name: &str) -> String {
        format!("/api/v1/namespaces/{NAMESPACE}/services/{name}")
    }

    pub(crate) fn service(&self, name: &str) -> Result<Value> {
        self.get(&Self::service_path(name))
    }

    /// Fails unless the object is gone.
    pub(crate) fn gone(&self, path: &str) -> Result<()> {
        let answer = self.raw(path)?;
        if answer.status == 404 {
            return Ok(());
        }
        let finalizers = &answer.body["metadata"]["finalizers"];
        bail!("{path} is still there ({}), finalizers {finalizers}", answer.status)
    }

    /// What the status of a Service lists.
    pub(crate) fn ingress(&self, name: &str) -> Result<Value> {
        Ok(self.service(name)?["status"]["loadBalancer"]["ingress"].clone())
    }

    /// Writes a status as somebody else would.
    pub(crate) fn write_ingress(&self, name: &str, ingress: &Value) -> Result<Value> {
        let change = json!({"status": {"loadBalancer": {"ingress": ingress}}});
        let path = format!("{}/status", Self::service_path(name));
        Ok(self.patch(&path, &change)?["status"]["loadBalancer"]["ingress"].clone())
    }

    /// Reasons and notes of the events about a Service, without those about its cluster IP by the API server itself.
    pub(crate) fn events(&self, service: &str) -> Result<Vec<(String, String)>> {
        self.events_of_type(service, &["Normal", "Warning"])
    }

    /// The warnings among [`Kubernetes::events`].
    pub(crate) fn warnings(&self, service: &str) -> Result<Vec<(String, String)>> {
        self.events_of_type(service, &["Warning"])
    }

    fn events_of_type(&self, service: &str, types: &[&str]) -> Result<Vec<(String, String)>> {
        let list = self.get(&format!("/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events"))?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let repairs =
            |event: &Value| event["reason"].as_str().is_some_and(|reason| reason.starts_with("ClusterIP"));
        let of_type = |event: &Value| event["type"].as_str().is_some_and(|kind| types.contains(&kind));
        let about =
            |event: &&Value| event["regarding"]["name"] == service && of_type(event) && !repairs(event);
        Ok(items.iter().filter(about).map(|event| (text(&event["reason"]), text(&event["note"]))).collect())
    }
}
