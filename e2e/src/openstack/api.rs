//! Calls to OpenStack as a test makes them: raw JSON, with the tokens of the two users.

use std::time::Duration;

use anyhow::{Context as _, Result};
use reqwest::Method;
use reqwest::blocking::{Client, RequestBuilder};
use serde_json::{Value, json};

use crate::machine::answer::Answer;

/// Address of Keystone.
pub(crate) const KEYSTONE: &str = "http://127.0.0.1:5000/v3";
const NEUTRON: &str = "http://127.0.0.1:9696";
const OCTAVIA: &str = "http://127.0.0.1:9876";
const BARBICAN: &str = "http://127.0.0.1:9311";
const NOVA: &str = "http://127.0.0.1:8774";
const GLANCE: &str = "http://127.0.0.1:9292";

/// The URL of a service without version, by its type in the catalog.
pub(crate) fn root(service: &str) -> &'static str {
    match service {
        "network" => NEUTRON,
        "load-balancer" => OCTAVIA,
        "compute" => NOVA,
        "image" => GLANCE,
        "identity" => KEYSTONE.trim_end_matches("/v3"),
        _ => BARBICAN,
    }
}

/// A logged-in user.
pub(crate) struct OpenStack {
    http: Client,
    token: String,
}

impl OpenStack {
    /// Logs in with a name, which is also the name of the project: `demo` or `admin`.
    ///
    /// # Errors
    /// Keystone does not answer or refuses.
    pub(crate) fn log_in(user: &str) -> Result<Self> {
        let domain = json!({"id": "default"});
        let body = json!({"auth": {
            "identity": {"methods": ["password"], "password": {"user": {"name": user, "domain": domain, "password": "e2e"}}},
            "scope": {"project": {"name": user, "domain": domain}},
        }});
        Self::authenticate(&body).with_context(|| format!("{user} cannot log in"))
    }

    /// Logs in with an application credential, as Keystone answered when it was made.
    ///
    /// # Errors
    /// As for [`OpenStack::log_in`].
    pub(crate) fn log_in_with(credential: &Value) -> Result<Self> {
        let credential = json!({"id": credential["id"], "secret": credential["secret"]});
        let body = json!({"auth": {
            "identity": {"methods": ["application_credential"], "application_credential": credential},
        }});
        Self::authenticate(&body).context("the application credential is refused")
    }

    /// Logs in as somebody whom an authentication module in front of Keystone has let in. The token has no scope.
    ///
    /// # Errors
    /// As for [`OpenStack::log_in`].
    pub(crate) fn log_in_at(provider: &str, protocol: &str) -> Result<Self> {
        let path = format!("/OS-FEDERATION/identity_providers/{provider}/protocols/{protocol}/auth");
        Self::with_token_of(|http| http.post(format!("{KEYSTONE}{path}")))
            .context("the federated login is refused")
    }

    /// The same user in a project.
    ///
    /// # Errors
    /// As for [`OpenStack::log_in`].
    pub(crate) fn in_project(&self, id: &str) -> Result<Self> {
        let body = json!({"auth": {
            "identity": {"methods": ["token"], "token": {"id": self.token}},
            "scope": {"project": {"id": id}},
        }});
        Self::authenticate(&body).context("the token gets no scope")
    }

    fn authenticate(body: &Value) -> Result<Self> {
        Self::with_token_of(|http| http.post(format!("{KEYSTONE}/auth/tokens")).json(body))
    }

    fn with_token_of(request: impl FnOnce(&Client) -> RequestBuilder) -> Result<Self> {
        let http = Client::builder().timeout(Duration::from_secs(60)).build()?;
        let response = request(&http).send()?;
        let token = response.headers().get("X-Subject-Token").and_then(|value| value.to_str().ok());
        let token = token.with_context(|| response.status().to_string())?.to_owned();
        Ok(Self { http, token })
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// What Keystone says of the token.
    ///
    /// # Errors
    /// It cannot be asked.
    pub(crate) fn about_token(&self) -> Result<Value> {
        let request = self.http.get(format!("{KEYSTONE}/auth/tokens"));
        let own = ["X-Auth-Token", "X-Subject-Token"];
        let request = own.iter().fold(request, |request, name| request.header(*name, &self.token));
        Answer::read("GET identity /auth/tokens".to_owned(), request.send()?)?.success()
    }

    /// Any call. `service` is a type in the catalog, such as `network`.
    ///
    /// # Errors
    /// The service cannot be reached.
    pub(crate) fn call(
        &self,
        service: &str,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer> {
        let base = if service == "identity" { KEYSTONE } else { root(service) };
        let request = format!("{method} {service} {path}");
        let mut builder =
            self.http.request(method, format!("{base}{path}")).header("X-Auth-Token", &self.token);
        if let Some(body) = body {
            builder = builder.json(body);
        }
        let response = builder.send().with_context(|| request.clone())?;
        Answer::read(request, response)
    }

    /// GET.
    ///
    /// # Errors
    /// As for [`OpenStack::call`], and any status that is no success.
    pub(crate) fn get(&self, service: &str, path: &str) -> Result<Value> {
        self.call(service, Method::GET, path, None)?.success()
    }

    /// GET of a list, by the key that holds it.
    ///
    /// # Errors
    /// As for [`OpenStack::get`].
    pub(crate) fn list(&self, service: &str, path: &str, key: &str) -> Result<Vec<Value>> {
        let body = self.get(service, path)?;
        body[key].as_array().cloned().with_context(|| format!("{path} answered without {key}"))
    }

    /// POST.
    ///
    /// # Errors
    /// As for [`OpenStack::call`].
    pub(crate) fn post(&self, service: &str, path: &str, body: &Value) -> Result<Answer> {
        self.call(service, Method::POST, path, Some(body))
    }

    /// PUT.
    ///
    /// # Errors
    /// As for [`OpenStack::call`].
    pub(crate) fn put(&self, service: &str, path: &str, body: &Value) -> Result<Answer> {
        self.call(service, Method::PUT, path, Some(body))
    }

    /// DELETE.
    ///
    /// # Errors
    /// As for [`OpenStack::call`].
    pub(crate) fn delete(&self, service: &str, path: &str) -> Result<Answer> {
        self.call(service, Method::DELETE, path, None)
    }

    /// All load balancers of the project.
    ///
    /// # Errors
    /// As for [`OpenStack::list`].
    pub(crate) fn load_balancers(&self) -> Result<Vec<Value>> {
        self.list("load-balancer", "/v2/lbaas/loadbalancers", "loadbalancers")
    }

    /// The load balancer whose name contains a text, such as the name of the Service.
    ///
    /// # Errors
    /// There is none, or more than one.
    pub(crate) fn load_balancer(&self, part: &str) -> Result<Value> {
        let mut found = self.load_balancers()?;
        found.retain(|balancer| balancer["name"].as_str().is_some_and(|name| name.contains(part)));
        anyhow::ensure!(found.len() == 1, "{} load balancers have {part} in their name", found.len());
        found.pop().context("no load balancer")
    }
}
