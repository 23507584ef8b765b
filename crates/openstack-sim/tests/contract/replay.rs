//! Sending recorded exchanges to the simulator.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use openstack_ccm_openstack_sim::{Service, Sim};
use serde_json::Value;

use crate::compare;
use crate::names::Names;
use crate::scenario;

/// One recorded exchange.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    pub(crate) name: String,
    pub(crate) service: String,
    pub(crate) caller: String,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) status: u64,
    record: Value,
}

/// The exchanges of a file in their order.
pub(crate) fn load(file: &str) -> Vec<Exchange> {
    let path = format!("{}/tests/recorded/{file}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    let records: Vec<Value> = serde_json::from_str(&text).unwrap();
    records
        .into_iter()
        .map(|record| {
            let text = |key: &str| record[key].as_str().unwrap_or_default().to_owned();
            Exchange {
                name: text("name"),
                service: text("service"),
                caller: text("as"),
                method: text("method"),
                path: text("path"),
                status: record["status"].as_u64().unwrap(),
                record,
            }
        })
        .collect()
}

impl Exchange {
    /// The recorded body; null when there was none.
    pub(crate) fn response(&self) -> &Value {
        &self.record["response"]
    }

    fn shows_pending(&self) -> bool {
        self.response().to_string().contains("\"PENDING_")
    }

    fn shows_status(&self) -> bool {
        self.response().to_string().contains("provisioning_status")
    }

    /// Whether the recorded answer can only have been given when Octavia had finished all work before it.
    fn needs_finished_work(&self) -> bool {
        if self.service != "octavia" {
            return false;
        }
        let text = self.response()["faultstring"].as_str().unwrap_or_default();
        if self.method == "GET" {
            let path = self.path.split('?').next().unwrap_or_default();
            let collection = ["loadbalancers", "listeners", "pools", "healthmonitors"];
            let is_list = collection.iter().any(|name| path.ends_with(name));
            return self.status == 404 || (self.shows_status() && !self.shows_pending() && !is_list);
        }
        let locked = text.contains("is immutable") || text.contains("Invalid state PENDING");
        let refused_unread = text.contains("Invalid input for field") || text.contains("Unknown attribute");
        !locked && !refused_unread
    }
}

/// A simulator and what is known about the recorded names.
#[derive(Debug)]
pub(crate) struct Replay {
    pub(crate) sim: Sim,
    pub(crate) names: Names,
    file: String,
    exchanges: Vec<Exchange>,
    tokens: BTreeMap<String, String>,
    differences: Vec<String>,
}

impl Replay {
    /// A fresh cloud in which nothing in Octavia finishes by itself.
    pub(crate) fn new(file: &str) -> Self {
        let sim = Sim::builder().nodes(0).build();
        sim.set_delays(Duration::from_secs(86_400));
        let mut names = Names::default();
        let seed = sim.seed();
        for (recorded, simulated) in [
            ("e8c6b006-8db7-4acc-80fb-e9180442a8df", &seed.subnet_id),
            ("0b014f41-121a-45fb-a7d4-f66f1c79390c", &seed.network_id),
            ("b05ec2df-4971-4c30-b619-bfa58e96c70b", &seed.public_network_id),
            ("bd0f3e0c-c581-4b1e-9163-8e9e7f1e8db2", &seed.router_id),
            ("9066a578d9e3492696bc3a5e7b65a92a", &seed.project_id),
            ("2fc08b4c8e65416b8c98bacce7e74850", &seed.user_id),
            ("9dc1fbf1-e73e-4837-be2c-8baa9372877b", &seed.flavor_id),
        ] {
            names.bind(recorded, simulated);
        }
        // Addresses that the recorded client chose itself, and well-known ones.
        for host in [50, 51, 53, 77, 200] {
            let address = format!("198.18.0.{host}");
            names.bind(&address, &address);
        }
        for fixed in ["127.0.0.1", "00000000-0000-0000-0000-000000000000", "198.18.0.0", "198.18.0.1"] {
            names.bind(fixed, fixed);
        }
        let users = ["demo", "admin", "plain"];
        let mut tokens: BTreeMap<String, String> =
            users.into_iter().map(|user| (user.to_owned(), sim.token_of(user))).collect();
        tokens.insert("revoked".to_owned(), sim.token());
        tokens.insert("bad token".to_owned(), "garbage".to_owned());
        names.bind("TOKEN-REVOKED", &tokens["revoked"]);
        names.bind("TOKEN-DEMO", &tokens["demo"]);
        Self { sim, names, file: file.to_owned(), exchanges: load(file), tokens, differences: Vec::new() }
    }

    /// How many exchanges the file has.
    pub(crate) fn exchanges(&self) -> usize {
        self.exchanges.len()
    }

    /// What differed, one line for each exchange.
    pub(crate) fn differences(&self) -> Vec<String> {
        self.differences.clone()
    }

    /// Replays the file.
    pub(crate) async fn run(&mut self) {
        for exchange in self.exchanges.clone() {
            scenario::prepare(self, &exchange.name);
            if scenario::NOT_SIMULATED.iter().any(|(name, _)| *name == exchange.name) {
                continue;
            }
            if exchange.needs_finished_work() {
                self.sim.settle();
            }
            let found = self.replay(&exchange).await;
            if !found.is_empty() {
                self.differences.push(format!("- {}: {}", exchange.name, found.join("; ")));
            }
        }
    }

    async fn replay(&mut self, exchange: &Exchange) -> Vec<String> {
        let leaked = self.sim.leaked_ports().len();
        let request = self.request(exchange);
        let service = catalog_type(&exchange.service);
        let response = self.sim.call(service, request).await.unwrap();
        let mut found = Vec::new();
        if u64::from(response.status().as_u16()) != exchange.status {
            let body = String::from_utf8_lossy(response.body()).into_owned();
            found.push(format!(
                "status: recorded {}, simulated {} {body}",
                exchange.status,
                response.status()
            ));
            return found;
        }
        self.compare_headers(exchange, &response, &mut found);
        self.compare_bodies(exchange, response.body(), &mut found);
        if let Some(expected) =
            exchange.record["ports_left_behind"].as_u64().filter(|_| exchange.status >= 400)
        {
            let left = (self.sim.leaked_ports().len() - leaked) as u64;
            if left != expected {
                found.push(format!("ports left behind: recorded {expected}, simulated {left}"));
            }
        }
        found
    }

    fn request(&self, exchange: &Exchange) -> Request<Bytes> {
        let path = self.names.translate(&exchange.path.replace("%3D", "="));
        let body = match &exchange.record["request"] {
            Value::Null => Bytes::new(),
            Value::String(raw) => Bytes::from(raw.clone()),
            body => Bytes::from(self.simulated_text(&body.to_string())),
        };
        let mut builder = Request::builder().method(exchange.method.as_str()).uri(escaped(&path));
        let token = match exchange.caller.as_str() {
            "none" => None,
            caller => Some(self.tokens.get(caller).unwrap_or_else(|| panic!("nobody is {caller}"))),
        };
        if let Some(token) = token {
            builder = builder.header("x-auth-token", token);
        }
        for (name, value) in exchange.record["request_headers"].as_object().into_iter().flatten() {
            builder = builder.header(name, self.names.translate(value.as_str().unwrap()));
        }
        builder.body(body).unwrap()
    }

    /// A recorded text with simulated names and URLs.
    fn simulated_text(&self, text: &str) -> String {
        self.names.translate(&self.with_simulated_urls(text))
    }

    fn with_simulated_urls(&self, text: &str) -> String {
        let ports = [
            (15000, Service::Identity),
            (15001, Service::Network),
            (15002, Service::LoadBalancer),
            (15003, Service::Compute),
            (15006, Service::KeyManager),
        ];
        ports.into_iter().fold(text.to_owned(), |text, (port, service)| {
            text.replace(&format!("http://127.0.0.1:{port}"), &self.sim.service_url(service))
        })
    }

    fn compare_headers(
        &mut self,
        exchange: &Exchange,
        response: &http::Response<Bytes>,
        found: &mut Vec<String>,
    ) {
        for (name, recorded) in exchange.record["headers"].as_object().into_iter().flatten() {
            let recorded = self.with_simulated_urls(recorded.as_str().unwrap());
            let simulated = response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
            if name == "Content-Type" {
                let has_body = !response.body().is_empty();
                if has_body && !simulated.is_some_and(|value| recorded.starts_with(&value)) {
                    found.push(format!("header Content-Type: recorded {recorded}"));
                }
                continue;
            }
            let Some(simulated) = simulated else {
                found.push(format!("header {name}: recorded {recorded}, simulated none"));
                continue;
            };
            if name == "X-Subject-Token" {
                self.learn_token(&recorded, &simulated);
            } else if !self.names.unify(&recorded, &simulated) {
                found.push(format!("header {name}: recorded {recorded}, simulated {simulated}"));
            }
        }
    }

    fn learn_token(&mut self, recorded: &str, simulated: &str) {
        self.names.bind(recorded, simulated);
        if let Some(caller) = recorded.strip_prefix("TOKEN-") {
            self.tokens.insert(caller.to_ascii_lowercase(), simulated.to_owned());
        }
    }

    fn compare_bodies(&mut self, exchange: &Exchange, body: &Bytes, found: &mut Vec<String>) {
        let recorded_text = self.with_simulated_urls(&exchange.response().to_string());
        let mut recorded: Value = serde_json::from_str(&recorded_text).unwrap();
        if recorded == "null" {
            recorded = Value::Null;
        }
        scenario::leave_out_unsimulated(&mut recorded);
        let simulated: Value = serde_json::from_slice(body).unwrap_or_default();
        if scenario::SHAPE_ONLY.iter().any(|(name, _)| *name == exchange.name) {
            found.extend(compare::shape_differences(&recorded, &simulated));
        } else {
            found.extend(compare::differences(&recorded, &simulated, &mut self.names));
        }
    }

    /// The file that is replayed.
    pub(crate) fn file(&self) -> &str {
        &self.file
    }
}

fn catalog_type(project: &str) -> &'static str {
    let service = Service::ALL.into_iter().find(|service| service.project_name() == project);
    service.map(Service::catalog_type).unwrap()
}

/// The recorder's client escapes what may not be in a path; the recording has it unescaped.
fn escaped(path: &str) -> String {
    path.replace('^', "%5E").replace(' ', "%20")
}
