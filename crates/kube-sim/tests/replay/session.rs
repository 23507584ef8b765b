//! One conversation with a simulator: sends what was recorded, with the recorded identities replaced by its own.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use openstack_ccm_kube_sim::{ApiVersion, Sim};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::compare;

/// A simulator, and what its values are called in the recordings.
pub(crate) struct Session {
    pub(crate) sim: Sim,
    /// Recorded value to own value: uids, resourceVersions, continue tokens.
    known: BTreeMap<String, String>,
    /// The token that was issued last.
    token: Option<String>,
}

const SERVICES: &str = "/api/v1/namespaces/default/services";

fn load_balancer(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}})
}

fn proxy() -> Value {
    json!({"status": {"loadBalancer": {"ingress": [{"ip": "10.240.0.200", "ipMode": "Proxy"}]}}})
}

impl Session {
    pub(crate) fn new(version: ApiVersion) -> Self {
        Self { sim: Sim::new(version), known: BTreeMap::new(), token: None }
    }

    /// Replays one file; returns the differences.
    pub(crate) async fn replay(&mut self, name: &str, different: &[(&str, usize, &str)]) -> Vec<String> {
        let path = format!("{}/tests/recorded/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let exchanges = file["exchanges"].as_array().unwrap();
        self.prepare(name, exchanges).await;
        let mut differences = Vec::new();
        for (number, exchange) in exchanges.iter().enumerate() {
            let answer = self.send(&exchange["request"]).await;
            let expected = &exchange["response"];
            let versions = self.learn(expected, &answer);
            let is_different = different.iter().any(|(file, index, _)| *file == name && *index == number);
            let difference = versions.or_else(|| compare::difference(expected, &answer));
            if let Some(difference) = difference.filter(|_| !is_different) {
                let (method, path) = (&exchange["request"]["method"], &exchange["request"]["path"]);
                differences.push(format!("{name} [{number}] {method} {path}\n{difference}"));
            }
        }
        differences
    }

    /// Requests that were sent for the recording and not recorded.
    async fn prepare(&mut self, name: &str, exchanges: &[Value]) {
        let sim = self.sim.clone();
        if name.ends_with("invalid-requests") {
            self.create(&load_balancer("twice")).await;
        } else if name.ends_with("status-validation") {
            let mut cluster = load_balancer("cluster");
            cluster["spec"]["type"] = "ClusterIP".into();
            self.create(&cluster).await;
        } else if name.ends_with("dry-run") {
            self.merge("web/status", json!({"status": {"loadBalancer": {"ingress": null}}})).await;
        } else if name.ends_with("conflict") {
            let made = self.create(&load_balancer("contended")).await;
            let _ = self.learn_metadata(&exchanges[0]["request"]["body"], &made);
            self.merge("contended", json!({"metadata": {"annotations": {"x": "1"}}})).await;
        } else if name.ends_with("finalizer") {
            self.create(&load_balancer("final")).await;
        } else if name.ends_with("-watch") {
            let recorded = "253".to_owned();
            self.known.insert(recorded, sim.resource_version().to_string());
            let mut other = Self { sim, known: BTreeMap::new(), token: None };
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                other.create(&load_balancer("watched")).await;
                other.merge("watched/status", proxy()).await;
                let path = format!("{SERVICES}/watched");
                other.send(&json!({"method": "DELETE", "path": path})).await;
            });
        } else if name.ends_with("watch-list") {
            // On the real server it had been through a server-side apply, which the simulator leaves out.
            self.create(&load_balancer("applied")).await;
        } else if name.ends_with("expired") {
            sim.compact();
        }
    }

    async fn create(&mut self, object: &Value) -> Value {
        let answer = self
            .send(&json!({"method": "POST", "path": SERVICES, "body": object, "contentType": "application/json"}))
            .await;
        assert_eq!(answer["status"], 201, "{answer}");
        serde_json::from_str(answer["text"].as_str().unwrap()).unwrap()
    }

    async fn merge(&mut self, path: &str, patch: Value) {
        let path = format!("{SERVICES}/{path}");
        let media_type = "application/merge-patch+json";
        let request = json!({"method": "PATCH", "path": path, "body": patch, "contentType": media_type});
        let answer = self.send(&request).await;
        assert_eq!(answer["status"], 200, "{answer}");
    }

    async fn send(&mut self, recorded: &Value) -> Value {
        let path = self.own_path(recorded["path"].as_str().unwrap());
        let mut request = Request::builder()
            .method(recorded["method"].as_str().unwrap())
            .uri(path)
            .header("accept", "application/json")
            .header("user-agent", "e2e-recorder/1");
        if let Some(content_type) = recorded["contentType"].as_str() {
            request = request.header("content-type", content_type);
        }
        if recorded["headers"]["Authorization"].is_string() {
            let token = self.token.as_deref().unwrap_or("not-a-token");
            request = request.header("authorization", format!("Bearer {token}"));
        } else if let Some(user) = recorded["user"].as_str() {
            let user = if user == "anonymous" { "system:anonymous" } else { user };
            request = request.header("impersonate-user", user);
        }
        let body = match &recorded["body"] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            body => self.own_values(body).to_string(),
        };
        let request = request.body(Full::new(Bytes::from(body))).unwrap();
        let response = self.sim.service().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let text = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
        // As the recorder did: of several headers of one name the last.
        let header =
            |name: &str| parts.headers.get_all(name).iter().next_back().map(|value| value.to_str().unwrap());
        let headers: BTreeMap<&str, &str> = ["content-type", "warning", "retry-after", "www-authenticate"]
            .into_iter()
            .filter_map(|name| Some((name, header(name)?)))
            .collect();
        json!({"status": parts.status.as_u16(), "headers": headers, "text": text})
    }

    fn own_path(&self, path: &str) -> String {
        let Some((path, query)) = path.split_once('?') else { return path.to_owned() };
        let query: Vec<String> = query
            .split('&')
            .map(|pair| match pair.split_once('=') {
                Some((key, value)) => {
                    format!("{key}={}", self.known.get(value).map_or(value, String::as_str))
                }
                None => pair.to_owned(),
            })
            .collect();
        format!("{path}?{}", query.join("&"))
    }

    fn own_values(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.known.get(text).unwrap_or(text).as_str().into(),
            Value::Array(items) => items.iter().map(|item| self.own_values(item)).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(key, field)| (key.clone(), self.own_values(field))).collect()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    /// Takes note of what the recorded values are called here. Returns what contradicts earlier answers: a
    /// resourceVersion that stayed in the recording must stay here, too.
    fn learn(&mut self, expected: &Value, answer: &Value) -> Option<String> {
        let own: Value = serde_json::from_str(answer["text"].as_str().unwrap()).unwrap_or_default();
        if let Some(token) = own.pointer("/status/token").and_then(Value::as_str) {
            self.token = Some(token.to_owned());
        }
        self.learn_metadata(&expected["body"], &own)
    }

    fn learn_metadata(&mut self, recorded: &Value, own: &Value) -> Option<String> {
        let mut contradiction = None;
        for field in ["uid", "resourceVersion", "continue"] {
            let values = (recorded["metadata"][field].as_str(), own["metadata"][field].as_str());
            let (Some(recorded), Some(own)) = values else { continue };
            let before = self.known.insert(recorded.to_owned(), own.to_owned());
            let same = self.known.iter().filter(|(_, known)| *known == own).count();
            if before.is_some_and(|before| before != own) || same > 1 {
                contradiction = Some(format!("  {field} {recorded} is {own}, which was another one before"));
            }
        }
        contradiction
    }
}
