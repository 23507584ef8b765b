//! One of the two sides that are compared: addresses, tokens, and how its worker is made to fail.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use openstack_ccm_openstack_sim::{OperationKind, Sim, WorkerFault};
use reqwest::Certificate;
use reqwest::blocking::{Client, RequestBuilder};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::pki::Pki;
use crate::machine::answer::Answer;
use crate::machine::wait::soon;
use crate::network::Networks;
use crate::openstack::Folders;
use crate::openstack::api::{self, OpenStack};
use crate::openstack::compute;
use crate::openstack::faults::Faults;

/// A token that nobody issued.
const FORGED: &str = "gAAAAABforged";

/// One request, and what of its answer matters.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Call {
    /// Method, catalog type of the service (OpenStack only), path.
    pub call: String,
    /// Who asks: `admin`, `nobody` (with a token that nobody issued), `unknown` (without one), or a token.
    #[serde(rename = "as", default)]
    pub who: Option<String>,
    /// Content type of the body, unless it is plain JSON.
    #[serde(default)]
    pub kind: Option<String>,
    /// Further headers.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    #[serde(default)]
    pub body: Option<Value>,
    /// How many lines of an endless answer are read; the body is then the list of them.
    #[serde(default)]
    pub lines: Option<usize>,
    /// Values for later calls: name and JSON pointer.
    #[serde(default)]
    pub(super) keep: BTreeMap<String, String>,
    /// JSON pointers to values that are compared.
    #[serde(default)]
    pub(super) show: Vec<String>,
    /// JSON pointers to values that are the same as earlier ones on the real service: that is what is compared.
    #[serde(default)]
    pub(super) same: BTreeMap<String, String>,
    /// Names of those who are not asked, because they would never end or answer no JSON.
    #[serde(default)]
    pub(super) except: Vec<String>,
}

/// Who does the work behind the API.
pub(crate) enum Worker {
    /// Nobody.
    None,
    /// The real worker of Octavia.
    Real {
        /// Where its drivers look for faults.
        folders: Folders,
        /// The faults in force.
        faults: Option<Faults>,
    },
    Simulated(Sim),
}

/// An API that can be talked to.
pub(crate) struct Side {
    /// With the credentials of an administrator, where those belong to the connection.
    http: Client,
    /// Without.
    anonymous: Client,
    /// URLs by catalog type; for Kubernetes by the empty text.
    urls: BTreeMap<String, String>,
    /// Tokens by user; `demo` asks where a call names nobody.
    tokens: BTreeMap<String, String>,
    /// Values that conversations know from the beginning.
    pub constants: BTreeMap<String, String>,
    worker: Worker,
}

impl Side {
    /// The real OpenStack of a world.
    pub(crate) fn openstack(user: &OpenStack, networks: &Networks, folders: &Folders) -> Result<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let cluster = user.get("network", &format!("/v2.0/networks/{}", networks.cluster))?;
        let routers = user.list("network", "/v2.0/routers?name=cluster", "routers")?;
        let router = routers.first().context("there is no router")?;
        let constants = [
            ("subnet", networks.cluster_subnet.clone()),
            ("network", networks.cluster.clone()),
            ("public", networks.public.clone()),
            ("project", text(&cluster["network"]["project_id"])),
            ("router", text(&router["id"])),
            ("password", "e2e".to_owned()),
        ];
        let tokens = ["demo", "admin"]
            .map(|user| Ok((user.to_owned(), OpenStack::log_in(user)?.token().to_owned())))
            .into_iter()
            .collect::<Result<_>>()?;
        let urls = ["identity", "network", "load-balancer", "key-manager", "compute"]
            .map(|service| (service.to_owned(), api::root(service).to_owned()));
        let worker = Worker::Real { folders: folders.clone(), faults: None };
        Self::new(urls.into(), tokens, owned(&constants), worker)
    }

    /// The same with what servers are made of.
    pub(crate) fn with_servers(mut self, user: &OpenStack) -> Result<Self> {
        let (flavor, image) = compute::flavor_and_image(user)?;
        self.constants.extend(owned(&[("flavor", flavor), ("image", image)]));
        Ok(self)
    }

    /// The real API server of a cluster.
    pub(crate) fn kubernetes(pki: &Pki) -> Result<Self> {
        let urls = BTreeMap::from([(String::new(), pki.server_url())]);
        let mut side = Self::new(urls, BTreeMap::new(), BTreeMap::new(), Worker::None)?;
        side.http = Kubernetes::administrator(pki)?.http();
        side.anonymous = Client::builder()
            .use_rustls_tls()
            .tls_built_in_root_certs(false)
            .add_root_certificate(Certificate::from_pem(&std::fs::read(pki.file("ca.crt"))?)?)
            .timeout(Duration::from_secs(30))
            .build()?;
        Ok(side)
    }

    /// Any other.
    pub(crate) fn new(
        urls: BTreeMap<String, String>,
        tokens: BTreeMap<String, String>,
        constants: BTreeMap<String, String>,
        worker: Worker,
    ) -> Result<Self> {
        // Redirections are answers, too.
        let http = Client::builder()
            .timeout(Duration::from_secs(60))
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        Ok(Self { anonymous: http.clone(), http, urls, tokens, constants, worker })
    }

    /// Makes a call.
    pub(crate) fn send(&self, call: &Call) -> Result<Answer> {
        let words: Vec<&str> = call.call.splitn(3, ' ').collect();
        let (method, service, path) = match words[..] {
            [method, path] => (method, "", path),
            [method, service, path] => (method, service, path),
            _ => bail!("a call is a method, a service and a path"),
        };
        let url = self.urls.get(service).with_context(|| format!("there is no service {service}"))?;
        let anonymous = matches!(call.who.as_deref(), Some(who) if !self.tokens.contains_key(who));
        let client = if anonymous { &self.anonymous } else { &self.http };
        let mut request = client.request(method.parse()?, format!("{url}{path}"));
        request = self.identified(request, service, call.who.as_deref());
        for (name, value) in &call.headers {
            request = request.header(name, value);
        }
        if let Some(body) = &call.body {
            let kind = call.kind.as_deref().unwrap_or("application/json");
            request = request.header("Content-Type", kind).body(body.to_string());
        }
        let response = request.send()?;
        let Some(lines) = call.lines else { return Answer::read(call.call.clone(), response) };
        let status = response.status().as_u16();
        let read = BufReader::new(response).lines().take(lines);
        let body = read.map(|line| Ok(serde_json::from_str::<Value>(&line?)?)).collect::<Result<Value>>()?;
        Ok(Answer { request: call.call.clone(), status, body })
    }

    fn identified(&self, request: RequestBuilder, service: &str, who: Option<&str>) -> RequestBuilder {
        let token = match who {
            Some("unknown") => return request,
            Some("nobody") => FORGED,
            Some(who) => self.tokens.get(who).map_or(who, String::as_str),
            None => match self.tokens.get("demo") {
                Some(token) => token,
                None => return request,
            },
        };
        if service.is_empty() { request.bearer_auth(token) } else { request.header("X-Auth-Token", token) }
    }

    /// Waits until a load balancer or a server has no work before it any more. The status tree of a load balancer includes its children
    /// too: with ovn they are at work for longer.
    pub(crate) fn settle(&self, path: &str) -> Result<()> {
        if let Worker::Simulated(sim) = &self.worker {
            sim.settle();
            return Ok(());
        }
        let call = look_at(path)?;
        soon(&format!("{path} has settled"), || {
            let body = self.send(&call)?.body;
            let status = body["loadbalancer"]["provisioning_status"].as_str().unwrap_or_default();
            ensure!(!status.starts_with("PENDING"), "{status}");
            let statuses = body["statuses"].to_string();
            ensure!(!statuses.contains("PENDING_"), "{statuses}");
            let (status, task) = (&body["server"]["status"], &body["server"]["OS-EXT-STS:task_state"]);
            ensure!(task.is_null() && *status != "BUILD", "{status} {task}");
            Ok(())
        })
    }

    /// Waits until a load balancer or a server is gone: what deletes it may begin a moment after it was asked to.
    pub(crate) fn gone(&self, path: &str) -> Result<()> {
        if let Worker::Simulated(sim) = &self.worker {
            sim.settle();
            return Ok(());
        }
        let call = look_at(path)?;
        soon(&format!("{path} is gone"), || {
            let status = self.send(&call)?.status;
            ensure!(status == 404, "{status}");
            Ok(())
        })
    }

    /// Makes the worker wait or fail from now on.
    pub(crate) fn fault(&mut self, name: &str) -> Result<()> {
        let (rule, rules) = match name {
            "hold" => (Some(WorkerFault::hold(None)), json!([{"operation": "compute_build", "hold": true}])),
            "fail-create" => (
                Some(WorkerFault::fail(OperationKind::LoadBalancerCreate).times(1)),
                json!([{"operation": "compute_build", "raise": "no capacity", "times": 1}]),
            ),
            "fail-batch" => (
                Some(WorkerFault::fail(OperationKind::MemberBatch).times(1)),
                json!([{"operation": "upload_config", "raise": "agent is busy", "times": 1}]),
            ),
            "none" => (None, json!([])),
            _ => bail!("there is no fault {name}"),
        };
        match &mut self.worker {
            Worker::None => bail!("there is no worker that could fail"),
            Worker::Real { folders, faults } => {
                *faults = None;
                if let Some(rules) = rules.as_array().filter(|rules| !rules.is_empty()) {
                    *faults = Some(Faults::inject(folders, rules)?);
                }
            }
            Worker::Simulated(sim) => {
                sim.faults().clear();
                if let Some(rule) = rule {
                    sim.faults().add_worker(rule);
                }
            }
        }
        Ok(())
    }
}

fn look_at(path: &str) -> Result<Call> {
    let service = if path.contains("/servers/") { "compute" } else { "load-balancer" };
    Ok(serde_json::from_value(json!({"call": format!("GET {service} {path}")}))?)
}

/// Constants with names of their own.
pub(crate) fn owned(constants: &[(&str, String)]) -> BTreeMap<String, String> {
    constants.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}
