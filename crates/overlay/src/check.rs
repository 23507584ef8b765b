//! Reports for each Service the published entries, the wanted entries, and why. Only reads, apart from a dry-run write by which it
//! learns whether the API server keeps `ipMode`.

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{LoadBalancerIngress, Node, Service};
use kube::api::ListParams;
use kube::{Api, Client};
use openstack_ccm_advertise::Mode;
use openstack_ccm_advertise::canary::measured_now;
use openstack_ccm_advertise::cluster::{Cluster, ServerSupport};
use openstack_ccm_advertise::measured::Measured;
use openstack_ccm_advertise::metrics::AdvertiseMetrics;
use openstack_ccm_advertise::server::{Intervals, ServerDetection};
use openstack_ccm_advertise::writer::StatusWriter;
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_runtime::call::{CallError, call};
use serde_json::{Value, json};

use crate::CALL_TIMEOUT;
use crate::cleanup::services;
use crate::controller::OverlayOptions;
use crate::names::{MODE_ANNOTATION, PROGRAM};
use crate::nodes::Nodes;
use crate::service::{ingress, is_load_balancer, key};
use crate::wanted_status::{Plan, State, View, plan};

/// The result of a check of the cluster.
#[derive(Clone, Debug)]
pub struct Report {
    /// What the cluster honours.
    pub cluster: Cluster,
    /// All Services of type LoadBalancer, by name.
    pub services: Vec<Row>,
}

/// The result for one Service.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub service: ServiceKey,
    pub published: Published,
    pub wanted: Published,
    pub why: String,
    /// Whether nodes still short-circuit a chosen Service, or the wanted entries are not known.
    pub is_short_circuited: bool,
}

impl Report {
    /// Returns whether clients reach every chosen Service that may be touched through its load balancer.
    pub fn is_green(&self) -> bool {
        !self.services.iter().any(|row| row.is_short_circuited)
    }
}

impl Report {
    /// Returns the report as JSON.
    pub fn json(&self) -> Value {
        let server = match self.cluster.server {
            ServerSupport::Keeps => json!(true),
            ServerSupport::Drops => json!(false),
            ServerSupport::Unknown => Value::Null,
        };
        let services: Vec<Value> = self.services.iter().map(Row::json).collect();
        json!({
            "version": 1,
            "ok": self.is_green(),
            "api_server_keeps_ip_mode": server,
            "obstacle": self.cluster.obstacle().map(|obstacle| obstacle.to_string()),
            "services": services,
        })
    }
}

impl Row {
    fn json(&self) -> Value {
        let ServiceKey { namespace, name } = &self.service;
        json!({
            "namespace": **namespace,
            "name": **name,
            "published": self.published.0,
            "wanted": self.wanted.0,
            "reason": self.why,
            "ok": !self.is_short_circuited,
        })
    }
}

/// Status entries, as the report shows them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Published(Vec<LoadBalancerIngress>);

impl fmt::Display for Published {
    /// `203.0.113.1 Proxy, lb.example.org`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = |entry: &LoadBalancerIngress| {
            let parts = [entry.hostname.as_deref(), entry.ip.as_deref(), entry.ip_mode.as_deref()];
            parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
        };
        let text = self.0.iter().map(one).collect::<Vec<_>>().join(", ");
        f.write_str(if text.is_empty() { "-" } else { &text })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = match self.cluster.server {
            ServerSupport::Keeps => "keeps ipMode",
            ServerSupport::Drops => {
                "drops ipMode (it is older than 1.29, or feature gate LoadBalancerIPMode is off)"
            }
            ServerSupport::Unknown => "did not tell whether it stores ipMode",
        };
        writeln!(f, "API server: {server}")?;
        match self.cluster.obstacle() {
            None => writeln!(f, "Nodes: all honour ipMode")?,
            Some(obstacle) => writeln!(f, "Obstacle: {obstacle}")?,
        }
        let rows = self.services.iter().map(|Row { service, published, wanted, why, .. }| {
            [service.to_string(), published.to_string(), wanted.to_string(), why.clone()]
        });
        let head = ["SERVICE", "PUBLISHED", "SHOULD BE", "WHY"].map(str::to_owned);
        let lines: Vec<[String; 4]> = std::iter::once(head).chain(rows).collect();
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let [a, b, c] = [0, 1, 2].map(width);
        writeln!(f)?;
        lines.iter().try_for_each(|[service, published, wanted, why]| {
            writeln!(f, "{service:a$}  {published:b$}  {wanted:c$}  {why}")
        })
    }
}

/// Checks a cluster.
///
/// # Errors
/// Services, nodes or the pods of the canary could not be listed.
pub async fn check(client: &Client, options: &OverlayOptions) -> Result<Report, CallError> {
    let gate = options.ip_mode_gate;
    let mut services = services(client, &options.rules).await?;
    services.retain(is_load_balancer);
    services.sort_by_key(key);
    let nodes = call(CALL_TIMEOUT, Api::<Node>::all(client.clone()).list(&ListParams::default())).await?;
    let measured = match &options.canary {
        Some(canary) => measured_now(client, canary, CALL_TIMEOUT).await?,
        None => Measured::by_nobody(),
    };
    let nodes = Nodes::of(&nodes.items, &measured.now(), Timestamp::now());
    let writer = StatusWriter::new(client.clone(), CALL_TIMEOUT, PROGRAM);
    let intervals = Intervals { probe: CALL_TIMEOUT, version: CALL_TIMEOUT };
    let detection =
        ServerDetection::new(client.clone(), writer, gate, intervals, AdvertiseMetrics::default());
    let server = match services.first() {
        Some(candidate) => detection.server(&key(candidate)).await,
        None => ServerSupport::Unknown,
    };
    let cluster = Cluster { gate, server, data_plane: nodes.fitness };
    let view = View {
        rules: &options.rules,
        cluster: &cluster,
        node_addresses: &nodes.addresses,
        hostname_suffix: options.hostname_suffix.as_deref(),
    };
    let services = services.iter().map(|service| row(service, plan(service, &view))).collect();
    Ok(Report { cluster, services })
}

fn row(service: &Service, plan: Plan) -> Row {
    let published = Published(ingress(service).to_vec());
    let changes = plan.write.is_some();
    let wanted = plan.write.map_or_else(|| published.clone(), Published);
    let (why, is_short_circuited) = match plan.state {
        State::NotChosen => ("not selected by any rule".to_owned(), false),
        State::Vip => ("its annotation requests vip".to_owned(), false),
        State::Unreadable => (unreadable(service), true),
        State::Waiting(chosen) => (format!("{chosen}; no address is published yet"), false),
        State::Refused(chosen, refusal) => (format!("{chosen}; not changed: {refusal}"), false),
        State::ServerUnknown(chosen) => {
            (format!("{chosen}; not changed: the API server did not tell whether it stores ipMode"), true)
        }
        State::Decided(chosen, decided) => {
            let why = decided.warning.unwrap_or_else(|| decided.reason.to_string());
            (format!("{chosen}: {why}"), changes || decided.mode == Mode::Vip)
        }
    };
    Row { service: key(service), published, wanted, why, is_short_circuited }
}

/// Describes the invalid value of the annotation that chooses a mode.
fn unreadable(service: &Service) -> String {
    let value = service.metadata.annotations.as_ref().and_then(|all| all.get(MODE_ANNOTATION));
    format!(
        "{MODE_ANNOTATION}: {:?} is not a valid value; use proxy or vip",
        value.map_or("", String::as_str)
    )
}
